//! `gudgeon call`: calls a tool.

use std::{io, process::ExitCode};

use clap::Args;
use serde_json::{Map, Value};

use crate::{
    background::{self, CallParams, Keeper},
    commands::answer,
    connection::ConnectionArguments,
    failure::Failure,
    output,
};

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
    /// Print a question of the tool with its id instead of asking it; `gudgeon answer` answers it. Named connections do so
    /// where there is no terminal
    #[arg(long)]
    detach: bool,
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
    if let Some(keeper) = Keeper::of(&target, &arguments.connection, arguments.detach)? {
        let values = serde_json::value::to_raw_value(&values).map_err(io::Error::other)?;
        let call = CallParams::new(tool, Some(values), &arguments.connection);
        return answer::finish(background::client::call(keeper, call).await?, arguments.json);
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
