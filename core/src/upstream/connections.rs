//! The connections to an upstream server.
//!
//! One serves nearly everything. In revisions with sessions a server asks on the connection, without the call that it asks
//! for. Therefore a call whose client can be asked shares its connection with no other call while it runs: what is asked there can
//! only be meant for its client.

use std::{
    collections::{BTreeSet, HashMap},
    fmt,
    sync::{Arc, Mutex, Weak},
};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use super::{
    lock,
    questions::{Asking, InUse, Usage},
};
use crate::{
    client::{Answerer, Client, ClientBuilder, Event, ListName, Member},
    error::{Error, ErrorKind},
    protocol::{ClientKey, LoggingLevel},
    server::Context,
    session::{
        client::{ListKind, LogMessage},
        server::CallContext,
    },
};

/// The maximum number of connections besides the first one.
const MAX_MORE: usize = 15;
/// The calls of one client that have a connection for themselves, so that some are left for others.
const MAX_OF_ONE_CLIENT: usize = 12;
/// The calls that share the first connection.
const MAX_SHARING: u32 = 1 << 20;
/// The connections without a call that stay open besides the first one.
const MAX_IDLE: usize = 1;
/// The bytes of the URIs of updated resources and the ids of completed pages that are kept until they are taken.
const MAX_TOLD: usize = 1024 * 1024;

/// All connections to one server.
pub(super) struct Connections {
    /// The name of the server in messages.
    name: String,
    /// `None` while the server is not served.
    first: Mutex<Option<Arc<Member>>>,
    first_usage: Usage,
    /// The uses of the first connection: all of them for a call whose client is asked what the server asks there, or one for each
    /// other call.
    first_uses: Arc<Semaphore>,
    more: Option<More>,
    places: ClientPlaces,
    /// Held while connections are being closed.
    closing: Arc<tokio::sync::Mutex<()>>,
    pub(super) events: Arc<Events>,
}

/// Makes the builder of the client of one connection.
pub type MakeClient = Box<dyn Fn() -> Result<ClientBuilder, Error> + Send + Sync>;

/// The way to further connections.
struct More {
    make: MakeClient,
    places: Arc<Semaphore>,
    idle: Mutex<Vec<(Client, Usage)>>,
}

/// Limits the calls of each client that have a connection for themselves.
#[derive(Default)]
struct ClientPlaces(Mutex<HashMap<ClientKey, Weak<Semaphore>>>);

/// Changes that the server has told of, and resources that clients have subscribed to, since they were taken last.
#[derive(Default)]
pub(super) struct Events {
    state: Mutex<Told>,
    pub(super) told: Notify,
}

/// Sets, because who takes them late need not be told the same twice.
#[derive(Default)]
pub(super) struct Told {
    pub(super) lists: BTreeSet<ListName>,
    pub(super) updated: BTreeSet<String>,
    pub(super) pages: BTreeSet<String>,
    /// The resources that clients have subscribed to.
    pub(super) subscribed: BTreeSet<String>,
    /// The bytes of the URIs and ids.
    pub(super) bytes: usize,
}

/// A connection that a call uses.
pub(super) struct Lease {
    pub(super) client: Client,
    /// Answers what the server asks in results.
    pub(super) asking: Option<Asking>,
    connections: Arc<Connections>,
    /// The usage of a connection besides the first one.
    own: Option<Usage>,
    in_use: Option<InUse>,
    /// Held while nobody else is asked on the connection.
    _turn: Option<OwnedSemaphorePermit>,
    /// Counts the call among those of its client.
    share: Option<OwnedSemaphorePermit>,
}

