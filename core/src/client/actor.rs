//! The task that owns a connection: session, transport and timer.

mod loss;
mod start;

use std::{collections::HashMap, ops::ControlFlow, sync::Arc, time::Instant};

use tokio::{
    sync::{mpsc, oneshot, watch},
    task::{AbortHandle, JoinSet},
};

pub(super) use self::start::{Started, start};
use super::{
    alarm::Alarm,
    connection::{ConnectionConfig, Event, Order, Question, Waiting},
    error_context::with_context,
    listeners::Listeners,
    message_log::MessageLog,
    questions::{error_object, unanswerable},
    target::{OpenedTarget, Reconnect},
    wire::{ClientTransport, WireEvent, WireOptions},
};
use crate::{
    clock,
    driver::boxed,
    error::{Error, ErrorKind},
    framing::TooLong,
    peer::subscriptions::{self, Subscriptions},
    protocol::{ElicitationCompleteNotificationParams, Method, MethodName, Raw},
    session::{
        InboundKey,
        client::{Ask, Change, ClientSession, Input, ListKind, Output, RequestKey, ServerIdentity},
    },
    transport::{
        child::{ExitInfo, Process},
        messages::Arrival,
        off_thread::beside_other_tasks,
    },
};

/// The bytes of a server after which the tasks of other connections run. tokio counts reads, which may be large.
const TURN: usize = 64 * 1024;

type Opened = oneshot::Sender<Result<Arc<ServerIdentity>, Error>>;

struct Actor {
    session: ClientSession,
    /// The time limit for connecting.
    limit: Option<Instant>,
    options: WireOptions,
    config: ConnectionConfig,
    target: Arc<str>,
    orders: mpsc::UnboundedReceiver<Order>,
    /// The sender for answers to the server's questions, which are computed in other tasks.
    own_orders: mpsc::WeakUnboundedSender<Order>,
    wire: Option<ClientTransport>,
    process: Option<Process>,
    /// The way to reconnect, as long as it may be needed.
    reconnect: Option<Reconnect>,
    exit_info: ExitInfo,
    waiting: HashMap<RequestKey, Waiting>,
    asks: HashMap<InboundKey, AbortHandle>,
    listeners: Listeners,
    messages: MessageLog,
    alarm: Alarm,
    /// The bytes that were processed since the tasks of other connections ran.
    unshared: usize,
    opened: Option<Opened>,
    is_up: watch::Sender<bool>,
}

/// The event that woke the task.
enum Woken {
    Order(Option<Order>),
    Event(WireEvent),
    Deadline,
}

impl Actor {
    async fn run(mut self) {
        self.handle(Input::Start);
        loop {
            if let ControlFlow::Break(error) = self.pump().await {
                return Box::pin(self.give_up(Some(error))).await;
            }
            match self.wait().await {
                Woken::Order(Some(Order::Close(done))) => {
                    self.handle(Input::Leave("the client was closed"));
                    self.handle_subscriptions(subscriptions::Input::Closed(None));
                    self.settle();
                    self.is_up.send_replace(false);
                    self.end().await;
                    let _ = done.send(());
                    return;
                }
                Woken::Order(Some(order)) => self.obey(order),
                Woken::Order(None) if self.opened.is_some() => {
                    return Box::pin(self.give_up(None)).await;
                }
                Woken::Order(None) => break,
                Woken::Event(WireEvent::Bytes(read)) => {
                    self.read(read);
                    self.share(read).await;
                }
                Woken::Event(WireEvent::Arrival(arrival)) => {
                    let bytes = arrival.len();
                    self.take(arrival).await;
                    self.share(bytes).await;
                }
                Woken::Deadline => {
                    self.handle(Input::Tick);
                    self.handle_subscriptions(subscriptions::Input::Tick);
                }
            }
        }
        self.end().await;
    }

