//! The tools and the prompt that ask their client.

use gudgeon::{
    Context, Prompt, Server, Tool, ToolError,
    ask::{self, Outcome, Question},
    protocol::{ContentBlock, CreateMessageRequestParams, CreateMessageResult, SamplingMessage},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

pub(crate) fn asking(server: Server) -> Server {
    let server = waiting(server);
    let server = returning(server);
    server.add(
        Prompt::new("test_input_required_result_prompt", contextual)
            .description("A prompt that asks for a context."),
    )
}

// ── questions that wait for their answer ─────────────────────────────────────────────────────────

fn waiting(server: Server) -> Server {
    server
        .add(Tool::new("test_sampling", sample).description("Asks the client's model."))
        .add(Tool::new("test_elicitation", elicit).description("Asks the user."))
        .add(
            Tool::new("test_elicitation_sep1034_defaults", |ctx: Context| async move {
                elicited::<Details>(&ctx, "Please review your details").await
            })
            .description("Asks the user with a default for each kind of property."),
        )
        .add(
            Tool::new("test_elicitation_sep1330_enums", |ctx: Context| async move {
                elicited::<Choices>(&ctx, "Please choose").await
            })
            .description("Asks the user with each kind of choice."),
        )
}

#[derive(Deserialize, JsonSchema)]
struct Sampled {
    prompt: String,
}

async fn sample(Sampled { prompt }: Sampled, ctx: Context) -> Result<String, ToolError> {
    Ok(format!("LLM response: {}", text(&ctx.sample(request(&prompt, 100)).await?)))
}

#[derive(Deserialize, JsonSchema)]
struct Asked {
    message: String,
}

async fn elicit(Asked { message }: Asked, ctx: Context) -> Result<String, ToolError> {
    elicited::<User>(&ctx, &message).await
}

#[derive(Deserialize, JsonSchema, Serialize)]
struct User {
    /// User's response
    username: String,
    /// User's email address
    email: String,
}

#[derive(Default, Deserialize, JsonSchema, Serialize)]
#[serde(default)]
struct Details {
    #[schemars(extend("default" = "John Doe"))]
    name: String,
    #[schemars(extend("default" = 30))]
    age: i64,
    #[schemars(extend("default" = 95.5))]
    score: f64,
    #[schemars(extend("default" = "active"))]
    status: Status,
    #[schemars(extend("default" = true))]
    verified: bool,
}

#[derive(Default, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    #[default]
    Active,
    Inactive,
    Pending,
}

#[derive(Default, Deserialize, JsonSchema, Serialize)]
#[serde(default, rename_all = "camelCase")]
struct Choices {
    untitled_single: Option<Letter>,
    titled_single: Option<Titled>,
    #[schemars(
        extend("enum" = ["opt1", "opt2", "opt3"]),
        extend("enumNames" = ["Option One", "Option Two", "Option Three"])
    )]
    legacy_enum: Option<String>,
    untitled_multi: Vec<Letter>,
    titled_multi: Vec<Titled>,
}

#[derive(Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "lowercase")]
enum Letter {
    Option1,
    Option2,
    Option3,
}

#[derive(Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "lowercase")]
enum Titled {
    /// First Option
    Value1,
    /// Second Option
    Value2,
    /// Third Option
    Value3,
}

async fn elicited<T>(ctx: &Context, message: &str) -> Result<String, ToolError>
where
    T: DeserializeOwned + JsonSchema + Serialize,
{
    Ok(match ctx.try_elicit::<T>(message).await? {
        Outcome::Accepted(answer) => {
            format!("action=accept, content={}", serde_json::to_string(&answer)?)
        }
        Outcome::Declined => "action=decline".into(),
        Outcome::Cancelled => "action=cancel".into(),
    })
}

// ── questions that are returned ──────────────────────────────────────────────────────────────────

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

#[derive(Deserialize, JsonSchema)]
struct Confirmation {
    ok: bool,
}

#[derive(Deserialize, JsonSchema)]
struct Colour {
    color: String,
}

#[derive(Deserialize, JsonSchema)]
struct Background {
    context: String,
}