impl Connections {
    /// `more` makes the clients of further connections; `None` if there can't be any. Errors if the options are invalid.
    pub(super) fn new(
        name: &str,
        first: ClientBuilder,
        more: Option<MakeClient>,
    ) -> Result<Arc<Self>, Error> {
        let (events, first_usage) = (Arc::<Events>::default(), Usage::default());
        let first = events.heard_by(used(first, &first_usage)).for_group();
        let more = more.map(|make| More {
            make,
            places: Arc::new(Semaphore::new(MAX_MORE)),
            idle: Mutex::default(),
        });
        Ok(Arc::new(Self {
            name: name.to_owned(),
            first: Mutex::new(Some(Member::new(name.to_owned(), first)?)),
            first_usage,
            first_uses: Arc::new(Semaphore::new(MAX_SHARING as usize)),
            more,
            places: ClientPlaces::default(),
            closing: Arc::default(),
            events,
        }))
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the client of the first connection; a new one after [`Self::close`]. Errors if it can't be made again.
    pub(super) fn open(&self) -> Result<Arc<Member>, Error> {
        let mut first = lock(&self.first);
        if let Some(open) = &*first {
            return Ok(Arc::clone(open));
        }
        let more = self.more.as_ref().ok_or_else(closed)?;
        let builder = self.events.heard_by(used((more.make)()?, &self.first_usage)).for_group();
        let made = Member::new(self.name.clone(), builder)?;
        *first = Some(Arc::clone(&made));
        Ok(made)
    }

    /// Returns the connection that a call of this context uses while it runs. Errors if the server can't be reached.
    pub(super) async fn lease(self: &Arc<Self>, context: &Context) -> Result<Lease, Error> {
        let first = lock(&self.first).clone();
        let client = first.ok_or_else(closed)?.client().await?;
        let asking = context.can_be_asked().then(|| Asking::new(context.clone()));
        // From 2026-07-28 on a server asks in results, which belong to a call.
        if client.server().spoken().is_stateless {
            return Ok(self.on_first(client, context, asking, None));
        }
        let share = match context.with_request(CallContext::client_key) {
            Some(client) if asking.is_some() => {
                Some(self.places.of_client(client).acquire_owned().await.map_err(|_| closed())?)
            }
            _ => None,
        };
        let mut lease = self.lease_of_session(client, context, asking).await?;
        lease.share = share;
        Ok(lease)
    }

    /// Returns the connection that a call uses while it runs, of a server that asks on the connection.
    async fn lease_of_session(
        self: &Arc<Self>,
        client: Client,
        context: &Context,
        asking: Option<Asking>,
    ) -> Result<Lease, Error> {
        let uses = if asking.is_some() { MAX_SHARING } else { 1 };
        if let Ok(turn) = Arc::clone(&self.first_uses).try_acquire_many_owned(uses) {
            return Ok(self.on_first(client, context, asking, Some(turn)));
        }
        let Some(more) = &self.more else {
            let turn = Arc::clone(&self.first_uses).acquire_many_owned(uses).await;
            return Ok(self.on_first(client, context, asking, Some(turn.map_err(|_| closed())?)));
        };
        let turn = Arc::clone(&more.places).acquire_owned().await.map_err(|_| closed())?;
        let idle = lock(&more.idle).pop();
        let (client, usage) = match idle {
            Some(idle) => idle,
            None => Box::pin(more.connect(&self.name)).await?,
        };
        Ok(Lease {
            client,
            connections: Arc::clone(self),
            in_use: Some(usage.begin(context.clone(), asking.clone())),
            asking,
            own: Some(usage),
            _turn: Some(turn),
            share: None,
        })
    }

    /// Returns a lease of the first connection. With a `turn`, the client of the call is asked what the server asks on it.
    fn on_first(
        self: &Arc<Self>,
        client: Client,
        context: &Context,
        asking: Option<Asking>,
        turn: Option<OwnedSemaphorePermit>,
    ) -> Lease {
        let asked = asking.clone().filter(|_| turn.is_some());
        Lease {
            client,
            asking,
            connections: Arc::clone(self),
            own: None,
            in_use: Some(self.first_usage.begin(context.clone(), asked)),
            _turn: turn,
            share: None,
        }
    }

    /// Closes the connections, if they can be opened again; one that a call has for itself closes when the call ends. The future
    /// also waits for an earlier close.
    pub(super) fn close(&self) -> impl Future<Output = ()> + Send + use<> {
        let (mut first, mut idle) = (None, Vec::new());
        if let Some(more) = &self.more {
            let mut open = lock(&self.first);
            first = open.take();
            idle = std::mem::take(&mut *lock(&more.idle));
        }
        let closing = Arc::clone(&self.closing);
        let is_closing = Arc::clone(&closing).try_lock_owned();
        async move {
            let _closing = match is_closing {
                Ok(closing) => closing,
                Err(_) => closing.lock_owned().await,
            };
            for (client, _) in idle {
                client.close().await;
            }
            if let Some(first) = first {
                first.close().await;
            }
        }
    }
}

impl ClientPlaces {
    /// Returns the places of a client.
    fn of_client(&self, client: ClientKey) -> Arc<Semaphore> {
        let mut all = lock(&self.0);
        if let Some(places) = all.get(&client).and_then(Weak::upgrade) {
            return places;
        }
        all.retain(|_, places| places.strong_count() > 0);
        let places = Arc::new(Semaphore::new(MAX_OF_ONE_CLIENT));
        all.insert(client, Arc::downgrade(&places));
        places
    }
}

impl More {
    async fn connect(&self, name: &str) -> Result<(Client, Usage), Error> {
        let usage = Usage::default();
        let builder = (self.make)()?.stderr_named(name);
        Ok((used(builder, &usage).connect().await?, usage))
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // Before another call uses the connection.
        drop(self.in_use.take());
        drop(self.share.take());
        let more = self.connections.more.as_ref();
        if let (Some(more), Some(usage)) = (more, self.own.take()) {
            // Held, so that no connection is kept that nobody closes.
            let first = lock(&self.connections.first);
            let mut idle = lock(&more.idle);
            if first.is_some() && idle.len() < MAX_IDLE {
                idle.push((self.client.clone(), usage));
            }
        }
    }
}

impl Events {
    /// Has the builder's client report here.
    fn heard_by(self: &Arc<Self>, builder: ClientBuilder) -> ClientBuilder {
        let (lists, others) = (Arc::clone(self), Arc::clone(self));
        builder
            .on_list_changed(move |kind| lists.list_changed(kind))
            .on_event(move |event| others.happened(event))
    }