    async fn wait(&mut self) -> Woken {
        let deadline = [self.session.deadline(), self.listeners.deadline()];
        let deadline = deadline.into_iter().flatten().min();
        let tick = self.alarm.ring(deadline.map(Into::into));
        let next_event = async {
            match &mut self.wire {
                Some(wire) => wire.next_event().await,
                None => std::future::pending().await,
            }
        };
        // The caller may give up while the connection is being opened; then the channel of orders is closed.
        let gave_up = async {
            match &mut self.opened {
                Some(opened) => opened.closed().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            order = self.orders.recv() => Woken::Order(order),
            event = next_event => Woken::Event(event),
            () = tick => Woken::Deadline,
            () = gave_up => Woken::Order(None),
        }
    }

    /// Lets the tasks of other connections run, where many bytes were processed. Python and TypeScript have one thread for all.
    async fn share(&mut self, bytes: usize) {
        self.unshared += bytes;
        if self.unshared > TURN {
            self.unshared = 0;
            tokio::task::yield_now().await;
        }
    }

    fn handle(&mut self, input: Input<'_>) {
        self.session.handle(clock::now(), input);
    }

    fn handle_subscriptions(&mut self, input: subscriptions::Input<'_>) {
        self.listeners.handle(clock::now(), input);
    }

    fn read(&mut self, read: usize) {
        if let Some(wire) = &mut self.wire {
            wire.read(read, clock::now(), &mut self.session, &self.messages);
        }
    }

    async fn take(&mut self, arrival: Arrival) {
        match arrival {
            Arrival::Frame(frame) => {
                self.messages.received(&frame);
                beside_other_tasks(frame.len(), || self.handle(Input::Frame(&frame)));
            }
            Arrival::Response { id, frame } => {
                self.messages.received(&frame);
                let input = Input::Response { id, frame: &frame };
                beside_other_tasks(frame.len(), || self.handle(input));
            }
            Arrival::TooLong { limit, beginning, end } => {
                self.handle(Input::TooLong(TooLong { limit, beginning: &beginning, end: &end }));
            }
            Arrival::Failed { id, error } => self.handle(Input::Failed { id, error }),
            Arrival::Held(is_held) => self.handle(Input::Hold(is_held)),
            Arrival::Renewed => self.handle(Input::Renewed),
            Arrival::StreamLost(why) => {
                self.handle_subscriptions(subscriptions::Input::StreamLost(&why));
            }
            Arrival::End(why) => self.lose(why).await,
        }
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Request { key, method, params, options, waiting } => {
                self.waiting.insert(key, waiting);
                self.handle(Input::Request { key, method, params: &params, options });
            }
            Order::Cancel(key) => {
                if self.waiting.remove(&key).is_some() {
                    self.handle(Input::Cancel(key, None));
                }
            }
            Order::Notify { method, params } => {
                self.handle(Input::Notify { method, params: params.get() });
            }
            Order::Answer(call, answer) => {
                self.asks.remove(&call);
                self.handle(Input::Answer(call, answer.map_err(|error| error_object(&error))));
            }
            Order::DeclareRoots => self.handle(Input::DeclareRoots),
            Order::Subscribe { key, what, listener } => {
                // No client exists before the server has identified itself.
                if let Some(server) = self.session.server() {
                    let now = clock::now();
                    self.listeners.open(now, key, what, server, listener);
                }
            }
            Order::Unsubscribe(key) => self.listeners.close(clock::now(), key),
            Order::Close(_) => unreachable!("closing ends the loop"),
        }
    }

    /// Processes the session's outputs; breaks with the reason if no connection can be established.
    async fn pump(&mut self) -> ControlFlow<Error> {
        loop {
            match self.settle() {
                Settled::Silent => return ControlFlow::Continue(()),
                Settled::Failed(error) => return ControlFlow::Break(*error),
                Settled::Restart => self.restart().await,
            }
        }
    }

    fn settle(&mut self) -> Settled {
        loop {
            match self.settle_session() {
                Settled::Silent => (),
                settled => return settled,
            }
            let in_context =
                |error| with_context(error, &self.target, &self.exit_info, "subscribe");
            if !self.listeners.settle(clock::now(), &mut self.session, in_context) {
                return Settled::Silent;
            }
        }
    }

    fn settle_session(&mut self) -> Settled {
        while let Some(output) = self.session.poll() {
            match output {
                Output::Send(frame) => {
                    if let Some(wire) = &mut self.wire {
                        self.messages.sent(&frame);
                        wire.send(frame, self.session.spoken());
                    }
                }
                Output::Ready(server) => {
                    self.reconnect = None;
                    if let Some(process) = &mut self.process {
                        process.forget_input();
                    }
                    if let Some(opened) = self.opened.take() {
                        let _ = opened.send(Ok(server));
                    }
                }
                Output::Failed(error) => {
                    let error = self.in_context(error, "negotiate");
                    return Settled::Failed(Box::new(error));
                }
                Output::Restart => return Settled::Restart,
                Output::Done(key, outcome) if Subscriptions::sent(key) => {
                    self.handle_subscriptions(subscriptions::Input::Done(key, outcome));
                }
                Output::Done(key, outcome) => {
                    if let Some(waiting) = self.waiting.remove(&key) {
                        // A dropped receiver means that the caller has given up.
                        let _ = waiting
                            .reply
                            .send(outcome.map_err(|error| self.in_context(error, "call")));
                    }
                }
                Output::Progress(key, step) => {
                    if let Some(on_progress) =
                        self.waiting.get(&key).and_then(|waiting| waiting.on_progress.as_ref())
                    {
                        on_progress(step);
                    }
                }
                Output::Log(message) => (self.config.on_event)(Event::Log(message)),
                Output::ListChanged(kind) => {
                    (self.config.on_event)(Event::ListChanged(kind));
                    self.handle_subscriptions(subscriptions::Input::Changed(
                        None,
                        Change::List(kind),
                    ));
                }
                Output::ResourceUpdated(uri) => {
                    (self.config.on_event)(Event::ResourceUpdated(uri.clone()));
                    self.handle_subscriptions(subscriptions::Input::Changed(
                        None,
                        Change::Updated(uri),
                    ));
                }
                Output::Acknowledged(listen, kept) => {
                    self.handle_subscriptions(subscriptions::Input::Acknowledged(listen, kept));
                }
                Output::ChangeNotified(listen, change) => {
                    self.handle_subscriptions(subscriptions::Input::Changed(listen, change));
                }
                Output::Renewed => self.renewed(),
                Output::Notified { method, params } => {
                    (self.config.on_event)(notified(method, params));
                }
                Output::Ask(ask) => self.ask(ask),
                Output::AskCancelled(call) => {
                    if let Some(task) = self.asks.remove(&call) {
                        task.abort();
                    }
                }
            }
        }
        Settled::Silent
    }

