//! Ways of serving.

use std::{sync::Arc, time::Duration};

use tokio::io::{AsyncRead, AsyncWrite};

#[cfg(feature = "client")]
use super::handler::BoxFuture;
use super::{Server, Transport, run::report, stdio, wire};
use crate::error::Error;
#[cfg(feature = "client")]
use crate::{
    driver::boxed,
    engine::TestMode,
    session::server::HttpFacts,
    transport::{Link, memory},
};

/// The time for a peer to read what is queued when the server ends.
pub(super) const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// Limits of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) line: usize,
    /// The time for pending calls to finish at the end of the input.
    pub(super) grace: Duration,
}

impl Server {
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
    /// The URL is written to standard error once the server is ready. After a signal the server goes on for
    /// [`HttpOptions::drain_delay`](crate::HttpOptions::drain_delay). At shutdown new requests are rejected,
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
    /// Errors if the address can't be served or a hook at start fails, and like [`Server::run_stdio`].
    pub async fn run(self, at: &str) -> Result<(), Error> {
        let serving = self.lifecycle.serve().await?;
        let served = match at {
            "stdio" => stdio::serve(&self.hub, self.limits()).await,
            _ => self.serve_at(at).await,
        };
        serving.end().await;
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
        let streams = wire::streams(Arc::clone(&self.hub), self.limits(), None, reader, writer);
        let lifecycle = Arc::clone(&self.lifecycle);
        async move {
            match lifecycle.serve().await {
                Ok(serving) => {
                    streams.await;
                    serving.end().await;
                }
                Err(error) => report(&format!("a client can't be served: {error}")),
            }
        }
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
    /// Errors if the transport or a hook at start fails.
    pub fn serve_transport<T: Transport>(
        &self,
        transport: T,
    ) -> impl Future<Output = Result<(), Error>> + Send + use<T> {
        let served = wire::transport(Arc::clone(&self.hub), self.limits(), transport);
        let lifecycle = Arc::clone(&self.lifecycle);
        async move {
            let serving = lifecycle.serve().await?;
            let served = served.await;
            serving.end().await;
            served
        }
    }

    #[cfg(not(feature = "http"))]
    async fn serve_at(&self, at: &str) -> Result<(), Error> {
        Err(Error::misuse(format!(
            "{at:?} can't be served, because gudgeon was built without its feature \"http\": enable it, or serve \"stdio\""
        )))
    }

    /// Returns a function that begins to serve a connection in memory and returns the client's end. Tests set how the
    /// server runs, and the facts of HTTP requests that its calls have.
    #[cfg(feature = "client")]
    pub(crate) fn in_memory(
        &self,
        mode: Option<TestMode>,
    ) -> impl FnOnce(Option<HttpFacts>) -> BoxFuture<Result<Link, Error>> + Send + use<> {
        let (hub, limits) = (Arc::clone(&self.hub), self.limits());
        let lifecycle = Arc::clone(&self.lifecycle);
        move |facts| {
            Box::pin(async move {
                let serving = lifecycle.serve().await?;
                let (ours, theirs) = memory::pair();
                let (reader, writer) = theirs.into_halves();
                let test = mode.map(|mode| (mode, facts));
                tokio::spawn(boxed(async move {
                    wire::streams(hub, limits, test, reader, writer).await;
                    serving.end().await;
                }));
                Ok(ours)
            })
        }
    }
}
