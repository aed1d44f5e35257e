//! The `gudgeon` command: calls, checks, inspects and installs MCP servers.

#![forbid(unsafe_code)]
#![allow(unreachable_pub, reason = "a program has no users of its modules")]

mod arguments;
mod commands;
mod connection;
mod dev;
mod failure;
mod frames;
mod output;
mod replay;
mod target;
mod transcript;

use std::process::ExitCode;

use clap::Parser as _;

use self::arguments::Arguments;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let outcome = match runtime {
        Ok(runtime) => runtime.block_on(commands::run(arguments.command)),
        Err(error) => Err(error.into()),
    };
    match outcome {
        Ok(code) => code,
        Err(failure) => failure.report(),
    }
}
