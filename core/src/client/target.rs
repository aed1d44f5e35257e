//! Targets: the servers that a client can connect to.

use std::{ffi::OsString, fmt, str::FromStr, sync::Arc};

use http::HeaderMap;

use super::{
    connection::BoxFuture,
    questions::Answerer,
    wire::{ClientTransport, WireOptions},
};
#[cfg(feature = "websocket")]
use crate::transport::websocket;
use crate::{
    error::Error,
    server::Server,
    transport::{
        Command, Link, Scheme, Transport, Url,
        child::Process,
        dial,
        http::client::{HttpOptions, HttpWire},
        messages::Messages,
        url::without_secrets,
    },
};

/// The server to connect to: an address, a program to start, an open connection, or a server in this process.
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub enum Target {
    Command(Command),
    Url(Url),
    /// A connection with one message per line, and its name for errors.
    Stream(Link, String),
    /// A user-defined transport.
    Custom(CustomWire),
    /// A server in this process.
    Served(ServedTarget),
    /// A string or list that names no server. Connecting fails with this error.
    Invalid(Error),
}

/// A [`Transport`] that is not in use yet.
pub struct CustomWire(Box<dyn FnOnce(usize) -> Messages + Send>);

/// A server in this process that is not connected yet.
pub struct ServedTarget {
    /// The prepared answers of a server under test.
    pub(super) answerer: Option<Answerer>,
    /// `true` if calls have the headers of the client, as under test.
    pub(super) takes_headers: bool,
    /// Opens a connection whose calls have these headers.
    pub(super) open: Box<dyn FnOnce(HeaderMap) -> BoxFuture<Result<Link, Error>> + Send>,
}

/// An opened connection to a target.
pub(super) struct OpenedTarget {
    pub(super) wire: ClientTransport,
    pub(super) process: Option<Process>,
    pub(super) reconnect: Option<Reconnect>,
}

/// A way to connect to the same target again.
#[derive(Clone)]
pub(crate) enum Reconnect {
    Command(Command),
    Url(Url),
}

impl Target {
    /// A server at an `http`, `https`, `ws`, `wss`, `tcp`, `unix` or `http+unix` URL, such as `http://127.0.0.1:8000/mcp`. Errors
    /// if the URL is invalid.
    ///
    /// For `http`, `https`, `ws` and `wss`, the environment may name a proxy when the client is built: `HTTPS_PROXY` for `https`
    /// and `wss`, `HTTP_PROXY` for `http` and `ws`, `ALL_PROXY` for both, as `http://user:password@host:port`. Loopback
    /// addresses and the hosts in `NO_PROXY` need none; `*` lists every host.
    ///
    /// For `https` and `wss` the system's certificates are trusted, or those in the file `SSL_CERT_FILE` and the folders
    /// `SSL_CERT_DIR` in their place, and those in the file `NODE_EXTRA_CA_CERTS` in addition;
    /// [`ClientOptions::ca`](super::ClientOptions::ca) replaces them all.
    pub fn url(url: &str) -> Result<Self, Error> {
        Url::parse(url).map(Self::Url)
    }

    /// A byte stream with one message per line, given as reader and writer.
    pub fn stream(
        input: impl tokio::io::AsyncRead + Send + Unpin + 'static,
        output: impl tokio::io::AsyncWrite + Send + Unpin + 'static,
    ) -> Self {
        Self::Stream(Link::new(input, output), "stream".into())
    }

    /// Returns whether the target accepts headers.
    pub(crate) fn takes_headers(&self) -> bool {
        match self {
            Self::Url(url) => !matches!(url.scheme(), Scheme::Tcp | Scheme::Unix),
            Self::Served(served) => served.takes_headers,
            _ => false,
        }
    }

    fn command(mut words: impl Iterator<Item = OsString>) -> Self {
        match words.next() {
            Some(program) => Self::Command(Command::new(program).args(words)),
            None => Self::Invalid(Error::misuse(
                "the command line is empty; begin it with a program, as in [\"python3\", \"server.py\"]",
            )),
        }
    }

    pub(super) fn is_http(&self) -> bool {
        match self {
            Self::Url(url) => url.scheme().is_http(),
            _ => false,
        }
    }

    /// Returns the way to connect to the same server later: to an address, and to a command if `restarts`.
    pub(crate) fn again(&self, restarts: bool) -> Option<Reconnect> {
        match self {
            Self::Command(command) if restarts => Some(Reconnect::Command(command.clone())),
            Self::Url(url) => Some(Reconnect::Url(url.clone())),
            _ => None,
        }
    }

    /// Removes the prepared answers of a server under test.
    pub(super) fn take_answerer(&mut self) -> Option<Answerer> {
        match self {
            Self::Served(served) => served.answerer.take(),
            _ => None,
        }
    }

    pub(super) async fn reach(self, options: &WireOptions) -> Result<OpenedTarget, Error> {
        let wire = match self {
            Self::Command(command) => return Reconnect::Command(command).reach(options).await,
            Self::Url(url) => return Reconnect::Url(url).reach(options).await,
            Self::Stream(link, _) => ClientTransport::lines(link, options.limit),
            Self::Custom(CustomWire(open)) => ClientTransport::Messages(open(options.limit)),
            Self::Served(served) => {
                let link = (served.open)(options.headers.clone()).await?;
                ClientTransport::lines(link, options.limit)
            }
            Self::Invalid(error) => return Err(error),
        };
        Ok(OpenedTarget { wire, process: None, reconnect: None })
    }
}

