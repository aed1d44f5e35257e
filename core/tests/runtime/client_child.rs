//! Servers as child processes: regular, legacy, crashing, noisy, and ones that do not exit.

use std::{path::PathBuf, time::Duration};

use gudgeon::{client::Client, error::ErrorKind, protocol::Revision, transport::Command};
use serde_json::json;

/// A server that knows `initialize`, `tools/list` and `tools/call`; `odd` is put where a message is handled.
fn server(before: &str, odd: &str) -> Command {
    Command::new("python3").args(["-c", &script(before, odd)]).quiet()
}

fn script(before: &str, odd: &str) -> String {
    format!(
        r#"
import json, os, signal, sys, time
def say(id, **body):
    print(json.dumps(dict(jsonrpc="2.0", id=id, **body)), flush=True)
{before}
for line in sys.stdin:
    message = json.loads(line)
    method, id = message["method"], message.get("id")
{odd}
    if id is None:
        continue
    if method == "initialize":
        say(id, result=dict(protocolVersion=message["params"]["protocolVersion"], capabilities=dict(tools={{}}),
                            serverInfo=dict(name="script", version="1")))
    elif method == "tools/call":
        say(id, result=dict(content=[dict(type="text", text=str(os.getpid()))]))
    else:
        say(id, error=dict(code=-32601, message="no such method"))
"#
    )
}

fn is_alive(pid: &str) -> bool {
    // A zombie is gone, too.
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| {
        !stat.rsplit(')').next().unwrap_or_default().trim_start().starts_with('Z')
    })
}

/// Waits for the end of a process that was sent a signal.
async fn assert_ends(pid: &str) {
    for _ in 0..600 {
        if !is_alive(pid) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{pid} lives on");
}

async fn pid(client: &Client) -> String {
    client.call_tool("pid", ()).await.expect("answers").text()
}

/// A file in which a server notes how it ends.
struct Note(PathBuf);

impl Note {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("gudgeon-{name}-{}", std::process::id())))
    }

    /// Returns a line of Python that writes to the file.
    fn write(&self, text: &str) -> String {
        format!("open({:?}, 'a').write({text:?})", self.0.display().to_string())
    }

    fn read(self) -> String {
        let text = std::fs::read_to_string(&self.0).unwrap_or_default();
        let _ = std::fs::remove_file(&self.0);
        text
    }
}

#[tokio::test]
async fn an_old_server_is_reached_and_exits_when_its_input_is_closed() {
    let note = Note::new("exits");
    let by_itself = format!("import atexit\natexit.register(lambda: {})", note.write("exited"));
    let client = Client::connect(server(&by_itself, "")).await.expect("connects");
    assert_eq!(client.server().revision, Revision::V2025_11_25);
    assert_eq!(client.server().info.name, "script");
    let pid = pid(&client).await;
    client.close().await;
    assert!(!is_alive(&pid));
    assert_eq!(note.read(), "exited", "no signal was needed");
    let lost = client.call_tool("pid", ()).await.expect_err("closed");
    assert_eq!(lost.kind, ErrorKind::Lost);
}

#[tokio::test]
async fn a_server_that_exits_at_the_probe_is_restarted() {
    let dies = r#"    if method == "server/discover": sys.exit(3)"#;
    let client = Client::connect(server("", dies)).await.expect("connects");
    assert_eq!(client.server().revision, Revision::V2025_11_25);
    client.close().await;
}

#[tokio::test]
async fn a_server_that_ignores_the_probe_is_initialized() {
    let silent = r#"    if method == "server/discover": continue"#;
    let builder = Client::builder(server("", silent))
        .options(|options| options.probe_timeout = Duration::from_millis(200));
    let client = builder.connect().await.expect("connects");
    assert_eq!(client.server().revision, Revision::V2025_11_25);
    client.close().await;
}

#[tokio::test]
async fn a_server_that_can_not_start_is_explained() {
    let dies = "for n in range(100): print('line', n, file=sys.stderr)\nsys.exit(7)";
    let failure = Client::connect(server(dies, "")).await.expect_err("dies");
    assert_eq!((failure.kind, failure.exit_status), (ErrorKind::Connect, Some(7)));
    let stderr = failure.stderr.as_deref().expect("its last words");
    assert!(stderr.ends_with("line 99") && stderr.lines().count() == 20, "{stderr}");
    assert!(failure.target.as_deref().is_some_and(|target| target.starts_with("python3 -c")));
    assert!(failure.message.contains("exited with status 7"), "{failure}");
    assert!(failure.to_string().contains("line 99"), "{failure}");
    assert_eq!(failure.phase, Some("negotiate"));
}

