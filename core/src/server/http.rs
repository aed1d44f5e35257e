//! HTTP options of a server, and mounting in a tower application.

#[cfg(feature = "auth")]
use std::collections::BTreeMap;
use std::{
    convert::Infallible,
    fmt,
    path::PathBuf,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
    time::Duration,
};

use http::{Request, Response};
use http_body::Body;
use tokio::{sync::OnceCell, task::JoinHandle};

#[cfg(feature = "auth")]
use super::auth::{Auth, config as config_of};
use super::{
    ServerOptions,
    endpoint::endpoint,
    lifecycle::{Lifecycle, Serving},
    registry::Hub,
    run::{lock, report},
};
#[cfg(all(feature = "auth", feature = "client"))]
use crate::transport::fetch::HyperFetcher;
use crate::{
    driver::{HostedEndpoint, boxed, keep_time},
    error::Error,
    http::{Cors, EndpointConfig, Part, SessionMode},
    transport::{
        http::server::{self as transport, AnswerBody},
        listen::ListenOptions,
        timeouts::Timeouts,
    },
};

/// The HTTP options of a server, in [`ServerOptions::http`](super::ServerOptions::http).
///
/// ```
/// # use gudgeon::Server;
/// let server = Server::new("shelf").options(|options| {
///     options.http.public_url = Some("https://shelf.example.org/mcp".into());
///     options.http.legacy_sse = true;
/// });
/// ```
#[derive(Clone, Debug)]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
#[allow(clippy::struct_excessive_bools, reason = "options that are on or off")]
pub struct HttpOptions {
    /// The URL by which clients reach the server if it differs from its address, as behind a proxy. It determines the
    /// accepted `Host` and `Origin` headers.
    pub public_url: Option<String>,
    /// Origins of web pages that may send requests, in addition to the server's own, such as
    /// `https://app.example.org`. `https://*.example.org` are all hosts below one, `*` is every origin but `null`.
    pub allowed_origins: Vec<String>,
    /// Host names by which clients may address the server, such as `shelf.example.org`, with a port unless it is the
    /// default one. `*.example.org` are all hosts below one, `*` is every host.
    pub allowed_hosts: Vec<String>,
    /// Origins of web pages that may read responses. Default: the server's own origin only.
    pub cors: Cors,
    /// If true, the HTTP+SSE transport of 2024-11-05 is served at `/sse` in addition. Default: false.
    pub legacy_sse: bool,
    /// The path, such as `/healthz`, that answers GET and HEAD with 200 as long as the server runs. Neither host nor
    /// credentials are checked there, and a server that is full answers as well. An [`HttpService`] answers at every path that
    /// ends with it. Default: none.
    pub health: Option<String>,
    /// The path, such as `/readyz`, that answers GET and HEAD with 200 while calls are accepted, and with 503 before the hooks
    /// at start have run and once the shutdown has begun; otherwise like `health`. Default: none.
    pub ready: Option<String>,
    /// The path, such as `/metrics`, at which everybody who reaches the server may read its metrics in Prometheus' text format, as
    /// at `health`. `docs/metrics.md` lists them. Default: none.
    pub metrics: Option<String>,
    /// The maximum size of a request body in bytes. Default: 4 MiB.
    pub max_body: usize,
    /// The sessions of clients before 2026-07-28. Default: [`SessionMode::Sealed`].
    pub sessions: SessionMode,
    /// The maximum number of sessions that hold something in memory; beyond it, the one idle for longest loses that.
    /// Default: 10,000.
    pub max_sessions: usize,
    /// The maximum number of concurrent streams of a session. Default: 16.
    pub max_streams: usize,
    /// The maximum number of concurrent requests; further ones are answered with 503. Default: 1,000.
    pub max_in_flight: usize,
    /// The maximum size of a request's head in bytes. Default: 64 KiB.
    pub max_headers: usize,
    /// The time limit for a request's head; a slower connection is closed. Default: 10 s.
    pub header_timeout: Duration,
    /// The time after which a connection without a request, or whose client reads nothing, is closed. It must be longer than
    /// the one for which a proxy in front of the server keeps its connections. Default: 75 s.
    pub idle_timeout: Duration,
    /// The time after which an idle session loses what it holds in memory. Default: 30 min.
    pub session_idle: Duration,
    /// The time within which more of a request body must arrive, or of a message on tcp:// and unix:. Default: 60 s.
    pub body_timeout: Duration,
    /// The time after which an idle stream sends a keep-alive comment. Default: 15 s.
    pub keep_alive: Duration,
    /// If true, streams of sessions can be resumed. Default: true.
    pub event_store: bool,
    /// The paths of the PEM files with the certificate chain and with its key. They are read again within
    /// seconds after they have changed; if they can't be used then, those that were read before stay in use. Default: none,
    /// which serves without TLS.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// The proxies in front of the server: addresses, networks such as `10.0.0.0/8`, and `unix` for those that connect to a
    /// Unix socket. Of requests that come from them, `Forwarded` or `X-Forwarded-For`, `-Host` and `-Proto` name the client, and the
    /// host and the scheme that it used; of others these headers are ignored. An [`HttpService`] finds the address of the
    /// connection in an extension of the request, a [`SocketAddr`](std::net::SocketAddr). Default: none.
    pub trusted_proxies: Vec<String>,
    /// If true, each connection begins with a header of the PROXY protocol, version 1 or 2, which names the client. It is read
    /// from [`trusted_proxies`](Self::trusted_proxies), which must be set; connections of others are closed. It has no effect in an
    /// [`HttpService`]. Default: false.
    pub proxy_protocol: bool,
    /// The time for pending calls to finish when the server stops, or when a client on tcp:// or unix: has closed its
    /// sending direction. Default: 10 s.
    pub shutdown_grace: Duration,
    /// The time for which a server that listens goes on at its shutdown, while `ready` answers 503 and each response closes its
    /// connection. [`HttpOptions::shutdown_grace`] begins afterwards. An [`HttpService`] does not use it, because the
    /// host has the connections. Default: 0 s.
    pub drain_delay: Duration,
    /// The methods by which callers are authenticated, in the order in which they are tried. The server then refuses to
    /// listen where no credentials can be sent, and its [`HttpService`] authenticates as well. Default: none, and everybody
    /// may call.
    #[cfg(feature = "auth")]
    pub auth: Vec<Auth>,
    /// Scopes with those that they include, such as `admin` with `books:read`. Default: none.
    #[cfg(feature = "auth")]
    pub scope_implies: BTreeMap<String, Vec<String>>,
    /// If true, tools, resources and prompts are hidden from callers that lack their scopes. Default: false; they are
    /// listed, and a call is answered with 403 and the scopes to ask for.
    #[cfg(feature = "auth")]
    pub hide_unauthorized: bool,
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
            health: None,
            ready: None,
            metrics: None,
            max_body: endpoint.max_body,
            sessions: endpoint.sessions,
            max_sessions: endpoint.max_sessions,
            max_streams: endpoint.max_streams,
            max_in_flight: endpoint.max_in_flight,
            max_headers: listen.max_headers,
            header_timeout: listen.header_timeout,
            idle_timeout: listen.idle_timeout,
            body_timeout: endpoint.body_timeout,
            session_idle: endpoint.session_idle,
            keep_alive: endpoint.keep_alive,
            event_store: endpoint.event_store,
            tls: None,
            trusted_proxies: Vec::new(),
            proxy_protocol: listen.proxy_protocol,
            shutdown_grace: listen.shutdown_grace,
            drain_delay: listen.drain_delay,
            #[cfg(feature = "auth")]
            auth: Vec::new(),
            #[cfg(feature = "auth")]
            scope_implies: BTreeMap::new(),
            #[cfg(feature = "auth")]
            hide_unauthorized: false,
        }
    }
}

