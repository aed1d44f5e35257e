//! Subscriptions to changes of several servers.

use std::{
    fmt,
    pin::Pin,
    sync::{Arc, Mutex, Weak},
    task::{Context, Poll},
};

use futures_util::future::join_all;
use tokio::{sync::oneshot, task::AbortHandle};

use super::{ClientGroup, Member, backoff::Backoff, member::may_pass};
use crate::{
    client::{
        Client, Subscription,
        connected::lock,
        unread::{Unread, UnreadQueue},
    },
    clock,
    driver::boxed,
    error::{Error, ErrorKind},
    peer::subscriptions::{Changes, Interests},
    protocol::SubscriptionFilter,
    session::client::{Change, ListKind, ServerIdentity},
};

/// A stream of changes that the servers of a group notify of, each with the server's name, until it is dropped.
///
/// A change that occurs again before it was taken is reported once. Servers that can't be reached are subscribed to once
/// they are reached. After an interruption everything that a server was subscribed to is reported as changed, because
/// notifications may have been missed. The stream ends when the group is closed, or when no server is left whose
/// subscription continues; [`ClientGroup::errors`] has the reasons.
pub struct GroupSubscription {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    unread: UnreadQueue<GroupChanges>,
    /// The tasks that follow the servers.
    tasks: Mutex<Vec<AbortHandle>>,
}

#[derive(Debug)]
struct GroupChanges {
    servers: Vec<ServerChanges>,
    /// The server whose changes are taken next, so that none has to wait for another.
    next: usize,
}

#[derive(Debug)]
struct ServerChanges {
    name: String,
    changes: Changes,
    /// True once no more changes follow.
    is_over: bool,
}

/// The changes of one server that a subscription of a group asks for.
#[derive(Clone, Debug)]
struct Wanted {
    lists: SubscriptionFilter,
    uris: Vec<String>,
}

/// Follows the changes of one server.
struct Follower {
    /// The server's place in [`GroupChanges::servers`].
    place: usize,
    wanted: Wanted,
    shared: Weak<Shared>,
}

impl ClientGroup {
    /// Subscribes to changes of these lists of all servers, and of these resources. A resource belongs to the server that
    /// [`Self::read_resource`] would read it from first.
    ///
    /// # Errors
    /// [`ErrorKind::Misuse`] if there are no changes. [`ErrorKind::Unsupported`] if all servers are connected and none
    /// notifies of any, or no connected server notifies of a resource.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), gudgeon::error::Error> {
    /// use gudgeon::{Client, List, Server, client::{Change, ClientGroup, ListKind}};
    ///
    /// let shelf = Server::new("shelf").tool("count", || async { 2 });
    /// let group = ClientGroup::connect([("books", Client::builder(&shelf))]).await?;
    /// let mut changes = group.subscribe([Change::List(ListKind::Tools)]).await?;
    /// shelf.registry().remove(List::Tools, "count")?;
    /// assert_eq!(changes.next().await, Some(("books".into(), Change::List(ListKind::Tools))));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn subscribe(
        &self,
        changes: impl IntoIterator<Item = Change>,
    ) -> Result<GroupSubscription, Error> {
        self.subscribe_to(&changes.into_iter().collect(), None).await
    }

    /// Like [`Self::subscribe`], with the filter of the protocol; with a `server`, to changes of that one only.
    #[doc(hidden)] // For the language bindings.
    pub async fn subscribe_to(
        &self,
        filter: &SubscriptionFilter,
        server: Option<&str>,
    ) -> Result<GroupSubscription, Error> {
        Interests::from_filter(filter).map_err(|error| error.in_phase("subscribe"))?;
        let members = match server {
            Some(name) => vec![Arc::clone(self.member(name)?)],
            None => self.members.to_vec(),
        };
        let lists = SubscriptionFilter { resource_subscriptions: None, ..filter.clone() };
        let mut wanted = vec![Wanted { lists, uris: Vec::new() }; members.len()];
        for uri in filter.resource_subscriptions.iter().flatten() {
            let owner = match server {
                Some(_) => 0,
                None => self.notifier(&members, uri).await?,
            };
            wanted[owner].uris.push(uri.clone());
        }
        let subscription = GroupSubscription { shared: Arc::new(Shared::new(&members, &wanted)) };
        subscription.follow(&members, wanted).await?;
        Ok(subscription)
    }

    /// Returns the place of the first server that has this resource and notifies of its updates.
    async fn notifier(&self, members: &[Arc<Member>], uri: &str) -> Result<usize, Error> {
        let order = self.order(uri).await;
        let notifies = |member: &&Arc<Member>| {
            member.connected().is_some_and(|client| client.server().notifies_of_updates())
        };
        let owner = order.iter().find(notifies);
        let place =
            owner.and_then(|owner| members.iter().position(|member| Arc::ptr_eq(member, owner)));
        place.ok_or_else(|| {
            let missing = self.not_reached();
            let message =
                format!("no server of this group notifies of updates of '{uri}'{missing}");
            Error::new(ErrorKind::Unsupported, message).in_phase("subscribe")
        })
    }
}

