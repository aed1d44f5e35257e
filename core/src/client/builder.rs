//! The configuration of a client.

use std::{
    fmt,
    future::Future,
    sync::{Arc, Mutex, RwLock},
};

use serde_json::Value;

#[cfg(feature = "bindings")]
use super::relay::Relay;
use super::{
    CallOptions, Client, ClientOptions, Target,
    connected::{Connector, Hooks, lock},
    connection::{Event, OnProgress},
    middleware::{Next, Request, Stack},
    questions::{Answerer, Questions, Roots},
    reconnect::Reconnecting,
    target::Reconnect,
};
use crate::{
    error::{Error, ErrorKind},
    peer,
    protocol::{
        CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams, ElicitResult, Sender,
        json,
    },
    session::client::{ListKind, LogMessage, Progress},
    transport::{
        Url,
        network::{Connect, Network},
        proxy::ProxyEnvironment,
        sign_in::Authorizer,
        trust::Trust,
    },
};

/// Headers that usually hold credentials.
const CREDENTIALS: [&str; 4] = ["authorization", "proxy-authorization", "cookie", "x-api-key"];

/// A client that is not connected yet: its target and options, and the proxies that the environment named when it was
/// created (see [`Target::url`]).
pub struct ClientBuilder {
    target: Target,
    options: ClientOptions,
    on_progress: Option<OnProgress>,
    middleware: Stack,
    hooks: Hooks,
    questions: Questions,
    proxies: ProxyEnvironment,
    connect: Option<Connect>,
    pub(super) keeps_trying: bool,
}

/// A client with valid options that is not connected.
pub(super) struct UnconnectedClient {
    pub(super) connector: Arc<Connector>,
    /// Taken by the first attempt.
    target: Mutex<Option<Target>>,
    /// The target for further attempts; `None` if it can be used only once.
    again: Option<Reconnect>,
    on_progress: Option<OnProgress>,
    middleware: Arc<Stack>,
    /// True if connecting is tried again in the background.
    pub(super) keeps_trying: bool,
}

impl UnconnectedClient {
    /// Connects to the server. May be called again after an error if [`Self::can_try_again`].
    pub(super) async fn connect(&self) -> Result<Client, Error> {
        let target = lock(&self.target).take().or_else(|| self.again.clone().map(Into::into));
        let target = target.ok_or_else(|| Error::new(ErrorKind::Lost, "the connection is lost"))?;
        let connected = self.connector.connect(target).await?;
        let options =
            CallOptions { on_progress: self.on_progress.clone(), ..self.connector.calls() };
        let connector = Arc::clone(&self.connector);
        let reconnecting = Reconnecting::new(connected, connector, self.again.clone());
        let middleware = Arc::clone(&self.middleware);
        Ok(Client { reconnecting: Arc::new(reconnecting), middleware, options })
    }

    pub(super) fn can_try_again(&self) -> bool {
        self.again.is_some()
    }
}

impl fmt::Debug for UnconnectedClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnconnectedClient")
            .field("connector", &self.connector)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder").field("target", &self.target).finish_non_exhaustive()
    }
}

impl ClientBuilder {
    pub(super) fn new(mut target: Target) -> Self {
        let mut questions = Questions::default();
        if let Some(answerer) = target.take_answerer() {
            questions.elicit = Some(Arc::clone(&answerer));
            questions.sample = Some(Arc::clone(&answerer));
            questions.roots = RwLock::new(Some(Roots::Callback(answerer)));
        }
        let (options, hooks) = (ClientOptions::default(), Hooks::default());
        // Here, because `connect` runs on another thread for other languages.
        let proxies = match target {
            Target::Url(_) => ProxyEnvironment::read(),
            _ => ProxyEnvironment::default(),
        };
        let (on_progress, connect, keeps_trying) = (None, None, false);
        let middleware = Stack::default();
        Self {
            target,
            options,
            on_progress,
            middleware,
            hooks,
            questions,
            proxies,
            connect,
            keeps_trying,
        }
    }

    /// Has this function answer all questions.
    #[must_use]
    pub(crate) fn answered_by(mut self, answerer: &Answerer) -> Self {
        self.questions.elicit = Some(Arc::clone(answerer));
        self.questions.sample = Some(Arc::clone(answerer));
        self.questions.roots = RwLock::new(Some(Roots::Callback(Arc::clone(answerer))));
        self
    }