impl HttpOptions {
    /// Errors if an option can match nothing or has an invalid path, or if a method can't work.
    pub(super) fn check(&self) -> Result<(), Error> {
        #[cfg(feature = "auth")]
        config_of(&self.auth, &self.scope_implies)?;
        self.endpoint(EndpointConfig { path: None, ..EndpointConfig::default() }).check()
    }

    /// Returns the options of the endpoint: those of the address, changed by these.
    pub(super) fn endpoint(&self, address: EndpointConfig) -> EndpointConfig {
        let mut config = address;
        config.guard.public_url.clone_from(&self.public_url);
        config.guard.allowed_origins.clone_from(&self.allowed_origins);
        config.guard.allowed_hosts.clone_from(&self.allowed_hosts);
        config.guard.cors.clone_from(&self.cors);
        config.guard.trusted_proxies.clone_from(&self.trusted_proxies);
        config.is_encrypted |= self.tls.is_some();
        #[cfg(feature = "auth")]
        {
            // `Server::options` has checked it.
            let auth = config_of(&self.auth, &self.scope_implies);
            config.auth = auth.unwrap_or_else(|error| panic!("{error}"));
        }
        EndpointConfig {
            legacy_sse: self.legacy_sse,
            health: self.health.clone(),
            ready: self.ready.clone(),
            metrics: self.metrics.clone(),
            max_body: self.max_body,
            sessions: self.sessions,
            max_sessions: self.max_sessions,
            max_streams: self.max_streams,
            max_in_flight: self.max_in_flight,
            body_timeout: self.body_timeout,
            session_idle: self.session_idle,
            keep_alive: self.keep_alive,
            event_store: self.event_store,
            ..config
        }
    }

