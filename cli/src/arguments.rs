//! The command line.

use clap::{Parser, Subcommand};

use crate::commands::{
    answer, auth, background, call, complete, completions, connect, dev, discover, doctor, inspect,
    install, list, listen, ping, prompt, read, record, replay, run, types, uninstall,
};

const EXAMPLES: &str = "\
Examples:
  gudgeon list http://127.0.0.1:8000/mcp
  gudgeon call server.py add a=1 b=2
  gudgeon call add a=1 b=2 -- npx -y @modelcontextprotocol/server-everything

A TARGET is a URL, a file of a server, MODULE:APP in Python, the name of a server that is configured in a host on this \
machine, or a command after `--`.";

/// Call, check, inspect and install MCP servers.
#[derive(Debug, Parser)]
#[command(name = "gudgeon", version, after_help = EXAMPLES)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// List the tools, resources and prompts of a server
    List(list::Arguments),
    /// Call a tool
    Call(call::Arguments),
    /// Read a resource
    Read(read::Arguments),
    /// Get a prompt
    Prompt(prompt::Arguments),
    /// Complete an argument of a prompt or a variable of a resource template
    Complete(complete::Arguments),
    /// Print changes and log messages of a server
    Listen(listen::Arguments),
    /// Open a page that shows a server and all that is exchanged with it
    Inspect(inspect::Arguments),
    /// Check a server against the specification
    Doctor(doctor::Arguments),
    /// Measure the time of a round trip
    Ping(ping::Arguments),
    /// Add a server to the configuration of a host, such as Claude Desktop or Cursor
    Install(install::Arguments),
    /// Remove a server from the configuration of a host
    Uninstall(uninstall::Arguments),
    /// List the servers that are configured on this machine
    Discover(discover::Arguments),
    /// Write a typed client module for a server
    Types(types::Arguments),
    /// Connect to a server and keep the connection under a name
    Connect(connect::ConnectArguments),
    /// List the named connections
    Connections(connect::ConnectionsArguments),
    /// End named connections
    Disconnect(connect::DisconnectArguments),
    /// Answer a question of a call
    Answer(answer::AnswerArguments),
    /// List the questions that wait for answers
    Questions(answer::QuestionsArguments),
    /// Sign in to servers, and manage what a sign-in stored
    Auth(auth::Arguments),
    /// Print a script by which a shell completes commands
    Completions(completions::CompletionsArguments),
    /// Keep named connections
    #[command(hide = true)]
    Background(background::Arguments),
    /// Serve a file
    Run(run::Arguments),
    /// Serve a file, and start it again when it changes
    Dev(dev::Arguments),
    /// Write the messages between a host and a server to a file
    Record(record::Arguments),
    /// Play a recorded server, or compare a server with a recorded one
    Replay(replay::Arguments),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::Arguments;

    /// The width to which clap wraps help in a wide terminal.
    const WIDTH: usize = 100;

    #[test]
    fn arguments_of_all_commands_fit_together() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn examples_fit_into_a_line_and_paragraphs_are_wrapped_by_clap() {
        let mut commands = vec![Arguments::command()];
        while let Some(command) = commands.pop() {
            commands.extend(command.get_subcommands().cloned());
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let name = command.get_name();
            assert!(help.contains("Examples:") || command.is_hide_set(), "{name} has no examples");
            let mut is_in_paragraph = false;
            for line in help.lines() {
                let is_indented = line.starts_with(' ');
                assert!(!is_indented || line.len() <= WIDTH, "{name}: {line}");
                let is_text = !line.is_empty() && !is_indented && !line.ends_with(':');
                assert!(!is_text || !is_in_paragraph, "{name}: {line}");
                is_in_paragraph = is_text;
            }
        }
    }
}