    /// Changes the client's options.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use gudgeon::{Client, Revision, Server};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), gudgeon::Error> {
    /// # let server = Server::new("shelf");
    /// let builder = Client::builder(&server).options(|options| {
    ///     options.revisions = vec![Revision::V2025_11_25];
    ///     options.timeout = Some(Duration::from_secs(10));
    /// });
    /// let client = builder.connect().await?;
    /// assert_eq!(client.server().revision, Revision::V2025_11_25);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn options(mut self, change: impl FnOnce(&mut ClientOptions)) -> Self {
        change(&mut self.options);
        self
    }

    /// Registers a callback for all unsolicited notifications of a legacy server, in order, such as the end of a URL
    /// elicitation ([`Event::UrlDone`]). It must not block.
    ///
    /// Notifications of a modern server belong to a subscription: see [`Client::subscribe`] and
    /// [`Self::on_list_changed`].
    #[must_use]
    pub fn on_event(mut self, hook: impl Fn(Event) + Send + Sync + 'static) -> Self {
        self.hooks.event = Some(Box::new(hook));
        self
    }

    /// Registers a callback for log messages. It must not block.
    #[must_use]
    pub fn on_log(mut self, hook: impl Fn(LogMessage) + Send + Sync + 'static) -> Self {
        self.hooks.log = Some(Box::new(hook));
        self
    }

    /// Registers a callback for changes of the lists that the server declares to notify of. It must not block.
    ///
    /// In the modern era this opens a `subscriptions/listen` for the lifetime of the client. After an interruption
    /// all lists are reported as changed. Spec: Base Protocol › Patterns › Subscriptions.
    #[must_use]
    pub fn on_list_changed(mut self, hook: impl Fn(ListKind) + Send + Sync + 'static) -> Self {
        self.hooks.list_changed = Some(Box::new(hook));
        self
    }

    /// Registers a callback for the progress of all requests. It must not block.
    #[must_use]
    pub fn on_progress(mut self, hook: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        self.on_progress = Some(Arc::new(hook));
        self
    }

    /// Adds middleware: a function that runs around the client's requests with these methods and passes them on with
    /// `next.run(request)`. It may change the params and the result, answer by itself, or send the request again. The
    /// method `"*"` stands for all. The first one that is added is the outermost.
    ///
    /// The function runs once for each request of the program, not for its pages, rounds of questions and repetitions after an
    /// outage, nor for requests that the client sends by itself. Subscriptions and notifications have no middleware.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), gudgeon::Error> {
    /// use gudgeon::{Client, Server};
    ///
    /// let server = Server::new("greeter").tool("greet", || async { "hello" });
    /// let client = Client::builder(&server)
    ///     .middleware(["tools/call"], |mut request, next| async move {
    ///         request.params["_meta"] = serde_json::json!({ "tenant": "books" });
    ///         let result = next.run(request).await?;
    ///         println!("{}", result["isError"] == true);
    ///         Ok(result)
    ///     })
    ///     .connect()
    ///     .await?;
    /// assert_eq!(client.call_tool("greet", ()).await?.text(), "hello");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn middleware<F, Answering, M: Into<String>>(
        mut self,
        methods: impl IntoIterator<Item = M>,
        middleware: F,
    ) -> Self
    where
        F: Fn(Request, Next) -> Answering + Send + Sync + 'static,
        Answering: Future<Output = Result<Value, Error>> + Send + 'static,
    {
        self.middleware.push(methods.into_iter().map(Into::into).collect(), middleware);
        self
    }

    /// Registers a callback that answers elicitations. To decline or cancel, it returns an error of kind `Declined`
    /// or `Cancelled`.
    #[must_use]
    pub fn on_elicit<F, A>(mut self, callback: F) -> Self
    where
        F: Fn(ElicitRequestParams) -> A + Send + Sync + 'static,
        A: Future<Output = Result<ElicitResult, Error>> + Send + 'static,
    {
        self.questions.elicit = Some(answerer(callback));
        self
    }

    /// Registers a callback that answers sampling requests.
    #[must_use]
    pub fn on_sample<F, A>(mut self, callback: F) -> Self
    where
        F: Fn(CreateMessageRequestParams) -> A + Send + Sync + 'static,
        A: Future<Output = Result<CreateMessageResult, Error>> + Send + 'static,
    {
        self.questions.sample = Some(answerer(callback));
        self
    }

    /// Registers a callback for every JSON-RPC message of this client's connections, as it is sent and received. It must
    /// not block.
    #[doc(hidden)] // For the command line.
    #[must_use]
    pub fn on_message(mut self, hook: impl Fn(Sender, &[u8]) + Send + Sync + 'static) -> Self {
        self.hooks.message = Some(Arc::new(hook));
        self
    }

    /// Registers a callback for the steps of a sign-in: a line for each HTTP request, without secrets. It must not block.
    #[doc(hidden)] // For the command line.
    #[cfg(feature = "auth")]
    #[must_use]
    pub fn on_sign_in_step(mut self, hook: impl Fn(String) + Send + Sync + 'static) -> Self {
        self.hooks.sign_in_step = Some(Arc::new(hook));
        self
    }

    /// Connects to the server, starting its process if necessary, and negotiates the revision. Errors if the server
    /// can't be reached or started, or shares no revision with the client.
    pub async fn connect(self) -> Result<Client, Error> {
        self.prepare()?.connect().await
    }

    /// Returns a builder for a client in a group: connecting is tried again in the background, and a command that ended is
    /// started again.
    #[doc(hidden)] // For the language bindings.
    #[must_use]
    pub fn for_group(mut self) -> Self {
        self.keeps_trying = true;
        self.options(|options| options.restart = true)
    }

    /// Begins each line that the server's process writes to standard error with this name, because several servers write there.
    pub(crate) fn stderr_named(mut self, name: &str) -> Self {
        if let Target::Command(command) = self.target {
            self.target = Target::Command(command.stderr_named(name));
        }
        self
    }

    /// Checks the options. Errors if they are invalid.
    pub(super) fn prepare(self) -> Result<UnconnectedClient, Error> {
        let network = self.network()?;
        let auth = self.authorizer(&network)?;
        if let Some(warning) = self.warning() {
            tracing::warn!("{warning}");
        }
        let Self { target, options, on_progress, middleware, hooks, questions, .. } = self;
        #[cfg(feature = "auth")]
        let mut options = options;
        #[cfg(feature = "auth")]
        if let Some(auth) = &options.auth {
            auth.declare(&mut options.capabilities);
        }
        Ok(UnconnectedClient {
            again: target.again(options.restart),
            target: Mutex::new(Some(target)),
            connector: Arc::new(Connector::new(options, hooks, questions, network, auth)?),
            on_progress,
            middleware: Arc::new(middleware),
            keeps_trying: self.keeps_trying,
        })
    }
}

