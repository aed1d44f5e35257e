//! Handlers that ask their client and wait, through the public API: the resources they hold, and how they are resumed.

use std::{
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use gudgeon::{
    Client, Context, Prompt, Resource, Revision, Server, Tool, ToolError, ask,
    ask::Outcome,
    client::{Target, TestServer, ToolRound},
    error::{Error, ErrorKind},
    protocol::{
        ClientCapabilities, CreateMessageRequestParams, ElicitRequestParams, ElicitResult,
        ElicitationCapability, InputRequiredResult,
    },
};
use serde_json::{Value, json};
use tokio::{
    join,
    sync::{Notify, mpsc},
    time::timeout,
};

use crate::support::{http::eventually, memory};

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(10);

async fn connect(server: &Server) -> Client {
    let capabilities = ClientCapabilities {
        elicitation: Some(ElicitationCapability::default()),
        ..ClientCapabilities::default()
    };
    Client::builder(server)
        .options(|options| options.capabilities = capabilities)
        .connect()
        .await
        .unwrap()
}

fn asked(round: ToolRound, keys: &[&str]) -> InputRequiredResult {
    let ToolRound::InputRequired(asked) = round else { panic!("it asks: {round:?}") };
    let questions = asked.input_requests.as_ref().map_or(&[][..], |requests| &requests.0);
    let mut found: Vec<_> = questions.iter().map(|(key, _)| key.as_str()).collect();
    found.sort_unstable();
    assert_eq!(found, keys);
    asked
}

fn answered(round: ToolRound) -> String {
    let ToolRound::Done(result) = round else { panic!("it answers: {round:?}") };
    result.text()
}

fn yes(keys: &[&str]) -> Value {
    let answer = json!({"action": "accept", "content": {"value": true}});
    keys.iter()
        .map(|key| ((*key).to_owned(), answer.clone()))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

async fn begin(client: &Client, tool: &str, keys: &[&str]) -> String {
    let round = timeout(PATIENCE, client.call_tool_round(tool, (), (), None));
    asked(round.await.expect("in time").unwrap(), keys).request_state.unwrap()
}

async fn go_on(
    client: &Client,
    tool: &str,
    keys: &[&str],
    state: &str,
) -> Result<ToolRound, Error> {
    let round = client.call_tool_round(tool, (), yes(keys), Some(state));
    timeout(PATIENCE, round).await.expect("in time")
}

/// Counts when it is dropped.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn blocking_handlers_hold_no_thread_while_they_wait() {
    let server = Server::new("slow").tool("slow", |ctx: Context| async move {
        thread::sleep(Duration::from_millis(25));
        let sure = ctx.elicit::<bool>("Sure?").await?;
        Ok::<_, ToolError>(sure.to_string())
    });
    let client = connect(&server).await;
    let mut states = Vec::new();
    // More than there are threads for slow handlers.
    for _ in 0..80 {
        states.push(begin(&client, "slow", &["elicit-1"]).await);
    }
    for state in states {
        let round = go_on(&client, "slow", &["elicit-1"], &state).await.unwrap();
        assert_eq!(answered(round), "true");
    }
}

#[tokio::test(start_paused = true)]
async fn concurrent_questions_form_one_round_and_keys_count_by_kind() {
    let server = Server::new("asks").tool("both", |ctx: Context| async move {
        let (first, second) = join!(ctx.elicit::<bool>("A?"), ctx.elicit::<bool>("B?"));
        let own = ask::elicit::<bool>("C?").key("own");
        let (third, fourth) = ctx.ask((own, ask::elicit::<bool>("D?"))).await?;
        Ok::<_, ToolError>(
            [first?, second?, third, fourth].map(|answer| answer.to_string()).join(" "),
        )
    });
    let client = connect(&server).await;
    let state = begin(&client, "both", &["elicit-1", "elicit-2"]).await;
    let round = go_on(&client, "both", &["elicit-1", "elicit-2"], &state).await.unwrap();
    let state = asked(round, &["elicit-3", "own"]).request_state.unwrap();
    let round = go_on(&client, "both", &["elicit-3", "own"], &state).await.unwrap();
    assert_eq!(answered(round), "true true true true");
}

#[tokio::test(start_paused = true)]
async fn every_outcome_of_a_form_is_distinguishable() {
    let server = Server::new("asks").tool("attempt", |ctx: Context| async move {
        Ok::<_, ToolError>(match ctx.try_elicit::<bool>("Sure?").await? {
            Outcome::Accepted(sure) => sure.to_string(),
            Outcome::Declined => "declined".into(),
            Outcome::Cancelled => "cancelled".into(),
        })
    });
    let client = connect(&server).await;
    for (answer, outcome) in [
        (json!({"action": "accept", "content": {"value": false}}), "false"),
        (json!({"action": "decline"}), "declined"),
        (json!({"action": "cancel"}), "cancelled"),
    ] {
        let state = begin(&client, "attempt", &["elicit-1"]).await;
        let answers = json!({ "elicit-1": answer });
        let round = client.call_tool_round("attempt", (), answers, Some(&state)).await.unwrap();
        assert_eq!(answered(round), outcome);
    }
}

/// A server that lets one handler wait, and counts what its tool does.
fn ordering() -> (Server, [Arc<AtomicUsize>; 3]) {
    let counts: [Arc<AtomicUsize>; 3] = Default::default();
    let [begun, reserved, left] = counts.clone();
    let order = move |ctx: Context| {
        begun.fetch_add(1, Ordering::SeqCst);
        let (reserved, left) = (Arc::clone(&reserved), Counted(Arc::clone(&left)));
        async move {
            let _left = left;
            let number = ctx
                .step("reserve", async {
                    reserved.fetch_add(1, Ordering::SeqCst);
                    Ok::<_, ToolError>(7)
                })
                .await?;
            let sure = ctx.elicit::<bool>("Sure?").await?;
            Ok::<_, ToolError>(format!("{number} {sure}"))
        }
    };
    let server = Server::new("orders")
        .options(|options| {
            options.request_state_keys = vec!["shared".repeat(6).into()];
            (options.suspended_limit, options.suspended_ttl) = (1, PATIENCE);
        })
        .tool("order", order.clone())
        .add(Tool::new("once", order).forbid_replay());
    (server, counts)
}

fn count(of: &AtomicUsize) -> usize {
    of.load(Ordering::SeqCst)
}

#[tokio::test(start_paused = true)]
async fn the_oldest_suspended_handler_is_dropped_and_replayed_without_repeating_steps() {
    let (server, [begun, reserved, left]) = ordering();
    let client = connect(&server).await;
    let first = begin(&client, "order", &["elicit-1"]).await;
    let second = begin(&client, "order", &["elicit-1"]).await;
    // The oldest is dropped.
    eventually(|| count(&left) > 0).await;
    for state in [second, first] {
        let round = go_on(&client, "order", &["elicit-1"], &state).await.unwrap();
        assert_eq!(answered(round), "7 true");
    }
    assert_eq!((count(&begun), count(&reserved), count(&left)), (3, 2, 3));
}

#[tokio::test(start_paused = true)]
async fn another_server_with_the_keys_replays_unless_the_tool_forbids_it() {
    let ((one, _), (two, [begun, reserved, _])) = (ordering(), ordering());
    let (one, two) = (connect(&one).await, connect(&two).await);
    let state = begin(&one, "order", &["elicit-1"]).await;
    let round = go_on(&two, "order", &["elicit-1"], &state).await.unwrap();
    assert_eq!(answered(round), "7 true");
    assert_eq!((count(&begun), count(&reserved)), (1, 0));
    let state = begin(&one, "once", &["elicit-1"]).await;
    let refused = go_on(&two, "once", &["elicit-1"], &state).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Protocol);
    assert!(refused.to_string().contains("Invalid or expired requestState"), "{refused}");
    assert_eq!(count(&begun), 1);
    let round = go_on(&one, "once", &["elicit-1"], &state).await.unwrap();
    assert_eq!(answered(round), "7 true");
    let refused = go_on(&one, "once", &["elicit-1"], &state).await.unwrap_err();
    assert!(refused.to_string().contains("Invalid or expired requestState"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn steps_with_equal_keys_run_once() {
    let done = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&done);
    let server = Server::new("steps").tool("twice", move |ctx: Context| {
        let done = Arc::clone(&counted);
        async move {
            let step = || {
                ctx.step("once", async {
                    tokio::task::yield_now().await;
                    Ok::<_, ToolError>(done.fetch_add(1, Ordering::SeqCst))
                })
            };
            let (one, two) = join!(step(), step());
            Ok::<_, ToolError>(format!("{} {}", one?, two?))
        }
    });
    let client = connect(&server).await;
    assert_eq!(client.call_tool("twice", ()).await.unwrap().text(), "0 0");
    assert_eq!(count(&done), 1);
}

/// Answers every question with what it is asked, and has one root.
async fn talkative(server: &Server, revision: Revision) -> Client {
    let accepted = |form: &str| {
        let content = json!({ "value": form.trim_end_matches('?') });
        let answer = json!({"action": "accept", "content": content});
        serde_json::from_value::<ElicitResult>(answer).unwrap()
    };
    Client::builder(server)
        .options(|options| options.revisions = vec![revision])
        .options(|options| options.roots = Some(vec!["file:///a".into()]))
        .on_elicit(move |question| async move {
            match question {
                ElicitRequestParams::Form(form) => Ok(accepted(&form.message)),
                ElicitRequestParams::Url(page) => panic!("nobody is sent to {}", page.url),
            }
        })
        .connect()
        .await
        .unwrap()
}

const ERAS: [Revision; 3] = [Revision::V2025_06_18, Revision::V2025_11_25, Revision::V2026_07_28];

#[tokio::test(start_paused = true)]
async fn prompts_and_resources_ask_as_tools_do_and_questions_may_be_returned() {
    async fn name(ctx: Context) -> Result<String, ToolError> {
        ctx.elicit::<String>("Name?").await
    }
    async fn returned(ctx: Context) -> Result<String, ToolError> {
        let (name, roots) = (ask::elicit::<String>("Name?"), ask::roots().key("own"));
        match (ctx.answer(&name)?, ctx.answer(&roots)?) {
            (Some(name), Some(roots)) => Ok(format!("{name} in {}", roots[0].uri)),
            _ => Err(ToolError::ask((name, roots))),
        }
    }
    let server = Server::new("asks")
        .tool("tool", name)
        .add(Prompt::new("prompt", name))
        .add(Resource::new("asks://fixed", name))
        .tool("returned", returned)
        .add(Prompt::new("returned", returned))
        .add(Resource::new("asks://returned", returned));
    for revision in ERAS {
        let client = talkative(&server, revision).await;
        for (suffix, said) in [("", "Name"), ("returned", "Name in file:///a")] {
            let of = |other: &'static str| if suffix.is_empty() { other } else { "returned" };
            let tool = client.call_tool(of("tool"), ()).await.unwrap().text();
            let prompt = client.get_prompt(of("prompt"), ()).await.unwrap();
            let uri = format!("asks://{}", of("fixed"));
            let resource = client.read_resource(&uri).await.unwrap();
            let prompt = serde_json::to_value(&prompt.messages[0]).unwrap();
            let resource = serde_json::to_value(&resource.contents[0]).unwrap();
            assert_eq!(tool, said, "{revision:?}");
            assert_eq!(prompt["content"]["text"], said, "{revision:?}");
            assert_eq!(resource["text"], said, "{revision:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_roots_are_asked_for_when_they_change() {
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let server = Server::new("asks").notification(
        "notifications/roots/list_changed",
        move |ctx: Context| {
            let sender = sender.clone();
            async move {
                let _ = sender.send(ctx.ask(ask::roots()).await.unwrap()[0].uri.clone());
            }
        },
    );
    for revision in [Revision::V2024_11_05, Revision::V2025_11_25] {
        let client = talkative(&server, revision).await;
        client.set_roots(["file:///b"]).unwrap();
        let uri = timeout(PATIENCE, receiver.recv()).await.expect("in time").unwrap();
        assert_eq!(uri, "file:///b", "{revision:?}");
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Leaves {
    at_once: bool,
}

/// A kept context fails at once after its call has ended or its client has disconnected.
#[tokio::test(start_paused = true)]
async fn a_task_that_outlives_its_call_gets_an_error_at_once() {
    const OVER: &str = "the call is over: a handler can ask its client only while its call runs";
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let (begun, mut begins) = mpsc::unbounded_channel();
    let may_ask = Arc::new(Notify::new());
    let may = Arc::clone(&may_ask);
    let leave = move |Leaves { at_once }: Leaves, ctx: Context| {
        let (sender, begun, may) = (sender.clone(), begun.clone(), Arc::clone(&may));
        async move {
            tokio::spawn(async move {
                begun.send(()).unwrap();
                if at_once {
                    may.notified().await;
                } else {
                    ctx.cancelled().await;
                }
                let answer = ctx.elicit::<bool>("Anybody?").await;
                sender.send(answer.unwrap_err().to_string()).unwrap();
            });
            if !at_once {
                pending::<()>().await;
            }
            "left"
        }
    };
    let server = Server::new("asks").tool("leave", leave);
    let listening = server.listen(memory::HTTP).await.unwrap();
    for revision in ERAS {
        for url in [None, Some(listening.url())] {
            for at_once in [true, false] {
                let place = format!("{revision:?} {url:?} {at_once}");
                let builder = match url {
                    Some(url) => Client::builder(Target::url(url).unwrap()),
                    None => Client::builder(&server),
                };
                let builder = builder.options(|options| options.revisions = vec![revision]);
                let builder = builder.on_elicit(|_| async { panic!("nobody is to be asked") });
                let client = builder.connect().await.unwrap();
                let call = client.call_tool("leave", json!({ "at_once": at_once }));
                if at_once {
                    assert_eq!(call.await.unwrap().text(), "left", "{place}");
                    begins.recv().await.unwrap();
                    may_ask.notify_one();
                } else {
                    tokio::select! {
                        done = call => panic!("{place}: {done:?}"),
                        _ = begins.recv() => (),
                    }
                    client.close().await;
                }
                let error = timeout(PATIENCE, receiver.recv()).await.expect(&place).unwrap();
                assert_eq!(error, if at_once { OVER } else { "cancelled" }, "{place}");
            }
        }
    }
}

/// A step that is done is not done again, so that its questions must not count among the others.
#[tokio::test(start_paused = true)]
async fn a_step_may_ask_and_the_handler_run_again() {
    let done = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&done);
    let server = Server::new("asks").tool("lends", move |ctx: Context| {
        let count = Arc::clone(&count);
        async move {
            let lend = async {
                let name: String = ctx.elicit("Who?").await?;
                let sure: bool = ctx.elicit("Sure?").await?;
                count.fetch_add(1, Ordering::SeqCst);
                Ok::<_, ToolError>((name, sure))
            };
            let (name, sure) = ctx.step("lend", lend).await?;
            let title: String = ctx.elicit("What?").await?;
            Ok::<_, ToolError>(format!("{name} {sure} {title}"))
        }
    });
    for (era, replays) in ERAS.map(|era| (era, false)).into_iter().chain([(Revision::LATEST, true)])
    {
        done.store(0, Ordering::SeqCst);
        let mut test_mode = TestServer::from(&server).answer("lend/elicit-1", "Ada");
        test_mode = test_mode.answer("lend/elicit-2", true).answer("elicit-1", "Dune");
        if replays {
            test_mode = test_mode.replay();
        }
        let builder = Client::builder(test_mode).options(|options| options.revisions = vec![era]);
        let client = builder.connect().await.unwrap();
        assert_eq!(client.call_tool("lends", ()).await.unwrap().text(), "Ada true Dune");
        assert_eq!(done.load(Ordering::SeqCst), 1, "{era:?} {replays}");
    }
}

#[tokio::test(start_paused = true)]
async fn no_question_is_asked_if_one_of_them_can_not_be() {
    let server = Server::new("asks").tool("both", |ctx: Context| async move {
        let (sure, roots) = (ask::elicit::<bool>("Sure?"), ask::roots());
        let asked = ctx.ask((sure, roots, ask::sample(CreateMessageRequestParams::default())));
        asked.await.map(|(sure, ..)| sure.to_string())
    });
    let client = connect(&server).await;
    let refused = client.call_tool_round("both", (), (), None).await.unwrap_err();
    assert_eq!(refused.code, Some(-32021));
    let data: Value = serde_json::from_str(refused.data.as_ref().unwrap().get()).unwrap();
    assert_eq!(data, json!({"requiredCapabilities": {"roots": {}, "sampling": {}}}));
    // In a session, a client that is asked panics.
    let client = Client::builder(&server)
        .options(|options| options.revisions = vec![Revision::V2025_11_25])
        .on_elicit(|_| async { panic!("nobody is asked") })
        .connect()
        .await
        .unwrap();
    let result = client.call_tool("both", ()).await.unwrap_err();
    assert!(result.to_string().contains("did not declare roots"), "{result}");
}
