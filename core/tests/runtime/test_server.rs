//! The testing API for users: prepared answers in both eras, and replay of handlers between rounds.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use gudgeon::{
    Client, Context, Revision, Server, ToolError, ask,
    client::TestServer,
    error::ErrorKind,
    protocol::{
        CreateMessageRequestParams, ElicitAction, ElicitResult, LoggingLevel, Principal, Role,
        SamplingMessage,
    },
};
use serde_json::json;

const ASKING: [Revision; 3] = [Revision::V2025_06_18, Revision::V2025_11_25, Revision::V2026_07_28];

/// Counts how often its handler begins; asks thrice.
fn counting() -> (Server, Arc<AtomicUsize>) {
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let server = Server::new("shelf").tool("remove", move |ctx: Context| {
        let counted = Arc::clone(&counted);
        async move {
            counted.fetch_add(1, Ordering::SeqCst);
            let (sure, why) = ctx
                .ask((ask::elicit::<bool>("Sure?"), ask::elicit::<String>("Why?").key("why")))
                .await?;
            let again = ctx.elicit::<bool>("Really?").await?;
            let request = CreateMessageRequestParams {
                messages: vec![SamplingMessage::new(Role::User, "Say it nicely.")],
                max_tokens: 10,
                ..CreateMessageRequestParams::default()
            };
            let said = ctx.ask(ask::sample(request)).await?;
            let roots = ctx.ask(ask::roots()).await?;
            Ok::<_, ToolError>(format!("{sure} {why} {again} {} {}", said.model, roots[0].uri))
        }
    });
    (server, runs)
}

fn test_server(server: &Server) -> TestServer<'_> {
    TestServer::from(server)
        .answer("elicit-1", true)
        .answer("why", json!({"value": "tidy"}))
        .answer("Really?", false)
        .answer("Say it nicely.", "Please.")
        .answer("roots", ["file:///a"])
}

fn declined() -> ElicitResult {
    ElicitResult::new(ElicitAction::Decline, None)
}

async fn connect(server: TestServer<'_>, revision: Revision) -> Client {
    let builder = Client::builder(server).options(|options| options.revisions = vec![revision]);
    builder.connect().await.expect("connects")
}

