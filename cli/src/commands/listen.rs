//! `gudgeon listen`: prints changes and log messages of a server.

use std::{pin::pin, process::ExitCode};

use clap::Args;
use gudgeon::{
    Client,
    client::{Change, Event, ListKind},
    protocol::{MethodName, Raw, ServerCapabilities},
};
use serde_json::json;
use tokio::sync::mpsc;

use crate::{
    connection::ConnectionArguments,
    failure::{Failure, FailureKind},
    interaction::{self, InteractionArguments},
    output, session,
};

const EXAMPLES: &str = "\
Ctrl-C ends it.

Examples:
  gudgeon listen http://127.0.0.1:8000/mcp
  gudgeon listen server.py --tools --json
  gudgeon listen server.py shelf://about";

#[derive(Args, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "options of the command line")]
#[command(
    after_help = EXAMPLES,
    override_usage = "gudgeon listen [OPTIONS] TARGET [URI]...\n       gudgeon listen [OPTIONS] [URI]... -- COMMAND..."
)]
pub struct Arguments {
    /// The server, and the resources whose updates to print. Without options and URIs, changes of all lists that the
    /// server announces are printed
    #[arg(value_name = "TARGET [URI]")]
    words: Vec<String>,
    /// Print changes of the list of tools
    #[arg(long)]
    tools: bool,
    /// Print changes of the list of prompts
    #[arg(long)]
    prompts: bool,
    /// Print changes of the list of resources
    #[arg(long)]
    resources: bool,
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connection: ConnectionArguments,
    #[command(flatten)]
    interaction: InteractionArguments,
}

pub async fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    let (target, uris) = arguments.connection.target(arguments.words)?;
    let asked = [
        (ListKind::Tools, arguments.tools),
        (ListKind::Prompts, arguments.prompts),
        (ListKind::Resources, arguments.resources),
    ];
    let lists = asked.into_iter().filter(|list| list.1).map(|list| Change::List(list.0));
    let asked: Vec<_> = lists.chain(uris.into_iter().map(Change::Updated)).collect();
    let interaction = arguments.interaction.read()?;
    let (events, mut received) = mpsc::unbounded_channel();
    let is_json = arguments.json;
    let connection = &arguments.connection;
    let outcome = session::run_with(
        connection,
        &interaction,
        &target,
        |builder| {
            builder.on_event(move |event| {
                // After the end nothing is printed.
                let _ = events.send(event);
            })
        },
        async |client| {
            let changes = if asked.is_empty() { announced(client) } else { asked.clone() };
            if changes.is_empty() && session::declared(client).logging.is_none() {
                let message = "the server announces neither changes nor log messages";
                return Err(Failure::new(FailureKind::Unsupported, message));
            }
            let mut subscription = match changes.is_empty() {
                true => None,
                false => Some(client.subscribe(changes).await?),
            };
            interaction.notices.line("listening; Ctrl-C ends it");
            loop {
                let next = pin!(async {
                    match &mut subscription {
                        Some(subscription) => subscription.next().await,
                        None => std::future::pending().await,
                    }
                });
                tokio::select! {
                    change = next => match change {
                        Some(change) => print_change(&change?, is_json)?,
                        None => return Ok(ExitCode::SUCCESS),
                    },
                    Some(event) = received.recv() => print_event(&event, is_json)?,
                }
            }
        },
    )
    .await;
    match outcome {
        // An interrupt is the way in which this command ends.
        Err(failure) if failure.kind() == FailureKind::Cancelled => Ok(ExitCode::SUCCESS),
        outcome => outcome,
    }
}

/// Returns the changes of lists that the server announces.
fn announced(client: &Client) -> Vec<Change> {
    let ServerCapabilities { tools, prompts, resources, .. } = session::declared(client);
    let tools = tools.is_some_and(|tools| tools.list_changed == Some(true));
    let prompts = prompts.is_some_and(|prompts| prompts.list_changed == Some(true));
    let resources = resources.is_some_and(|resources| resources.list_changed == Some(true));
    [(ListKind::Tools, tools), (ListKind::Prompts, prompts), (ListKind::Resources, resources)]
        .into_iter()
        .filter_map(|(list, is_announced)| is_announced.then_some(Change::List(list)))
        .collect()
}

fn print_change(change: &Change, is_json: bool) -> Result<(), Failure> {
    match (change, is_json) {
        (Change::List(list), true) => {
            output::json_line(&json!({ "event": "listChanged", "list": name(*list) }))
        }
        (Change::List(list), false) => output::line(format_args!("{} changed", name(*list))),
        (Change::Updated(uri), true) => {
            output::json_line(&json!({ "event": "resourceUpdated", "uri": uri }))
        }
        (Change::Updated(uri), false) => output::text(&format!("{uri} was updated")),
    }
}

/// Prints what belongs to no subscription. Changes are printed by their subscription.
fn print_event(event: &Event, is_json: bool) -> Result<(), Failure> {
    let (json, text) = match event {
        Event::Log(message) => (
            json!({
                "event": "log",
                "level": message.level,
                "logger": message.logger,
                "data": message.data,
            }),
            interaction::log_line(message),
        ),
        Event::Notified { method, params } => notification(method, params),
        Event::UrlDone(id) => {
            (json!({ "event": "urlDone", "id": id }), format!("the page of question {id} is done"))
        }
        Event::Reconnected { reason, .. } => (
            json!({ "event": "reconnected", "reason": reason.message }),
            format!("connected again after: {}", reason.message),
        ),
        _ => return Ok(()),
    };
    if is_json { output::json_line(&json) } else { output::text(&text) }
}

fn notification(method: &MethodName, params: &Raw) -> (serde_json::Value, String) {
    let json = json!({ "event": "notification", "method": method.as_ref(), "params": params });
    (json, format!("{} {}", method.as_ref(), params.get()))
}

fn name(list: ListKind) -> &'static str {
    match list {
        ListKind::Tools => "tools",
        ListKind::Prompts => "prompts",
        ListKind::Resources => "resources",
    }
}
