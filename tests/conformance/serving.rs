//! Serves the Rust fixture server: over stdio, by its own HTTP server, or mounted in axum.

use std::{future::IntoFuture, num::NonZeroUsize, path::PathBuf, time::Duration};

use axum::Router;
use gudgeon::{Cors, HttpOptions, Server, error::Error, protocol::Dialect};
use serde::Deserialize;
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
    sync::oneshot,
    time::sleep,
};

/// The time for pending responses at shutdown.
const LAST_BYTES: Duration = Duration::from_millis(500);

const USAGE: &str = "usage: conformance-server (--http HOST:PORT | --stdio) [--mount tower] [--page-size N] [--dialects 0.7,bare] [--options JSON]";

pub(crate) struct Options {
    pub(crate) page_size: usize,
    pub(crate) dialects: Vec<Dialect>,
    /// The HTTP address; `None` for stdio.
    http: Option<String>,
    pub(crate) is_mounted: bool,
    /// The issuer of the tokens that callers need.
    pub(crate) issuer: Option<String>,
    /// The provider behind an OAuth proxy, for the client "proxy".
    pub(crate) proxy: Option<String>,
    given: Given,
}

/// HTTP options by Python names and units.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Given {
    public_url: Option<String>,
    allowed_origins: Option<Vec<String>>,
    allowed_hosts: Option<Vec<String>>,
    cors: Option<GivenCors>,
    legacy_sse: Option<bool>,
    health: Option<String>,
    ready: Option<String>,
    metrics: Option<String>,
    max_body: Option<usize>,
    max_sessions: Option<usize>,
    max_streams: Option<usize>,
    max_in_flight: Option<usize>,
    max_headers: Option<usize>,
    header_timeout: Option<f64>,
    idle_timeout: Option<f64>,
    body_timeout: Option<f64>,
    session_idle: Option<f64>,
    keep_alive: Option<f64>,
    event_store: Option<bool>,
    tls: Option<(PathBuf, PathBuf)>,
    trusted_proxies: Vec<String>,
    proxy_protocol: bool,
    shutdown_grace: Option<f64>,
    drain_delay: Option<f64>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum GivenCors {
    Any(bool),
    Origins(Vec<String>),
}

impl Options {
    pub(crate) fn read(mut arguments: impl Iterator<Item = String>) -> Result<Self, Error> {
        let mut options = Self {
            page_size: 100,
            dialects: Vec::new(),
            http: None,
            is_mounted: false,
            issuer: None,
            proxy: None,
            given: Given::default(),
        };
        let mut is_stdio = false;
        while let Some(name) = arguments.next() {
            let mut value = || arguments.next().ok_or_else(|| misused(&name));
            match &*name {
                "--stdio" => is_stdio = true,
                "--http" => options.http = Some(value()?),
                "--issuer" => options.issuer = Some(value()?),
                "--proxy" => options.proxy = Some(value()?),
                "--mount" => match &*value()? {
                    "tower" => options.is_mounted = true,
                    other => {
                        return Err(misused(&format!(
                            "this server mounts as tower, not as {other}"
                        )));
                    }
                },
                "--page-size" => {
                    let entries: NonZeroUsize = value()?.parse().map_err(|_| misused(&name))?;
                    options.page_size = entries.get();
                }
                "--dialects" => {
                    options.dialects =
                        value()?.split(',').map(str::parse).collect::<Result<_, _>>()?;
                }
                "--options" => {
                    options.given = serde_json::from_str(&value()?)
                        .map_err(|error| misused(&format!("--options: {error}")))?;
                }
                _ => return Err(misused(&name)),
            }
        }
        match is_stdio == options.http.is_some() || is_stdio && options.is_mounted {
            true => Err(misused("give either --stdio or --http")),
            false => Ok(options),
        }
    }
}

impl Given {
    fn set(self, options: &mut HttpOptions) {
        let time = |given: Option<f64>, usual| given.map_or(usual, Duration::from_secs_f64);
        options.public_url = self.public_url;
        options.allowed_origins = self.allowed_origins.unwrap_or_default();
        options.allowed_hosts = self.allowed_hosts.unwrap_or_default();
        options.cors = match self.cors {
            None | Some(GivenCors::Any(false)) => Cors::Off,
            Some(GivenCors::Any(true)) => Cors::Any,
            Some(GivenCors::Origins(origins)) => Cors::Origins(origins),
        };
        options.legacy_sse = self.legacy_sse.unwrap_or(true);
        options.health = self.health;
        options.ready = self.ready;
        options.metrics = self.metrics;
        options.max_body = self.max_body.unwrap_or(options.max_body);
        options.max_sessions = self.max_sessions.unwrap_or(options.max_sessions);
        options.max_streams = self.max_streams.unwrap_or(options.max_streams);
        options.max_in_flight = self.max_in_flight.unwrap_or(options.max_in_flight);
        options.max_headers = self.max_headers.unwrap_or(options.max_headers);
        options.header_timeout = time(self.header_timeout, options.header_timeout);
        options.idle_timeout = time(self.idle_timeout, options.idle_timeout);
        options.body_timeout = time(self.body_timeout, options.body_timeout);
        options.session_idle = time(self.session_idle, options.session_idle);
        options.keep_alive = time(self.keep_alive, options.keep_alive);
        options.event_store = self.event_store.unwrap_or(options.event_store);
        options.tls = self.tls;
        options.trusted_proxies = self.trusted_proxies;
        options.proxy_protocol = self.proxy_protocol;
        options.shutdown_grace = time(self.shutdown_grace, options.shutdown_grace);
        options.drain_delay = time(self.drain_delay, options.drain_delay);
    }
}

pub(crate) async fn serve(server: Server, options: Options) -> Result<(), Error> {
    let Some(address) = options.http else { return server.run_stdio().await };
    let server = server.options(|settings| options.given.set(&mut settings.http));
    match options.is_mounted {
        true => mounted(server, &address).await,
        false => server.run(&format!("http://{address}/mcp")).await,
    }
}

async fn mounted(server: Server, address: &str) -> Result<(), Error> {
    // Installed before the server reports that it is ready.
    let told = told_to_end()?;
    let service = server.into_service();
    let app = ["/mcp", "/mcp/{*rest}", "/sse", "/.well-known/{*rest}"]
        .into_iter()
        .fold(Router::new(), |app, path| app.route_service(path, service.clone()));
    let failed = |error: std::io::Error| misused(&error.to_string());
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    eprintln!("http://{}/mcp", listener.local_addr().map_err(failed)?);
    let (tell, is_told) = oneshot::channel();
    let told = async move {
        told.await;
        let _ = tell.send(());
    };
    let serving = axum::serve(listener, app).with_graceful_shutdown(told).into_future();
    let ending = async move {
        let _ = is_told.await;
        service.shut_down().await;
        // axum itself would wait for idle connections.
        sleep(LAST_BYTES).await;
    };
    tokio::select! {
        ended = serving => ended.map_err(failed),
        () = ending => Ok(()),
    }
}

fn told_to_end() -> Result<impl Future<Output = ()> + Send, Error> {
    let failed = |error: std::io::Error| misused(&error.to_string());
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => (),
            _ = interrupt.recv() => (),
        }
    })
}

fn misused(what: &str) -> Error {
    Error::misuse(format!("{what}: {USAGE}"))
}