fn returning(server: Server) -> Server {
    server
        .add(
            Tool::new("test_missing_capability", |ctx: Context| async move {
                let question = ask::sample(request("Say something.", 100)).key("needed");
                answered(&ctx, question, |it| text(&it))
            })
            .description("Needs a client that has a model."),
        )
        .add(
            Tool::new("test_streaming_elicitation", |ctx: Context| async move {
                let question = ask::elicit::<bool>("Go on?").key("confirm");
                answered(&ctx, question, |sure| format!("confirmed: {sure}"))
            })
            .description("Asks for a confirmation."),
        )
        .add(
            Tool::new("test_input_required_result_elicitation", |ctx: Context| async move {
                let question = ask::elicit::<Name>("What is your name?").key("user_name");
                answered(&ctx, question, |Name { name }| format!("Hello, {name}!"))
            })
            .description("Asks for the user's name."),
        )
        .add(
            Tool::new("test_input_required_result_sampling", |ctx: Context| async move {
                let request = request("What is the capital of France?", 100);
                answered(&ctx, ask::sample(request).key("capital_question"), |it| text(&it))
            })
            .description("Asks the client's model."),
        )
        .add(
            Tool::new("test_input_required_result_list_roots", |ctx: Context| async move {
                answered(&ctx, ask::roots().key("client_roots"), |roots| {
                    let uris: Vec<_> = roots.iter().map(|it| &*it.uri).collect();
                    format!("{} roots: {}", uris.len(), uris.join(", "))
                })
            })
            .description("Asks for the client's roots."),
        )
        .add(
            Tool::new("test_input_required_result_request_state", |ctx: Context| async move {
                let question = ask::elicit::<Confirmation>("Please confirm").key("confirm");
                answered(&ctx, question, |it| format!("state-ok, confirmed: {}", it.ok))
            })
            .description("Asks, and knows its client again by the state."),
        )
        .add(
            Tool::new("test_input_required_result_multiple_inputs", several)
                .description("Asks the user, the model and the client at once."),
        )
        .add(
            Tool::new("test_input_required_result_multi_round", two_rounds)
                .description("Asks twice, one after the other."),
        )
        .add(
            Tool::new("test_input_required_result_tampered_state", |ctx: Context| async move {
                let question = ask::elicit::<bool>("Please confirm").key("confirm");
                answered(&ctx, question, |_| "state-ok".into())
            })
            .description("Asks; a state that was changed is refused."),
        )
        .add(
            Tool::new("test_input_required_result_capabilities", declared)
                .description("Asks only what the client declared that it can answer."),
        )
}

/// Asks, and says what it makes of the answer when that has come.
fn answered<T>(
    ctx: &Context,
    question: Question<T>,
    then: impl FnOnce(T) -> String,
) -> Result<String, ToolError> {
    match ctx.answer(&question)? {
        Some(answer) => Ok(then(answer)),
        None => Err(question.into()),
    }
}

async fn several(ctx: Context) -> Result<String, ToolError> {
    let user = ask::elicit::<Name>("What is your name?").key("user_name");
    let model = ask::sample(request("Generate a greeting", 50)).key("greeting");
    let client = ask::roots().key("client_roots");
    match (ctx.answer(&user)?, ctx.answer(&model)?, ctx.answer(&client)?) {
        (Some(Name { name }), Some(greeting), Some(roots)) => {
            Ok(format!("{} {name}, {} roots", text(&greeting), roots.len()))
        }
        _ => Err(ToolError::ask((user, model, client))),
    }
}

async fn two_rounds(ctx: Context) -> Result<String, ToolError> {
    let first = ask::elicit::<Name>("Step 1: What is your name?").key("step1");
    let Some(Name { name }) = ctx.answer(&first)? else { return Err(first.into()) };
    let second = ask::elicit::<Colour>("Step 2: What is your favorite color?").key("step2");
    answered(&ctx, second, |Colour { color }| format!("{name} likes {color}"))
}

async fn declared(ctx: Context) -> Result<String, ToolError> {
    let known = ctx.client_capabilities();
    let model = ask::sample(request("Say hello.", 100)).key("model");
    let user = ask::elicit::<bool>("Hello?").key("user");
    match (known.sampling.is_some(), known.elicitation.is_some()) {
        (true, true) => match (ctx.answer(&model)?, ctx.answer(&user)?) {
            (Some(_), Some(_)) => Ok("2 answers".into()),
            _ => Err(ToolError::ask((model, user))),
        },
        (true, false) => answered(&ctx, model, |_| "1 answers".into()),
        (false, true) => answered(&ctx, user, |_| "1 answers".into()),
        (false, false) => Ok("0 answers".into()),
    }
}

async fn contextual(ctx: Context) -> Result<String, ToolError> {
    let question = ask::elicit::<Background>("What context should the prompt use?");
    answered(&ctx, question.key("user_context"), |it| format!("Use this context: {}", it.context))
}

fn request(prompt: &str, max_tokens: u64) -> CreateMessageRequestParams {
    let messages = vec![SamplingMessage::user(prompt)];
    CreateMessageRequestParams { messages, max_tokens, ..CreateMessageRequestParams::default() }
}

fn text(result: &CreateMessageResult) -> String {
    result.content.blocks().iter().filter_map(ContentBlock::as_text).collect()
}