#[tokio::test]
async fn a_server_that_ends_before_it_reads_is_started_once() {
    let starts = std::env::temp_dir().join(format!("gudgeon-starts-{}", std::process::id()));
    for after in ["", "sleep 0.2; "] {
        let _ = std::fs::remove_file(&starts);
        let script = format!("echo usage: serve PORT; echo >> {}; {after}exit 2", starts.display());
        let failure = Client::connect(["sh", "-c", &script]).await.expect_err("ends");
        assert_eq!((failure.kind, failure.exit_status), (ErrorKind::Connect, Some(2)), "{failure}");
        assert!(failure.message.contains("is not a message: \"usage: serve PORT\""), "{failure}");
        assert_eq!(std::fs::read_to_string(&starts).expect("started").lines().count(), 1);
    }
}

#[tokio::test]
async fn a_server_that_dies_in_a_call_is_explained() {
    let dies = r#"
    if method == "tools/call":
        print("out of luck", file=sys.stderr, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)"#;
    let client = Client::connect(server("", dies)).await.expect("connects");
    let failure = client.call_tool("pid", ()).await.expect_err("dies");
    assert_eq!((failure.kind, failure.exit_status), (ErrorKind::Lost, Some(-9)));
    assert!(failure.message.ends_with("signal 9"), "{failure}");
    assert_eq!(failure.stderr.as_deref(), Some("out of luck"));
    assert!(failure.to_string().ends_with("standard error:\nout of luck"), "{failure}");
    let after = client.call_tool("pid", ()).await.expect_err("gone");
    assert_eq!(after.kind, ErrorKind::Lost);
    client.close().await;
}

#[tokio::test]
async fn a_server_that_closes_its_input_is_lost() {
    let closes = r#"
    if method == "tools/call":
        os.close(0)
        say(id, result=dict(content=[dict(type="text", text="right")]))
        time.sleep(600)"#;
    let builder = Client::builder(server("", closes))
        .options(|options| options.timeout = Some(Duration::from_secs(20)));
    let client = builder.connect().await.expect("connects");
    assert_eq!(client.call_tool("pid", ()).await.expect("answers").text(), "right");
    let failure = client.call_tool("pid", ()).await.expect_err("not sent");
    assert_eq!((failure.kind, failure.exit_status), (ErrorKind::Lost, None), "{failure}");
    assert!(failure.message.contains("closed its input but is still running"), "{failure}");
}

#[tokio::test]
async fn a_server_that_closes_its_input_at_once_is_not_waited_for() {
    let builder = Client::builder(server(
        "os.close(0)
time.sleep(600)",
        "",
    ))
    .options(|options| options.probe_timeout = Duration::from_secs(5));
    let failure = builder.connect().await.expect_err("no answer");
    assert_eq!(failure.kind, ErrorKind::Connect, "{failure}");
    assert!(failure.message.contains("closed its input but is still running"), "{failure}");
}

#[tokio::test]
async fn noise_on_stdout_and_stderr_is_tolerated() {
    let noise = r#"
    print("starting up…\n\n{broken json\n[]\n" + json.dumps({"jsonrpc": "2.0", "id": "other", "result": {}}), flush=True)
    print("x" * 3_000_000, file=sys.stderr, flush=True)"#;
    let client = Client::connect(server("", noise)).await.expect("connects");
    pid(&client).await;
    client.close().await;
}

#[tokio::test]
async fn a_server_that_refuses_to_exit_is_terminated_then_killed() {
    for on_sigterm in ["os._exit(0)", "None"] {
        let note = Note::new("refuses");
        let stubborn = format!(
            "import atexit
atexit.register(lambda: ({}, time.sleep(60), {}))
signal.signal(signal.SIGTERM, lambda *_: ({}, {on_sigterm}))",
            note.write("exit "),
            note.write("survived"),
            note.write("SIGTERM ")
        );
        let client = Client::connect(server(&stubborn, "")).await.expect("connects");
        let pid = pid(&client).await;
        client.close().await;
        assert!(!is_alive(&pid));
        assert_eq!(note.read(), "exit SIGTERM ", "{on_sigterm}");
    }
}

#[tokio::test]
async fn children_of_a_wrapper_are_ended_with_it() {
    let stubborn = "import atexit\natexit.register(lambda: time.sleep(60))";
    let script = script(stubborn, "");
    let wrapper = Command::new("sh").args(["-c", "python3 -c \"$0\"; true", &script]).quiet();
    let client = Client::connect(wrapper).await.expect("connects");
    let inside = pid(&client).await;
    client.close().await;
    assert_ends(&inside).await;
}