    /// Handles a renewed session: notifications in between are lost, so all lists may have changed.
    fn renewed(&mut self) {
        if let Some(server) = self.session.server().cloned() {
            let message = "the server did not know the session any more, so a new one was begun";
            let reason = Arc::new(self.in_context(Error::new(ErrorKind::Lost, message), "call"));
            let server_now = Arc::clone(&server);
            (self.config.on_event)(Event::Reconnected { attempt: 1, reason, server: server_now });
            for list in [ListKind::Tools, ListKind::Resources, ListKind::Prompts] {
                if server.notifies_of(list) {
                    (self.config.on_event)(Event::ListChanged(list));
                }
            }
        }
        self.handle_subscriptions(subscriptions::Input::Renewed);
    }

    fn ask(&mut self, ask: Ask) {
        let Ask { id, key, method, params } = ask;
        let answer = (self.config.on_question)(Question { key, method, params });
        let orders = self.own_orders.clone();
        let task = tokio::spawn(boxed(async move {
            // A separate task contains panics of the callback, so that the question is answered in any case.
            let mut callback = JoinSet::new();
            callback.spawn(answer);
            let answer = callback.join_next().await.and_then(Result::ok);
            let answer = answer.unwrap_or_else(|| Err(unanswerable()));
            if let Some(orders) = orders.upgrade() {
                let _ = orders.send(Order::Answer(id, answer));
            }
        }));
        self.asks.insert(id, task.abort_handle());
    }

    /// Starts the process or connection again, because the old one ended at the probe.
    async fn restart(&mut self) {
        self.wire = None;
        if let Some(mut process) = self.process.take() {
            process.kill().await;
        }
        let fresh = match self.reconnect.take() {
            Some(reconnect) => {
                let reached = within(self.limit, reconnect.reach(&self.options)).await;
                reached.unwrap_or_else(|| Err(self.session.took_too_long()))
            }
            None => Err(Error::new(
                ErrorKind::Connect,
                "the other side closed the connection when asked for server/discover",
            )),
        };
        match fresh {
            Ok(OpenedTarget { wire, process, reconnect }) => {
                (self.wire, self.process, self.reconnect) = (Some(wire), process, reconnect);
                self.handle(Input::Start);
            }
            Err(error) => self.handle(Input::Closed(&error.message)),
        }
    }

    /// Ends a connection that was never opened: the server's process is gone before the caller gets the error.
    async fn give_up(mut self, error: Option<Error>) {
        if let Some(mut process) = self.process.take() {
            self.wire = None;
            process.kill().await;
        }
        if let (Some(opened), Some(error)) = (self.opened.take(), error) {
            // A dropped receiver means that the caller has given up.
            let _ = opened.send(Err(error));
        }
        self.end().await;
    }

    async fn end(mut self) {
        self.asks.drain().for_each(|(_, task)| task.abort());
        if let Some(wire) = self.wire.take() {
            wire.close().await;
        }
        if let Some(process) = self.process.take() {
            process.shut_down().await;
        }
    }

    fn in_context(&self, error: Error, phase: &'static str) -> Error {
        let mut exit_info = self.exit_info.clone();
        if let Some(process) = &self.process
            && error.kind == ErrorKind::Timeout
            && phase == "negotiate"
        {
            exit_info.stderr = process.stderr();
        }
        let error = with_context(error, &self.target, &exit_info, phase);
        if phase == "negotiate" { self.options.explain(error) } else { error }
    }
}

enum Settled {
    Silent,
    Failed(Box<Error>),
    Restart,
}

/// Waits for a result until the limit; `None` once it has passed.
async fn within<T>(limit: Option<Instant>, result: impl Future<Output = T>) -> Option<T> {
    match limit {
        Some(limit) => tokio::time::timeout_at(limit.into(), result).await.ok(),
        None => Some(result.await),
    }
}

fn notified(method: MethodName, params: Raw) -> Event {
    if method == MethodName::Standard(Method::ElicitationComplete)
        && let Ok(done) =
            serde_json::from_str::<ElicitationCompleteNotificationParams>(params.get())
    {
        return Event::UrlDone(done.elicitation_id);
    }
    Event::Notified { method, params }
}
