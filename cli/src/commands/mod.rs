//! The commands, one file each: its arguments, and the function that runs it.

pub mod call;
pub mod list;
pub mod ping;
pub mod record;
pub mod run;

use std::process::ExitCode;

use crate::{arguments::Command, failure::Failure};

/// Runs a command; returns the exit code.
pub async fn run(command: Command) -> Result<ExitCode, Failure> {
    match command {
        Command::List(arguments) => list::run(arguments).await,
        Command::Call(arguments) => call::run(arguments).await,
        Command::Ping(arguments) => ping::run(arguments).await,
        Command::Run(arguments) => run::run(arguments).await,
        Command::Record(arguments) => record::run(arguments).await,
    }
}
