//! `Client::subscribe` against real servers, in every revision and over every transport; and against failing servers.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    task::Poll,
    time::Duration,
};

use gudgeon::{
    Client, Resource, Revision, Server, Tool,
    client::{Change, ListKind, Target},
    error::ErrorKind,
    protocol,
};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::support::{
    http::{self, Answer, BodyStep, Mock, Seen, event, eventually, initialized},
    memory::{self, reserve_url},
};

const ABOUT: &str = "shelf://about";

fn server() -> Server {
    Server::new("shelf")
        .tool("add", |_: Args| async { Ok("done") })
        .add(Resource::new(ABOUT, || async { Ok("two books") }))
        .add(Resource::new("shelf://other", || async { Ok("none") }))
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Args {}

const TOOLS: Change = Change::List(ListKind::Tools);

fn about() -> [Change; 1] {
    [Change::Updated(ABOUT.into())]
}

fn about_and_tools() -> [Change; 2] {
    [Change::Updated(ABOUT.into()), TOOLS]
}

async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(10), what).await.expect("it comes")
}

async fn connect(target: impl Into<Target>, revision: Revision) -> Client {
    Client::builder(target)
        .options(|options| options.revisions = vec![revision])
        .connect()
        .await
        .unwrap()
}

/// Everything about a subscription, over one connection.
async fn exercise(client: &Client, server: &Server) {
    let registry = server.registry();
    let mut resource = client.subscribe(about()).await.unwrap();
    let mut both = client.subscribe(about_and_tools()).await.unwrap();
    registry.notify_updated("shelf://other");
    registry.notify_updated(ABOUT);
    let updated = Change::Updated(ABOUT.into());
    assert_eq!(soon(resource.next()).await.unwrap().unwrap(), updated);
    assert_eq!(soon(both.next()).await.unwrap().unwrap(), updated);
    registry.add(Tool::new("more", |_: Args| async { Ok("more") })).unwrap();
    let tools = Change::List(ListKind::Tools);
    assert_eq!(soon(both.next()).await.unwrap().unwrap(), tools);
    assert!(resource.try_next().is_pending(), "nobody asked it for tools");
    drop(both);
    client.ping().await.unwrap();
    registry.notify_updated(ABOUT);
    assert_eq!(soon(resource.next()).await.unwrap().unwrap(), updated);
    resource.close();
    assert!(matches!(resource.try_next(), Poll::Ready(None)));
    registry.remove(gudgeon::List::Tools, "more").unwrap();

    let empty = client.subscribe([]).await.unwrap_err();
    assert_eq!(empty.kind, ErrorKind::Misuse);
    let prompts = client.subscribe([Change::List(ListKind::Prompts)]).await.unwrap_err();
    assert_eq!((prompts.kind, prompts.phase), (ErrorKind::Unsupported, Some("subscribe")));
}

