//! The client class of JavaScript: requests come in one by one, their outcomes go out in batches.

mod group;
mod queue;
mod subscriptions;
mod thrown;
mod token_file;

use std::{
    collections::HashMap,
    io,
    os::{
        fd::{IntoRawFd, OwnedFd},
        unix::net::UnixStream,
    },
    sync::{Arc, Mutex, OnceLock},
};

use gudgeon::{
    Client,
    bindings::{
        client_middleware::{MiddlewareRuns, with_ticket},
        client_notice::Notice,
        client_operation::{apply_options, operation},
        client_questions::Questions,
        client_roots, client_runtime,
        client_settings::ClientSettings,
        client_target::{ConfiguredTarget, stream_target},
        options::Problem,
        subscriptions::OpenSubscriptions,
        terminate_servers,
    },
    client::{self, ClientBuilder, Member, Operation, OperationReply, Target},
    driver::{Boxed, boxed},
    error::{Error, Language},
    protocol::{SubscriptionFilter, json},
};
use napi_derive::napi;
use serde_json::value::RawValue;
use tokio::{runtime::Runtime, task::AbortHandle};

pub(crate) use self::token_file::promise;
use self::{queue::Queue, thrown::middleware_failed};
use crate::{
    error::{io as refused, misuse},
    shared::{Wake, lock},
    work_queue::NativeWorkQueue,
};

/// The number of the connecting request.
const CONNECT: u32 = 0;

#[napi]
#[derive(Debug)]
pub struct NativeClient {
    shared: Arc<Shared>,
    peer: Option<UnixStream>,
}

#[derive(Debug)]
struct Shared {
    queue: Arc<Queue>,
    questions: Arc<Questions>,
    middleware: Arc<MiddlewareRuns>,
    /// The client, until it is closed.
    client: Mutex<Option<Arc<Member>>>,
    calls: Mutex<HashMap<u32, AbortHandle>>,
    subscriptions: OpenSubscriptions,
}

/// The address or the command of a server.
#[napi]
#[derive(Debug)]
pub struct NativePlace(pub(crate) ConfiguredTarget);

#[napi]
impl NativePlace {
    /// Reads a URL, a command, or an entry of a host's configuration, and the headers of the client's options, as JSON.
    #[napi(constructor, catch_unwind)]
    pub fn new(given: String, headers: String) -> napi::Result<Self> {
        let read =
            ConfiguredTarget::read(Language::TypeScript, given.as_bytes(), headers.as_bytes());
        read.map(Self).map_err(refused_value)
    }

    /// Checks the headers of the client's options for any other target, which takes none.
    #[napi(catch_unwind)]
    pub fn check_headers(headers: String) -> napi::Result<()> {
        ConfiguredTarget::check_headers(Language::TypeScript, headers.as_bytes())
            .map_err(refused_value)
    }

    /// The server's name in errors.
    #[napi(getter, catch_unwind)]
    pub fn name(&self) -> String {
        self.0.name()
    }

    /// Sends SIGTERM to every server that a client of this process has started, and to its children.
    #[napi(catch_unwind)]
    pub fn terminate_servers() {
        terminate_servers();
    }
}

