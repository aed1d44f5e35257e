//! A client on tcp:// or unix: that closes its sending direction still reads its answers, as on stdio.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use gudgeon::{Context, Server, server::Listening};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader},
    net::TcpStream,
    sync::{Notify, mpsc},
};

trait AsyncReadWrite: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> AsyncReadWrite for T {}

async fn connect(listening: &Listening) -> BufReader<Box<dyn AsyncReadWrite>> {
    let url = listening.url();
    BufReader::new(match url.strip_prefix("tcp://") {
        Some(address) => Box::new(TcpStream::connect(address).await.unwrap()),
        #[cfg(unix)]
        None => Box::new(tokio::net::UnixStream::connect(&url["unix:".len()..]).await.unwrap()),
        #[cfg(not(unix))]
        None => unreachable!("{url}"),
    })
}

/// Everywhere that lines are listened for.
fn addresses() -> Vec<String> {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("gudgeon-half-{}-{number}", std::process::id());
    let path: PathBuf = std::env::temp_dir().join(name);
    let unix = cfg!(unix).then(|| format!("unix:{}", path.display()));
    [Some("tcp://127.0.0.1:0".to_owned()), unix].into_iter().flatten().collect()
}

fn request(id: u64, method: &str, mut params: Value) -> String {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "progressToken": id,
    });
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string() + "\n"
}

fn call(id: u64, tool: &str) -> String {
    request(id, "tools/call", json!({"name": tool, "arguments": {}}))
}

async fn next(stream: &mut BufReader<Box<dyn AsyncReadWrite>>) -> Value {
    let mut line = String::new();
    stream.read_line(&mut line).await.unwrap();
    serde_json::from_str(&line).unwrap_or_else(|_| panic!("no message: {line:?}"))
}

/// Reports its drop.
struct Dropped(mpsc::UnboundedSender<()>);

impl Drop for Dropped {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

#[tokio::test]
async fn a_half_closed_client_still_gets_its_answers() {
    for address in addresses() {
        let gate = Arc::new(Notify::new());
        let held = Arc::clone(&gate);
        let server = Server::new("s").tool("wait", move || {
            let held = Arc::clone(&held);
            async move {
                held.notified().await;
                "done"
            }
        });
        let listening = server.listen(&address).await.unwrap();
        let mut stream = connect(&listening).await;
        let listen = json!({"notifications": {"toolsListChanged": true}});
        let said = request(1, "subscriptions/listen", listen) + call(2, "wait").trim_end();
        stream.write_all(said.as_bytes()).await.unwrap();
        stream.shutdown().await.unwrap();
        let acknowledged = next(&mut stream).await;
        assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
        // The server ends only at the end of the input.
        assert_eq!(next(&mut stream).await["id"], 1);
        gate.notify_one();
        let answer = next(&mut stream).await;
        assert_eq!(
            (&answer["id"], &answer["result"]["structuredContent"]),
            (&json!(2), &json!("done"))
        );
        assert_eq!(stream.read(&mut [0; 8]).await.unwrap(), 0, "then it ends");
        listening.shut_down().await;
    }
}

#[tokio::test]
async fn calls_are_cancelled_after_the_grace_period() {
    for address in addresses() {
        let (sender, mut receiver) = mpsc::unbounded_channel();
        let server = Server::new("s")
            .options(|options| options.http.shutdown_grace = Duration::from_millis(10))
            .tool("wait", move || {
                let dropped = Dropped(sender.clone());
                async move {
                    std::future::pending::<()>().await;
                    drop(dropped);
                    "never"
                }
            });
        let listening = server.listen(&address).await.unwrap();
        let mut stream = connect(&listening).await;
        stream.write_all(call(1, "wait").as_bytes()).await.unwrap();
        stream.shutdown().await.unwrap();
        assert_eq!(stream.read(&mut [0; 8]).await.unwrap(), 0);
        receiver.recv().await.unwrap();
    }
}

#[tokio::test]
async fn a_disconnected_client_is_detected_by_a_failed_write() {
    for address in addresses() {
        let (sender, mut receiver) = mpsc::unbounded_channel();
        let server = Server::new("s")
            .options(|options| options.http.shutdown_grace = Duration::from_secs(3600))
            .tool("talk", move |ctx: Context| {
                let dropped = Dropped(sender.clone());
                async move {
                    let mut step = 0.0;
                    loop {
                        step += 1.0;
                        ctx.progress(step, None, "talking");
                        tokio::time::sleep(Duration::from_millis(1)).await;
                        if step < 0.0 {
                            drop(dropped);
                            return "never";
                        }
                    }
                }
            });
        let listening = server.listen(&address).await.unwrap();
        let mut stream = connect(&listening).await;
        stream.write_all(call(1, "talk").as_bytes()).await.unwrap();
        assert_eq!(next(&mut stream).await["method"], "notifications/progress");
        drop(stream);
        receiver.recv().await.unwrap();
    }
}
