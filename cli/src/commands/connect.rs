//! `gudgeon connect`, `connections` and `disconnect`: named connections, kept by a background process.

use std::process::ExitCode;

use clap::Args;

use crate::{
    background::{self, ConnectionState, Saved, check_name},
    connection::ConnectionArguments,
    escape,
    failure::Failure,
    interaction::roots,
    output,
};

const EXAMPLES: &str = "\
Examples:
  gudgeon connect shelf https://shelf.example.com/mcp
  gudgeon connect browser -- npx -y @playwright/mcp
  gudgeon call shelf add a=1 b=2

The connection, and the server's state with it, lasts from one command to the next. It is closed after half an hour without \
use; the next command that names it connects again. NAME may then stand in the place of a TARGET in every command.";

const LIST_EXAMPLES: &str = "\
Examples:
  gudgeon connections
  gudgeon connections --json";

const DISCONNECT_EXAMPLES: &str = "\
Examples:
  gudgeon disconnect shelf
  gudgeon disconnect --all";

#[derive(Args, Debug)]
#[command(
    after_help = EXAMPLES,
    override_usage = "gudgeon connect [OPTIONS] NAME TARGET\n       gudgeon connect [OPTIONS] NAME -- COMMAND..."
)]
pub struct ConnectArguments {
    /// The name, and the server
    #[arg(value_name = "NAME TARGET")]
    words: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Tell the server a folder that it may use, as a path or file:// URI; may be given several times
    #[arg(long = "root", value_name = "FOLDER")]
    roots: Vec<String>,
    #[command(flatten)]
    connection: ConnectionArguments,
}

#[derive(Args, Debug)]
#[command(after_help = LIST_EXAMPLES)]
pub struct ConnectionsArguments {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args, Debug)]
#[command(after_help = DISCONNECT_EXAMPLES)]
pub struct DisconnectArguments {
    /// The connections to end
    #[arg(value_name = "NAME", required_unless_present = "all")]
    names: Vec<String>,
    /// End all connections
    #[arg(long, conflicts_with = "names")]
    all: bool,
}

pub async fn connect(arguments: ConnectArguments) -> Result<ExitCode, Failure> {
    let mut words = arguments.words;
    if words.is_empty() {
        let hint = "write `gudgeon connect NAME TARGET`";
        return Err(Failure::usage("the name is missing").with_hint(hint));
    }
    let name = words.remove(0);
    check_name(&name)?;
    let word = words.first().filter(|_| arguments.connection.command.is_empty()).cloned();
    let (target, rest) = arguments.connection.target(words)?;
    if let Some(word) = rest.first() {
        return Err(Failure::usage(format!("unexpected argument {word:?}")));
    }
    let roots =
        arguments.roots.iter().map(|folder| roots::uri(folder)).collect::<Result<_, _>>()?;
    let saved = Saved::new(&target, word.as_deref(), &arguments.connection, roots)?;
    let state = background::client::connect(&name, saved).await?;
    match arguments.json {
        true => output::json(&state)?,
        false => output::line(described(&state))?,
    }
    Ok(ExitCode::SUCCESS)
}

pub async fn connections(arguments: ConnectionsArguments) -> Result<ExitCode, Failure> {
    let states = background::client::connections().await?;
    if arguments.json {
        output::json(&serde_json::json!({ "connections": states }))?;
        return Ok(ExitCode::SUCCESS);
    }
    for state in &states {
        output::line(described(state))?;
    }
    Ok(ExitCode::SUCCESS)
}

pub async fn disconnect(arguments: DisconnectArguments) -> Result<ExitCode, Failure> {
    let names = match arguments.all {
        false => arguments.names,
        true => background::client::connections()
            .await?
            .into_iter()
            .map(|connection| connection.name)
            .collect(),
    };
    for name in names {
        background::client::disconnect(&name).await?;
    }
    Ok(ExitCode::SUCCESS)
}

fn described(state: &ConnectionState) -> String {
    let ConnectionState { name, target, server, .. } = state;
    let text = match server {
        Some(server) => {
            let (who, revision) = (escape::server(&server.name, &server.version), &server.revision);
            format!("{name}: {target} ({who}, {revision})")
        }
        None => format!("{name}: {target} (not connected)"),
    };
    escape::one_line(&text).into_owned()
}
