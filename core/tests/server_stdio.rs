//! A real process on stdio: this program starts itself again as the server.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // a panic is how a test fails; prints must not reach the wire

use std::{
    env,
    io::{BufRead, BufReader, Read, Write},
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

use gudgeon::{Client, Context, Resource, Revision, Server, Tool, client::Change, transport};
use serde_json::{Value, json};

const ABOUT: &str = "shelf://about";
const PATIENCE: Duration = Duration::from_secs(20);

fn main() {
    if env::args().nth(1).as_deref() == Some("serve") {
        return serve();
    }
    let tests: [(&str, fn()); 8] = [
        ("prints_do_not_reach_the_wire", prints_do_not_reach_the_wire),
        ("many_calls_in_one_write_are_all_answered", many_calls_in_one_write_are_all_answered),
        (
            "the_end_of_input_lets_calls_finish_and_hooks_run",
            the_end_of_input_lets_calls_finish_and_hooks_run,
        ),
        ("sigterm_ends_the_server", sigterm_ends_the_server),
        (
            "subscriptions_end_with_their_result_at_either_end",
            subscriptions_end_with_their_result_at_either_end,
        ),
        (
            "our_client_hears_of_changes_in_every_revision",
            our_client_hears_of_changes_in_every_revision,
        ),
        (
            "a_handler_that_hangs_does_not_keep_the_process",
            a_handler_that_hangs_does_not_keep_the_process,
        ),
        (
            "in_a_terminal_it_says_that_it_waits_for_a_client",
            in_a_terminal_it_says_that_it_waits_for_a_client,
        ),
    ];
    let wanted = env::args().skip(1).find(|argument| !argument.starts_with('-'));
    for (name, test) in tests {
        if wanted.as_ref().is_none_or(|wanted| name.contains(wanted)) {
            test();
            println!("test {name} ... ok");
        }
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nap {
    ms: u64,
}

fn serve() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = Server::new("stdio")
        .options(|options| options.grace = Duration::from_secs(3))
        .tool("print", || async {
            println!("this is not a message");
            "printed"
        })
        .tool("nap", |Nap { ms }: Nap| async move {
            tokio::time::sleep(Duration::from_millis(ms)).await;
            "rested"
        })
        .tool("block", |Nap { ms }: Nap| async move { thread::sleep(Duration::from_millis(ms)) })
        .add(
            Tool::new("revision", |ctx: Context| async move { ctx.request().revision.to_string() })
                .timeout(Duration::from_secs(30)),
        )
        .on_shutdown(|| async { eprintln!("shut down") });
    let registry = server.registry();
    let about = Resource::new(ABOUT, || async { "two books" });
    registry.add(about).unwrap();
    let touched = registry.clone();
    let touch = Tool::new("touch", move || {
        let registry = touched.clone();
        async move {
            registry.notify_updated(ABOUT);
            "touched"
        }
    });
    registry.add(touch).unwrap();
    runtime.block_on(server.run("stdio")).unwrap();
}

struct Process {
    child: Child,
    input: Option<ChildStdin>,
    output: mpsc::Receiver<Value>,
}

impl Process {
    fn start() -> Self {
        let mut child = Command::new(env::current_exe().unwrap())
            .arg("serve")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, lines) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        let (told, output) = mpsc::channel();
        thread::spawn(move || {
            for line in lines.lines().map_while(Result::ok) {
                let message = serde_json::from_str(&line).unwrap_or(Value::String(line));
                if told.send(message).is_err() {
                    return;
                }
            }
        });
        let mut process = Self { child, input, output };
        let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        process.write(&request(0, "initialize", &params));
        assert_eq!(process.read()["result"]["protocolVersion"], "2025-06-18");
        process
            .write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string());
        process
    }

    fn write(&mut self, text: &str) {
        writeln!(self.input.as_mut().unwrap(), "{text}").unwrap();
    }

    fn read(&self) -> Value {
        self.output.recv_timeout(PATIENCE).unwrap()
    }

    fn call(&mut self, id: u64, tool: &str, arguments: &Value) {
        self.write(&request(id, "tools/call", &json!({"name": tool, "arguments": arguments})));
    }

    /// Waits for a successful exit; returns the standard error.
    fn end(mut self) -> String {
        drop(self.input.take());
        let begun = Instant::now();
        let status = loop {
            match self.child.try_wait().unwrap() {
                Some(status) => break status,
                None if begun.elapsed() > PATIENCE => {
                    self.child.kill().unwrap();
                    panic!("the process does not end");
                }
                None => thread::sleep(Duration::from_millis(5)),
            }
        };
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert!(status.success(), "{status}: {said}");
        said
    }
}

fn request(id: u64, method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
}