#[tokio::test]
async fn children_of_a_server_that_exits_by_itself_are_ended() {
    // The child holds neither the standard streams nor its parent.
    let forks = r"
child = os.fork()
if child == 0:
    for stream in (0, 1, 2): os.close(stream)
    time.sleep(600)
    os._exit(0)
";
    let tells = r#"    if method == "tools/call": say(id, result=dict(content=[dict(type="text", text=str(child))])); continue"#;
    let client = Client::connect(server(forks, tells)).await.expect("connects");
    let child = pid(&client).await;
    assert!(is_alive(&child));
    client.close().await;
    assert_ends(&child).await;
}

#[tokio::test]
async fn a_failed_connect_leaves_no_process() {
    let folder = std::env::temp_dir().join(format!("gudgeon-failed-{}", std::process::id()));
    let pids = folder.to_string_lossy().into_owned();
    // The server answers nothing, ignores SIGTERM, and has a child of its own that does the same.
    let deaf = format!(
        r#"
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = os.fork()
with open({pids:?}, "a") as pids: pids.write(str(os.getpid()) + "\n")
time.sleep(600)"#
    );
    let builder = Client::builder(server(&deaf, ""))
        .options(|options| options.timeout = Some(Duration::from_secs(10)));
    let failure = builder.connect().await.expect_err("no answer");
    assert_eq!((failure.kind, failure.phase), (ErrorKind::Timeout, Some("negotiate")));
    assert!(
        failure.message.contains("no answer to server/discover or initialize in 10 s"),
        "{failure}"
    );
    let pids = std::fs::read_to_string(&folder).expect("it was started");
    std::fs::remove_file(&folder).expect("it is ours");
    assert_eq!(pids.lines().count(), 2);
    for pid in pids.lines() {
        assert_ends(pid).await;
    }
}

#[tokio::test]
async fn dropping_a_client_ends_its_server() {
    let client = Client::connect(server("", "")).await.expect("connects");
    let pid = pid(&client).await;
    drop(client);
    assert_ends(&pid).await;
}

#[tokio::test]
async fn a_missing_command_is_explained() {
    let failure = Client::connect(Command::new("no-such-program-here")).await.expect_err("no");
    assert_eq!((failure.kind, failure.phase), (ErrorKind::Connect, Some("connect")));
    assert!(failure.message.contains("command not found: no-such-program-here"), "{failure}");
    assert!(failure.hint.as_deref().is_some_and(|hint| hint.contains("PATH")));

    let failure = Client::connect(Command::new("sh").cwd("/no/such/folder")).await.expect_err("no");
    assert!(failure.message.contains("/no/such/folder"), "{failure}");
}

#[tokio::test]
async fn environment_and_folder_reach_the_server() {
    let tells = r#"
    if method == "tools/call":
        say(id, result=dict(content=[dict(type="text", text=os.environ["SHELF"] + " " + os.getcwd())]))
        continue"#;
    let command = server("", tells).env("SHELF", "top").cwd("/");
    let client = Client::connect(command).await.expect("connects");
    assert_eq!(client.call_tool("x", json!({})).await.expect("answers").text(), "top /");
    client.close().await;
}

#[tokio::test]
async fn a_server_inherits_few_variables() {
    // Cargo sets this variable for tests.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    let names = async |command: Command| {
        let client = Client::connect(command).await.expect("connects");
        let names = client.call_tool("names", ()).await.expect("answers").text();
        client.close().await;
        names.split(' ').map(str::to_owned).collect::<Vec<_>>()
    };
    let odd = r#"
    if method == "tools/call":
        say(id, result=dict(content=[dict(type="text", text=" ".join(sorted(os.environ)))]))
        continue"#;
    let by_default = names(server("", odd)).await;
    assert!(by_default.iter().any(|name| name == "PATH"));
    // A wrapper of Python may set variables of its own.
    assert!(!by_default.iter().any(|name| name.starts_with("CARGO")), "{by_default:?}");
    assert!(names(server("", odd).env("SHELF", "oak")).await.iter().any(|name| name == "SHELF"));
    let mut heir = server("", odd);
    heir.extend(std::env::vars_os());
    let all = names(heir).await;
    assert!(all.iter().any(|name| name == "CARGO_MANIFEST_DIR"));
}