impl GroupSubscription {
    /// Returns the next change with the name of its server, or `None` at the end.
    ///
    /// Cancel safe.
    pub async fn next(&mut self) -> Option<(String, Change)> {
        self.shared.unread.next().await
    }

    /// Returns the next change if there is one, without waiting.
    #[doc(hidden)] // For the language bindings; programs use the stream.
    pub fn try_next(&self) -> Poll<Option<(String, Change)>> {
        self.shared.unread.try_next()
    }

    /// Waits until [`Self::try_next`] returns a change or the end.
    #[doc(hidden)] // For the language bindings; programs use the stream.
    pub async fn ready(&self) {
        self.shared.unread.ready().await;
    }

    /// Ends the subscription; a pending [`Self::ready`] returns.
    #[doc(hidden)] // For the language bindings; programs drop the stream.
    pub fn close(&self) {
        self.shared.stop();
        self.shared
            .unread
            .update(|unread| unread.servers.iter_mut().for_each(|server| server.is_over = true));
    }

    /// Follows the servers from now on. Waits for the first outcome of those that are connected.
    async fn follow(&self, members: &[Arc<Member>], wanted: Vec<Wanted>) -> Result<(), Error> {
        let mut outcomes = Vec::new();
        for (place, (member, wanted)) in members.iter().zip(wanted).enumerate() {
            let (sender, outcome) = oneshot::channel();
            if member.connected().is_some() {
                outcomes.push(outcome);
            }
            let follower = Follower { place, wanted, shared: Arc::downgrade(&self.shared) };
            let task = tokio::spawn(boxed(follower.run(Arc::downgrade(member), sender)));
            lock(&self.shared.tasks).push(task.abort_handle());
        }
        let is_complete = outcomes.len() == members.len();
        let outcomes = join_all(outcomes).await.into_iter().filter_map(Result::ok);
        let (made, failed): (Vec<_>, Vec<_>) = outcomes.partition(Result::is_ok);
        match failed.into_iter().find_map(Result::err) {
            Some(error) if made.is_empty() && is_complete => Err(error),
            _ => Ok(()),
        }
    }
}

impl futures_util::Stream for GroupSubscription {
    type Item = (String, Change);

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.shared.unread.poll_next(context)
    }
}

impl Drop for GroupSubscription {
    fn drop(&mut self) {
        self.shared.stop();
    }
}

impl fmt::Debug for GroupSubscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupSubscription").field("shared", &self.shared).finish_non_exhaustive()
    }
}

impl Follower {
    /// Follows the server until it can't be subscribed to any more. `first` is given the outcome of the first attempt.
    async fn run(self, member: Weak<Member>, first: oneshot::Sender<Result<(), Error>>) {
        let mut first = Some(first);
        let mut backoff = Backoff::new();
        while let Some(client) = Member::reached(&member).await {
            let begun = clock::now();
            let is_first = first.is_some();
            let attempt = self.subscribe(&client).await;
            if let Some(first) = first.take() {
                // A caller that has given up drops the subscription, which ends this task.
                let _ = first.send(attempt.as_ref().map(drop).map_err(Error::duplicate));
            }
            let outcome = match attempt {
                Ok((subscription, interests)) => {
                    report(&member, None);
                    if !is_first {
                        self.update(|server| server.changes.push_all(&interests));
                    }
                    self.pass_on(subscription).await
                }
                Err(error) => Err(error),
            };
            drop(client);
            let is_over = matches!(&outcome, Err(error) if !may_pass(error));
            if let Err(error) = outcome {
                report(&member, Some(error));
            }
            if is_over {
                break;
            }
            // A server that is shut down ends its subscriptions without an error, and may come back.
            if clock::since(begun) > Backoff::MAX {
                backoff = Backoff::new();
            }
            tokio::select! {
                () = backoff.wait() => (),
                () = Member::until_closed(&member) => break,
            }
        }
        if let Some(shared) = self.shared.upgrade() {
            shared.unread.update(|unread| unread.servers[self.place].is_over = true);
        }
    }

