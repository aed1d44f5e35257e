//! `gudgeon list`: the tools, resources, resource templates and prompts of a server.

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use gudgeon::{
    Client,
    client::Operation,
    error::ErrorKind,
    peer::ListKind,
    protocol::{Prompt, PromptArgument, Raw, Resource, ResourceTemplate, Tool, code, json},
};
use serde_json::Value;

use crate::{
    connection::ConnectionArguments,
    escape,
    failure::Failure,
    interaction::InteractionArguments,
    output,
    render::{self, table},
    session, style,
    values::description,
};

const EXAMPLES: &str = "\
Examples:
  gudgeon list http://127.0.0.1:8000/mcp
  gudgeon list server.py tools --long
  gudgeon list --json resources -- npx -y @modelcontextprotocol/server-everything";

#[derive(Args, Debug)]
#[command(
    after_help = EXAMPLES,
    override_usage = "gudgeon list [OPTIONS] TARGET [KIND]...\n       gudgeon list [OPTIONS] [KIND]... -- COMMAND..."
)]
pub struct Arguments {
    /// The server, and the lists to show: tools, resources, templates, prompts. By default all that the server has
    #[arg(value_name = "TARGET [KIND]")]
    words: Vec<String>,
    /// Print JSON: an object with an array for each kind
    #[arg(long)]
    json: bool,
    /// Show whole descriptions, and arguments with their types
    #[arg(long, short)]
    long: bool,
    #[command(flatten)]
    connection: ConnectionArguments,
    #[command(flatten)]
    interaction: InteractionArguments,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum Kind {
    Tools,
    Resources,
    Templates,
    Prompts,
}

/// An entry of a list, for people.
struct Entry {
    name: String,
    description: String,
    /// The lines below it with `--long`.
    details: Vec<String>,
}

pub async fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    let (target, words) = arguments.connection.target(arguments.words)?;
    let asked = words.iter().map(|word| Kind::parse(word)).collect::<Result<Vec<_>, _>>()?;
    let interaction = arguments.interaction.read()?;
    let lists = session::run(&arguments.connection, &interaction, &target, async |client| {
        let mut lists = Vec::new();
        for kind in if asked.is_empty() { Kind::declared(client) } else { asked.clone() } {
            if let Some(items) = fetch(client, kind, !asked.is_empty()).await? {
                lists.push((kind, items));
            }
        }
        Ok(lists)
    });
    let lists = lists.await?;
    if arguments.json {
        let mut object = json::ObjectWriter::with_capacity(1024);
        for (kind, items) in &lists {
            object.raw(kind.member(), items.get());
        }
        output::raw_json(&object.finish())?;
        return Ok(ExitCode::SUCCESS);
    }
    let has_headings = lists.len() > 1;
    let mut is_first = true;
    for (kind, items) in lists {
        let entries = kind.entries(&items)?;
        if entries.is_empty() {
            if !asked.is_empty() {
                interaction.notices.line(&format!("the server has no {}", kind.noun()));
            }
            continue;
        }
        if has_headings {
            if !is_first {
                output::line("")?;
            }
            output::line(style::heading(kind.heading()))?;
        }
        is_first = false;
        print(&entries, arguments.long)?;
    }
    if is_first && asked.is_empty() {
        interaction.notices.line("the server has no tools, resources or prompts");
    }
    Ok(ExitCode::SUCCESS)
}

