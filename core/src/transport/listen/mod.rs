//! Listening servers: accept connections and serve them.

mod address;
mod options;
mod proxied;
mod socket;
#[cfg(feature = "tls")]
mod tls;

use std::{
    fmt, io,
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::{
    io::split,
    sync::{mpsc, watch},
    task::JoinHandle,
    time::{sleep, timeout},
};

pub use self::{address::Address, options::ListenOptions};
use self::{
    address::ListenAddress,
    proxied::Proxied,
    socket::{Accepted, BACKLOG, Socket},
};
#[cfg(unix)]
use super::process_group::{GroupEnd, ProcessGroup};
use super::{
    ByteStream,
    http::server as http,
    lines::{LineGuard, Lines},
    send_queue::Connected,
    timeouts::Timeouts,
};
use crate::{
    clock,
    driver::{Boxed, EndpointServer, Holding, Host, HostedEndpoint, boxed, keep_time},
    error::{Error, option_name},
    http::Peer,
    log_events::EventKind,
    log_limit::LogLimit,
    protocol::ClientKey,
};

/// The time for clients to read what is queued when the server ends.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);
/// The time after the drain for a request that is on its way on a connection without one.
const LINGER: Duration = Duration::from_millis(100);
/// The delay before accepting again when the process has no free file descriptor.
const NO_ROOM: Duration = Duration::from_millis(50);
/// The time until the same problem of accepting is logged again.
const BETWEEN_LOGS: Duration = Duration::from_secs(60);

/// The state of the shutdown.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Stage {
    Open,
    /// Connections and requests are accepted, and HTTP connections close after their next response.
    Draining,
    /// No new connections or requests are accepted.
    Closing,
    Closed,
}

/// State shared by all connections of a listening server.
pub(crate) struct Peers {
    pub(crate) endpoint: Arc<HostedEndpoint>,
    pub(crate) timeouts: Timeouts,
    pub(crate) max_headers: usize,
    /// The port that a client names in `Host`, unless it is the usual one of the scheme.
    #[cfg(feature = "auth")]
    pub(crate) port: u16,
    max_message: usize,
    grace: Duration,
    /// The time in which a connection without a request may still bring one after the drain; zero without a drain.
    pub(crate) linger: Duration,
    protocol: Protocol,
    log: Mutex<LogLimit>,
}