#[napi]
impl NativeClient {
    /// Connects to the server at a place; the outcome is the reply to request 0.
    #[napi(
        factory,
        catch_unwind,
        ts_args_type = "place: NativePlace, settings: string, group: string | null, wake: () => void"
    )]
    pub fn reach(
        place: &NativePlace,
        settings: String,
        group: Option<String>,
        wake: Wake<true>,
    ) -> napi::Result<Self> {
        Self::open(|settings| settings.builder_for(&place.0), &settings, group, wake)
    }

    /// Connects to the other end of a stream served in this process.
    #[napi(
        factory,
        catch_unwind,
        ts_args_type = "stream: NativeWorkQueue, name: string, settings: string, group: string | null, wake: () => void"
    )]
    pub fn join_stream(
        stream: &mut NativeWorkQueue,
        name: String,
        settings: String,
        group: Option<String>,
        wake: Wake<true>,
    ) -> napi::Result<Self> {
        let peer = stream.take_peer_stream();
        let peer = peer.ok_or_else(|| misuse(Error::misuse("the stream's other end is gone")))?;
        let target = in_memory(peer, name)?;
        Self::open(|settings| settings.builder(target), &settings, group, wake)
    }

    /// Connects to the other end of a new stream, which `takePeer` returns.
    #[napi(
        factory,
        catch_unwind,
        ts_args_type = "name: string, settings: string, group: string | null, wake: () => void"
    )]
    pub fn open_stream(
        name: String,
        settings: String,
        group: Option<String>,
        wake: Wake<true>,
    ) -> napi::Result<Self> {
        let (ours, theirs) = UnixStream::pair().map_err(no_stream)?;
        let target = in_memory(ours, name)?;
        let mut client = Self::open(|settings| settings.builder(target), &settings, group, wake)?;
        client.peer = Some(theirs);
        Ok(client)
    }

    /// The session id; legacy HTTP only.
    #[napi(catch_unwind)]
    pub fn session_id(&self) -> Option<String> {
        self.shared.connected().as_ref().and_then(Client::session_id)
    }

    /// Returns the next batch, or null if nothing waits.
    #[napi(catch_unwind)]
    pub fn take_batch(&self) -> Option<String> {
        self.shared.queue.take()
    }

    /// Sends a request; its outcome arrives under this number.
    #[napi(catch_unwind)]
    pub fn request(
        &self,
        number: u32,
        what: String,
        params: String,
        options: Option<String>,
        wants_progress: bool,
    ) -> napi::Result<()> {
        let operation = operation(&what, params.as_bytes()).map_err(misuse)?;
        let client = self.client()?;
        let given = options;
        let mut options = client.options();
        if let Some(given) = given {
            apply_options(&mut options, given.as_bytes()).map_err(misuse)?;
        }
        if wants_progress {
            let queue = Arc::clone(&self.shared.queue);
            options.on_progress = Some(Arc::new(move |step| queue.progress(number, &step)));
        }
        // Schemas in lists keep rounded limits, so that programs can pass them on with JSON.stringify.
        let reply = match operation {
            Operation::List(_) | Operation::ListPage(..) => Queue::reply,
            _ => Queue::values,
        };
        let performing = boxed(async move { client.call(operation, options).await });
        self.shared.spawn(number, performing, reply);
        Ok(())
    }

    /// Cancels a request.
    #[napi(catch_unwind)]
    pub fn cancel(&self, number: u32) {
        if let Some(call) = lock(&self.shared.calls).remove(&number) {
            call.abort();
        }
    }

    /// Subscribes to a filter, as on the wire; the number identifies the subscription from then on.
    #[napi(catch_unwind)]
    pub fn subscribe(&self, number: u32, filter: String) -> napi::Result<()> {
        let filter: SubscriptionFilter = serde_json::from_str(&filter)
            .map_err(|error| misuse(Error::misuse(format!("the filter can't be read: {error}"))))?;
        let client = self.client()?;
        let shared = Arc::clone(&self.shared);
        let subscribing = boxed(async move {
            let subscription = client.subscribe_to(&filter).await?;
            shared.subscriptions.keep(number.into(), subscription.into());
            Ok(nothing())
        });
        self.shared.spawn(number, subscribing, Queue::reply);
        Ok(())
    }

    /// The reply to this number arrives when there is an event of the subscription to take.
    #[napi(catch_unwind)]
    pub fn await_change(&self, number: u32, subscription: u32) {
        let ready = self.shared.subscriptions.ready(subscription.into());
        let waiting = boxed(async move {
            ready.await;
            Ok(nothing())
        });
        self.shared.spawn(number, waiting, Queue::reply);
    }

    /// Returns `{"change": …}`, `{}` or `{"error": …}` at the end; null if there is no event yet.
    #[napi(catch_unwind)]
    pub fn take_change(&self, subscription: u32) -> Option<String> {
        self.shared.subscriptions.take(subscription.into()).map(subscriptions::to_json)
    }

    #[napi(catch_unwind)]
    pub fn unsubscribe(&self, subscription: u32) {
        self.shared.subscriptions.leave(subscription.into());
    }

    /// `params` is a JSON object.
    #[napi(catch_unwind)]
    pub fn notify(&self, method: String, params: String) -> napi::Result<()> {
        let params = raw(params)?;
        self.client()?.notify(&method, params).map_err(misuse)
    }

    /// Answers a question by the value that a callback returned, as JSON. Returns the problem of a value that is not an answer.
    #[napi(catch_unwind)]
    pub fn answer(&self, number: u32, given: String) -> Option<String> {
        self.shared.questions.answer(number, given.as_bytes())
    }

    /// Refuses a question; the reason is `{"kind", "message", "code"?, "data"?}` or `{"name"}`.
    #[napi(catch_unwind)]
    pub fn refuse(&self, number: u32, reason: String) {
        self.shared.questions.refuse(number, reason.as_bytes());
    }

    /// Reads roots, JSON, and sets them. Returns an error as JSON if the server does not allow that.
    #[napi(catch_unwind)]
    pub fn set_roots(&self, roots: String) -> napi::Result<Option<String>> {
        let roots = client_roots::read(roots.as_bytes()).map_err(refused_value)?;
        Ok(self
            .client()?
            .set_roots(roots)
            .err()
            .map(|error| client::describe(&error, &error.message)))
    }

    /// Sends the request of a run of middleware with these params, JSON; its outcome arrives under this number.
    #[napi(catch_unwind)]
    pub fn middleware_next(&self, number: u32, run: u32, params: String) {
        let sent = self.shared.middleware.next(run, params.as_bytes());
        self.shared.spawn(number, boxed(sent), Queue::values);
    }

    /// Ends a run of middleware with its result, JSON.
    #[napi(catch_unwind)]
    pub fn middleware_finish(&self, run: u32, result: String) {
        self.shared.middleware.finish(run, result.as_bytes());
    }

    /// Ends a run of middleware with the number and the description of what it threw. Returns false if the caller has given
    /// up.
    #[napi(catch_unwind)]
    pub fn middleware_fail(&self, run: u32, thrown: u32, message: String) -> bool {
        self.shared.middleware.fail(run, middleware_failed(thrown, &message))
    }

    /// Closes the connection; the reply to this number arrives when it is closed.
    #[napi(catch_unwind)]
    pub fn close(&self, number: u32) {
        self.cancel(CONNECT);
        let client = lock(&self.shared.client).take();
        let queue = Arc::clone(&self.shared.queue);
        let close = async move {
            if let Some(client) = client {
                client.close().await;
            }
            queue.reply(number, Ok(nothing()));
        };
        match runtime() {
            Ok(runtime) => drop(runtime.spawn(boxed(close))),
            Err(_) => self.shared.queue.reply(number, Ok(nothing())),
        }
    }

    /// Stops delivering events of this client.
    #[napi(catch_unwind)]
    pub fn release(&self) {
        self.shared.queue.release();
    }

    /// Returns the other end of the stream, as a file descriptor owned by the caller.
    #[napi(catch_unwind)]
    pub fn take_peer(&mut self) -> Option<i32> {
        self.peer.take().map(|stream| OwnedFd::from(stream).into_raw_fd())
    }
}

