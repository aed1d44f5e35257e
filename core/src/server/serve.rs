//! Ways of serving, and hooks around it.

use std::{sync::Arc, time::Duration};

use tokio::io::{AsyncRead, AsyncWrite};

use super::{Server, ToolError, Transport, handler::BoxFuture, stdio, wire};
use crate::error::Error;
#[cfg(feature = "client")]
use crate::{
    engine::TestMode,
    session::server::HttpFacts,
    transport::{Link, memory},
};

/// The time for a peer to read what is queued when the server ends.
pub(super) const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// A function that runs once, at start or shutdown.
pub(super) type Hook<Done> = Box<dyn FnOnce() -> BoxFuture<Done> + Send>;

/// Limits of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) line: usize,
    /// The time for pending calls to finish at the end of the input.
    pub(super) grace: Duration,
}

impl Server {
    /// Adds a hook that runs at the start of [`Server::run`], before the first call. Hooks run in the order of their
    /// registration. If one fails, `run` returns its error and serves nothing.
    ///
    /// ```
    /// # use gudgeon::Server;
    /// let server = Server::new("shelf").on_start(|| async {
    ///     std::fs::create_dir_all(std::env::temp_dir().join("shelf"))?;
    ///     Ok(())
    /// });
    /// ```
    pub fn on_start<F, Done>(mut self, hook: F) -> Self
    where
        F: FnOnce() -> Done + Send + 'static,
        Done: Future<Output = Result<(), ToolError>> + Send + 'static,
    {
        self.at_start.push(Box::new(|| Box::pin(hook())));
        self
    }

    /// Adds a hook that runs at the end of [`Server::run`], after the last call. Hooks run in the order of their
    /// registration.
    pub fn on_shutdown<F, Done>(mut self, hook: F) -> Self
    where
        F: FnOnce() -> Done + Send + 'static,
        Done: Future<Output = ()> + Send + 'static,
    {
        self.at_shutdown.push(Box::new(|| Box::pin(hook())));
        self
    }

    /// Serves standard input and output until the client closes them, or until SIGTERM or Ctrl-C (Transports,
    /// "stdio").
    ///
    /// From then on the program's own output goes to standard error, so that it can't mix with messages. Must be
    /// called inside a tokio runtime.
    ///
    /// # Errors
    /// Errors if the process has no such streams or serves them already.
    pub async fn run_stdio(self) -> Result<(), Error> {
        self.run("stdio").await
    }

