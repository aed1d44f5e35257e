//! Answers that fit the form but not the type: the question is asked up to three times in all.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use gudgeon::{
    Client, Context, Revision, Server, ToolError,
    ask::{self, Outcome},
    client::{TestServer, ToolRound},
    error::{Error, ErrorKind},
    protocol::{ClientCapabilities, ElicitRequestParams, ElicitResult, ElicitationCapability},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

const ERAS: [(Revision, bool); 4] = [
    (Revision::V2025_06_18, false),
    (Revision::V2025_11_25, false),
    (Revision::V2026_07_28, false),
    (Revision::V2026_07_28, true),
];
const TOOLS: [&str; 4] = ["buy", "tries", "several", "explicit"];

/// They come in pairs, which no form can say.
#[derive(Deserialize, JsonSchema)]
#[serde(try_from = "Order")]
#[schemars(with = "Order")]
struct Pairs(u32);

#[derive(Deserialize, JsonSchema)]
struct Order {
    count: u32,
}

impl TryFrom<Order> for Pairs {
    type Error = &'static str;

    fn try_from(Order { count }: Order) -> Result<Self, Self::Error> {
        if count % 2 == 0 { Ok(Self(count)) } else { Err("they come in pairs") }
    }
}

fn questions() -> (ask::Question<String>, ask::Question<Pairs>) {
    (ask::elicit("Who?").key("who"), ask::elicit("How many?").key("many"))
}

fn shop() -> Server {
    let buy = |ctx: Context| async move {
        let Pairs(count) = ctx.elicit("How many?").await?;
        Ok::<_, ToolError>(count.to_string())
    };
    let tries = |ctx: Context| async move {
        Ok::<_, ToolError>(match ctx.try_elicit("How many?").await? {
            Outcome::Accepted(Pairs(count)) => count.to_string(),
            Outcome::Declined => "declined".into(),
            Outcome::Cancelled => "cancelled".into(),
        })
    };
    let several = |ctx: Context| async move {
        let (_, Pairs(count)) = ctx.ask(questions()).await?;
        Ok::<_, ToolError>(count.to_string())
    };
    let explicit = |ctx: Context| async move {
        let (who, many) = questions();
        match (ctx.answer(&who)?, ctx.answer(&many)?) {
            (Some(_), Some(Pairs(count))) => Ok(count.to_string()),
            _ => Err(ToolError::ask((who, many))),
        }
    };
    Server::new("shop")
        .options(|options| options.request_state_keys = vec!["a secret of all ".repeat(2).into()])
        .tool("buy", buy)
        .tool("tries", tries)
        .tool("several", several)
        .tool("explicit", explicit)
}

/// Answers "How many?" with these, one after the other; gives what was asked.
async fn call(
    tool: &str,
    (era, replays): (Revision, bool),
    counts: impl IntoIterator<Item = Value>,
) -> (Result<String, Error>, Vec<String>) {
    let server = shop();
    let mut test_mode = TestServer::from(&server);
    if replays {
        test_mode = test_mode.replay();
    }
    let counts = Arc::new(Mutex::new(counts.into_iter().collect::<VecDeque<_>>()));
    let asked = Arc::new(Mutex::new(Vec::new()));
    let received = Arc::clone(&asked);
    let builder = Client::builder(test_mode).options(|options| options.revisions = vec![era]);
    let client = builder.on_elicit(move |question| {
        let ElicitRequestParams::Form(form) = question else { panic!("nobody is sent to a page") };
        let answer = match &*form.message {
            "Who?" => json!({"action": "accept", "content": {"value": "Ada"}}),
            _ => counts.lock().unwrap().pop_front().expect("it is asked no more"),
        };
        received.lock().unwrap().push(form.message);
        async move { Ok(serde_json::from_value::<ElicitResult>(answer).unwrap()) }
    });
    let client = client.connect().await.unwrap();
    let said = client.call_tool(tool, ()).await.map(|result| result.text());
    let mut asked = std::mem::take(&mut *asked.lock().unwrap());
    asked.retain(|question| question == "How many?" || tool == "several" || tool == "explicit");
    asked.sort_unstable();
    (said, asked)
}

fn many(count: u32) -> Value {
    json!({"action": "accept", "content": {"count": count}})
}

#[tokio::test(start_paused = true)]
async fn invalid_answers_are_asked_again_and_no_others() {
    for era in ERAS {
        for tool in TOOLS {
            let (said, asked) = call(tool, era, [3, 5, 6].map(many)).await;
            assert_eq!(said.unwrap(), "6", "{tool} {era:?}");
            let mut expected = vec!["How many?"; 3];
            if tool == "several" || tool == "explicit" {
                expected.push("Who?");
            }
            assert_eq!(asked, expected, "{tool} {era:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn repeated_invalid_answers_end_in_an_error_with_the_reason() {
    for era in ERAS {
        for tool in TOOLS {
            let (said, _) = call(tool, era, [3, 5, 7].map(many)).await;
            let error = said.unwrap_err();
            assert_eq!(error.kind, ErrorKind::Protocol, "{tool} {era:?}");
            let expected =
                r#"the client's answer to "How many?" does not fit, 3 times: they come in pairs"#;
            assert!(error.to_string().contains(expected), "{tool} {era:?} {error}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn declining_the_repeated_question_counts_as_declining() {
    for era in ERAS {
        let (said, _) = call("tries", era, [many(3), json!({"action": "decline"})]).await;
        assert_eq!(said.unwrap(), "declined", "{era:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn another_server_asks_again_and_keeps_the_other_answers() {
    let connect = async || {
        let capabilities = ClientCapabilities {
            elicitation: Some(ElicitationCapability::default()),
            ..ClientCapabilities::default()
        };
        Client::builder(shop())
            .options(|options| options.capabilities = capabilities)
            .connect()
            .await
            .unwrap()
    };
    let round =
        async |client: &Client, tool: &str, answers: Value, state: Option<&str>, keys: &[&str]| {
            let round = client.call_tool_round(tool, (), answers, state).await.unwrap();
            let ToolRound::InputRequired(asked) = round else { panic!("it asks: {round:?}") };
            let questions = asked.input_requests.as_ref().unwrap();
            let found: Vec<_> = questions.0.iter().map(|(key, _)| key.as_str()).collect();
            assert_eq!(found, keys);
            asked.request_state.unwrap()
        };
    for tool in ["several", "explicit"] {
        let (one, two) = (connect().await, connect().await);
        let first = round(&one, tool, json!({}), None, &["who", "many"]).await;
        let both =
            json!({"who": {"action": "accept", "content": {"value": "Ada"}}, "many": many(3)});
        let state = round(&two, tool, both, Some(&first), &["many"]).await;
        // Neither a client that says nothing nor the state brings back what was refused.
        let state = round(&one, tool, json!({}), Some(&state), &["many"]).await;
        let state = round(&one, tool, json!({"many": many(5)}), Some(&state), &["many"]).await;
        let right = json!({"many": many(4)});
        let ToolRound::Done(done) =
            two.call_tool_round(tool, (), right, Some(&state)).await.unwrap()
        else {
            panic!("it is done")
        };
        assert_eq!(done.text(), "4");
        let wrong = json!({"many": many(7)});
        let error = two.call_tool_round(tool, (), wrong, Some(&state)).await.unwrap_err();
        assert!(error.to_string().contains("does not fit, 3 times"), "{error}");
    }
}