impl Peers {
    pub(crate) fn log(&self) -> MutexGuard<'_, LogLimit> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Shows that a connection is open, and counts it, until it is dropped.
struct Open {
    held: mpsc::Sender<()>,
    place: Holding,
}

/// The protocol of a connection.
enum Protocol {
    Http,
    #[cfg(feature = "tls")]
    Https(tokio_rustls::TlsAcceptor),
    Lines,
}

/// A listening server. Dropping it stops it at once; [`Listening::shut_down`] stops it gracefully.
pub struct Listening {
    url: String,
    pub(crate) warning: Option<String>,
    endpoint: Arc<HostedEndpoint>,
    grace: Duration,
    drain_delay: Duration,
    stage: watch::Sender<Stage>,
    /// Yields `None` once the last connection has ended.
    open: tokio::sync::Mutex<mpsc::Receiver<()>>,
    tasks: Mutex<Vec<JoinHandle<()>>>,
    /// Ends the exchange of messages with the other processes of the address; `None` if there are none.
    group_end: Option<GroupEnd>,
    has_begun_to_stop: AtomicBool,
    /// Runs at the end of the shutdown; dropped with the server otherwise.
    at_end: Mutex<Option<Boxed<()>>>,
}

/// Listens at an address and serves connections on the current tokio runtime.
///
/// # Errors
/// Errors if the address can't be bound or the certificate can't be used. Panics outside a tokio runtime.
pub async fn listen(
    at: &Address,
    server: Arc<EndpointServer>,
    host: Arc<dyn Host>,
    options: ListenOptions,
) -> Result<Listening, Error> {
    open(at, HostedEndpoint::new(server, host), options).await
}

/// Listens at an address and serves connections to an endpoint.
pub(crate) async fn open(
    at: &Address,
    endpoint: Arc<HostedEndpoint>,
    options: ListenOptions,
) -> Result<Listening, Error> {
    endpoint.admission().check_options()?;
    let protocol = Protocol::new(at, options.tls.as_ref())?;
    #[cfg(feature = "auth")]
    let has_auth = authentication(at, &protocol, &endpoint)?;
    #[cfg(not(feature = "auth"))]
    let has_auth = false;
    if options.proxy_protocol && !endpoint.admission().has_trusted_proxies() {
        return Err(Error::misuse(format!(
            "{} needs {trusted}; set {trusted} to the addresses of the proxies that connect to this server",
            option_name("proxy_protocol"),
            trusted = option_name("trusted_proxies")
        )));
    }
    let socket = Socket::bind(at, options.shares_port).await?;
    let url = at.url(socket.port(), options.tls.is_some());
    let warning = (!at.is_loopback() && !has_auth).then(|| {
        format!(
            "{url} can be reached from other machines, and all requests are accepted; set `auth`, listen at \
             127.0.0.1, or mount the server in an app with authentication"
        )
    });
    let peers = Arc::new(Peers {
        endpoint: Arc::clone(&endpoint),
        timeouts: Timeouts {
            header: options.header_timeout,
            idle: options.idle_timeout,
            body: endpoint.admission().body_timeout(),
        },
        max_headers: options.max_headers,
        #[cfg(feature = "auth")]
        port: at.named_port().unwrap_or(socket.port()),
        max_message: options.max_message,
        grace: options.shutdown_grace,
        linger: LINGER.min(options.drain_delay),
        protocol,
        log: Mutex::default(),
    });
    let (group_end, group) = match join(&options, &url, &endpoint)? {
        Some((end, task)) => (Some(end), Some(task)),
        None => (None, None),
    };
    if options.shares_port && group.is_none() {
        endpoint.name_worker();
    }
    let (stage, stages) = watch::channel(Stage::Open);
    let (held, open) = mpsc::channel(1);
    let accepting = accept(socket, peers, stages, held, options.proxy_protocol);
    let timing = keep_time(Arc::clone(&endpoint));
    let mut tasks = vec![tokio::spawn(boxed(accepting)), tokio::spawn(boxed(timing))];
    tasks.push(tokio::spawn(boxed(Arc::clone(&endpoint).carry_store(group.is_some()))));
    tasks.extend(group);
    endpoint.log_listening(EventKind::ServerStarted, &url);
    Ok(Listening {
        url,
        warning,
        endpoint,
        grace: options.shutdown_grace,
        drain_delay: options.drain_delay,
        stage,
        open: tokio::sync::Mutex::new(open),
        tasks: Mutex::new(tasks),
        group_end,
        has_begun_to_stop: AtomicBool::new(false),
        at_end: Mutex::default(),
    })
}

/// Starts to exchange messages with the other processes that serve the address, if there are any.
#[cfg(unix)]
fn join(
    options: &ListenOptions,
    url: &str,
    endpoint: &Arc<HostedEndpoint>,
) -> Result<Option<(GroupEnd, JoinHandle<()>)>, Error> {
    let Some(folder) = &options.group else { return Ok(None) };
    let group = ProcessGroup::join(folder, url, endpoint)?;
    Ok(Some((group.end(), tokio::spawn(boxed(group.run(Arc::clone(endpoint)))))))
}

/// No other processes are known here.
#[cfg(not(unix))]
struct GroupEnd;

#[cfg(not(unix))]
impl GroupEnd {
    async fn reached(&self) {}
}

#[cfg(not(unix))]
fn join(
    _: &ListenOptions,
    _: &str,
    _: &Arc<HostedEndpoint>,
) -> Result<Option<(GroupEnd, JoinHandle<()>)>, Error> {
    Ok(None)
}

/// Prepares the authentication of callers. Returns whether there is one. Errors at an address whose protocol has none.
#[cfg(feature = "auth")]
fn authentication(
    at: &Address,
    protocol: &Protocol,
    endpoint: &Arc<HostedEndpoint>,
) -> Result<bool, Error> {
    let Some(auth) = endpoint.auth() else { return Ok(false) };
    if matches!(protocol, Protocol::Lines) {
        return Err(Error::misuse(format!(
            "{at} carries no credentials, but the server has auth; listen at http:// or https://"
        )));
    }
    #[cfg(feature = "client")]
    auth.set_fetcher(super::fetch::HyperFetcher::new());
    #[cfg(not(feature = "client"))]
    let _ = auth;
    Ok(true)
}

impl Listening {
    /// Returns the URL of the server, with the port that the system chose.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns a warning for the operator about the address, for example that other machines can reach it.
    #[cfg(feature = "bindings")]
    pub fn warning(&self) -> Option<&str> {
        self.warning.as_deref()
    }

    /// Returns a function that returns the names of the components whose handlers run.
    pub(crate) fn running(&self) -> impl Fn() -> Vec<String> + Send + use<> {
        let endpoint = Arc::downgrade(&self.endpoint);
        move || endpoint.upgrade().map(|endpoint| endpoint.running()).unwrap_or_default()
    }

