//! `gudgeon types`: a typed client module of a server.

use std::{
    io,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Args;
use gudgeon::{
    Client,
    error::{Error, ErrorKind},
    protocol::{Prompt, Resource, ResourceTemplate, Tool},
};

use crate::{
    connection::ConnectionArguments,
    failure::{Failure, FailureKind},
    files::{read, write},
    output,
    types::{Components, Language, MARK, generate},
};

const EXAMPLES: &str = "\
Examples:
  gudgeon types server.py --python > shelf.py
  gudgeon types https://mcp.example.com/mcp --out src/shelf.ts
  gudgeon types --python -- npx -y @modelcontextprotocol/server-everything

The module has a class with a method for each tool, resource and prompt, on top of a client of the package gudgeon. The \
same server gives the same text.";

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The server
    #[arg(value_name = "TARGET")]
    words: Vec<String>,
    /// Write Python
    #[arg(long, conflicts_with = "typescript")]
    python: bool,
    /// Write TypeScript
    #[arg(long)]
    typescript: bool,
    /// Write this file instead of standard output; its suffix names the language
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    connection: ConnectionArguments,
}

pub async fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    let language = language(&arguments)?;
    let (target, _) = arguments.connection.target(arguments.words)?;
    if let Some(path) = &arguments.out {
        check_owner(path)?;
    }
    let client = arguments.connection.connect(&target).await?;
    let components = components_of(&client).await?;
    client.close().await;
    let text = generate(&components, language);
    match &arguments.out {
        None => output::line(text.trim_end_matches('\n'))?,
        Some(path) => {
            if read::text_file(path, read::MAX_GENERATED).is_ok_and(|written| written == text) {
                output::line(format_args!("{} is up to date", path.display()))?;
            } else {
                write::whole(path, text.as_bytes()).map_err(|error| file(path, &error))?;
                output::line(format_args!("Wrote {}", path.display()))?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn language(arguments: &Arguments) -> Result<Language, Failure> {
    let suffix = arguments.out.as_ref().and_then(|path| path.extension()?.to_str());
    match (arguments.python, arguments.typescript, suffix) {
        (true, ..) | (false, false, Some("py")) => Ok(Language::Python),
        (_, true, _) | (false, false, Some("ts" | "mts" | "cts")) => Ok(Language::Typescript),
        _ => {
            Err(Failure::usage("the language is missing")
                .with_hint("give --python or --typescript"))
        }
    }
}

/// Errors if a file was not written by this command.
fn check_owner(path: &Path) -> Result<(), Failure> {
    match read::text_file(path, read::MAX_GENERATED) {
        Ok(text) if text.is_empty() || text.contains(MARK) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Ok(_) => {
            let message =
                format!("{}: the file is not one that `gudgeon types` wrote", path.display());
            Err(Failure::new(FailureKind::File, message)
                .with_hint("it was not changed; delete it, or choose another --out"))
        }
        Err(error) => Err(file(path, &error)),
    }
}

fn file(path: &Path, error: &io::Error) -> Failure {
    Failure::new(FailureKind::File, format!("{}: {error}", path.display()))
}

async fn components_of(client: &Client) -> Result<Components, Failure> {
    Ok(Components {
        server: client.server().info.clone(),
        tools: supported(client.list::<Tool>().await)?,
        resources: supported(client.list::<Resource>().await)?,
        templates: supported(client.list::<ResourceTemplate>().await)?,
        prompts: supported(client.list::<Prompt>().await)?,
    })
}

/// Returns an empty list for a server that has no such list.
fn supported<T>(list: Result<Vec<T>, Error>) -> Result<Vec<T>, Failure> {
    match list {
        Err(error) if error.kind == ErrorKind::Unsupported => Ok(Vec::new()),
        list => Ok(list?),
    }
}