impl NativeClient {
    /// Connects in the background. `group` is the server's name in a group.
    fn open(
        builder: impl FnOnce(&ClientSettings) -> Result<ClientBuilder, Error>,
        settings: &str,
        group: Option<String>,
        wake: Wake<true>,
    ) -> napi::Result<Self> {
        let settings = ClientSettings::parse(settings.as_bytes()).map_err(refused_value)?;
        let builder = builder(&settings).map_err(misuse)?;
        let builder = if group.is_some() { builder.for_group() } else { builder };
        let queue = Arc::new(Queue::new(wake));
        let questions = Questions::new(Language::TypeScript);
        let builder = hooked(builder, &settings, &queue, &questions);
        let asked = Arc::clone(&queue);
        let builder = questions
            .authorize(builder, &settings, move |question| asked.ask(question))
            .map_err(misuse)?;
        let middleware = Arc::new(MiddlewareRuns::default());
        let builder = if settings.has("middleware") {
            let waiting = Arc::clone(&queue);
            middleware.register(builder, move |request| waiting.middleware(&request))
        } else {
            builder
        };
        let member = Member::new(group.unwrap_or_default(), builder).map_err(misuse)?;
        let shared = Arc::new(Shared {
            queue,
            questions,
            middleware,
            client: Mutex::new(Some(Arc::clone(&member))),
            calls: Mutex::default(),
            subscriptions: OpenSubscriptions::default(),
        });
        connect(&shared, member).map_err(no_runtime)?;
        Ok(Self { shared, peer: None })
    }

    /// Returns the client as a member of a group.
    fn member(&self) -> Option<Arc<Member>> {
        lock(&self.shared.client).clone()
    }

