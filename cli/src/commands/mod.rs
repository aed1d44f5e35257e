//! The commands, one file each: its arguments, and the function that runs it.

pub mod answer;
pub mod auth;
pub mod background;
pub mod call;
mod cimd;
pub mod completions;
pub mod connect;
pub mod list;
pub mod ping;

use std::process::ExitCode;

use crate::{arguments::Command, failure::Failure};

/// Runs a command; returns the exit code.
pub async fn run(command: Command) -> Result<ExitCode, Failure> {
    match command {
        Command::List(arguments) => list::run(arguments).await,
        Command::Call(arguments) => call::run(arguments).await,
        Command::Ping(arguments) => ping::run(arguments).await,
        Command::Connect(arguments) => connect::connect(arguments).await,
        Command::Connections(arguments) => connect::connections(arguments).await,
        Command::Disconnect(arguments) => connect::disconnect(arguments).await,
        Command::Answer(arguments) => answer::answer(arguments).await,
        Command::Questions(arguments) => answer::questions(arguments).await,
        Command::Auth(arguments) => auth::run(arguments).await,
        Command::Completions(arguments) => completions::run(&arguments),
        Command::Background(arguments) => background::run(&arguments).await,
    }
}
