//! `gudgeon call`: calls a tool.

use std::process::ExitCode;

use clap::Args;
use gudgeon::{
    Client,
    client::Operation,
    error::Error,
    protocol::{CallToolResult, ContentBlock, Raw, Tool, code},
    schema::nearest,
};
use serde_json::Value;

use crate::{
    background::{self, CallParams, Keeper},
    commands::{answer, request::RequestArguments},
    failure::{Failure, FailureKind},
    interaction::Interaction,
    output,
    render::{self, RenderArguments, Renderer},
    session,
    values::{self, Assignments},
};

const EXAMPLES: &str = "\
Arguments of the tool:
  KEY=VALUE     text, converted to the type in the tool's schema; KEY several times is an array
  KEY=@FILE     the text of a file, or of standard input with @-; KEY=@@TEXT is the text @TEXT
  KEY:=JSON     JSON as it is; KEY:=@FILE takes it from a file
  @FILE, -      a JSON object with arguments in a file, or on standard input

Examples:
  gudgeon call http://127.0.0.1:8000/mcp add a=1 b=2
  gudgeon call server.py search title=Emma tags=novel tags=english filter:='{\"year\": 1815}'
  gudgeon call render --save pictures -- python server.py
  echo '{\"a\": 1, \"b\": 2}' | gudgeon call server.py add -";

#[derive(Args, Debug)]
#[command(
    after_help = EXAMPLES,
    override_usage = "gudgeon call [OPTIONS] TARGET TOOL [ARGUMENT]...\n       gudgeon call [OPTIONS] TOOL [ARGUMENT]... -- COMMAND..."
)]
pub struct Arguments {
    /// The server, the tool, and its arguments
    #[arg(value_name = "TARGET TOOL [ARGUMENT]")]
    words: Vec<String>,
    /// Send arguments that do not fit the tool's schema, to see what the server does
    #[arg(long)]
    no_check: bool,
    /// Print a question of the tool with its id instead of asking it; `gudgeon answer` answers it. Named connections do so
    /// where there is no terminal
    #[arg(long)]
    detach: bool,
    #[command(flatten)]
    request: RequestArguments,
}

pub async fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    let request = arguments.request;
    let (target, tool, words) = request.split(arguments.words, "tool", "tools")?;
    let call =
        Call { tool: &tool, given: Assignments::parse(&words)?, no_check: arguments.no_check };
    let interaction = request.interaction.read()?;
    let detaches = arguments.detach;
    if (detaches || !request.interaction.answers())
        && let Some(keeper) =
            Keeper::for_call(&target, &request.connection, &interaction, detaches)?
    {
        let object = match call.given.need_schema() {
            true => {
                session::run(&request.connection, &interaction, &target, async |client| {
                    Ok(call.object(client, &interaction).await?.1)
                })
                .await?
            }
            false => call.given.to_object(&Value::Null)?,
        };
        let params = CallParams::new(&tool, Some(object), &request.connection, &interaction);
        let outcome = background::client::call(keeper, params, &interaction.notices).await?;
        return answer::finish(outcome, request.json, &request.render);
    }
    session::run(&request.connection, &interaction, &target, async |client| {
        let (result, data) = call.run(client, &interaction).await?;
        show(&result, data.as_deref(), &tool, request.json, &request.render)
    })
    .await
}

/// A call of a tool, as given.
struct Call<'a> {
    tool: &'a str,
    given: Assignments,
    no_check: bool,
}