    fn list_changed(&self, kind: ListKind) {
        self.tell(|told| match kind {
            ListKind::Tools => told.lists.extend([ListName::Tools]),
            ListKind::Prompts => told.lists.extend([ListName::Prompts]),
            ListKind::Resources => {
                told.lists.extend([ListName::Resources, ListName::ResourceTemplates]);
            }
        });
    }

    fn happened(&self, event: Event) {
        match event {
            // It may be another version of the server.
            Event::Reconnected { .. } => self.tell(|told| told.lists.extend(ListName::ALL)),
            Event::ResourceUpdated(uri) => {
                self.tell(|told| told.add(uri, |told| &mut told.updated));
            }
            Event::UrlDone(page) => self.tell(|told| told.add(page, |told| &mut told.pages)),
            _ => (),
        }
    }

    /// Has a resource watched that is in no list.
    pub(super) fn subscribed(&self, uri: String) {
        self.tell(|told| told.add(uri, |told| &mut told.subscribed));
    }

    fn tell(&self, tell: impl FnOnce(&mut Told)) {
        let mut told = lock(&self.state);
        tell(&mut told);
        drop(told);
        self.told.notify_one();
    }

    /// Takes the lists that changed, the resources that were updated, and the pages that were completed.
    pub(super) fn take(&self) -> Told {
        std::mem::take(&mut *lock(&self.state))
    }
}

impl Told {
    /// Adds an entry to a set, as long as there is room.
    fn add(&mut self, entry: String, set: impl FnOnce(&mut Self) -> &mut BTreeSet<String>) {
        let bytes = self.bytes + entry.len();
        if bytes > MAX_TOLD {
            tracing::warn!("an upstream server tells of more changes than can be passed on");
            return;
        }
        if set(self).insert(entry) {
            self.bytes = bytes;
        }
    }
}

/// Passes a log message on to the client of the call that its connection is used for. Of several calls it may be any.
fn pass_log(usage: &Usage, message: &LogMessage) {
    match usage.only_call() {
        Some(context) => context.log(message.level, message.logger.as_deref(), &message.data),
        None => {
            tracing::debug!(level = ?message.level, data = %message.data, "an upstream server logs");
        }
    }
}

/// Has the calls that use a connection answer its questions, and get its log messages.
fn used(builder: ClientBuilder, usage: &Usage) -> ClientBuilder {
    let (asked, logged) = (usage.clone(), usage.clone());
    let answerer: Answerer = Arc::new(move |question| {
        let asked = asked.clone();
        Box::pin(async move { asked.answer(question).await })
    });
    builder
        .answered_by(&answerer)
        // The clients of this server choose levels of their own.
        .options(|options| options.log_level = options.log_level.or(Some(LoggingLevel::Debug)))
        .on_log(move |message| pass_log(&logged, &message))
}

fn closed() -> Error {
    Error::new(ErrorKind::Lost, "the connections to the server are closed")
}

impl fmt::Debug for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connections").field("name", &self.name).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_client_leaves_connections_for_others_and_takes_no_memory_once_it_is_gone() {
        let places = ClientPlaces::default();
        let client = |number: u8| ClientKey::new(None, Some([10, 0, 0, number].into())).unwrap();
        let take = |number| places.of_client(client(number)).try_acquire_owned();
        let held: Vec<_> = (0..MAX_OF_ONE_CLIENT).map(|_| take(1).unwrap()).collect();
        assert!(take(1).is_err() && MAX_OF_ONE_CLIENT < 1 + MAX_MORE);
        let other = take(2);
        assert!(other.is_ok());
        drop(held);
        assert!(take(1).is_ok());
        drop(other);
        drop(take(3));
        assert_eq!(lock(&places.0).len(), 1);
    }

    #[test]
    fn changes_that_nobody_takes_need_bounded_memory_and_those_that_are_kept_are_whole() {
        let events = Events::default();
        let uri = |number: usize| format!("file:///{number:01000}");
        for number in 0..10_000 {
            events.happened(Event::ResourceUpdated(uri(number)));
            events.happened(Event::UrlDone(uri(number)));
            // Told twice, it is kept once.
            events.happened(Event::ResourceUpdated(uri(0)));
        }
        let told = events.take();
        let bytes: usize = told.updated.iter().chain(&told.pages).map(String::len).sum();
        assert!(bytes <= MAX_TOLD && bytes > MAX_TOLD - uri(0).len(), "{bytes}");
        assert!(told.updated.contains(&uri(0)) && told.pages.contains(&uri(0)));
        events.happened(Event::ResourceUpdated(uri(9_999)));
        assert_eq!(events.take().updated.into_iter().collect::<Vec<_>>(), [uri(9_999)]);
    }
}
