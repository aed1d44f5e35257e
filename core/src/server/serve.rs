//! Serving: the hooks around it, the ways in which it is done, and the signals that end it.

use std::{io::Write as _, sync::Arc, time::Duration};

use tokio::io::{AsyncRead, AsyncWrite};

use super::{
    HttpService, Listening, Server, ToolError, Transport, handler::BoxFuture, http, registry::Hub,
    run::report, stdio, wire,
};
use crate::{
    error::{Error, ErrorKind},
    service::Rehearsal,
    transport::listen::{self, Address},
};

/// How long a peer has to take what is queued when the server ends.
pub(super) const LAST_WORDS: Duration = Duration::from_secs(1);

/// Something to be done once.
pub(super) type Hook<Done> = Box<dyn FnOnce() -> BoxFuture<Done> + Send>;

/// How one connection is served.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) line: usize,
    /// What is in flight at the end of the input has this long to finish.
    pub(super) grace: Duration,
}

impl Server {
    /// Runs when [`Server::run`] begins, before the first call; hooks run in the order in which they were given. Where
    /// one fails, nothing is served, and `run` gives its error.
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

    /// Runs when [`Server::run`] ends, after the last call; hooks run in the order in which they were given.
    pub fn on_shutdown<F, Done>(mut self, hook: F) -> Self
    where
        F: FnOnce() -> Done + Send + 'static,
        Done: Future<Output = ()> + Send + 'static,
    {
        self.at_shutdown.push(Box::new(|| Box::pin(hook())));
        self
    }

    /// Serves standard input and output until the client closes them, or on SIGTERM and Ctrl-C (Transports, "stdio").
    ///
    /// What the program prints goes to standard error from then on, so that nothing but messages is on the wire. Must be
    /// called inside a tokio runtime.
    ///
    /// # Errors
    /// When the process has no such streams, or serves them already.
    pub async fn run_stdio(self) -> Result<(), Error> {
        self.run("stdio").await
    }

    /// Serves until the process is told to end, by SIGTERM or Ctrl-C: at an address, as [`Server::listen`] does, or over
    /// standard input and output (`"stdio"`).
    ///
    /// Its URL is said on standard error once it can be asked. At the end nothing new is taken, subscriptions end with
    /// their result, and calls in flight get [`HttpOptions::shutdown_grace`] to finish.
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
    /// When nothing can be served there, and as [`Server::run_stdio`] does.
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
                "stdio" => stdio::serve(&self.hub, self.limits).await,
                _ => listening(&self.hub, self.listen(at)).await,
            };
        }
        for hook in self.at_shutdown {
            hook().await;
        }
        served
    }

    /// Listens at an address, and serves whoever connects until the result is dropped or shut down:
    /// `http://host:port/path` and `https://…` (with [`HttpOptions::tls`]), where `ws://…` is served as well,
    /// `tcp://host:port` and `unix:/path`. Port 0 lets the system choose. Must be called inside a tokio runtime.
    ///
    /// ```
    /// # use gudgeon::{Client, Server, client::Target};
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), gudgeon::error::Error> {
    /// let server = Server::new("shelf").tool("open", || async { "open" });
    /// let listening = server.listen("http://127.0.0.1:0/mcp").await?;
    /// let client = Client::connect(Target::url(listening.url())?).await?;
    /// assert_eq!(client.list_tools().await?.len(), 1);
    /// client.close().await;
    /// listening.shut_down().await;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When nothing can listen there, or an option can't be used.
    pub async fn listen(&self, at: &str) -> Result<Listening, Error> {
        let at: Address = if at == "stdio" {
            return Err(Error::misuse("\"stdio\" has nothing to listen at: run() serves it"));
        } else {
            at.parse()?
        };
        let config = self.http.endpoint(at.endpoint_config());
        let (server, shell) = http::endpoint(&self.hub, config, None);
        listen::listen(&at, server, shell, self.http.listen(self.limits.line)).await
    }

    /// The server as a [`tower_service::Service`], to be mounted in axum at any path, or served by hyper. Must be called
    /// inside a tokio runtime.
    ///
    /// ```
    /// # use gudgeon::Server;
    /// # use tower_service::Service as _;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mut service = Server::new("shelf").into_service();
    /// let request = http::Request::get("http://127.0.0.1/mcp")
    ///     .header("host", "127.0.0.1")
    ///     .header("accept", "text/event-stream")
    ///     .body(String::new())?;
    /// let response = service.call(request).await?;
    /// assert_eq!(response.status(), 400, "GET belongs to a session");
    /// # Ok(())
    /// # }
    /// ```
    pub fn into_service(self) -> HttpService {
        HttpService::new(&self.hub, &self.http)
    }

    /// Serves one client over any pair of streams, one message a line, until the reader ends. May be called again, also
    /// at the same time, for the next client.
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
        wire::streams(Arc::clone(&self.hub), self.limits, None, reader, writer)
    }

    /// Serves one client over a wire of your own, until the wire ends. May be called again, also at the same time, for
    /// the next client.
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
    /// What the wire failed of.
    pub fn serve_transport<T: Transport>(
        &self,
        transport: T,
    ) -> impl Future<Output = Result<(), Error>> + Send + use<T> {
        wire::transport(Arc::clone(&self.hub), self.limits, transport)
    }

    /// As [`Server::serve`], for a test.
    pub(crate) fn rehearse<R, W>(
        &self,
        rehearsal: Rehearsal,
        reader: R,
        writer: W,
    ) -> impl Future<Output = ()> + Send + use<R, W>
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        wire::streams(Arc::clone(&self.hub), self.limits, Some(rehearsal), reader, writer)
    }
}

/// Until the process is told to; a second time means at once.
async fn listening(
    hub: &Hub,
    begun: impl Future<Output = Result<Listening, Error>>,
) -> Result<(), Error> {
    let unheard = |it: std::io::Error| {
        Error::new(ErrorKind::Connect, format!("signals can't be heard: {it}")).caused_by(it)
    };
    // Before anybody can know that it is there.
    let told = told_to_end().map_err(unheard)?;
    let listening = begun.await?;
    if let Some(warning) = listening.warning() {
        report(warning);
    }
    announce(&hub.edit(|it| it.server.info.name.clone()), listening.url());
    told.await;
    let again = told_to_end().map_err(unheard)?;
    tokio::select! {
        () = listening.shut_down() => (),
        () = again => (),
    }
    Ok(())
}

/// The URL has a line of its own: programs that start servers read it.
fn announce(name: &str, url: &str) {
    let name = if name.is_empty() { "gudgeon" } else { name };
    tracing::info!("{name} serves {url}");
    // A closed standard error is no reason not to serve.
    let _ = writeln!(std::io::stderr(), "{name} serves (Ctrl-C ends it)\n{url}");
}

/// From now on a signal to end is heard, and does not end the process: whoever awaits this learns of it.
#[cfg(unix)]
pub(super) fn told_to_end() -> std::io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => (),
            _ = interrupt.recv() => (),
        }
    })
}

#[cfg(not(unix))]
pub(super) fn told_to_end() -> std::io::Result<impl Future<Output = ()>> {
    Ok(async {
        // Where it can't be heard, only the end of the input ends the server.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    })
}