impl ClientBuilder {
    /// Returns a warning if credentials leave this machine without encryption.
    fn warning(&self) -> Option<String> {
        let Target::Url(url) = &self.target else { return None };
        let is_secret =
            |name: &str| CREDENTIALS.iter().any(|known| name.eq_ignore_ascii_case(known));
        let has_secret = self.options.headers.iter().any(|(name, _)| is_secret(name));
        #[cfg(feature = "auth")]
        let has_secret = has_secret || self.options.auth.is_some();
        let is_readable = !url.scheme().is_secure() && !url.is_loopback();
        (has_secret && is_readable).then(|| {
            format!(
                "the credentials for {url} are sent without encryption, so that others on the network can read them: use https"
            )
        })
    }

    /// Returns the way to the server. Errors if a certificate of the options can't be used.
    fn network(&self) -> Result<Network, Error> {
        let ClientOptions { ca, certificate, .. } = &self.options;
        let trust = match &self.target {
            Target::Url(url) => Trust::new(url, ca.as_ref(), certificate.as_ref())?,
            _ => Trust::default(),
        };
        Ok(Network { proxies: self.proxies.clone(), trust, connect: self.connect.clone() })
    }

    /// Returns the source of the credentials for a server over HTTP. Errors if the options for them are invalid.
    #[cfg(feature = "auth")]
    fn authorizer(&self, network: &Network) -> Result<Option<Arc<Authorizer>>, Error> {
        let Some(auth) = &self.options.auth else { return Ok(None) };
        let url = if let Target::Url(url) = &self.target { Some(url) } else { None };
        let on_step = self.hooks.sign_in_step.clone();
        auth.authorizer(url, &self.options, network, on_step).map(Some)
    }

    #[cfg(not(feature = "auth"))]
    #[allow(clippy::unnecessary_wraps, clippy::unused_self, reason = "as with the feature")]
    fn authorizer(&self, _: &Network) -> Result<Option<Arc<Authorizer>>, Error> {
        Ok(None)
    }
}

