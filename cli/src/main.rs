//! The `gudgeon` command: calls, checks, inspects and installs MCP servers.

#![forbid(unsafe_code)]
#![allow(unreachable_pub, reason = "a program has no users of its modules")]

mod arguments;
#[cfg_attr(any(not(unix), no_unix_sockets), path = "background/absent.rs")]
mod background;
mod browser;
mod commands;
mod connection;
mod dev;
mod doctor;
mod escape;
mod failure;
mod files;
mod frames;
mod hosts;
mod inspect;
mod interaction;
mod json_text;
mod log_format;
mod notices;
mod output;
mod render;
mod replay;
mod session;
mod style;
mod target;
mod tokens;
mod transcript;
mod types;
mod values;
mod warnings;
mod yes_or_no;

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
