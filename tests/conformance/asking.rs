//! The tools and the prompt that ask the client.

use gudgeon::{
    Context, Prompt, Server, Tool, ToolError,
    ask::{self, Outcome},
    protocol::{
        ContentBlock, CreateMessageRequestParams, CreateMessageResult, Role, SamplingMessage,
    },
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

pub(crate) fn asking(server: Server) -> Server {
    let server = waiting(server);
    let server = keyed(server);
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
    Ok(format!("LLM response: {}", text(&ctx.ask(ask::sample(request(&prompt, 100))).await?)))
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
    let outcome = ctx.try_elicit::<T>(message).await?;
    if let Outcome::Accepted(answer) = &outcome {
        return Ok(format!("action=accept, content={}", serde_json::to_string(answer)?));
    }
    let is_declined = matches!(outcome, Outcome::Declined);
    Ok(if is_declined { "action=decline" } else { "action=cancel" }.into())
}

// ── questions with keys of their own ─────────────────────────────────────────────────────────────

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

fn keyed(server: Server) -> Server {
    server
        .add(
            Tool::new("test_missing_capability", |ctx: Context| async move {
                let question = ask::sample(request("Say something.", 100)).key("needed");
                Ok(text(&ctx.ask(question).await?))
            })
            .description("Needs a client that has a model."),
        )
        .add(
            Tool::new("test_streaming_elicitation", |ctx: Context| async move {
                let sure = ctx.ask(ask::elicit::<bool>("Go on?").key("confirm")).await?;
                Ok(format!("confirmed: {sure}"))
            })
            .description("Asks for a confirmation."),
        )
        .add(
            Tool::new("test_input_required_result_elicitation", |ctx: Context| async move {
                let question = ask::elicit::<Name>("What is your name?").key("user_name");
                Ok(format!("Hello, {}!", ctx.ask(question).await?.name))
            })
            .description("Asks for the user's name."),
        )
        .add(
            Tool::new("test_input_required_result_sampling", |ctx: Context| async move {
                let request = request("What is the capital of France?", 100);
                Ok(text(&ctx.ask(ask::sample(request).key("capital_question")).await?))
            })
            .description("Asks the client's model."),
        )
        .add(
            Tool::new("test_input_required_result_list_roots", |ctx: Context| async move {
                let roots = ctx.ask(ask::roots().key("client_roots")).await?;
                let uris: Vec<_> = roots.iter().map(|root| &*root.uri).collect();
                Ok(format!("{} roots: {}", uris.len(), uris.join(", ")))
            })
            .description("Asks for the client's roots."),
        )
        .add(
            Tool::new("test_input_required_result_request_state", |ctx: Context| async move {
                let question = ask::elicit::<Confirmation>("Please confirm").key("confirm");
                Ok(format!("state-ok, confirmed: {}", ctx.ask(question).await?.ok))
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
                ctx.ask(ask::elicit::<bool>("Please confirm").key("confirm")).await?;
                Ok("state-ok")
            })
            .description("Asks; a state that was changed is refused."),
        )
        .add(
            Tool::new("test_input_required_result_capabilities", declared)
                .description("Asks only what the client declared that it can answer."),
        )
}

async fn several(ctx: Context) -> Result<String, ToolError> {
    let user = ask::elicit::<Name>("What is your name?").key("user_name");
    let model = ask::sample(request("Generate a greeting", 50)).key("greeting");
    let client = ask::roots().key("client_roots");
    let (Name { name }, greeting, roots) = ctx.ask((user, model, client)).await?;
    Ok(format!("{} {name}, {} roots", text(&greeting), roots.len()))
}

async fn two_rounds(ctx: Context) -> Result<String, ToolError> {
    let first = ask::elicit::<Name>("Step 1: What is your name?").key("step1");
    let Name { name } = ctx.ask(first).await?;
    let second = ask::elicit::<Colour>("Step 2: What is your favorite color?").key("step2");
    let Colour { color } = ctx.ask(second).await?;
    Ok(format!("{name} likes {color}"))
}

async fn declared(ctx: Context) -> Result<String, ToolError> {
    let known = ctx.request().client_capabilities;
    let model = ask::sample(request("Say hello.", 100)).key("model");
    let user = ask::elicit::<bool>("Hello?").key("user");
    let answers = match (known.sampling.is_some(), known.elicitation.is_some()) {
        (true, true) => ctx.ask((model, user)).await.map(|_| 2)?,
        (true, false) => ctx.ask(model).await.map(|_| 1)?,
        (false, true) => ctx.ask(user).await.map(|_| 1)?,
        (false, false) => 0,
    };
    Ok(format!("{answers} answers"))
}

async fn contextual(ctx: Context) -> Result<String, ToolError> {
    let question = ask::elicit::<Background>("What context should the prompt use?");
    let Background { context } = ctx.ask(question.key("user_context")).await?;
    Ok(format!("Use this context: {context}"))
}

fn request(prompt: &str, max_tokens: u64) -> CreateMessageRequestParams {
    let messages = vec![SamplingMessage::new(Role::User, prompt)];
    CreateMessageRequestParams::new(messages, max_tokens)
}

fn text(result: &CreateMessageResult) -> String {
    result.content.iter().filter_map(ContentBlock::as_text).collect()
}
