//! Types without a form: creating the question fails, or the call fails before anything is sent.

use std::{
    panic::catch_unwind,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use gudgeon::{
    Client, Context, Revision, Server, ToolError, ask,
    error::ErrorKind,
    protocol::{ElicitAction, ElicitResult, json::to_raw},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Topping {
    Ham,
    Olives,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Pizza {
    toppings: Vec<Topping>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only its schema counts")]
struct Order {
    pizza: Pizza,
}

const PROBLEM: &str = "the form \"What?\" can't be asked: its property \"pizza\" is an object, and a form asks for \
     strings, numbers, booleans, choices and lists of choices, without nesting: ask for its parts as \
     properties of their own, or in a question of their own";

#[test]
fn a_question_without_a_form_in_any_revision_panics_when_created() {
    let panic = catch_unwind(|| drop(ask::elicit::<Order>("What?"))).expect_err("no form");
    assert_eq!(panic.downcast_ref::<String>().map(String::as_str), Some(PROBLEM));
}

fn asks() -> Server {
    Server::new("asks")
        .tool("order", |ctx: Context| async move {
            let failed = ctx.elicit::<Order>("What?").await.expect_err("no form");
            Ok::<_, ToolError>(failed.to_string())
        })
        .tool("try", |ctx: Context| async move {
            let failed = ctx.try_elicit::<Order>("What?").await.expect_err("no form");
            Ok::<_, ToolError>(failed.to_string())
        })
        .tool("pizza", |ctx: Context| async move {
            let pizza = ctx.elicit::<Pizza>("Which toppings?").await?;
            Ok::<_, ToolError>(format!("{:?}", pizza.toppings))
        })
        .tool("explicit", |ctx: Context| async move {
            let question = ask::elicit::<Pizza>("Which toppings?");
            match ctx.answer(&question)? {
                Some(pizza) => Ok(format!("{:?}", pizza.toppings)),
                None => Err(ToolError::from(question)),
            }
        })
}

/// A client whose user wants olives, and how often that was asked.
async fn visitor(revision: Revision) -> (Client, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let builder = Client::builder(asks())
        .options(|options| options.revisions = vec![revision])
        .on_elicit(move |_| {
            counted.fetch_add(1, Ordering::SeqCst);
            async {
                Ok(ElicitResult {
                    action: ElicitAction::Accept,
                    content: Some(to_raw(&json!({"toppings": ["olives"]}))),
                    result_type: None,
                    meta: None,
                })
            }
        });
    (builder.connect().await.expect("connects"), asked)
}

#[tokio::test(start_paused = true)]
async fn an_unaskable_question_in_a_handler_fails_before_anything_is_sent() {
    for revision in [Revision::V2025_06_18, Revision::V2026_07_28] {
        let (client, asked) = visitor(revision).await;
        for name in ["order", "try"] {
            let told = client.call_tool(name, ()).await.expect("answers").text();
            assert!(told.contains(PROBLEM), "{told}");
        }
        assert_eq!(asked.load(Ordering::SeqCst), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_missing_in_one_revision_fails_only_in_that_revision() {
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let (client, asked) = visitor(revision).await;
        for name in ["pizza", "explicit"] {
            assert_eq!(client.call_tool(name, ()).await.expect("answers").text(), "[Olives]");
        }
        assert_eq!(asked.load(Ordering::SeqCst), 2);
    }
    let (client, asked) = visitor(Revision::V2025_06_18).await;
    for name in ["pizza", "explicit"] {
        let failed = client.call_tool(name, ()).await.expect_err("no words for it");
        assert_eq!(failed.kind, ErrorKind::Tool, "{failed}");
    }
    assert_eq!(asked.load(Ordering::SeqCst), 0);
}