    /// Sets the future that the shutdown waits for at its end. A server that is dropped drops it.
    pub(crate) fn at_end(&mut self, end: Boxed<()>) {
        *self.at_end.lock().unwrap_or_else(PoisonError::into_inner) = Some(end);
    }

    /// Goes on for `drain_delay` while `ready` is answered with 503. Then it stops accepting, ends subscriptions with their
    /// result, waits up to `shutdown_grace` for pending calls, closes all connections, and waits for the server's hooks at
    /// shutdown. Calling it again is allowed.
    pub async fn shut_down(&self) {
        // A second caller waits until the first one is done.
        let mut open = self.open.lock().await;
        if !self.has_begun_to_stop.swap(true, Ordering::Relaxed) {
            self.endpoint.log_listening(EventKind::ServerStopping, &self.url);
        }
        if !self.drain_delay.is_zero() && self.advance(Stage::Draining) {
            sleep(self.drain_delay).await;
            self.advance(Stage::Closing);
            // Requests that clients sent before their connection closes are still served.
            let _ = timeout(LINGER, open.recv()).await;
        }
        self.advance(Stage::Closing);
        self.endpoint.shut_down();
        let _ = timeout(self.grace, self.endpoint.is_idle()).await;
        // Pending calls are dropped without a response.
        self.endpoint.close();
        let _ = timeout(FLUSH_TIMEOUT, open.recv()).await;
        if let Some(group) = &self.group_end {
            let _ = timeout(FLUSH_TIMEOUT, group.reached()).await;
        }
        self.stop();
        let end = self.at_end.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(end) = end {
            end.await;
        }
    }

    /// Begins a stage of the shutdown, unless it or a later one has begun. Returns whether it had not.
    fn advance(&self, to: Stage) -> bool {
        self.endpoint.begin_drain();
        self.stage.send_if_modified(|stage| {
            let is_new = *stage < to;
            *stage = to.max(*stage);
            is_new
        })
    }

    fn stop(&self) {
        self.endpoint.close();
        if self.advance(Stage::Closed) {
            self.endpoint.log_listening(EventKind::ServerStopped, &self.url);
        }
        for task in self.tasks.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            task.abort();
        }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.stop();
    }
}

impl fmt::Debug for Listening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listening").field("url", &self.url).finish_non_exhaustive()
    }
}

/// Accepts connections until the server closes. Each connection holds a clone of `held` until it has ended.
async fn accept(
    socket: Socket,
    peers: Arc<Peers>,
    stages: watch::Receiver<Stage>,
    held: mpsc::Sender<()>,
    is_proxied: bool,
) {
    let mut stage = stages.clone();
    let lingers = !peers.linger.is_zero();
    let mut acceptor = Acceptor { peers, stages, held, is_proxied, refusal_logged: None };
    let mut logged = None;
    loop {
        let accepted = tokio::select! {
            () = reached(&mut stage, Stage::Closing) => break,
            accepted = socket.accept() => accepted,
        };
        match accepted {
            Ok(stream) => acceptor.start(stream),
            // The connection was closed before it was accepted.
            Err(error) if is_of_one_peer(&error) => (),
            Err(error) => {
                if is_due(&mut logged) {
                    tracing::error!(%error, "connections can't be accepted at the moment");
                }
                sleep(NO_ROOM).await;
            }
        }
    }
    // After a drain, those that have come are served as the others that have a request on its way.
    if lingers && let Ok(waiting) = socket.into_waiting() {
        for stream in waiting.take(BACKLOG.into()).flatten() {
            acceptor.start(stream);
        }
    }
}

/// Starts the tasks of accepted connections.
struct Acceptor {
    peers: Arc<Peers>,
    stages: watch::Receiver<Stage>,
    held: mpsc::Sender<()>,
    is_proxied: bool,
    refusal_logged: Option<Instant>,
}

impl Acceptor {
    fn start(&mut self, stream: Accepted) {
        let peer = stream.peer();
        let mut place = Holding::new(
            &self.peers.endpoint.ledgers().connections,
            ClientKey::new(None, peer.address()),
        );
        if !place.set(1) {
            if is_due(&mut self.refusal_logged) {
                tracing::warn!(
                    "closing new connections of a client that has too many; the maximum is three quarters of the process's \
                     limit of open files"
                );
            }
            return;
        }
        let open = Open { held: self.held.clone(), place };
        let (peers, stages, stream) =
            (Arc::clone(&self.peers), self.stages.clone(), stream.boxed());
        match self.is_proxied {
            true => serve_proxied(peers, stream, peer, stages, open),
            false => serve(peers, stream, peer, stages, open),
        }
    }
}