    /// Returns the options of connections.
    pub(super) fn listen(&self, max_message: usize) -> ListenOptions {
        ListenOptions {
            max_headers: self.max_headers,
            header_timeout: self.header_timeout,
            idle_timeout: self.idle_timeout,
            tls: self.tls.clone(),
            proxy_protocol: self.proxy_protocol,
            shutdown_grace: self.shutdown_grace,
            drain_delay: self.drain_delay,
            max_message,
            ..ListenOptions::default()
        }
    }
}

/// A server as a [`tower_service::Service`], to mount in axum or serve with hyper. Clones refer to the same server.
///
/// The service answers at any path. With [`HttpOptions::legacy_sse`] it must see the complete path, because it tells clients
/// where to POST: axum's `route_service` keeps the path, `nest` removes a prefix. With [`HttpOptions::auth`] the documents about
/// the authorization have paths of their own: [`HttpService::routes`] returns all of them.
#[derive(Clone)]
pub struct HttpService {
    mounted: Arc<Mounted>,
}

struct Mounted {
    /// `Err` if a hook at start failed.
    serving: OnceCell<Result<Mutex<Option<Serving>>, ()>>,
    lifecycle: Arc<Lifecycle>,
    endpoint: Arc<HostedEndpoint>,
    timeouts: Timeouts,
    grace: Duration,
    timer: JoinHandle<()>,
    /// Carries operations on the store.
    link: JoinHandle<()>,
}

impl HttpService {
    /// Creates the service on the current tokio runtime.
    ///
    /// # Panics
    /// Panics if the server has routes.
    #[track_caller]
    pub(super) fn new(lifecycle: Arc<Lifecycle>, hub: &Hub, options: &ServerOptions) -> Self {
        let config = EndpointConfig { path: None, ..EndpointConfig::default() };
        let config = options.endpoint(config);
        if let Err(error) = hub.edit(|components| components.check_without_routes()) {
            panic!("{error}");
        }
        let endpoint = endpoint(hub, config, None);
        #[cfg(all(feature = "auth", feature = "client"))]
        if let Some(auth) = endpoint.auth() {
            auth.set_fetcher(HyperFetcher::new());
        }
        let timer = tokio::spawn(boxed(keep_time(Arc::clone(&endpoint))));
        let link = tokio::spawn(boxed(Arc::clone(&endpoint).carry_store(false)));
        let HttpOptions { header_timeout, idle_timeout, body_timeout, .. } = options.http;
        let timeouts = Timeouts { header: header_timeout, idle: idle_timeout, body: body_timeout };
        let grace = options.http.shutdown_grace;
        let serving = OnceCell::new();
        let mounted = Mounted { serving, lifecycle, endpoint, timeouts, grace, timer, link };
        let mounted = Arc::new(mounted);
        let starting = Arc::clone(&mounted);
        tokio::spawn(boxed(async move {
            starting.serving().await;
        }));
        Self { mounted }
    }

