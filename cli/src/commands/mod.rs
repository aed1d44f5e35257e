//! The commands, one file each: its arguments, and the function that runs it.

pub mod call;
pub mod dev;
pub mod list;
pub mod ping;
pub mod record;
pub mod replay;
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
        Command::Dev(arguments) => dev::run(arguments).await,
        Command::Record(arguments) => record::run(arguments).await,
        Command::Replay(arguments) => replay::run(arguments).await,
    }
}
