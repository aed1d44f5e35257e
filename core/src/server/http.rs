//! How a server behaves over HTTP, and how it is mounted.

use std::{
    convert::Infallible,
    fmt,
    path::PathBuf,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use http::{Request, Response};
use http_body::Body;
use tokio::task::JoinHandle;

use super::{registry::Hub, run::Runner};
use crate::{
    driver::{Backend, EndpointServer, Shell},
    service::{Cors, EndpointConfig, Rehearsal},
    transport::{
        http::server::{self as transport, AnswerBody},
        listen::{self, ListenOptions},
        patience::Patience,
    },
};

/// The options of a server over HTTP; [`Server::http`](super::Server::http) takes them.
///
/// ```
/// use gudgeon::{HttpOptions, Server};
///
/// let options = HttpOptions {
///     public_url: Some("https://shelf.example.org/mcp".into()),
///     legacy_sse: true,
///     ..HttpOptions::default()
/// };
/// let server = Server::new("shelf").http(options);
/// ```
#[derive(Clone, Debug)]
pub struct HttpOptions {
    /// What clients call the server, where that is not its address: behind a proxy. Decides which `Host` and `Origin`
    /// are let in.
    pub public_url: Option<String>,
    /// Web pages that may call, beside the server's own: `https://app.example.org`.
    pub allowed_origins: Vec<String>,
    /// Names that clients may call the server by: `shelf.example.org`, with a port where it is not the usual one.
    pub allowed_hosts: Vec<String>,
    /// Which web pages may read the answers. Default: those of no other origin.
    pub cors: Cors,
    /// Whether the pair of 2024-11-05 is served at `/sse`, beside the endpoint. Default: no.
    pub legacy_sse: bool,
    /// Longer bodies are refused: bytes. Default: 4 MiB.
    pub max_body: usize,
    /// Sessions at once. Default: 10,000.
    pub max_sessions: usize,
    /// Streams of one session at once. Default: 16.
    pub max_streams: usize,
    /// Requests at once; more are told to come back later. Default: 1,000.
    pub max_in_flight: usize,
    /// Longer heads are refused: bytes. Default: 64 KiB.
    pub max_headers: usize,
    /// A head that takes longer ends the connection. Default: 10 s.
    pub header_timeout: Duration,
    /// A connection without a request, and one that makes no progress, ends after so long. Default: 60 s.
    pub idle_timeout: Duration,
    /// A session that is silent for so long ends. Default: 30 min.
    pub session_idle: Duration,
    /// A stream that is silent for so long carries a comment. Default: 15 s.
    pub keep_alive: Duration,
    /// Whether streams of sessions can be resumed. Default: yes.
    pub event_store: bool,
    /// The files with the certificate chain and with its key, both PEM. Default: none, that is no TLS.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// What is in flight at the end, of the server or of what a client on tcp:// or unix: says, has so long to finish.
    /// Default: 10 s.
    pub shutdown_grace: Duration,
}

impl Default for HttpOptions {
    fn default() -> Self {
        let (endpoint, listen) = (EndpointConfig::default(), ListenOptions::default());
        Self {
            public_url: None,
            allowed_origins: Vec::new(),
            allowed_hosts: Vec::new(),
            cors: Cors::Off,
            legacy_sse: endpoint.legacy_sse,
            max_body: endpoint.max_body,
            max_sessions: endpoint.max_sessions,
            max_streams: endpoint.max_streams,
            max_in_flight: endpoint.max_in_flight,
            max_headers: listen.max_headers,
            header_timeout: listen.header_timeout,
            idle_timeout: listen.idle_timeout,
            session_idle: endpoint.session_idle,
            keep_alive: endpoint.keep_alive,
            event_store: endpoint.event_store,
            tls: None,
            shutdown_grace: listen.shutdown_grace,
        }
    }
}

impl HttpOptions {
    /// What of this is about requests, on top of what the address says.
    pub(super) fn endpoint(&self, address: EndpointConfig) -> EndpointConfig {
        let mut config = address;
        config.guard.public_url.clone_from(&self.public_url);
        config.guard.allowed_origins.clone_from(&self.allowed_origins);
        config.guard.allowed_hosts.clone_from(&self.allowed_hosts);
        config.guard.cors.clone_from(&self.cors);
        EndpointConfig {
            legacy_sse: self.legacy_sse,
            max_body: self.max_body,
            max_sessions: self.max_sessions,
            max_streams: self.max_streams,
            max_in_flight: self.max_in_flight,
            session_idle: self.session_idle,
            keep_alive: self.keep_alive,
            event_store: self.event_store,
            ..config
        }
    }

    /// What of this is about connections.
    pub(super) fn listen(&self, max_message: usize) -> ListenOptions {
        ListenOptions {
            max_headers: self.max_headers,
            header_timeout: self.header_timeout,
            idle_timeout: self.idle_timeout,
            tls: self.tls.clone(),
            shutdown_grace: self.shutdown_grace,
            max_message,
            ..ListenOptions::default()
        }
    }
}

/// A server as a [`tower_service::Service`], to be mounted in axum, or served by hyper. Clones mean the same server.
///
/// It answers at whatever path it is mounted. With [`HttpOptions::legacy_sse`] it needs to see the whole path, since it
/// tells clients of the pair where to POST: axum's `route_service` leaves it, `nest` cuts it.
#[derive(Clone)]
pub struct HttpService {
    mounted: Arc<Mounted>,
}

struct Mounted {
    server: Arc<EndpointServer>,
    shell: Arc<dyn Shell>,
    patience: Patience,
    grace: Duration,
    timer: JoinHandle<()>,
}

impl HttpService {
    /// For the runtime that it is called in.
    pub(super) fn new(hub: &Hub, options: &HttpOptions) -> Self {
        let config = EndpointConfig { path: None, ..EndpointConfig::default() };
        let config = options.endpoint(config);
        let (server, shell) = endpoint(hub, config, None);
        let timer = tokio::spawn(listen::keep_time(Arc::clone(&server), Arc::clone(&shell)));
        let patience = Patience { header: options.header_timeout, idle: options.idle_timeout };
        let grace = options.shutdown_grace;
        Self { mounted: Arc::new(Mounted { server, shell, patience, grace, timer }) }
    }

    /// Takes nothing new, ends subscriptions with their result, and lets what is in flight finish within
    /// [`HttpOptions::shutdown_grace`].
    pub async fn shut_down(&self) {
        let Mounted { server, shell, grace, .. } = &*self.mounted;
        shell.run(server.shut_down());
        let _ = tokio::time::timeout(*grace, server.is_idle()).await;
        shell.run(server.close());
    }
}

impl<B> tower_service::Service<Request<B>> for HttpService
where
    B: Body + Send + 'static,
    B::Data: Send,
{
    type Response = Response<AnswerBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    /// Always ready: what is too much is answered with 503.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let mounted = Arc::clone(&self.mounted);
        Box::pin(async move {
            let Mounted { server, shell, patience, .. } = &*mounted;
            Ok(transport::answer(server, shell, None, *patience, request).await)
        })
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        self.timer.abort();
    }
}

impl fmt::Debug for HttpService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpService").finish_non_exhaustive()
    }
}

/// An endpoint with a runner for its handlers.
pub(super) fn endpoint(
    hub: &Hub,
    config: EndpointConfig,
    rehearsal: Option<Rehearsal>,
) -> (Arc<EndpointServer>, Arc<dyn Shell>) {
    let server = hub.attach(|offers| match rehearsal {
        None => EndpointServer::new(offers, config),
        Some(rehearsal) => EndpointServer::rehearsal(offers, config, rehearsal),
    });
    let runner = Runner::new(Arc::clone(&server) as Arc<_>);
    (server, Arc::new(runner))
}
