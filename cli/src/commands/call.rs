//! `gudgeon call`: calls a tool.

use std::process::ExitCode;

use clap::Args;
use serde_json::{Map, Value};

use crate::{connection::ConnectionArguments, failure::Failure, output};

const EXAMPLES: &str = "\
Examples:
  gudgeon call http://127.0.0.1:8000/mcp add a:=1 b:=2
  gudgeon call server.py greet name=Ada
  gudgeon call greet name=Ada -- python server.py";

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES, override_usage = "gudgeon call [OPTIONS] TARGET TOOL [KEY=VALUE | KEY:=JSON]...\n       gudgeon call [OPTIONS] TOOL [KEY=VALUE | KEY:=JSON]... -- COMMAND...")]
pub struct Arguments {
    /// The server, the tool, and its arguments
    #[arg(value_name = "TARGET TOOL [KEY=VALUE]")]
    words: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connection: ConnectionArguments,
}

pub async fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    let (target, words) = arguments.connection.target(arguments.words)?;
    let (tool, words) = words.split_first().ok_or_else(|| Failure::usage("the tool is missing"))?;
    let mut values = Map::new();
    for word in words {
        let (name, value) = value(word)?;
        values.insert(name, value);
    }
    let client = arguments.connection.connect(&target).await?;
    let result = client.call_tool(tool, Value::Object(values)).await?;
    if arguments.json {
        output::json(&*result)?;
    } else {
        output::line(result.text())?;
    }
    client.close().await;
    Ok(ExitCode::SUCCESS)
}

fn value(word: &str) -> Result<(String, Value), Failure> {
    if let Some((name, json)) = word.split_once(":=") {
        let value = serde_json::from_str(json).map_err(|it| {
            Failure::usage(format!("the argument {name:?} is not valid JSON: {it}"))
        })?;
        return Ok((name.to_owned(), value));
    }
    let (name, text) = word.split_once('=').ok_or_else(|| {
        Failure::usage(format!("{word:?} is no argument: KEY=VALUE or KEY:=JSON"))
    })?;
    Ok((name.to_owned(), Value::String(text.to_owned())))
}