impl Reconnect {
    pub(super) async fn reach(self, options: &WireOptions) -> Result<OpenedTarget, Error> {
        let (wire, process) = match &self {
            Self::Command(command) => {
                let (link, process) = command.spawn()?;
                (ClientTransport::lines(link, options.limit), Some(process))
            }
            Self::Url(url) => (reach(url, options).await?, None),
        };
        Ok(OpenedTarget { wire, process, reconnect: Some(self) })
    }
}

async fn reach(url: &Url, options: &WireOptions) -> Result<ClientTransport, Error> {
    let limit = options.limit;
    Ok(match url.scheme() {
        Scheme::Http | Scheme::Https | Scheme::HttpUnix => {
            ClientTransport::Http(Box::new(HttpWire::new(HttpOptions {
                url: url.clone(),
                proxy: options.proxy.clone(),
                network: options.network.clone(),
                headers: options.headers.clone(),
                limit,
                mirror: options.mirror.clone(),
                session: options.session.clone(),
                auth: options.auth.clone(),
            })))
        }
        #[cfg(feature = "websocket")]
        Scheme::Ws | Scheme::Wss => {
            let (proxy, headers) = (options.proxy.as_deref(), &options.headers);
            ClientTransport::Messages(
                websocket::client::connect(url, proxy, &options.network, headers, limit).await?,
            )
        }
        #[cfg(not(feature = "websocket"))]
        Scheme::Ws | Scheme::Wss => return Err(Error::without_feature("websocket", url)),
        Scheme::Tcp | Scheme::Unix => ClientTransport::lines(dial::dial_lines(url).await?, limit),
    })
}

impl FromStr for Target {
    type Err = Error;

    fn from_str(url: &str) -> Result<Self, Error> {
        Self::url(url)
    }
}

/// A user-defined transport.
impl<T: Transport> From<T> for Target {
    fn from(transport: T) -> Self {
        Self::Custom(CustomWire(Box::new(|limit| Messages::custom(transport, limit))))
    }
}

impl From<Command> for Target {
    fn from(command: Command) -> Self {
        Self::Command(command)
    }
}

/// A URL, as [`Target::url`] reads it. Connecting fails if it is not valid.
///
/// ```no_run
/// # async fn connect() -> Result<(), gudgeon::Error> {
/// let client = gudgeon::Client::connect("https://shelf.example.org/mcp").await?;
/// # Ok(()) }
/// ```
impl From<&str> for Target {
    fn from(url: &str) -> Self {
        if Scheme::from_url(url).is_none() && !url.trim().is_empty() {
            let shown = &*without_secrets(url);
            let words: Vec<_> = shown.split_whitespace().map(|word| format!("{word:?}")).collect();
            return Self::Invalid(Error::misuse(format!(
                "{shown:?} must be a URL ({}); a command is a list of words: [{}]",
                Scheme::names(),
                words.join(", ")
            )));
        }
        Self::url(url).unwrap_or_else(Self::Invalid)
    }
}

/// A URL, like that of a `&str`.
impl From<String> for Target {
    fn from(url: String) -> Self {
        Self::from(&*url)
    }
}

/// A URL, like that of a `&str`.
impl From<&String> for Target {
    fn from(url: &String) -> Self {
        Self::from(&**url)
    }
}

/// A command line: the program, then its arguments.
///
/// ```no_run
/// # async fn connect() -> Result<(), gudgeon::Error> {
/// let client = gudgeon::Client::connect(["python3", "server.py"]).await?;
/// # Ok(()) }
/// ```
impl<S: Into<OsString>, const N: usize> From<[S; N]> for Target {
    fn from(command_line: [S; N]) -> Self {
        const { assert!(N > 0, "a command line begins with a program") };
        Self::command(command_line.into_iter().map(Into::into))
    }
}

/// A command line: the program, then its arguments. Connecting fails if it is empty.
impl<S: Into<OsString>> From<Vec<S>> for Target {
    fn from(command_line: Vec<S>) -> Self {
        Self::command(command_line.into_iter().map(Into::into))
    }
}

/// A command line: the program, then its arguments. Connecting fails if it is empty.
impl<S: Clone + Into<OsString>> From<&[S]> for Target {
    fn from(command_line: &[S]) -> Self {
        Self::command(command_line.iter().cloned().map(Into::into))
    }
}

impl From<Reconnect> for Target {
    fn from(again: Reconnect) -> Self {
        match again {
            Reconnect::Command(command) => Self::Command(command),
            Reconnect::Url(url) => Self::Url(url),
        }
    }
}

impl From<Url> for Target {
    fn from(url: Url) -> Self {
        Self::Url(url)
    }
}

impl From<Link> for Target {
    fn from(link: Link) -> Self {
        Self::Stream(link, "memory".into())
    }
}

impl From<&Server> for Target {
    fn from(server: &Server) -> Self {
        let open = server.in_memory(None);
        let open = Box::new(|_| open(None));
        Self::Served(ServedTarget { answerer: None, takes_headers: false, open })
    }
}

impl From<&Arc<Server>> for Target {
    fn from(server: &Arc<Server>) -> Self {
        Self::from(&**server)
    }
}

impl From<Arc<Server>> for Target {
    fn from(server: Arc<Server>) -> Self {
        Self::from(&*server)
    }
}

impl From<Server> for Target {
    fn from(server: Server) -> Self {
        Self::from(&server)
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Target({self})")
    }
}

impl fmt::Debug for CustomWire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CustomWire").finish_non_exhaustive()
    }
}

impl fmt::Debug for ServedTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServedTarget").finish_non_exhaustive()
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command(command) => command.fmt(f),
            Self::Url(url) => url.fmt(f),
            Self::Stream(_, name) => f.write_str(name),
            Self::Custom(_) => f.write_str("transport"),
            Self::Served(_) => f.write_str("the in-memory server"),
            Self::Invalid(_) => f.write_str("the target"),
        }
    }
}