fn prints_do_not_reach_the_wire() {
    let mut process = Process::start();
    process.call(1, "print", &json!({}));
    assert_eq!(process.read()["result"]["content"][0]["text"], "printed");
    assert!(process.end().contains("this is not a message"));
}

fn many_calls_in_one_write_are_all_answered() {
    let mut process = Process::start();
    let calls: Vec<_> = (1..=2000)
        .map(|id| match id % 2 {
            0 => request(id, "tools/call", &json!({"name": "revision"})),
            _ => request(id, "tools/call", &json!({"name": "nap", "arguments": {"ms": id % 7}})),
        })
        .collect();
    process.write(&calls.join("\n"));
    let mut answered: Vec<_> = calls
        .iter()
        .map(|_| {
            let reply = process.read();
            let id = reply["id"].as_u64().unwrap();
            let expected = if id.is_multiple_of(2) { "2025-06-18" } else { "rested" };
            assert_eq!(reply["result"]["content"][0]["text"], expected);
            id
        })
        .collect();
    answered.sort_unstable();
    assert!(answered.into_iter().eq(1..=2000));
    process.end();
}

fn the_end_of_input_lets_calls_finish_and_hooks_run() {
    let mut process = Process::start();
    process.call(1, "nap", &json!({"ms": 100}));
    process.call(2, "nap", &json!({"ms": 60_000}));
    drop(process.input.take());
    assert_eq!(process.read()["id"], 1);
    let end = process.output.recv_timeout(PATIENCE);
    assert_eq!(end, Err(RecvTimeoutError::Disconnected), "nobody waits for the long one");
    assert!(process.end().contains("shut down"));
}

fn sigterm_ends_the_server() {
    let mut process = Process::start();
    let kill = Command::new("kill").arg(process.child.id().to_string()).status().unwrap();
    assert!(kill.success());
    let input = process.input.take();
    assert!(process.end().contains("shut down"));
    drop(input);
}

fn subscriptions_end_with_their_result_at_either_end() {
    for is_told in [true, false] {
        let mut process = Process::start();
        let params = json!({"notifications": {"toolsListChanged": true}, "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        }});
        process.write(&request(7, "subscriptions/listen", &params));
        assert_eq!(process.read()["method"], "notifications/subscriptions/acknowledged");
        let input = process.input.take().filter(|_| is_told);
        if is_told {
            let pid = process.child.id().to_string();
            assert!(Command::new("kill").arg(pid).status().unwrap().success());
        }
        let last = process.read();
        assert_eq!((&last["id"], &last["result"]["resultType"]), (&json!(7), &json!("complete")));
        let end = process.output.recv_timeout(PATIENCE);
        assert_eq!(end, Err(RecvTimeoutError::Disconnected), "that was all");
        process.end();
        drop(input);
    }
}

fn a_handler_that_hangs_does_not_keep_the_process() {
    let mut process = Process::start();
    process.call(1, "block", &json!({"ms": 20}));
    assert_eq!(process.read()["id"], 1);
    process.call(2, "block", &json!({"ms": 600_000}));
    process.call(3, "print", &json!({}));
    assert_eq!(process.read()["id"], 3);
    process.end();
}

fn our_client_hears_of_changes_in_every_revision() {
    let received = async |revision| {
        let command = transport::Command::new(env::current_exe().unwrap()).args(["serve"]);
        let client = Client::builder(command)
            .options(|options| options.revisions = vec![revision])
            .connect()
            .await
            .unwrap();
        let mut changes = client.subscribe([Change::Updated(ABOUT.into())]).await.unwrap();
        client.call_tool("touch", ()).await.unwrap();
        let change = tokio::time::timeout(PATIENCE, changes.next()).await.unwrap();
        assert_eq!(change.unwrap().unwrap(), Change::Updated(ABOUT.into()), "{revision}");
        client.close().await;
        assert!(changes.next().await.is_none());
    };
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        for revision in Revision::ALL {
            received(revision).await;
        }
    });
}

fn in_a_terminal_it_says_that_it_waits_for_a_client() {
    // Python opens the terminal, and closes its end once the server has said something.
    let opener = r#"
import os, pty, subprocess, sys
ours, theirs = pty.openpty()
server = subprocess.Popen([sys.argv[1], "serve"], stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
line = server.stderr.readline().decode()
server.terminate()
server.wait()
sys.stdout.write(line)
"#;
    let exe = env::current_exe().unwrap();
    let ran = Command::new("python3").args(["-c", opener]).arg(&exe).output().unwrap();
    let said = String::from_utf8(ran.stdout).unwrap();
    let start = "stdio: serving over stdio, waiting for an MCP client on standard input; to try it, run \
                 `gudgeon inspect -- ";
    assert!(said.starts_with(start) && said.contains(" serve`; Ctrl-C ends it"), "{said}");
    assert!(said.contains(exe.to_str().unwrap()), "{said}");
}