    /// Subscribes to the part of the wanted changes that the server notifies of.
    async fn subscribe(&self, client: &Client) -> Result<(Subscription, Interests), Error> {
        let server = client.server();
        let Ok(interests) = Interests::from_filter(&self.wanted.filter_for(&server)) else {
            let refused = server.check_filter(&self.wanted.filter()).err();
            let error =
                refused.unwrap_or_else(|| Error::misuse("nothing is wanted of this server"));
            return Err(client.connected().name(error).in_phase("subscribe"));
        };
        let subscription = client.subscribe_to(&interests.filter()).await?;
        Ok((subscription, interests))
    }

    /// Passes on changes until the subscription ends.
    async fn pass_on(&self, mut subscription: Subscription) -> Result<(), Error> {
        while let Some(change) = subscription.next().await {
            let change = change?;
            self.update(|server| server.changes.push(change));
        }
        Ok(())
    }

    fn update(&self, change: impl FnOnce(&mut ServerChanges)) {
        if let Some(shared) = self.shared.upgrade() {
            shared.unread.update(|unread| change(&mut unread.servers[self.place]));
        }
    }
}

impl Wanted {
    /// Returns all of it.
    fn filter(&self) -> SubscriptionFilter {
        SubscriptionFilter {
            resource_subscriptions: (!self.uris.is_empty()).then(|| self.uris.clone()),
            ..self.lists.clone()
        }
    }

    /// Returns the part that this server notifies of. URIs are kept, because they were given for this server.
    fn filter_for(&self, server: &ServerIdentity) -> SubscriptionFilter {
        let notified = |asked: Option<bool>, list| asked.filter(|_| server.notifies_of(list));
        SubscriptionFilter {
            tools_list_changed: notified(self.lists.tools_list_changed, ListKind::Tools),
            prompts_list_changed: notified(self.lists.prompts_list_changed, ListKind::Prompts),
            resources_list_changed: notified(
                self.lists.resources_list_changed,
                ListKind::Resources,
            ),
            ..self.filter()
        }
    }
}

impl GroupChanges {
    fn is_over(&self) -> bool {
        self.servers.iter().all(|server| server.is_over)
    }
}

impl Unread for GroupChanges {
    type Item = (String, Change);

    fn is_ready(&self) -> bool {
        self.servers.iter().any(|server| server.changes.is_ready()) || self.is_over()
    }

    fn take(&mut self) -> Poll<Option<Self::Item>> {
        let count = self.servers.len();
        for place in (self.next..self.next + count).map(|place| place % count) {
            let server = &mut self.servers[place];
            if let Poll::Ready(Some(Ok(change))) = server.changes.take() {
                self.next = place + 1;
                return Poll::Ready(Some((server.name.clone(), change)));
            }
        }
        if self.is_over() { Poll::Ready(None) } else { Poll::Pending }
    }
}

impl Shared {
    fn new(members: &[Arc<Member>], wanted: &[Wanted]) -> Self {
        let servers = members.iter().zip(wanted).map(|(member, wanted)| {
            // Without an interest nothing is subscribed to.
            let interests = Interests::from_filter(&wanted.filter()).unwrap_or_default();
            ServerChanges {
                name: member.name().to_owned(),
                changes: Changes::new(interests),
                is_over: false,
            }
        });
        let unread = UnreadQueue::new(GroupChanges { servers: servers.collect(), next: 0 });
        Self { unread, tasks: Mutex::default() }
    }

    /// Stops following the servers.
    fn stop(&self) {
        lock(&self.tasks).drain(..).for_each(|task| task.abort());
    }
}

/// Records whether the server can be subscribed to.
fn report(member: &Weak<Member>, error: Option<Error>) {
    if let Some(member) = member.upgrade() {
        member.report(error);
    }
}
