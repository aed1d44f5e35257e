//! `gudgeon prompt`: gets a prompt.

use std::process::ExitCode;

use clap::Args;
use gudgeon::{
    Client,
    client::Operation,
    error::Error,
    protocol::{GetPromptResult, Prompt, Role, code, json},
};

use super::{call::unknown, list::argument_line, request::RequestArguments};
use crate::{
    failure::{Failure, FailureKind},
    output,
    render::Renderer,
    style,
    values::Assignments,
};

const EXAMPLES: &str = "\
Examples:
  gudgeon prompt http://127.0.0.1:8000/mcp summarize title=Emma
  gudgeon prompt server.py review code=@main.py
  gudgeon prompt --json summarize title=Emma -- python server.py";

#[derive(Args, Debug)]
#[command(
    after_help = EXAMPLES,
    override_usage = "gudgeon prompt [OPTIONS] TARGET NAME [KEY=VALUE]...\n       gudgeon prompt [OPTIONS] NAME [KEY=VALUE]... -- COMMAND..."
)]
pub struct Arguments {
    /// The server, the prompt, and its arguments, which are strings
    #[arg(value_name = "TARGET NAME [KEY=VALUE]")]
    words: Vec<String>,
    #[command(flatten)]
    request: RequestArguments,
}

pub async fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    let request = arguments.request;
    let (target, name, words) = request.split(arguments.words, "prompt", "prompts")?;
    let given = Assignments::parse(&words)?.to_strings()?;
    let mut object = json::ObjectWriter::with_capacity(64);
    for (name, value) in &given {
        object.member(name, value);
    }
    let object = json::raw(object.finish());
    request
        .run(&target, async |client| {
            let operation =
                Operation::GetPrompt { name: name.clone(), arguments: Some(object.clone()) };
            let raw = match client.call(operation, client.options()).await {
                Ok(reply) => reply.result,
                Err(error) => return Err(explain(client, &name, &given, error).await),
            };
            if request.json {
                output::raw_json(raw.get())?;
                return Ok(ExitCode::SUCCESS);
            }
            let result: GetPromptResult = serde_json::from_str(raw.get()).map_err(|error| {
                Failure::new(
                    FailureKind::Protocol,
                    format!("the server's result is invalid: {error}"),
                )
            })?;
            let renderer = Renderer::new(&request.render, &name);
            for (number, message) in result.messages.iter().enumerate() {
                if number > 0 {
                    output::line("")?;
                }
                let role = match message.role {
                    Role::User => "user:",
                    Role::Assistant => "assistant:",
                };
                output::line(style::heading(role))?;
                renderer.block(&message.content)?;
            }
            Ok(ExitCode::SUCCESS)
        })
        .await
}

/// Finds the reason for which the server rejected the request: the prompt, or an argument.
async fn explain(client: &Client, name: &str, given: &[(String, String)], error: Error) -> Failure {
    if error.code != Some(code::INVALID_PARAMS) {
        return error.into();
    }
    let Ok(prompts) = client.list::<Prompt>().await else { return error.into() };
    let Some(prompt) = prompts.iter().find(|prompt| prompt.name == name) else {
        return unknown("prompt", name, prompts.iter().map(|prompt| prompt.name.as_str()));
    };
    let is_given = |name: &str| given.iter().any(|pair| pair.0 == name);
    let arguments = prompt.arguments.as_deref().unwrap_or_default();
    let missing = arguments
        .iter()
        .find(|argument| argument.required == Some(true) && !is_given(&argument.name));
    if let Some(missing) = missing {
        let message = format!("prompt {name:?}: missing argument '{}'", missing.name);
        let hint = format!("the server says: {}", argument_line(missing));
        return Failure::usage(message).with_hint(hint);
    }
    error.into()
}
