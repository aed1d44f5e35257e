//! The command line.

use clap::{Parser, Subcommand};

use crate::commands::{call, dev, list, ping, record, replay, run};

const EXAMPLES: &str = "\
Examples:
  gudgeon list http://127.0.0.1:8000/mcp
  gudgeon call server.py add a=1 b=2
  gudgeon call add a=1 b=2 -- npx -y @modelcontextprotocol/server-everything

A TARGET is a URL, a file of a server, MODULE:APP in Python, the name of a server that is configured in a host on this
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
    /// Measure the time of a round trip
    Ping(ping::Arguments),
    /// Serve a file
    Run(run::Arguments),
    /// Serve a file, and start it again when it changes
    Dev(dev::Arguments),
    /// Write the messages between a host and a server to a file
    Record(record::Arguments),
    /// Play a recorded server, or compare a server with a recorded one
    Replay(replay::Arguments),
}