/// Returns whether a problem that was last logged at this time is to be logged again, as it is now.
fn is_due(logged: &mut Option<Instant>) -> bool {
    let is_due = logged.is_none_or(|last| clock::since(last) >= BETWEEN_LOGS);
    if is_due {
        *logged = Some(clock::now());
    }
    is_due
}

fn is_of_one_peer(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted, InvalidInput};
    matches!(error.kind(), ConnectionAborted | ConnectionReset | Interrupted | InvalidInput)
}

/// Starts a task that reads the header of the PROXY protocol, and then one for the connection.
fn serve_proxied(
    peers: Arc<Peers>,
    stream: Box<dyn ByteStream>,
    proxy: Peer,
    mut stage: watch::Receiver<Stage>,
    open: Open,
) {
    tokio::spawn(boxed(async move {
        let proxied = tokio::select! {
            proxied = proxied::read_header(&peers, stream, proxy, open) => proxied,
            () = closed(&mut stage) => None,
        };
        if let Some(Proxied { stream, peer, open }) = proxied {
            serve(peers, stream, peer, stage, open);
        }
    }));
}

/// Starts a task for a connection. Each protocol has its own future, to keep the futures small: they live as long as
/// the connection.
fn serve(
    peers: Arc<Peers>,
    stream: Box<dyn ByteStream>,
    peer: Peer,
    mut stage: watch::Receiver<Stage>,
    open: Open,
) {
    match &peers.protocol {
        Protocol::Http => drop(tokio::spawn(boxed(async move {
            http::serve(peers, stream, peer, stage).await;
            drop(open);
        }))),
        #[cfg(feature = "tls")]
        Protocol::Https(acceptor) => {
            let shaking = timeout(peers.timeouts.header, acceptor.accept(stream));
            tokio::spawn(boxed(async move {
                if let Ok(Ok(stream)) = Box::pin(shaking).await {
                    if tls::is_http2(&stream) {
                        Box::pin(http::serve_http2(peers, Box::new(stream), peer, stage)).await;
                    } else {
                        http::serve(peers, Box::new(stream), peer, stage).await;
                    }
                }
                drop(open);
            }));
        }
        Protocol::Lines => drop(tokio::spawn(boxed(async move {
            let (reader, writer) = split(stream);
            let write_timeout = |bytes| peers.timeouts.for_bytes(bytes);
            let (limit, grace) = (peers.max_message, peers.grace);
            let remote = peer.address();
            let client = ClientKey::new(None, remote);
            let unfinished = Holding::new(&peers.endpoint.ledgers().input, client);
            let guard = Some(LineGuard { timeouts: peers.timeouts, unfinished });
            let lines = Lines { limit, write_timeout, grace, guard };
            let connected = Connected::open(Arc::clone(&peers.endpoint), None, remote);
            tokio::select! {
                () = lines.serve(connected, reader, writer) => (),
                () = closed(&mut stage) => (),
            }
            drop(open);
        }))),
    }
}

impl Protocol {
    fn new(at: &Address, tls: Option<&(PathBuf, PathBuf)>) -> Result<Self, Error> {
        match (&at.place, tls) {
            #[cfg(feature = "tls")]
            (ListenAddress::Http { .. }, Some((chain, key))) => {
                Ok(Self::Https(tls::acceptor(chain, key)?))
            }
            #[cfg(not(feature = "tls"))]
            (ListenAddress::Http { .. }, Some(_)) => Err(Error::without_feature("tls", at)),
            (ListenAddress::Http { is_secure: true, .. }, None) => Err(Error::misuse(format!(
                "{at} needs a certificate; set the option tls to its two files, or write http://"
            ))),
            (ListenAddress::Http { .. } | ListenAddress::HttpUnix(_), None) => Ok(Self::Http),
            (ListenAddress::Tcp { .. } | ListenAddress::Unix(_), None) => Ok(Self::Lines),
            (
                ListenAddress::Tcp { .. } | ListenAddress::Unix(_) | ListenAddress::HttpUnix(_),
                Some(_),
            ) => Err(Error::misuse(format!(
                "{at} is not encrypted, but the option tls is set; write https://, or leave tls out"
            ))),
        }
    }
}

/// Waits until all connections must close.
pub(crate) async fn closed(stage: &mut watch::Receiver<Stage>) {
    reached(stage, Stage::Closed).await;
}

/// Waits until a stage of the shutdown has begun.
async fn reached(stage: &mut watch::Receiver<Stage>, wanted: Stage) {
    // Dropping the server ends every wait.
    let _ = stage.wait_for(|stage| *stage >= wanted).await;
}