/// Fetches a list as a JSON array; `None` if the server lacks a list that was not asked for by name.
async fn fetch(client: &Client, kind: Kind, is_asked: bool) -> Result<Option<Raw>, Failure> {
    let list = match kind {
        Kind::Tools => ListKind::Tools,
        Kind::Resources => ListKind::Resources,
        Kind::Templates => ListKind::ResourceTemplates,
        Kind::Prompts => ListKind::Prompts,
    };
    match client.call(Operation::List(list), client.options()).await {
        Ok(reply) => Ok(Some(reply.result)),
        // A server that declares resources need not have templates.
        Err(error)
            if !is_asked
                && (error.code == Some(code::METHOD_NOT_FOUND)
                    || error.kind == ErrorKind::Unsupported) =>
        {
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

fn print(entries: &[Entry], is_long: bool) -> Result<(), Failure> {
    let width = output::columns();
    if !is_long {
        let row = |entry: &Entry| (entry.name.clone(), first_sentence(&entry.description));
        let rows: Vec<_> = entries.iter().map(row).collect();
        return table::lines(&rows, width).into_iter().try_for_each(output::line);
    }
    for (number, entry) in entries.iter().enumerate() {
        if number > 0 {
            output::line("")?;
        }
        let names = match width {
            Some(width) => table::wrap(&entry.name, width),
            None => vec![entry.name.clone()],
        };
        names.iter().try_for_each(|name| output::line(style::heading(name)))?;
        let texts = entry.description.lines().chain(entry.details.iter().map(String::as_str));
        for text in texts {
            let indent = text.len() - text.trim_start().len();
            let indent = " ".repeat(indent + 2);
            match width {
                None => output::line(format!("{indent}{}", text.trim()).trim_end())?,
                Some(width) => {
                    let room = width.saturating_sub(indent.len()).max(8);
                    for line in table::wrap(text, room) {
                        output::line(format_args!("{indent}{line}"))?;
                    }
                }
            }
        }
    }
    Ok(())
}

impl Kind {
    fn parse(word: &str) -> Result<Self, Failure> {
        Self::from_str(word, true).map_err(|_| {
            Failure::usage(format!("unknown list {word:?}"))
                .with_hint("the lists are tools, resources, templates and prompts")
        })
    }

    /// Returns the lists that the server declares.
    fn declared(client: &Client) -> Vec<Self> {
        let declared = session::declared(client);
        [
            (Self::Tools, declared.tools.is_some()),
            (Self::Resources, declared.resources.is_some()),
            (Self::Templates, declared.resources.is_some()),
            (Self::Prompts, declared.prompts.is_some()),
        ]
        .into_iter()
        .filter_map(|(kind, is_declared)| is_declared.then_some(kind))
        .collect()
    }

    /// Returns the list's name in JSON, which is that of the protocol.
    fn member(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
            Self::Prompts => "prompts",
        }
    }

    fn heading(self) -> &'static str {
        match self {
            Self::Tools => "Tools",
            Self::Resources => "Resources",
            Self::Templates => "Resource templates",
            Self::Prompts => "Prompts",
        }
    }

    fn noun(self) -> String {
        self.heading().to_lowercase()
    }

    fn entries(self, items: &Raw) -> Result<Vec<Entry>, Failure> {
        let items = items.get();
        let entries = match self {
            Self::Tools => read(items, tool_entry),
            Self::Resources => read(items, resource_entry),
            Self::Templates => read(items, template_entry),
            Self::Prompts => read(items, prompt_entry),
        };
        entries.map_err(|error| {
            let message = format!("the server's list of {} is invalid: {error}", self.noun());
            Failure::new(crate::failure::FailureKind::Protocol, message)
                .with_hint("--json shows it")
        })
    }
}

fn read<T: for<'de> serde::Deserialize<'de>>(
    items: &str,
    entry: impl Fn(T) -> Entry,
) -> serde_json::Result<Vec<Entry>> {
    Ok(serde_json::from_str::<Vec<T>>(items)?.into_iter().map(entry).collect())
}

fn tool_entry(tool: Tool) -> Entry {
    let mut details = Vec::new();
    let hints = tool.annotations.unwrap_or_default();
    let hints = [
        (hints.read_only_hint, "read-only"),
        (hints.destructive_hint, "destructive"),
        (hints.idempotent_hint, "idempotent"),
        (hints.open_world_hint, "open world"),
    ];
    let hints: Vec<_> = hints
        .iter()
        .filter_map(|(is_set, word)| (*is_set == Some(true)).then_some(*word))
        .collect();
    if !hints.is_empty() {
        details.push(format!("Marked as: {}", hints.join(", ")));
    }
    details.extend(section("Arguments:", &tool.input_schema));
    if let Some(schema) = &tool.output_schema {
        details.extend(section("Result:", schema));
    }
    Entry::new(&tool.name, tool.title.as_deref(), tool.description.as_deref(), &details)
}

fn section(heading: &str, schema: &Raw) -> Vec<String> {
    let schema: Value = serde_json::from_str(schema.get()).unwrap_or_default();
    let lines = description::lines(&schema);
    if lines.is_empty() {
        return Vec::new();
    }
    let heading = std::iter::once(heading.to_owned());
    heading.chain(lines.into_iter().map(|line| format!("  {line}"))).collect()
}

fn resource_entry(resource: Resource) -> Entry {
    let mut details = vec![format!("Name: {}", resource.name)];
    details.extend(resource.mime_type.map(|mime_type| format!("Type: {mime_type}")));
    let size = resource.size.and_then(|size| usize::try_from(size).ok());
    details.extend(size.map(|size| format!("Size: {}", render::size(size))));
    let description = resource.description.or_else(|| Some(resource.name.clone()));
    Entry::new(&resource.uri, resource.title.as_deref(), description.as_deref(), &details)
}

fn template_entry(template: ResourceTemplate) -> Entry {
    let mut details = vec![format!("Name: {}", template.name)];
    details.extend(template.mime_type.map(|mime_type| format!("Type: {mime_type}")));
    let description = template.description.or_else(|| Some(template.name.clone()));
    Entry::new(&template.uri_template, template.title.as_deref(), description.as_deref(), &details)
}

fn prompt_entry(prompt: Prompt) -> Entry {
    let arguments = prompt.arguments.unwrap_or_default();
    let mut details = Vec::new();
    if !arguments.is_empty() {
        details.push("Arguments:".to_owned());
        details.extend(arguments.iter().map(|argument| format!("  {}", argument_line(argument))));
    }
    Entry::new(&prompt.name, prompt.title.as_deref(), prompt.description.as_deref(), &details)
}

/// Describes an argument of a prompt.
pub fn argument_line(argument: &PromptArgument) -> String {
    let need = if argument.required == Some(true) { "required" } else { "optional" };
    let text = argument.description.as_deref().unwrap_or_default();
    format!("{}  {need}  {text}", argument.name).trim_end().to_owned()
}

impl Entry {
    fn new(name: &str, title: Option<&str>, description: Option<&str>, details: &[String]) -> Self {
        Self {
            name: escape::one_line(name).into_owned(),
            description: escape::lines(description.or(title).unwrap_or_default().trim()).into(),
            details: details.iter().map(|detail| escape::one_line(detail).into_owned()).collect(),
        }
    }
}

/// Returns the first sentence or paragraph of a description, on one line.
fn first_sentence(description: &str) -> String {
    let paragraph = description.split("\n\n").next().unwrap_or_default();
    let line = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.find(". ") {
        Some(end) => line[..=end].to_owned(),
        None => line,
    }
}
