//! The commands, one file each: its arguments, and the function that runs it.

pub mod call;
pub mod complete;
pub mod discover;
pub mod doctor;
pub mod inspect;
pub mod install;
pub mod list;
pub mod listen;
pub mod ping;
pub mod prompt;
pub mod read;
pub mod types;
pub mod uninstall;

use std::process::ExitCode;

use crate::{arguments::Command, failure::Failure};

/// Runs a command; returns the exit code.
pub async fn run(command: Command) -> Result<ExitCode, Failure> {
    match command {
        Command::List(arguments) => list::run(arguments).await,
        Command::Call(arguments) => call::run(arguments).await,
        Command::Read(arguments) => read::run(arguments).await,
        Command::Prompt(arguments) => prompt::run(arguments).await,
        Command::Complete(arguments) => complete::run(arguments).await,
        Command::Listen(arguments) => listen::run(arguments).await,
        Command::Inspect(arguments) => inspect::run(arguments).await,
        Command::Doctor(arguments) => doctor::run(arguments).await,
        Command::Ping(arguments) => ping::run(arguments).await,
        Command::Install(arguments) => install::run(&arguments),
        Command::Uninstall(arguments) => uninstall::run(&arguments),
        Command::Discover(arguments) => discover::run(&arguments),
        Command::Types(arguments) => types::run(arguments).await,
    }
}