#[tokio::test(start_paused = true)]
async fn changes_are_notified_in_every_revision_over_every_transport() {
    for revision in Revision::ALL {
        let server = server();
        let client = connect(&server, revision).await;
        exercise(&client, &server).await;
        client.close().await;
        for at in [memory::HTTP, memory::LINES] {
            let listening = server.listen(at).await.unwrap();
            let client = connect(Target::url(listening.url()).unwrap(), revision).await;
            exercise(&client, &server).await;
            client.close().await;
            if at.starts_with("http") {
                let url = listening.url().replacen("http", "ws", 1);
                let client = connect(Target::url(&url).unwrap(), revision).await;
                exercise(&client, &server).await;
                client.close().await;
            }
            listening.shut_down().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_callback_for_lists_serves_every_revision() {
    for revision in Revision::ALL {
        let server = server();
        let listening = server.listen(memory::HTTP).await.unwrap();
        for target in [Target::from(&server), Target::url(listening.url()).unwrap()] {
            let notified = Arc::new(Mutex::new(Vec::new()));
            let all = Arc::clone(&notified);
            let client = Client::builder(target)
                .options(|options| options.revisions = vec![revision])
                .on_list_changed(move |kind| all.lock().unwrap().push(kind))
                .connect()
                .await
                .unwrap();
            // A second subscription does not count for the callback, which is called once.
            let mut changes = client.subscribe(about_and_tools()).await.unwrap();
            assert_eq!(client.list::<protocol::Tool>().await.unwrap().len(), 1);
            server.registry().add(Tool::new("more", |_: Args| async { Ok("more") })).unwrap();
            soon(changes.next()).await.unwrap().unwrap();
            eventually(|| !notified.lock().unwrap().is_empty()).await;
            assert_eq!(client.list::<protocol::Tool>().await.unwrap().len(), 2);
            server.registry().remove(gudgeon::List::Tools, "more").unwrap();
            eventually(|| notified.lock().unwrap().len() == 2).await;
            assert_eq!(*notified.lock().unwrap(), [ListKind::Tools, ListKind::Tools]);
            client.close().await;
        }
        listening.shut_down().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_shuts_down_ends_the_iteration_well() {
    let server = server();
    let listening = server.listen(memory::HTTP).await.unwrap();
    let client = connect(Target::url(listening.url()).unwrap(), Revision::V2026_07_28).await;
    let mut changes = client.subscribe(about()).await.unwrap();
    let (end, ()) = tokio::join!(soon(changes.next()), listening.shut_down());
    assert!(end.is_none(), "{end:?}");
    assert!(soon(changes.next()).await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_client_that_is_closed_ends_its_iterations() {
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let server = server();
        let client = connect(&server, revision).await;
        let mut changes = client.subscribe(about()).await.unwrap();
        let (end, ()) = tokio::join!(soon(changes.next()), client.close());
        assert!(end.is_none(), "{end:?}");
        let after = client.subscribe(about()).await.unwrap_err();
        assert_eq!(after.kind, ErrorKind::Lost);
    }
}

#[tokio::test(start_paused = true)]
async fn unread_changes_are_merged_and_none_is_lost() {
    use futures_util::StreamExt;
    let server = server();
    let client = connect(&server, Revision::V2026_07_28).await;
    let changes = client
        .subscribe([TOOLS, Change::Updated(ABOUT.into()), Change::Updated("shelf://other".into())])
        .await
        .unwrap();
    let registry = server.registry();
    for _ in 0..20_000 {
        registry.notify_updated(ABOUT);
    }
    registry.notify_updated("shelf://other");
    registry.add(Tool::new("more", |_: Args| async { Ok("more") })).unwrap();
    client.ping().await.unwrap();
    let received: Vec<_> = soon(changes.take(3).map(Result::unwrap).collect()).await;
    let updated = [ABOUT, "shelf://other"].map(|uri| Change::Updated(uri.into()));
    assert_eq!((&received[..2], &received[2]), (&updated[..], &Change::List(ListKind::Tools)));
}

fn discovery() -> Value {
    let mut discovery = http::discovery();
    discovery["capabilities"] =
        json!({"tools": {"listChanged": true}, "resources": {"subscribe": true}});
    discovery
}

fn acknowledged(request: &Seen) -> BodyStep {
    event(
        &json!({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": {
            "_meta": {"io.modelcontextprotocol/subscriptionId": request.body["id"]},
            "notifications": request.body["params"]["notifications"],
        }}),
    )
}

fn updated(request: &Seen, uri: &str) -> BodyStep {
    event(&json!({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {
        "_meta": {"io.modelcontextprotocol/subscriptionId": request.body["id"]}, "uri": uri,
    }}))
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_breaks_is_listened_to_again() {
    let listens = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&listens);
    let mock = Mock::start(move |request| match &*request.rpc() {
        "server/discover" => request.result(discovery()),
        "subscriptions/listen" => match count.fetch_add(1, Ordering::Relaxed) {
            0 => Answer::events(vec![
                acknowledged(request),
                updated(request, ABOUT),
                BodyStep::Break,
            ]),
            1 => Answer::text(503, "not yet"),
            _ => Answer::events(vec![acknowledged(request), BodyStep::Hold]),
        },
        _ => request.error(404, -32601, Value::Null),
    })
    .await;
    let client = connect(Target::url(&mock.url).unwrap(), Revision::V2026_07_28).await;
    let mut changes = client.subscribe(about()).await.unwrap();
    let change = Change::Updated(ABOUT.into());
    assert_eq!(soon(changes.next()).await.unwrap().unwrap(), change);
    // Reported again, because a change during the outage could have been missed.
    assert_eq!(soon(changes.next()).await.unwrap().unwrap(), change);
    assert_eq!(listens.load(Ordering::Relaxed), 3);
    drop(changes);
    eventually(|| mock.dropped() == 1).await;
    assert!(mock.requests("notifications/cancelled").is_empty(), "the end of the exchange says it");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_ends_a_subscription_reports_the_reason() {
    let mock = Mock::start(|request| {
        if request.rpc() == "server/discover" {
            request.result(discovery())
        } else {
            let cancelled = json!({"requestId": request.body["id"], "reason": "too many"});
            let cancelled =
                json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled});
            Answer::events(vec![acknowledged(request), updated(request, ABOUT), event(&cancelled)])
        }
    })
    .await;
    let client = connect(Target::url(&mock.url).unwrap(), Revision::V2026_07_28).await;
    let mut changes = client.subscribe(about()).await.unwrap();
    assert!(soon(changes.next()).await.unwrap().is_ok());
    let error = soon(changes.next()).await.unwrap().unwrap_err();
    assert_eq!((error.kind, error.phase), (ErrorKind::Cancelled, Some("subscribe")));
    assert!(error.message.contains("too many"), "{error}");
    assert!(soon(changes.next()).await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_partially_acknowledged_subscription_fails() {
    let mock = Mock::start(|request| {
        if request.rpc() == "server/discover" {
            request.result(discovery())
        } else {
            let mut request = request.clone();
            request.body["params"]["notifications"] = json!({"toolsListChanged": true});
            Answer::events(vec![acknowledged(&request), BodyStep::Hold])
        }
    })
    .await;
    let client = connect(Target::url(&mock.url).unwrap(), Revision::V2026_07_28).await;
    let error = client.subscribe(about_and_tools()).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unsupported);
    assert!(error.message.contains(ABOUT) && !error.message.contains("tools"), "{error}");
    eventually(|| mock.dropped() == 1).await;
}

#[tokio::test(start_paused = true)]
async fn dropping_a_pending_subscribe_cancels_it() {
    let mock = Mock::start(|request| {
        if request.rpc() == "server/discover" {
            return request.result(discovery());
        }
        Answer::events(vec![BodyStep::Hold])
    })
    .await;
    let client = connect(Target::url(&mock.url).unwrap(), Revision::V2026_07_28).await;
    mock.drop_received("subscriptions/listen", client.subscribe(about())).await;
    eventually(|| mock.dropped() == 1).await;
}

/// A server of 2025-11-25 that forgets its sessions on request.
struct Forgetful {
    mock: Mock,
    session: Arc<AtomicUsize>,
    stream: Arc<Mutex<Vec<Value>>>,
}

impl Forgetful {
    async fn start() -> Self {
        let session = Arc::new(AtomicUsize::new(1));
        let stream = Arc::new(Mutex::new(Vec::new()));
        let (now, feed) = (Arc::clone(&session), Arc::clone(&stream));
        let mock = Mock::start(move |request| {
            let current = now.load(Ordering::Relaxed).to_string();
            let is_known = request.header("mcp-session-id") == Some(&current);
            match &*request.rpc() {
                "initialize" => {
                    let mut result = initialized("2025-11-25");
                    result["capabilities"]["resources"] = json!({"subscribe": true});
                    result["capabilities"]["tools"] = json!({"listChanged": true});
                    request.result(result).with("Mcp-Session-Id", &current)
                }
                _ if !is_known => Answer::empty(404),
                "GET" => Answer::events(vec![BodyStep::Feed(Arc::clone(&feed))]),
                "notifications/initialized" => Answer::empty(202),
                _ => request.result(json!({"tools": []})),
            }
        })
        .await;
        Self { mock, session, stream }
    }
}

#[tokio::test(start_paused = true)]
async fn a_new_session_gets_the_state_of_the_old_one() {
    let server = Forgetful::start().await;
    let client = connect(Target::url(&server.mock.url).unwrap(), Revision::V2025_11_25).await;
    client.set_log_level(protocol::LoggingLevel::Warning).await.unwrap();
    let mut changes = client.subscribe(about()).await.unwrap();
    server.session.store(2, Ordering::Relaxed);
    client.list::<protocol::Tool>().await.unwrap();
    let change = Change::Updated(ABOUT.into());
    assert_eq!(soon(changes.next()).await.unwrap().unwrap(), change, "it may have changed");
    let again = |rpc| {
        let mut seen = server
            .mock
            .requests(rpc)
            .into_iter()
            .filter(|request| request.header("mcp-session-id") == Some("2"));
        seen.next().map(|request| request.body["params"].clone()).unwrap_or_default()
    };
    assert_eq!(again("resources/subscribe")["uri"], ABOUT);
    assert_eq!(again("logging/setLevel")["level"], "warning");
    let notified = json!({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": ABOUT}});
    server.stream.lock().unwrap().push(notified);
    assert_eq!(soon(changes.next()).await.unwrap().unwrap(), change);
    client.close().await;
}

#[tokio::test(start_paused = true)]
async fn with_a_new_session_every_list_counts_as_changed() {
    let server = Forgetful::start().await;
    let notified = Arc::new(Mutex::new(Vec::new()));
    let all = Arc::clone(&notified);
    let client = Client::builder(Target::url(&server.mock.url).unwrap())
        .options(|options| options.revisions = vec![Revision::V2025_11_25])
        .on_list_changed(move |kind| all.lock().unwrap().push(kind))
        .connect()
        .await
        .unwrap();
    let mut changes = client.subscribe([TOOLS]).await.unwrap();
    server.session.store(2, Ordering::Relaxed);
    client.list::<protocol::Tool>().await.unwrap();
    assert_eq!(soon(changes.next()).await.unwrap().unwrap(), Change::List(ListKind::Tools));
    assert_eq!(*notified.lock().unwrap(), [ListKind::Tools], "the server declares no other");
}

#[tokio::test(start_paused = true)]
async fn connecting_waits_for_the_subscription_to_the_lists_no_longer_than_its_limit() {
    let mock = Mock::start(|request| match &*request.rpc() {
        "server/discover" => {
            let mut discovery = http::discovery();
            discovery["capabilities"]["tools"] = json!({"listChanged": true});
            request.result(discovery)
        }
        _ => Answer::events(Vec::new()).hold(),
    })
    .await;
    let connecting = Client::builder(Target::url(&mock.url).unwrap())
        .options(|options| options.connect_timeout = Some(Duration::from_secs(2)))
        .on_list_changed(|_| ())
        .connect();
    let begun = Instant::now();
    let client = connecting.await;
    assert_eq!(begun.elapsed(), Duration::from_secs(2));
    assert_eq!(mock.requests("subscriptions/listen").len(), 1);
    client.unwrap().close().await;
}

#[tokio::test(start_paused = true)]
async fn connecting_waits_for_the_log_level_no_longer_than_its_limit() {
    let mock = Mock::start(|request| match &*request.rpc() {
        "initialize" => request.result(initialized("2025-11-25")),
        "notifications/initialized" => Answer::empty(202),
        _ => Answer::events(Vec::new()).hold(),
    })
    .await;
    let connecting = Client::builder(Target::url(&mock.url).unwrap())
        .options(|options| {
            options.revisions = vec![Revision::V2025_11_25];
            options.connect_timeout = Some(Duration::from_secs(2));
            options.log_level = Some(protocol::LoggingLevel::Warning);
        })
        .connect();
    let begun = Instant::now();
    let failed = connecting.await;
    assert_eq!(begun.elapsed(), Duration::from_secs(2));
    assert_eq!(failed.unwrap_err().kind, ErrorKind::Timeout);
    assert_eq!(mock.requests("logging/setLevel").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_idle_client_detects_a_lost_session_by_its_stream() {
    let server = server();
    let url = reserve_url();
    let listening = server.listen(&url).await.unwrap();
    let client = connect(Target::url(&url).unwrap(), Revision::V2025_11_25).await;
    let mut changes = client.subscribe(about()).await.unwrap();
    let before = client.session_id();
    listening.shut_down().await;
    let again = server.listen(&url).await.unwrap();
    let change = Change::Updated(ABOUT.into());
    assert_eq!(soon(changes.next()).await.unwrap().unwrap(), change, "it may have changed");
    assert_ne!(client.session_id(), before);
    server.registry().notify_updated(ABOUT);
    assert_eq!(soon(changes.next()).await.unwrap().unwrap(), change);
    again.shut_down().await;
}

#[tokio::test(start_paused = true)]
async fn renewing_sessions_is_bounded() {
    let sessions = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&sessions);
    let mock = Mock::start(move |request| match &*request.rpc() {
        "initialize" => {
            let mut result = initialized("2025-11-25");
            result["capabilities"]["tools"] = json!({"listChanged": true});
            let number = count.fetch_add(1, Ordering::Relaxed).to_string();
            request.result(result).with("Mcp-Session-Id", &number)
        }
        "GET" if request.header("last-event-id").is_some() => Answer::empty(404),
        "GET" => {
            let start = "id: 1\nretry: 20\ndata: {}\n\n";
            Answer::events(vec![BodyStep::Bytes(start.into()), BodyStep::Wait(50), BodyStep::Break])
        }
        _ => Answer::empty(202),
    })
    .await;
    let client = connect(Target::url(&mock.url).unwrap(), Revision::V2025_11_25).await;
    let mut changes = client.subscribe([TOOLS]).await.unwrap();
    let end = soon(async {
        loop {
            if let Err(end) = changes.next().await.unwrap() {
                return end;
            }
        }
    });
    let end = end.await;
    assert_eq!(end.kind, ErrorKind::Lost);
    assert!(
        end.message.contains("ended the session twice") && end.message.contains("sticky routing"),
        "{end}"
    );
    assert_eq!(sessions.load(Ordering::Relaxed), 2);
}