#[tokio::test(start_paused = true)]
async fn questions_are_answered_by_key_or_message_in_every_era() {
    for era in ASKING {
        let (server, runs) = counting();
        let client = connect(test_server(&server), era).await;
        let said = client.call_tool("remove", ()).await.expect("answers").text();
        assert_eq!(said, "true tidy false unknown file:///a", "{era:?}");
        assert_eq!(runs.load(Ordering::SeqCst), 1, "{era:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn replay_runs_the_handler_anew_for_every_round() {
    for (era, expected) in ASKING.into_iter().zip([1, 1, 5]) {
        let (server, runs) = counting();
        let client = connect(test_server(&server).replay(), era).await;
        let said = client.call_tool("remove", ()).await.expect("answers").text();
        assert_eq!(said, "true tidy false unknown file:///a", "{era:?}");
        assert_eq!(runs.load(Ordering::SeqCst), expected, "{era:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_newest_revision_that_the_server_speaks_is_spoken() {
    let (server, _) = counting();
    let client = Client::connect(TestServer::from(&server)).await.expect("connects");
    assert_eq!(client.server().revision, Revision::V2026_07_28);
    let server = Server::new("old")
        .options(|options| options.revisions = vec![Revision::V2025_06_18, Revision::V2025_03_26]);
    let client = Client::connect(TestServer::from(&server)).await.expect("connects");
    assert_eq!(client.server().revision, Revision::V2025_06_18);
}

#[tokio::test(start_paused = true)]
async fn a_question_without_an_answer_says_which() {
    let (server, _) = counting();
    let server = TestServer::from(&server).answer("Sure?", true);
    let client = Client::connect(server).await.expect("connects");
    let failure = client.call_tool("remove", ()).await.expect_err("one is missing");
    assert_eq!(failure.kind, ErrorKind::Misuse);
    for part in ["\"Why?\"", "key \"why\"", "\"Sure?\""] {
        assert!(failure.message.contains(part), "{failure}");
    }
}

#[tokio::test(start_paused = true)]
async fn declining_is_an_answer() {
    let (server, _) = counting();
    for era in ASKING {
        let client = connect(test_server(&server).answer("elicit-1", declined()), era).await;
        let failure = client.call_tool("remove", ()).await.expect_err("declined");
        assert_eq!(failure.kind, ErrorKind::Tool);
        assert!(failure.message.contains("Sure?"), "{failure}");
    }
}

#[tokio::test(start_paused = true)]
async fn closing_a_question_is_another_answer_than_declining_it() {
    let server = Server::new("shelf").tool("remove", |ctx: Context| async move {
        Ok::<_, ToolError>(format!("{:?}", ctx.try_elicit::<String>("What?").await?))
    });
    for era in ASKING {
        for (tested, expected) in [
            (
                TestServer::from(&server)
                    .answer("What?", ElicitResult::new(ElicitAction::Cancel, None)),
                "Cancelled",
            ),
            (TestServer::from(&server).answer("What?", declined()), "Declined"),
            (TestServer::from(&server).answer("What?", "decline"), "Accepted(\"decline\")"),
        ] {
            let client = connect(tested, era).await;
            let said = client.call_tool("remove", ()).await.expect("an outcome").text();
            assert_eq!(said, expected, "{era:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_declined_sampling_request_is_reported_as_declined() {
    let (server, _) = counting();
    for era in ASKING {
        let client = connect(test_server(&server).answer("Say it nicely.", declined()), era).await;
        let failure = client.call_tool("remove", ()).await.expect_err("declined");
        let (kind, message) = match era {
            // Results have no field for it: the caller gets an error at once.
            Revision::V2026_07_28 => (ErrorKind::Declined, "the user declined"),
            _ => (ErrorKind::Tool, "The user declined: sampling (the user declined)"),
        };
        assert_eq!((failure.kind, &*failure.message), (kind, message), "{era:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn users_never_see_the_keys_of_requests() {
    let (server, _) = counting();
    let builder = Client::builder(&server)
        .options(|options| options.revisions = vec![Revision::V2025_11_25])
        .on_elicit_raw(Arc::new(|question| {
            Box::pin(async move {
                assert_eq!(question.key, None);
                assert!(!question.params.get().contains("gudgeon"));
                Err(gudgeon::error::Error::new(ErrorKind::Declined, "no"))
            })
        }));
    let client = builder.connect().await.expect("connects");
    let failure = client.call_tool("remove", ()).await.expect_err("declined");
    assert!(failure.message.contains("declined"), "{failure}");
}

#[tokio::test(start_paused = true)]
async fn calls_have_the_principal_and_headers_of_the_test_and_logs_reach_it() {
    let server = Server::new("shelf").tool("who", |ctx: Context| async move {
        ctx.log(LoggingLevel::Warning, None, "asked");
        let headers = ctx.headers().unwrap_or_default();
        let region = headers.get("x-region").and_then(|value| value.to_str().ok()).unwrap_or("-");
        format!(
            "{} {region}",
            ctx.principal().map_or("nobody".to_owned(), |principal| principal.subject.clone())
        )
    });
    for revision in Revision::ALL {
        let (logged, logs) = std::sync::mpsc::channel();
        let client = Client::builder(TestServer::from(&server).principal(Principal::new("ada")))
            .options(|options| {
                options.revisions = vec![revision];
                options.headers = vec![("x-region".into(), "eu".into())];
            })
            .on_log(move |message| logged.send(message.data).unwrap())
            .connect()
            .await
            .unwrap();
        assert_eq!(client.call_tool("who", ()).await.unwrap().text(), "ada eu", "{revision}");
        client.close().await;
        assert_eq!(logs.try_iter().count(), 1, "{revision}");
        let nobody = connect(TestServer::from(&server), revision).await;
        assert_eq!(nobody.call_tool("who", ()).await.unwrap().text(), "nobody -", "{revision}");
    }
}
