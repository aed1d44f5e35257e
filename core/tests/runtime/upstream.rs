//! Other servers as parts of a server: everything that they offer passes, in both directions.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::future::join_all;
use gudgeon::{
    Client, Context, List, LoggingLevel, Prompt, Registry, Resource, Revision, Server, Tool,
    ToolError, Upstream, ask,
    client::{Change, ListKind},
    error::ErrorKind,
    protocol::{
        CompletionTarget, ElicitRequestParams, ElicitResult, Implementation, Tool as Listed, json,
    },
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;

#[derive(Deserialize, JsonSchema)]
struct Named {
    name: String,
}

/// A server with one of everything.
fn shelf() -> Server {
    Server::new("shelf")
        .tool("greet", |Named { name }: Named| async move { format!("Hello, {name}!") })
        .tool("fail", || async { Err::<(), _>(ToolError::new("it is broken")) })
        .tool("refuse", || async {
            Err::<(), _>(ToolError::protocol(1234, "refused", Some(json!({"why": "because"}))))
        })
        .tool("count", |context: Context| async move {
            for step in 1..=3 {
                context.progress(f64::from(step), Some(3.0), format!("step {step}"));
            }
            context.log(LoggingLevel::Warning, "shelf", json!({"counted": 3}));
            context.request().meta.map_or("null".into(), |meta| meta.get().to_owned())
        })
        .add(Resource::new("shelf://about", || async { "two books" }))
        .add(Resource::template("shelf://books/{id}", |Book { id }: Book| async move {
            match id.as_str() {
                "0" => {
                    Err(gudgeon::ResourceNotFound { uri: "shelf://books/0".into(), message: None })?
                }
                id => Ok::<_, ToolError>(format!("book {id}")),
            }
        }))
        .add(Prompt::new(
            "review",
            |Named { name }: Named| async move { format!("Review {name}.") },
        ))
        .complete("review", "name", |typed: String| async move { vec![format!("{typed}une")] })
        .complete(
            "shelf://books/{id}",
            "id",
            |typed: String| async move { vec![format!("{typed}2")] },
        )
}

#[derive(Deserialize, JsonSchema)]
struct Book {
    id: String,
}

async fn through(upstream: impl Into<Upstream>) -> (Client, Server) {
    let server = Server::new("house").mount_upstream("shelf", upstream);
    (Client::connect(&server).await.expect("connects"), server)
}

#[tokio::test]
async fn everything_that_a_server_offers_is_offered_under_the_prefix() {
    let (client, _server) = through(&shelf()).await;
    let tools: Vec<Listed> = client.list().await.unwrap();
    let names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["shelf_greet", "shelf_fail", "shelf_refuse", "shelf_count"]);
    let greeted = client.call_tool("shelf_greet", json!({"name": "Ada"})).await.unwrap();
    assert_eq!(greeted.text(), "Hello, Ada!");
    let about = client.read_resource("shelf://about").await.unwrap();
    assert!(json::to_raw(&about).get().contains("two books"));
    let book = client.read_resource("shelf://books/7").await.unwrap();
    assert!(json::to_raw(&book).get().contains("book 7"));
    let review = client.get_prompt("shelf_review", json!({"name": "Dune"})).await.unwrap();
    assert!(json::to_raw(&review).get().contains("Review Dune."));
    let prompt = CompletionTarget::Prompt("shelf_review".into());
    let completed = client.complete(prompt, "name", "D", ()).await.unwrap();
    assert_eq!(completed.values, ["Dune"]);
    let template = CompletionTarget::Resource("shelf://books/{id}".into());
    assert_eq!(client.complete(template, "id", "4", ()).await.unwrap().values, ["42"]);
}