impl Call<'_> {
    /// Returns the result and its data, both JSON.
    async fn run(
        &self,
        client: &Client,
        interaction: &Interaction,
    ) -> Result<(Raw, Option<String>), Failure> {
        let (listed, object) = self.object(client, interaction).await?;
        let operation =
            Operation::CallTool { name: self.tool.to_owned(), arguments: Some(object.clone()) };
        let mut options = client.options();
        options.raise_on_error = false;
        let reply = match client.call(operation, options).await {
            Ok(reply) => reply,
            Err(error) => return Err(self.explain(client, error, listed, &object).await),
        };
        let data = reply.data().map(ToOwned::to_owned);
        if listed.is_none() && is_error(&reply.result) && !self.no_check {
            // The server's words about arguments that do not fit may be poor.
            if let Ok(schema) = self.listed(client).await {
                self.check(&schema, &object)?;
            }
        }
        Ok((reply.result, data))
    }

    /// Returns the arguments, and the tool's input schema if they needed it.
    async fn object(
        &self,
        client: &Client,
        interaction: &Interaction,
    ) -> Result<(Option<Value>, Raw), Failure> {
        // Without texts to convert the tool's schema is not needed, unless the server rejects the call.
        let mut listed = None;
        if self.given.need_schema() {
            listed = Some(self.listed(client).await?);
        }
        let schema = listed.as_ref().unwrap_or(&Value::Null);
        let object = self.given.to_object(schema)?;
        if listed.is_some() {
            self.check(schema, &object)?;
            self.warn_of_unknown(schema, interaction);
        }
        Ok((listed, object))
    }

    /// Returns the tool's input schema.
    async fn listed(&self, client: &Client) -> Result<Value, Failure> {
        let tools = client.list::<Tool>().await?;
        match tools.iter().find(|tool| tool.name == self.tool) {
            Some(tool) => Ok(serde_json::from_str(tool.input_schema.get()).unwrap_or_default()),
            None => Err(unknown("tool", self.tool, tools.iter().map(|tool| tool.name.as_str()))),
        }
    }

    fn check(&self, schema: &Value, object: &Raw) -> Result<(), Failure> {
        if self.no_check {
            return Ok(());
        }
        match values::violation(schema, object.get()) {
            None => Ok(()),
            Some((problem, lines)) => {
                let failure = Failure::usage(format!("tool {:?}: {problem}", self.tool));
                Err(match lines.is_empty() {
                    true => failure,
                    false => failure.with_hint(format!(
                        "the schema says: {}",
                        lines.join("\n                    ")
                    )),
                })
            }
        }
    }

    /// Warns of names that the schema does not have, where it allows others: most likely they are misspelt.
    fn warn_of_unknown(&self, schema: &Value, interaction: &Interaction) {
        let Some(known) = schema.get("properties").and_then(Value::as_object) else { return };
        for assignment in self.given.iter().filter(|given| !known.contains_key(&given.name)) {
            if let Some(meant) = nearest(&assignment.name, known.keys().map(String::as_str)) {
                let name = &assignment.name;
                let warning =
                    format!("warning: the tool has no argument '{name}'; did you mean '{meant}'?");
                interaction.notices.line(&warning);
            }
        }
    }

    /// Finds the reason for which the server rejected the call: the tool, or an argument.
    async fn explain(
        &self,
        client: &Client,
        error: Error,
        listed: Option<Value>,
        object: &Raw,
    ) -> Failure {
        if error.code != Some(code::INVALID_PARAMS) || listed.is_some() {
            return error.into();
        }
        match self.listed(client).await {
            Ok(schema) => match self.check(&schema, object) {
                Err(failure) => failure,
                Ok(()) => error.into(),
            },
            Err(failure) if failure.kind() == FailureKind::NotFound => failure,
            Err(_) => error.into(),
        }
    }
}

/// Returns the failure for a name that is not in the server's list.
pub fn unknown<'a>(
    noun: &str,
    name: &str,
    known: impl Iterator<Item = &'a str> + Clone,
) -> Failure {
    let failure = Failure::new(FailureKind::NotFound, format!("unknown {noun} {name:?}"));
    if let Some(meant) = nearest(name, known.clone()) {
        return failure.with_hint(format!("did you mean {meant:?}?"));
    }
    let mut names: Vec<_> = known.take(11).collect();
    let rest = if names.len() > 10 { ", …" } else { "" };
    names.truncate(10);
    match names.is_empty() {
        true => failure.with_hint(format!("the server has no {noun}s")),
        false => failure.with_hint(format!("the server has {}{rest}", names.join(", "))),
    }
}

fn is_error(result: &Raw) -> bool {
    serde_json::from_str::<CallToolResult>(result.get())
        .is_ok_and(|result| result.is_error == Some(true))
}

/// Prints a result; returns the exit code.
pub fn show(
    raw: &Raw,
    data: Option<&str>,
    tool: &str,
    is_json: bool,
    arguments: &RenderArguments,
) -> Result<ExitCode, Failure> {
    let result: CallToolResult = serde_json::from_str(raw.get()).map_err(|error| {
        Failure::new(FailureKind::Protocol, format!("the result of the tool is invalid: {error}"))
    })?;
    let has_failed = result.is_error == Some(true);
    if is_json {
        output::raw_json(raw.get())?;
        return Ok(if has_failed { ExitCode::FAILURE } else { ExitCode::SUCCESS });
    }
    if has_failed {
        let text = render::error_text(&result.content);
        let text = match (text.is_empty(), data) {
            (false, _) => text,
            (true, Some(data)) => data.to_owned(),
            (true, None) => format!("tool {tool:?} failed without a message"),
        };
        return Err(Failure::new(FailureKind::Reported, text));
    }
    let texts: Vec<_> = result.content.iter().filter_map(ContentBlock::as_text).collect();
    let is_mirror = data.is_some_and(|data| render::is_mirror(&texts, data));
    let is_only_text = result.content.len() == 1 && texts.len() == 1;
    // On a terminal an object or array is easier to read on several lines than as the server's text.
    let is_laid_out = is_only_text
        && output::is_terminal()
        && data.is_some_and(|text| text.starts_with(['{', '[']));
    if !(is_mirror && is_laid_out) {
        Renderer::new(arguments, tool).blocks(&result.content)?;
    }
    if let Some(data) = data
        && (is_laid_out || !is_mirror)
    {
        output::raw_json(data)?;
    }
    Ok(ExitCode::SUCCESS)
}
