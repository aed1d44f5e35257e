//! Subscriptions to changes of several servers.

use std::{future::Future, task::Poll, time::Duration};

use gudgeon::{
    Client, List, Resource, Revision, Server, Tool,
    client::{Change, ClientBuilder, ClientGroup, GroupSubscription, ListKind, Retry, Target},
    error::ErrorKind,
};

use crate::support::memory::reserve_url;

const TOOLS: Change = Change::List(ListKind::Tools);

/// A server with the tool `tidy` and the resource `<name>://about`.
fn shelf(name: &str) -> Server {
    let resource = Resource::new(format!("{name}://about"), || async { "two books" });
    Server::new(name).tool("tidy", || async { "ok" }).add(resource)
}

fn about(name: &str) -> Change {
    Change::Updated(format!("{name}://about"))
}

fn toggle(server: &Server) {
    let tool = Tool::new("more", || async { "more" });
    if server.registry().add(tool).is_err() {
        server.registry().remove(List::Tools, "more").unwrap();
    }
}

fn client(server: &Server, revision: Revision) -> ClientBuilder {
    Client::builder(server).options(|options| options.revisions = vec![revision])
}

fn at(url: &str) -> ClientBuilder {
    let never = Retry { attempts: 1, ..Retry::default() };
    Client::builder(Target::url(url).unwrap()).options(|options| options.retry = never)
}

async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(10), what).await.expect("in time")
}

async fn next(changes: &mut GroupSubscription) -> (String, Change) {
    soon(changes.next()).await.expect("a change")
}

fn told_by(name: &str, change: Change) -> (String, Change) {
    (name.to_owned(), change)
}

#[tokio::test(start_paused = true)]
async fn changes_name_their_server_in_every_era() {
    let (old, new) = (shelf("old"), shelf("new"));
    let group = ClientGroup::connect([
        ("old", client(&old, Revision::V2025_11_25)),
        ("new", client(&new, Revision::V2026_07_28)),
    ]);
    let group = group.await.unwrap();
    let mut changes = group.subscribe([TOOLS, about("new")]).await.unwrap();
    old.registry().notify_updated("old://about");
    for server in [&old, &new] {
        toggle(server);
    }
    let mut taken = vec![next(&mut changes).await, next(&mut changes).await];
    taken.sort_by(|one, other| one.0.cmp(&other.0));
    assert_eq!(taken, [told_by("new", TOOLS), told_by("old", TOOLS)]);
    new.registry().notify_updated("new://about");
    assert_eq!(next(&mut changes).await, told_by("new", about("new")));
    assert!(changes.try_next().is_pending(), "nobody subscribed to old://about");
    group.close().await;
    assert_eq!(soon(changes.next()).await, None);
}

#[tokio::test(start_paused = true)]
async fn changes_that_were_not_taken_are_merged_and_no_server_is_starved() {
    let (a, b) = (shelf("a"), shelf("b"));
    let servers = [("a", Client::builder(&a)), ("b", Client::builder(&b))];
    let group = ClientGroup::connect(servers).await.unwrap();
    let changes = group.subscribe([TOOLS, about("a"), about("b")]).await.unwrap();
    for _ in 0..100 {
        toggle(&a);
        toggle(&b);
        a.registry().notify_updated("a://about");
        b.registry().notify_updated("b://about");
    }
    for (_, client) in group.clients() {
        client.ping().await.unwrap();
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    let mut taken = Vec::new();
    while let Poll::Ready(Some((server, change))) = changes.try_next() {
        assert_ne!(taken.last().map(|(name, _): &(String, Change)| name), Some(&server), "in turn");
        taken.push((server, change));
    }
    taken.sort();
    let mut all = [
        told_by("a", TOOLS),
        told_by("a", about("a")),
        told_by("b", TOOLS),
        told_by("b", about("b")),
    ]
    .to_vec();
    all.sort();
    assert_eq!(taken, all);
    group.close().await;
}

#[tokio::test(start_paused = true)]
async fn what_no_server_notifies_of_is_an_error() {
    let (a, b) = (shelf("a"), shelf("b"));
    let servers = [("a", Client::builder(&a)), ("b", Client::builder(&b))];
    let group = ClientGroup::connect(servers).await.unwrap();
    let empty = group.subscribe([]).await.unwrap_err();
    assert_eq!((empty.kind, empty.phase), (ErrorKind::Misuse, Some("subscribe")));
    let prompts = group.subscribe([Change::List(ListKind::Prompts)]).await.unwrap_err();
    assert_eq!((prompts.kind, prompts.phase), (ErrorKind::Unsupported, Some("subscribe")));
    assert!(prompts.message.contains("prompts"), "{prompts}");
    let some = group.subscribe([TOOLS, Change::List(ListKind::Prompts)]).await.unwrap();
    drop(some);
    group.close().await;

    let bare = Server::new("bare").tool("tidy", || async { "ok" });
    let servers =
        [("bare", Client::builder(&bare)), ("gone", Client::builder(["no-such-program"]))];
    let group = ClientGroup::connect(servers).await.unwrap();
    let error = group.subscribe([about("a")]).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unsupported);
    assert!(error.message.contains("'a://about' (not reached: gone)"), "{error}");
    group.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_reached_later_is_subscribed_to() {
    let url = reserve_url();
    let a = shelf("a");
    let group = ClientGroup::connect([("a", Client::builder(&a)), ("late", at(&url))]);
    let group = group.await.unwrap();
    let mut changes = group.subscribe([TOOLS]).await.unwrap();
    toggle(&a);
    assert_eq!(next(&mut changes).await, told_by("a", TOOLS));
    let late = shelf("late");
    let listening = late.listen(&url).await.unwrap();
    let joined = async {
        while changes.try_next().is_pending() {
            toggle(&late);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    soon(joined).await;
    listening.shut_down().await;
    group.close().await;
}

#[tokio::test(start_paused = true)]
async fn after_an_outage_everything_counts_as_changed() {
    let b = shelf("b");
    let url = reserve_url();
    let listening = b.listen(&url).await.unwrap();
    let a = shelf("a");
    let group = ClientGroup::connect([("a", Client::builder(&a)), ("b", at(&url))]);
    let group = group.await.unwrap();
    let prompts = Change::List(ListKind::Prompts);
    let mut changes = group.subscribe([TOOLS, prompts, about("b")]).await.unwrap();
    listening.shut_down().await;
    toggle(&a);
    assert_eq!(next(&mut changes).await, told_by("a", TOOLS), "the others go on");
    let listening = b.listen(&url).await.unwrap();
    let mut taken = vec![next(&mut changes).await, next(&mut changes).await];
    taken.sort();
    assert_eq!(taken, [told_by("b", TOOLS), told_by("b", about("b"))]);
    toggle(&b);
    assert_eq!(next(&mut changes).await, told_by("b", TOOLS));
    assert!(group.errors().is_empty(), "{:?}", group.errors());
    listening.shut_down().await;
    group.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_subscription_ends_with_its_stream() {
    let a = shelf("a");
    let group = ClientGroup::connect([("a", Client::builder(&a))]).await.unwrap();
    let mut changes = group.subscribe([TOOLS]).await.unwrap();
    changes.close();
    assert_eq!(soon(changes.next()).await, None);
    toggle(&a);
    assert_eq!(changes.try_next(), Poll::Ready(None));
    group.close().await;
}