#[tokio::test]
async fn errors_are_those_of_the_server() {
    let (client, _server) = through(&shelf()).await;
    let failed = client.call_tool("shelf_fail", ()).await.unwrap_err();
    assert_eq!((failed.kind, failed.message.as_str()), (ErrorKind::Tool, "it is broken"));
    let refused = client.call_tool("shelf_refuse", ()).await.unwrap_err();
    assert_eq!((refused.code, refused.message.as_str()), (Some(1234), "refused"));
    assert_eq!(refused.data.as_ref().unwrap().get(), r#"{"why":"because"}"#);
    let wrong = client.call_tool("shelf_greet", json!({"name": 3})).await.unwrap_err();
    assert!(wrong.message.contains("name"), "{wrong}");
    let missing = client.read_resource("shelf://books/0").await.unwrap_err();
    assert_eq!(missing.kind, ErrorKind::NotFound);
}

#[tokio::test]
async fn progress_log_messages_and_meta_pass() {
    let (steps, mut progress) = mpsc::unbounded_channel();
    let (lines, mut logged) = mpsc::unbounded_channel();
    let server = Server::new("house").mount_upstream("shelf", shelf());
    let client = Client::builder(&server)
        .options(|options| options.log_level = Some(LoggingLevel::Debug))
        .on_log(move |line| drop(lines.send(line)))
        .connect()
        .await
        .unwrap();
    let client = client.with_options(|options| {
        options.meta = Some(json::raw(r#"{"acme/trace":7}"#.into()));
        options.on_progress = Some(Arc::new(move |step| drop(steps.send(step))));
    });
    let counted = client.call_tool("shelf_count", ()).await.unwrap();
    let meta: Value = serde_json::from_str(&counted.text()).unwrap();
    assert_eq!(meta["acme/trace"], 7);
    for number in 1..=3 {
        let step = progress.recv().await.unwrap();
        assert_eq!((step.progress, step.total), (f64::from(number), Some(3.0)));
        assert_eq!(step.message, Some(format!("step {number}")));
    }
    let line = logged.recv().await.unwrap();
    assert_eq!((line.level, line.logger.as_deref()), (LoggingLevel::Warning, Some("shelf")));
    assert_eq!(line.data.get(), r#"{"counted":3}"#);
}

#[tokio::test]
async fn changes_of_lists_and_updates_of_resources_pass() {
    let shelf = shelf();
    let registry: Registry = shelf.registry();
    let (client, _server) = through(&shelf).await;
    let about = Change::Updated("shelf://about".into());
    let mut changes =
        client.subscribe([Change::List(ListKind::Tools), about.clone()]).await.unwrap();
    registry.add(Tool::new("added", || async { "it is here" })).unwrap();
    assert_eq!(changes.next().await.unwrap().unwrap(), Change::List(ListKind::Tools));
    assert_eq!(client.call_tool("shelf_added", ()).await.unwrap().text(), "it is here");
    registry.remove(List::Tools, "added").unwrap();
    assert_eq!(changes.next().await.unwrap().unwrap(), Change::List(ListKind::Tools));
    assert!(client.call_tool("shelf_added", ()).await.is_err());
    registry.notify_updated("shelf://about");
    assert_eq!(changes.next().await.unwrap().unwrap(), about);
}

#[tokio::test]
async fn updates_of_resources_pass_that_only_a_template_describes() {
    for revision in [Revision::V2025_11_25, Revision::LATEST] {
        let shelf = shelf();
        let registry: Registry = shelf.registry();
        let inner = Server::new("room").mount_upstream("shelf", &shelf);
        let server = Server::new("house").mount("room", inner);
        let client = asked_client(&server, revision).await;
        let book = Change::Updated("shelf://books/7".into());
        let mut changes = client.subscribe([book.clone()]).await.unwrap();
        let updated = async {
            loop {
                // The subscription of the server in between takes a moment.
                registry.notify_updated("shelf://books/7");
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::select! {
            change = changes.next() => assert_eq!(change.unwrap().unwrap(), book, "{revision:?}"),
            _ = tokio::time::timeout(Duration::from_secs(10), updated) => panic!("{revision:?}"),
        }
    }
}

#[tokio::test]
async fn what_the_program_has_disabled_removed_and_changed_stays_so_when_the_list_changes() {
    let shelf = shelf();
    let registry: Registry = shelf.registry();
    let (client, house) = through(&shelf).await;
    let own = house.registry();
    own.set_enabled(List::Tools, ["shelf_greet"], false).unwrap();
    own.remove(List::Tools, "shelf_fail").unwrap();
    own.update(List::Tools, "shelf_count", json!({"title": "Count"})).unwrap();
    let mut changes = client.subscribe([Change::List(ListKind::Tools)]).await.unwrap();
    registry.add(Tool::new("added", || async { "new" })).unwrap();
    // This one's entry changes, too, and another one is there no more and comes back.
    registry.update(List::Tools, "greet", json!({"title": "Greet"})).unwrap();
    let tools = async || -> Vec<Listed> { client.list().await.unwrap() };
    let names =
        async || -> Vec<String> { tools().await.into_iter().map(|tool| tool.name).collect() };
    while names().await != ["shelf_refuse", "shelf_count", "shelf_added"] {
        changes.next().await.unwrap().unwrap();
    }
    for _ in 0..2 {
        registry.remove(List::Tools, "greet").unwrap();
        registry.remove(List::Tools, "fail").unwrap();
        registry.remove(List::Tools, "added").unwrap();
        while names().await != ["shelf_refuse", "shelf_count"] {
            changes.next().await.unwrap().unwrap();
        }
        for name in ["greet", "fail", "added"] {
            registry.add(Tool::new(name, || async { "it is back" })).unwrap();
        }
        while names().await != ["shelf_refuse", "shelf_count", "shelf_added"] {
            changes.next().await.unwrap().unwrap();
        }
    }
    let titles: Vec<_> = tools().await.into_iter().map(|tool| tool.title).collect();
    assert_eq!(titles, [None, Some("Count".into()), None]);
    assert!(client.call_tool("shelf_greet", ()).await.is_err());
    own.set_enabled(List::Tools, ["shelf_greet"], true).unwrap();
    assert_eq!(client.call_tool("shelf_greet", ()).await.unwrap().text(), "it is back");
}

/// A server that asks, and tells what it was answered.
fn host() -> Server {
    Server::new("host")
        .tool("book", |Named { name }: Named, context: Context| async move {
            let sure: bool = context.elicit(format!("Book {name}?")).await?;
            let nights: i64 = context.elicit(format!("How many nights for {name}?")).await?;
            Ok::<_, ToolError>(format!("{name}: {sure}, {nights}"))
        })
        .tool("places", |context: Context| async move {
            let (sure, roots) = context.ask((ask::elicit::<bool>("Sure?"), ask::roots())).await?;
            Ok::<_, ToolError>(format!("{sure} {}", roots.len()))
        })
}

/// Answers each question with what belongs to the name in it.
fn answer(params: &ElicitRequestParams) -> ElicitResult {
    let ElicitRequestParams::Form(form) = params else { panic!("a form") };
    let number = form.message.chars().filter(char::is_ascii_digit).collect::<String>();
    let value = match form.message.starts_with("How") {
        true => json!(number.parse::<i64>().unwrap()),
        false => json!(true),
    };
    serde_json::from_value(json!({"action": "accept", "content": {"value": value}})).unwrap()
}

async fn asked_client(server: &Server, revision: Revision) -> Client {
    let builder = Client::builder(server).options(|options| {
        options.revisions = vec![revision];
        options.roots = Some(vec!["file:///srv".into()]);
    });
    builder.on_elicit(|params| async move { Ok(answer(&params)) }).connect().await.unwrap()
}

const ASKING: [Revision; 3] = [Revision::V2025_06_18, Revision::V2025_11_25, Revision::V2026_07_28];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn questions_pass_between_all_revisions_while_many_calls_run() {
    for below in ASKING {
        let listening = host().listen("tcp://127.0.0.1:0").await.unwrap();
        let upstream =
            Upstream::new(listening.url()).options(|options| options.revisions = vec![below]);
        let server = Server::new("desk").mount_upstream("host", upstream);
        for above in ASKING {
            let client = asked_client(&server, above).await;
            let calls = (0..20).map(|number| {
                let client = client.clone();
                async move {
                    let name = json!({"name": format!("room {number}")});
                    client.call_tool("host_book", name).await.map(|booked| booked.text())
                }
            });
            for (number, booked) in join_all(calls).await.into_iter().enumerate() {
                let booked = booked.unwrap_or_else(|error| panic!("{below} {above}: {error:#?}"));
                assert_eq!(booked, format!("room {number}: true, {number}"), "{below} {above}");
            }
            let places = client.call_tool("host_places", ()).await.unwrap();
            assert_eq!(places.text(), "true 1", "{below} {above}");
        }
        drop(server);
        listening.shut_down().await;
    }
}

#[tokio::test]
async fn a_client_that_can_not_be_asked_is_not_asked() {
    for below in ASKING {
        let listening = host().listen("tcp://127.0.0.1:0").await.unwrap();
        let upstream =
            Upstream::new(listening.url()).options(|options| options.revisions = vec![below]);
        let (client, _server) = through(upstream).await;
        let error = client.call_tool("shelf_book", json!({"name": "1"})).await.unwrap_err();
        assert!(error.message.contains("elicitation"), "{below}: {error}");
        listening.shut_down().await;
    }
}

/// Up to 2025-11-25 structured content is an object (Tools, "Structured Content"), as the listed schema says.
#[tokio::test]
async fn a_structured_result_fits_the_listed_schema_in_every_revision() {
    #[derive(Deserialize, JsonSchema, serde::Serialize)]
    struct Count {
        count: i64,
    }
    let shelf = Server::new("shelf")
        .tool("number", || async { gudgeon::Json(3_i64) })
        .tool("whole", || async { gudgeon::Json(Count { count: 3 }) });
    for below in ASKING {
        let listening = shelf.listen("tcp://127.0.0.1:0").await.unwrap();
        let upstream =
            Upstream::new(listening.url()).options(|options| options.revisions = vec![below]);
        let (_, server) = through(upstream).await;
        for above in ASKING {
            let builder =
                Client::builder(&server).options(|options| options.revisions = vec![above]);
            let client = builder.connect().await.unwrap();
            let _: Vec<Listed> = client.list().await.unwrap();
            // The client checks results against the schemas in the list.
            let number = client.call_tool("shelf_number", ()).await.unwrap();
            assert_eq!(number.data::<i64>().unwrap(), 3, "{below} {above}");
            let whole = client.call_tool("shelf_whole", ()).await.unwrap();
            assert_eq!(whole.data::<Count>().unwrap().count, 3, "{below} {above}");
        }
        listening.shut_down().await;
    }
}

/// In revisions with sessions a server does not say for which call it asks.
#[tokio::test]
async fn nobody_is_asked_the_questions_of_another_clients_call() {
    for below in ASKING {
        let listening = host().listen("tcp://127.0.0.1:0").await.unwrap();
        let upstream =
            Upstream::new(listening.url()).options(|options| options.revisions = vec![below]);
        let (others, server) = through(upstream).await;
        let (asked, mut questions) = mpsc::unbounded_channel();
        let (answer_now, _kept) = tokio::sync::broadcast::channel::<()>(1);
        let waiting = answer_now.clone();
        let builder = Client::builder(&server).on_elicit(move |params| {
            let mut told = waiting.subscribe();
            asked.send(format!("{params:?}")).unwrap();
            async move {
                told.recv().await.unwrap();
                Ok(answer(&params))
            }
        });
        let client = builder.connect().await.unwrap();
        let call = {
            let client = client.clone();
            tokio::spawn(async move { client.call_tool("shelf_book", json!({"name": "1"})).await })
        };
        assert!(questions.recv().await.unwrap().contains("Book 1?"), "{below}");
        let refused = others.call_tool("shelf_book", json!({"name": "2"})).await.unwrap_err();
        assert!(refused.message.contains("elicitation"), "{below}: {refused}");
        answer_now.send(()).unwrap();
        assert!(questions.recv().await.unwrap().contains("nights for 1?"), "{below}");
        answer_now.send(()).unwrap();
        assert_eq!(call.await.unwrap().unwrap().text(), "1: true, 1", "{below}");
        assert!(questions.try_recv().is_err(), "{below}: the question of another client");
        listening.shut_down().await;
    }
}

/// From 2026-07-28 on each request names the capabilities of its client.
#[tokio::test]
async fn a_server_sees_which_questions_the_client_of_a_call_can_answer() {
    let shelf = Server::new("shelf").tool("asked", |context: Context| async move {
        let declared = context.request().client_capabilities;
        vec![declared.elicitation.is_some(), declared.roots.is_some(), declared.sampling.is_some()]
    });
    let (client, server) = through(&shelf).await;
    let asked = async |client: &Client| -> Vec<bool> {
        client.call_tool("shelf_asked", ()).await.unwrap().data().unwrap()
    };
    assert_eq!(asked(&client).await, [false; 3]);
    for revision in ASKING {
        assert_eq!(asked(&asked_client(&server, revision).await).await, [true, true, false]);
    }
}

#[tokio::test]
async fn cancellation_passes() {
    let (begun, mut begins) = mpsc::unbounded_channel();
    let (ended, mut ends) = mpsc::unbounded_channel();
    let server = Server::new("slow").tool("wait", move |context: Context| {
        let (begun, ended) = (begun.clone(), ended.clone());
        async move {
            tokio::spawn(async move {
                context.cancelled().await;
                ended.send(()).unwrap();
            });
            begun.send(()).unwrap();
            std::future::pending::<()>().await;
        }
    });
    let (client, _server) = through(&server).await;
    let call = tokio::spawn(async move { client.call_tool("shelf_wait", ()).await });
    begins.recv().await.unwrap();
    call.abort();
    ends.recv().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_down_is_named_and_takes_nobody_else_down() {
    let server = Server::new("house")
        .tool("open", || async { "open" })
        .mount_upstream("gone", ["no-such-program-7"])
        .mount_upstream("shelf", shelf());
    let client = Client::connect(&server).await.unwrap();
    assert_eq!(client.call_tool("open", ()).await.unwrap().text(), "open");
    let greeted = client.call_tool("shelf_greet", json!({"name": "Ada"})).await.unwrap();
    assert_eq!(greeted.text(), "Hello, Ada!");
}

#[tokio::test]
async fn a_server_that_is_lost_is_reached_again_and_its_tools_stay_meanwhile() {
    let starts = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&starts);
    let make = move || {
        let number = counted.fetch_add(1, Ordering::SeqCst);
        Server::new("shelf").tool("count", move || async move { number })
    };
    let listening = make().listen("tcp://127.0.0.1:0").await.unwrap();
    let url = listening.url().to_owned();
    let upstream = Upstream::new(&url).options(|options| options.retry.attempts = 1);
    let (client, _server) = through(upstream).await;
    assert_eq!(client.call_tool("shelf_count", ()).await.unwrap().data::<usize>().unwrap(), 0);
    listening.shut_down().await;
    let lost = client.call_tool("shelf_count", ()).await.unwrap_err();
    assert!(lost.message.contains("\"shelf\""), "{lost}");
    assert_eq!(client.list::<Listed>().await.unwrap().len(), 1);
    let _again = make().listen(&url).await.unwrap();
    assert_eq!(client.call_tool("shelf_count", ()).await.unwrap().data::<usize>().unwrap(), 1);
}

#[tokio::test]
async fn a_server_with_an_upstream_may_be_mounted_itself() {
    let shelf = shelf();
    let registry = shelf.registry();
    let house = Server::new("house").mount_upstream("shelf", &shelf);
    let town = Server::new(Implementation::new("town", "1")).mount("house", house);
    let client = Client::connect(&town).await.unwrap();
    let greeted = client.call_tool("house_shelf_greet", json!({"name": "Ada"})).await.unwrap();
    assert_eq!(greeted.text(), "Hello, Ada!");
    let mut changes = client.subscribe([Change::List(ListKind::Tools)]).await.unwrap();
    registry.add(Tool::new("added", || async { "new" })).unwrap();
    changes.next().await.unwrap().unwrap();
    assert_eq!(client.call_tool("house_shelf_added", ()).await.unwrap().text(), "new");
}

#[tokio::test(start_paused = true)]
async fn a_slow_server_delays_a_start_for_a_bounded_time() {
    let (_kept, ours) = tokio::io::duplex(64);
    let (reader, writer) = tokio::io::split(ours);
    let target = gudgeon::client::Target::stream(reader, writer);
    let begun = tokio::time::Instant::now();
    let server =
        Server::new("house").tool("open", || async { "open" }).mount_upstream("slow", target);
    let client = Client::connect(&server).await.unwrap();
    assert_eq!(client.call_tool("open", ()).await.unwrap().text(), "open");
    assert!(begun.elapsed() < Duration::from_secs(11));
}

#[tokio::test]
async fn a_server_that_is_served_again_reaches_its_upstream_servers_again() {
    let listening = shelf().listen("tcp://127.0.0.1:0").await.unwrap();
    let (ended, mut ends) = mpsc::unbounded_channel();
    let server = Server::new("house")
        .mount_upstream("remote", Upstream::new(listening.url()))
        .mount_upstream("here", shelf())
        .on_shutdown(move || async move { ended.send(()).unwrap() });
    for _ in 0..3 {
        let client = Client::connect(&server).await.unwrap();
        for name in ["remote_greet", "here_greet"] {
            let greeted = client.call_tool(name, json!({"name": "Ada"})).await.unwrap();
            assert_eq!(greeted.text(), "Hello, Ada!");
        }
        client.close().await;
        ends.recv().await.unwrap();
    }
}
