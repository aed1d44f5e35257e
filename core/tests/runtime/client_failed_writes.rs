//! Servers that no longer read: what they sent before arrives, and then the connection is lost.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use gudgeon::{
    Client, Revision,
    client::Target,
    error::{Error, ErrorKind},
    protocol::Tool,
    transport::Transport,
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncWrite, DuplexStream},
    sync::mpsc,
};

/// Returns the response to a request.
fn response(request: &[u8]) -> String {
    let request: Value = serde_json::from_slice(request).unwrap();
    let result = match request["method"].as_str().unwrap() {
        "server/discover" => json!({"resultType": "complete", "supportedVersions": ["2026-07-28"],
            "capabilities": {"tools": {}}}),
        _ => json!({"resultType": "complete", "tools": [{"name": "a", "inputSchema": {}}]}),
    };
    json!({"jsonrpc": "2.0", "id": request["id"], "result": result}).to_string()
}

async fn connect(target: Target) -> Result<Client, Error> {
    let builder = Client::builder(target).options(|options| {
        options.revisions = vec![Revision::V2026_07_28];
        options.timeout = Some(Duration::from_secs(20));
        options.cache_results = false;
    });
    builder.connect().await
}

/// Asserts that the first list arrives, and that the connection is lost at the second.
async fn assert_lost_at_the_second_list(target: Target) {
    let client = connect(target).await.unwrap();
    assert_eq!(client.list::<Tool>().await.unwrap()[0].name, "a");
    let error = client.list::<Tool>().await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Lost, "{error}");
    assert!(error.message.contains("no longer reads"), "{error}");
}

/// A stream that answers each line, although every write after the first fails.
struct FailingWrites {
    replies: Arc<Mutex<DuplexStream>>,
    writes: usize,
}

impl AsyncWrite for FailingWrites {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.writes += 1;
        if self.writes <= 2 {
            let reply = format!("{}\n", response(bytes));
            let mut replies = self.replies.lock().unwrap();
            let written = Pin::new(&mut *replies).poll_write(context, reply.as_bytes());
            assert!(matches!(written, Poll::Ready(Ok(count)) if count == reply.len()));
        }
        Poll::Ready(match self.writes {
            1 => Ok(bytes.len()),
            _ => Err(io::ErrorKind::BrokenPipe.into()),
        })
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_is_lost() {
    let (input, replies) = tokio::io::duplex(1 << 16);
    let replies = Arc::new(Mutex::new(replies));
    let output = FailingWrites { replies: Arc::clone(&replies), writes: 0 };
    assert_lost_at_the_second_list(Target::stream(input, output)).await;
}

/// A transport that answers each message, although every sending after the first fails.
struct FailingSends {
    sent: AtomicUsize,
    replies: mpsc::UnboundedSender<String>,
    received: tokio::sync::Mutex<mpsc::UnboundedReceiver<String>>,
}

impl Transport for FailingSends {
    async fn receive(&self) -> io::Result<Option<Vec<u8>>> {
        Ok(self.received.lock().await.recv().await.map(String::into_bytes))
    }

    async fn send(&self, message: Vec<u8>) -> io::Result<()> {
        let number = self.sent.fetch_add(1, Ordering::SeqCst);
        if number < 2 {
            self.replies.send(response(&message)).unwrap();
        }
        if number == 0 { Ok(()) } else { Err(io::ErrorKind::BrokenPipe.into()) }
    }

    async fn close(&self) {
        // A transport may wait for a peer that is gone.
        if self.sent.load(Ordering::SeqCst) > 1 {
            std::future::pending::<()>().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_custom_transport_is_lost() {
    let (replies, received) = mpsc::unbounded_channel();
    let (sent, received) = (AtomicUsize::new(0), tokio::sync::Mutex::new(received));
    let transport = FailingSends { sent, replies, received };
    assert_lost_at_the_second_list(transport.into()).await;
}
