//! `gudgeon complete`: completes an argument of a prompt, or a variable of a resource template.

use std::process::ExitCode;

use clap::Args;
use gudgeon::protocol::CompletionTarget;
use serde_json::{Map, Value};

use crate::{
    connection::ConnectionArguments, failure::Failure, interaction::InteractionArguments, output,
    session, values::Assignments,
};

const EXAMPLES: &str = "\
REF is the name of a prompt, or a URI template such as shelf://books/{id}.

Examples:
  gudgeon complete http://127.0.0.1:8000/mcp summarize title Em
  gudgeon complete server.py 'shelf://books/{author}/{title}' title '' author=Austen";

#[derive(Args, Debug)]
#[command(
    after_help = EXAMPLES,
    override_usage = "gudgeon complete [OPTIONS] TARGET REF ARGUMENT [VALUE] [KEY=VALUE]...\n       gudgeon complete [OPTIONS] REF ARGUMENT [VALUE] [KEY=VALUE]... -- COMMAND..."
)]
pub struct Arguments {
    /// The server, the prompt or resource template, the argument to complete, its beginning, and the values of other
    /// arguments
    #[arg(value_name = "TARGET REF ARGUMENT VALUE [KEY=VALUE]")]
    words: Vec<String>,
    /// Print JSON: the completion as the protocol defines it
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connection: ConnectionArguments,
    #[command(flatten)]
    interaction: InteractionArguments,
}

pub async fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    let (target, words) = arguments.connection.target(arguments.words)?;
    let [reference, argument, words @ ..] = &words[..] else {
        return Err(Failure::usage("a prompt or resource template and its argument are missing")
            .with_hint("see `gudgeon complete --help`"));
    };
    let (value, words) = words.split_first().map_or(("", words), |pair| (pair.0.as_str(), pair.1));
    let given = Assignments::parse(words)?.to_strings()?;
    let given: Map<_, _> =
        given.into_iter().map(|(name, text)| (name, Value::from(text))).collect();
    let reference = match reference.contains("://") || reference.contains('{') {
        true => CompletionTarget::Resource(reference.clone()),
        false => CompletionTarget::Prompt(reference.clone()),
    };
    let interaction = arguments.interaction.read()?;
    session::run(&arguments.connection, &interaction, &target, async |client| {
        let given = (!given.is_empty()).then_some(&given);
        let completion = client.complete(reference.clone(), argument, value, given).await?;
        if arguments.json {
            output::json(&completion)?;
            return Ok(ExitCode::SUCCESS);
        }
        for value in &completion.values {
            output::text(value)?;
        }
        if completion.has_more == Some(true) {
            let more = match completion.total {
                Some(total) => format!("{} of {total} values", completion.values.len()),
                None => "the server has more values".to_owned(),
            };
            interaction.notices.line(&format!("{more}; a longer beginning finds the others"));
        }
        Ok(ExitCode::SUCCESS)
    })
    .await
}