    fn client(&self) -> napi::Result<Client> {
        let client = self.shared.connected();
        client.ok_or_else(|| misuse(Error::misuse("the client is closed")))
    }
}

// Without an event loop, for example after a worker thread has ended, there is no receiver.
impl Drop for NativeClient {
    fn drop(&mut self) {
        self.shared.queue.release();
        lock(&self.shared.calls).drain().for_each(|(_, call)| call.abort());
        lock(&self.shared.client).take();
        self.shared.subscriptions.leave_all();
    }
}

impl Shared {
    fn connected(&self) -> Option<Client> {
        lock(&self.client).as_ref().and_then(|member| member.connected())
    }

    /// Performs work, whose outcome `reply` adds to the queue.
    fn spawn(
        self: &Arc<Self>,
        number: u32,
        work: Boxed<Result<OperationReply, Error>>,
        reply: fn(&Queue, u32, Result<OperationReply, Error>),
    ) {
        let Ok(runtime) = runtime() else { return };
        let shared = Arc::clone(self);
        // Held until the task is in the table, so that it can't be removed before.
        let mut calls = lock(&self.calls);
        let task = runtime.spawn(boxed(async move {
            let outcome = with_ticket(number.into(), work).await;
            if lock(&shared.calls).remove(&number).is_some() {
                reply(&shared.queue, number, outcome);
            }
        }));
        calls.insert(number, task.abort_handle());
    }
}

fn hooked(
    mut builder: ClientBuilder,
    settings: &ClientSettings,
    queue: &Arc<Queue>,
    questions: &Arc<Questions>,
) -> ClientBuilder {
    let (events, reconnects) = (Arc::clone(queue), builder.reconnects());
    builder = builder.on_event(move |event| {
        if let Some(notice) = Notice::from_event(event, reconnects) {
            events.notice(&notice);
        }
    });
    if settings.has("onLog") {
        let logs = Arc::clone(queue);
        builder = builder.on_log(move |message| logs.log(&message));
    }
    if settings.has("onListChanged") {
        let lists = Arc::clone(queue);
        builder = builder.on_list_changed(move |list| lists.changed(list));
    }
    if settings.has("fetch") {
        let connections = Arc::clone(queue);
        builder = builder.connected_by(move |url| {
            let (ours, theirs) = UnixStream::pair()?;
            connections.fetch(OwnedFd::from(theirs).into_raw_fd(), &url.origin());
            Ok(ours)
        });
    }
    let asked = Arc::clone(queue);
    questions.register(builder, settings, move |question| asked.ask(question))
}

fn connect(shared: &Arc<Shared>, member: Arc<Member>) -> io::Result<()> {
    let runtime = runtime()?;
    let connecting = Arc::clone(shared);
    let mut calls = lock(&shared.calls);
    let task = runtime.spawn(boxed(async move {
        let outcome = member.connect().await;
        if lock(&connecting.calls).remove(&CONNECT).is_none() {
            return;
        }
        match outcome {
            Ok(client) => connecting.queue.connected(&client.server()),
            Err(error) => connecting.queue.reply(CONNECT, Err(error)),
        }
    }));
    calls.insert(CONNECT, task.abort_handle());
    Ok(())
}

/// Returns the runtime of all clients in this process; its single thread starts with the first client.
pub(crate) fn runtime() -> io::Result<&'static Runtime> {
    static RUNTIME: OnceLock<io::Result<Runtime>> = OnceLock::new();
    let runtime = RUNTIME.get_or_init(client_runtime::start);
    runtime.as_ref().map_err(|error| io::Error::new(error.kind(), error.to_string()))
}

fn in_memory(stream: UnixStream, name: String) -> napi::Result<Target> {
    let _context = runtime().map_err(no_runtime)?.enter();
    stream_target(stream, name).map_err(no_stream)
}

fn nothing() -> OperationReply {
    json::raw("null".into()).into()
}

fn raw(json: String) -> napi::Result<Box<RawValue>> {
    RawValue::from_string(json)
        .map_err(|error| misuse(Error::misuse(format!("this is not JSON: {error}"))))
}

pub(crate) fn refused_value(problem: Problem) -> napi::Error {
    misuse(Error::misuse(problem.message))
}

fn no_stream(error: io::Error) -> napi::Error {
    refused("no socket pair could be made", error)
}

pub(crate) fn no_runtime(error: io::Error) -> napi::Error {
    refused("no thread could be started for clients", error)
}
