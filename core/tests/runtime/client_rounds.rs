//! A client's processing of a round of questions: concurrently, one by one, or by the caller.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use gudgeon::{
    Client,
    client::{BoxFuture, Question, ToolRound},
    error::{Error, ErrorKind},
    protocol::{ElicitRequestParams, Raw, json as raw_json},
};
use serde_json::{Value, json};
use tokio::sync::{Barrier, mpsc};

use crate::support::{
    asking_server::{ERAS, PATIENCE, accept, answers, asking, form},
    stream::{pause, result, server},
};

#[tokio::test(start_paused = true)]
async fn questions_of_one_round_are_answered_at_once() {
    let ask = |key| (key, "elicitation/create", form(&json!({}), &json!([])));
    for era in ERAS {
        let both = Arc::new(Barrier::new(2));
        let builder = Client::builder(asking(era, vec![ask("a"), ask("b")])).on_elicit(move |_| {
            let both = Arc::clone(&both);
            async move {
                both.wait().await;
                Ok(accept(None))
            }
        });
        let client = builder.connect().await.expect("connects");
        let accepted = json!({"action": "accept", "content": {}});
        assert_eq!(answers(&client).await, json!({"a": accepted, "b": accepted}), "{era}");
    }
}

#[tokio::test(start_paused = true)]
async fn questions_beyond_the_concurrency_limit_are_answered_under_their_keys() {
    let keys: Vec<&'static str> =
        (0..200).map(|number| Box::leak(format!("k{number}").into_boxed_str()) as &str).collect();
    let ask = |key: &&'static str| {
        let schema = json!({"type": "object", "properties": {"key": {"type": "string"}}});
        (*key, "elicitation/create", json!({"message": key, "requestedSchema": schema}))
    };
    let most = Arc::new(AtomicUsize::new(0));
    let (open, highest) = (Arc::new(AtomicUsize::new(0)), Arc::clone(&most));
    let builder = Client::builder(asking("2026-07-28", keys.iter().map(ask).collect())).on_elicit(
        move |question| {
            let (open, highest) = (Arc::clone(&open), Arc::clone(&highest));
            async move {
                let ElicitRequestParams::Form(form) = question else { panic!("a form") };
                highest.fetch_max(open.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::task::yield_now().await;
                open.fetch_sub(1, Ordering::SeqCst);
                Ok(accept(Some(json!({"key": form.message}))))
            }
        },
    );
    let client = builder.connect().await.expect("connects");
    let given = answers(&client).await;
    for key in &keys {
        assert_eq!(given[key]["content"]["key"], **key);
    }
    assert!((2..=64).contains(&most.load(Ordering::SeqCst)), "{most:?}");
}

#[tokio::test(start_paused = true)]
async fn the_first_failed_answer_cancels_the_other_questions() {
    struct Withdrawn(mpsc::UnboundedSender<()>);
    impl Drop for Withdrawn {
        fn drop(&mut self) {
            let _ = self.0.send(());
        }
    }
    let ask = |key| {
        (key, "elicitation/create", json!({"message": key, "requestedSchema": {"type": "object"}}))
    };
    let (sender, mut withdrawn) = mpsc::unbounded_channel();
    let asked = Arc::new(Barrier::new(2));
    let builder = Client::builder(asking("2026-07-28", vec![ask("waits"), ask("fails")]))
        .on_elicit(move |question| {
            let (guard, asked) = (Withdrawn(sender.clone()), Arc::clone(&asked));
            async move {
                let ElicitRequestParams::Form(form) = question else { panic!("a form") };
                asked.wait().await;
                if form.message == "fails" {
                    std::mem::forget(guard);
                    return Err(Error::new(ErrorKind::Misuse, "out of ink"));
                }
                let _until_withdrawn = guard;
                std::future::pending().await
            }
        });
    let client = builder.connect().await.expect("connects");
    let failure = client.call_tool("t", ()).await.expect_err("one failed");
    assert_eq!(failure.message, "out of ink");
    tokio::time::timeout(PATIENCE, withdrawn.recv()).await.expect("withdrawn").expect("told");
}