    /// Returns the paths to route to this service, for an endpoint whose path is `at` for clients: `at` itself,
    /// [`HttpOptions::health`], [`HttpOptions::ready`] and [`HttpOptions::metrics`], and, with [`HttpOptions::auth`], those of the
    /// documents from which clients learn where to sign in, and of the OAuth proxy.
    ///
    /// ```
    /// # use gudgeon::{Server, server::auth::Jwt};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let server = Server::new("shelf").options(|options| {
    ///     options.http.auth = vec!["https://login.example.com".into()];
    /// });
    /// let service = server.into_service();
    /// // With axum: `for path in service.routes("/mcp") { app = app.route_service(&path, service.clone()); }`
    /// assert_eq!(service.routes("/mcp"), ["/mcp", "/.well-known/oauth-protected-resource/mcp"]);
    /// # }
    /// ```
    pub fn routes(&self, at: &str) -> Vec<String> {
        let path = at.trim_end_matches('/');
        let own = if path.is_empty() { "/" } else { path };
        let admission = self.mounted.endpoint.admission();
        let probes = admission.probe_paths().map(str::to_owned);
        let routes = [own.to_owned()].into_iter().chain(probes);
        #[cfg(feature = "auth")]
        let routes = routes.chain(admission.auth_routes(path));
        routes.collect()
    }

    /// Rejects new requests, ends subscriptions with their result, lets pending calls finish within
    /// [`HttpOptions::shutdown_grace`], and waits for the server's hooks at shutdown. Calling it again is allowed.
    pub async fn shut_down(&self) {
        let Mounted { endpoint, grace, .. } = &*self.mounted;
        endpoint.shut_down();
        let _ = tokio::time::timeout(*grace, endpoint.is_idle()).await;
        endpoint.close();
        let serving = match self.mounted.serving().await {
            Ok(serving) => lock(serving).take(),
            Err(()) => None,
        };
        if let Some(serving) = serving {
            serving.end().await;
        }
    }
}

impl Mounted {
    /// Waits until the hooks at start have run.
    async fn serving(&self) -> &Result<Mutex<Option<Serving>>, ()> {
        let start = || async {
            let serving = self.lifecycle.serve().await;
            serving
                .map(|serving| Mutex::new(Some(serving)))
                .map_err(|error| report(&format!("requests can't be served: {error}")))
        };
        self.serving.get_or_init(start).await
    }

    /// Returns the answer to a request for `health` or `ready` while the hooks at start run, which it does not wait for.
    fn probe_before_start<B>(&self, request: &Request<B>) -> Option<Part> {
        if self.serving.initialized() {
            return None;
        }
        self.endpoint.admission().probe(request.method(), request.uri().path(), false)
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

    /// Always ready: requests over the limit are answered with 503.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let mounted = Arc::clone(&self.mounted);
        Box::pin(async move {
            if let Some(answer) = mounted.probe_before_start(&request) {
                return Ok(AnswerBody::response(answer));
            }
            if mounted.serving().await.is_err() {
                return Ok(AnswerBody::response(Part::unavailable(
                    "the server could not be started",
                )));
            }
            let Mounted { endpoint, timeouts, .. } = &*mounted;
            Ok(transport::answer(endpoint, None, *timeouts, request).await)
        })
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        self.timer.abort();
        self.link.abort();
    }
}

impl fmt::Debug for HttpService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpService").finish_non_exhaustive()
    }
}