    /// Serves until SIGTERM or Ctrl-C: at an address like [`Server::listen`], or over standard input and output
    /// (`"stdio"`).
    ///
    /// The URL is written to standard error once the server is ready. At shutdown new requests are rejected,
    /// subscriptions end with their result, and pending calls have [`HttpOptions::shutdown_grace`](crate::HttpOptions::shutdown_grace) to finish.
    /// A second signal ends the process.
    ///
    /// A handler that blocks a thread of the runtime would keep the program from ending, because the runtime waits for its
    /// threads. 3 s after the grace period the process of such a handler is ended: with status 1 after the client has
    /// disconnected, otherwise with 128 plus the number of the signal.
    ///
    /// ```no_run
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), gudgeon::error::Error> {
    /// # let server = gudgeon::Server::new("shelf");
    /// server.run("http://127.0.0.1:8000/mcp").await
    /// # }
    /// ```
    ///
    /// # Errors
    /// Errors if the address can't be served, and like [`Server::run_stdio`].
    pub async fn run(mut self, at: &str) -> Result<(), Error> {
        let mut served = Ok(());
        for hook in std::mem::take(&mut self.at_start) {
            if let Err(failed) = hook().await {
                served = Err(Error::misuse(format!("on_start failed: {failed}")));
                break;
            }
        }
        if served.is_ok() {
            served = match at {
                "stdio" => stdio::serve(&self.hub, self.limits()).await,
                _ => self.serve_at(at).await,
            };
        }
        for hook in self.at_shutdown {
            hook().await;
        }
        served
    }

    /// Serves a client over a pair of streams with one message per line, until the reader ends. Can be called several
    /// times, also concurrently, for several clients.
    ///
    /// ```
    /// # use gudgeon::Server;
    /// # use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let server = Server::new("shelf").tool("open", || async { "open" });
    /// let (client, ours) = tokio::io::duplex(64 * 1024);
    /// let (reader, writer) = tokio::io::split(ours);
    /// tokio::spawn(server.serve(reader, writer));
    ///
    /// let (answers, mut requests) = tokio::io::split(client);
    /// let params = r#"{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}"#;
    /// let frame = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{params}}}\n");
    /// requests.write_all(frame.as_bytes()).await.unwrap();
    /// let answer = BufReader::new(answers).lines().next_line().await.unwrap().unwrap();
    /// assert!(answer.contains(r#""name":"shelf""#));
    /// # }
    /// ```
    pub fn serve<R, W>(&self, reader: R, writer: W) -> impl Future<Output = ()> + Send + use<R, W>
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        wire::streams(Arc::clone(&self.hub), self.limits(), None, reader, writer)
    }

    /// Serves a client over a user-defined transport, until the transport ends. Can be called several times, also
    /// concurrently, for several clients.
    ///
    /// ```
    /// # use std::{io, sync::Arc};
    /// # use gudgeon::{Server, server::Transport};
    /// # use tokio::sync::{Mutex, mpsc};
    /// struct Wire {
    ///     input: Mutex<mpsc::Receiver<Vec<u8>>>,
    ///     output: mpsc::Sender<Vec<u8>>,
    /// }
    ///
    /// impl Transport for Wire {
    ///     async fn receive(&self) -> io::Result<Option<Vec<u8>>> {
    ///         Ok(self.input.lock().await.recv().await)
    ///     }
    ///
    ///     async fn send(&self, message: Vec<u8>) -> io::Result<()> {
    ///         self.output.send(message).await.map_err(|_| io::ErrorKind::BrokenPipe.into())
    ///     }
    ///
    ///     async fn close(&self) {}
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let (requests, input) = mpsc::channel(8);
    /// let (output, mut answers) = mpsc::channel(8);
    /// let wire = Wire { input: Mutex::new(input), output };
    /// tokio::spawn(Server::new("shelf").serve_transport(wire));
    ///
    /// requests.send(b"{}".to_vec()).await.unwrap();
    /// assert!(answers.recv().await.unwrap().starts_with(br#"{"jsonrpc":"2.0","id":null,"error""#));
    /// # }
    /// ```
    ///
    /// # Errors
    /// Errors if the transport fails.
    pub fn serve_transport<T: Transport>(
        &self,
        transport: T,
    ) -> impl Future<Output = Result<(), Error>> + Send + use<T> {
        wire::transport(Arc::clone(&self.hub), self.limits(), transport)
    }

    #[cfg(not(feature = "http"))]
    async fn serve_at(&self, at: &str) -> Result<(), Error> {
        Err(Error::misuse(format!(
            "{at:?} can't be served, because gudgeon was built without its feature \"http\": enable it, or serve \"stdio\""
        )))
    }

    /// Returns a function that serves an in-memory connection for a test; it returns the client's end.
    #[cfg(feature = "client")]
    pub(crate) fn for_test(
        &self,
        mode: TestMode,
    ) -> impl FnOnce(Option<HttpFacts>) -> (Link, BoxFuture<()>) + Send + use<> {
        let (hub, limits) = (Arc::clone(&self.hub), self.limits());
        move |facts| {
            let (ours, theirs) = memory::pair();
            let (reader, writer) = theirs.into_halves();
            (ours, Box::pin(wire::streams(hub, limits, Some((mode, facts)), reader, writer)))
        }
    }
}