#[tokio::test(start_paused = true)]
async fn a_callback_that_panics_in_a_round_fails_the_call() {
    let asked = form(&json!({}), &json!([]));
    let target = asking("2026-07-28", vec![("q", "elicitation/create", asked)]);
    let builder = Client::builder(target).on_elicit(|_| async { panic!("a bug of the user's") });
    let client = builder.connect().await.expect("connects");
    let failure = client.call_tool("t", ()).await.expect_err("nobody answers");
    assert_eq!(failure.kind, ErrorKind::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn a_round_ends_when_its_connection_closes() {
    for era in ERAS {
        for closes in [true, false] {
            let (reached, mut asking_user) = mpsc::unbounded_channel();
            let script = move |message: &Value| match message["method"].as_str() {
                Some("tools/call") if era == "2026-07-28" => {
                    let asked = json!({"method": "elicitation/create", "params": form(&json!({}), &json!([]))});
                    vec![result(
                        message,
                        &json!({"resultType": "input_required", "inputRequests": {"q": asked}}),
                    )]
                }
                Some("tools/call") => vec![json!({
                    "jsonrpc": "2.0", "id": "q", "method": "elicitation/create",
                    "params": form(&json!({}), &json!([])),
                })],
                Some("acme/leave") => vec![json!("hang up")],
                _ => vec![],
            };
            let builder = Client::builder(server(era, script).0).on_elicit(move |_| {
                let _ = reached.send(());
                std::future::pending()
            });
            let client = builder.connect().await.expect("connects");
            let call = tokio::spawn({
                let client = client.clone();
                async move { client.call_tool("t", ()).await }
            });
            asking_user.recv().await.expect("asked");
            match closes {
                true => client.close().await,
                false => client.notify("acme/leave", ()).expect("told"),
            }
            let outcome = tokio::time::timeout(PATIENCE, call).await.expect("it ends");
            let failure = outcome.expect("no panic").expect_err("nobody answers");
            assert_eq!(failure.kind, ErrorKind::Lost, "{era} {closes}: {failure}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_carries_its_key_where_the_server_says_it() {
    let named = json!({"message": "?", "requestedSchema": {"type": "object"}, "_meta": {"gudgeon/key": "name"}});
    for (era, params) in [
        ("2026-07-28", json!({"message": "?", "requestedSchema": {"type": "object"}})),
        ("2025-11-25", named),
    ] {
        let keys = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&keys);
        let answer = move |question: Question| -> BoxFuture<Result<Raw, Error>> {
            seen.lock().expect("no panic").push(question.key);
            Box::pin(async { Ok(raw_json::raw(r#"{"action":"cancel"}"#.into())) })
        };
        let target = asking(era, vec![("name", "elicitation/create", params)]);
        let builder = Client::builder(target).on_elicit_raw(Arc::new(answer));
        let client = builder.connect().await.expect("connects");
        assert_eq!(answers(&client).await["name"]["action"], "cancel");
        assert_eq!(*keys.lock().expect("no panic"), [Some("name".to_owned())], "{era}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_round_by_hand_gives_questions_or_the_result() {
    let asked = form(&json!({"name": {"type": "string"}}), &json!(["name"]));
    let target = asking("2026-07-28", vec![("who", "elicitation/create", asked)]);
    let client = Client::connect(target).await.expect("connects");
    let first = client.call_tool_round("t", json!({"a": 1}), (), None).await.expect("a round");
    let ToolRound::InputRequired(round) = first else { panic!("{first:?}") };
    let questions = round.input_requests.expect("questions");
    assert!(questions.get("who").is_some());
    let answers = json!({"who": {"action": "accept", "content": {"name": "Eve"}}});
    let state = round.request_state.as_deref();
    let last = client.call_tool_round("t", json!({"a": 1}), &answers, state).await;
    let ToolRound::Done(result) = last.expect("a result") else { panic!("it is done") };
    assert_eq!(serde_json::from_str::<Value>(&result.text()).expect("JSON"), answers);
}

/// A server that asks for a form in every round.
fn insatiable() -> gudgeon::client::Target {
    let mut round = 0;
    let (target, _) = server("2026-07-28", move |message| {
        round += 1;
        let params = form(&json!({}), &json!([]));
        let asked = json!({"method": "elicitation/create", "params": params});
        let keyed = json!({format!("k{round}"): asked});
        let asks = json!({"resultType": "input_required", "inputRequests": keyed});
        vec![pause(10), result(message, &asks)]
    });
    target
}

#[tokio::test(start_paused = true)]
async fn all_rounds_of_questions_share_one_total_time_limit() {
    for answers in [true, false] {
        let builder = Client::builder(insatiable()).options(|options| {
            options.max_rounds = 1_000;
            options.max_timeout = Some(Duration::from_secs(1));
        });
        let builder = builder.on_elicit(move |_| async move {
            if !answers {
                std::future::pending::<()>().await;
            }
            Ok(accept(None))
        });
        let client = builder.connect().await.expect("connects");
        let late = client.call_tool("ask", ()).await.expect_err("the server asks for ever");
        assert_eq!(late.kind, ErrorKind::Timeout, "{late:?}");
        assert!(late.message.contains("1 s in all"), "{late:?}");
        assert!(late.target.is_some(), "{late:?}");
    }
}