/// For the language bindings, which convert values themselves.
#[cfg(feature = "bindings")]
impl ClientBuilder {
    /// Returns the server that the client is to connect to, and the headers for it.
    pub fn target(&self) -> (&Target, &[(String, String)]) {
        (&self.target, &self.options.headers)
    }

    /// Opens a connection that carries the messages of another client, with the headers and credentials of this one. Errors
    /// if the target is not an `http`, `https`, `ws` or `wss` URL, or if the options are invalid.
    pub async fn relay(self) -> Result<Relay, Error> {
        let network = self.network()?;
        let auth = self.authorizer(&network)?;
        if let Some(warning) = self.warning() {
            tracing::warn!("{warning}");
        }
        let ClientOptions { headers, max_message, .. } = &self.options;
        Relay::open(self.target, headers, *max_message, &network, auth).await
    }

    /// Lets the host answer the HTTP requests of the client, those of signing in included. `open` returns a stream on which it
    /// answers requests for the origin of a URL in HTTP/1.1, unencrypted.
    #[cfg(unix)]
    #[must_use]
    pub fn connected_by(
        mut self,
        open: impl Fn(&Url) -> std::io::Result<std::os::unix::net::UnixStream> + Send + Sync + 'static,
    ) -> Self {
        self.connect = Some(Arc::new(move |url| {
            let stream = open(url).and_then(|stream| {
                stream.set_nonblocking(true)?;
                tokio::net::UnixStream::from_std(stream)
            });
            match stream {
                Ok(stream) => Ok(Box::new(stream) as _),
                Err(error) => {
                    Err(Error::new(ErrorKind::Connect, error.to_string()).caused_by(error))
                }
            }
        }));
        self
    }

    /// Returns whether the client opens a lost connection again.
    pub fn reconnects(&self) -> bool {
        self.target.again(self.options.restart).is_some()
    }

    /// Like [`Self::on_elicit`], with params and result as raw JSON.
    #[must_use]
    pub fn on_elicit_raw(mut self, callback: Answerer) -> Self {
        self.questions.elicit = Some(callback);
        self
    }

    /// Like [`Self::on_sample`], with params and result as raw JSON.
    #[must_use]
    pub fn on_sample_raw(mut self, callback: Answerer) -> Self {
        self.questions.sample = Some(callback);
        self
    }

    /// Sets a callback that returns the result of `roots/list` as raw JSON for each request.
    #[must_use]
    pub fn on_roots_raw(mut self, callback: Answerer) -> Self {
        self.questions.roots = RwLock::new(Some(Roots::Callback(callback)));
        self
    }
}

/// Converts a typed callback to one that reads and writes JSON.
fn answerer<P, R, F, A>(callback: F) -> Answerer
where
    P: for<'de> serde::Deserialize<'de> + Send + 'static,
    R: serde::Serialize,
    F: Fn(P) -> A + Send + Sync + 'static,
    A: Future<Output = Result<R, Error>> + Send + 'static,
{
    let callback = Arc::new(callback);
    Arc::new(move |question| {
        let callback = Arc::clone(&callback);
        Box::pin(async move {
            let params = peer::read("the server's question", &question.params)?;
            callback(params).await.map(|answer| json::to_raw(&answer))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warning(url: &str, header: &str) -> Option<String> {
        let builder = Client::builder(Target::url(url).expect(url));
        builder.options(|options| options.headers.push((header.into(), "s3cret".into()))).warning()
    }

    #[test]
    fn credentials_that_others_can_read_are_warned_of() {
        for header in ["Authorization", "X-API-Key", "cookie"] {
            for url in ["http://shelf.example/mcp?key=s3cret", "ws://10.0.0.7:8000/mcp"] {
                let warning = warning(url, header).expect(url);
                assert!(warning.contains("without encryption") && warning.contains("use https"));
                assert!(!warning.contains("s3cret"), "{warning}");
            }
            for url in [
                "https://shelf.example/mcp",
                "wss://shelf.example/mcp",
                "http://localhost:8000/mcp",
                "http://127.0.0.1/mcp",
                "ws://[::1]/mcp",
            ] {
                assert_eq!(warning(url, header), None, "{url}");
            }
        }
        assert_eq!(warning("http://shelf.example/mcp", "X-Tenant"), None);
        #[cfg(feature = "auth")]
        {
            let target = Target::url("http://shelf.example/mcp").expect("a URL");
            let auth = crate::client::auth::Auth::Token("t".into());
            let builder = Client::builder(target).options(|options| options.auth = Some(auth));
            assert!(builder.warning().is_some());
        }
    }
}
