//! The commands, one file each: its arguments, and the function that runs it.

pub mod answer;
pub mod auth;
pub mod background;
pub mod call;
pub mod complete;
pub mod discover;
pub mod doctor;
pub mod inspect;
pub mod install;
mod cimd;
pub mod completions;
pub mod connect;
pub mod dev;
pub mod list;
pub mod listen;
pub mod ping;
pub mod prompt;
pub mod read;
pub mod types;
pub mod uninstall;
pub mod record;
pub mod replay;
mod request;
pub mod run;

use std::process::ExitCode;

use crate::{arguments::Command, failure::Failure};

/// Runs a command; returns the exit code.
pub async fn run(command: Command) -> Result<ExitCode, Failure> {
    match command {
        Command::List(arguments) => Box::pin(list::run(arguments)).await,
        Command::Call(arguments) => Box::pin(call::run(arguments)).await,
        Command::Read(arguments) => Box::pin(read::run(arguments)).await,
        Command::Prompt(arguments) => Box::pin(prompt::run(arguments)).await,
        Command::Complete(arguments) => Box::pin(complete::run(arguments)).await,
        Command::Listen(arguments) => Box::pin(listen::run(arguments)).await,
        Command::Inspect(arguments) => inspect::run(arguments).await,
        Command::Doctor(arguments) => doctor::run(arguments).await,
        Command::Ping(arguments) => Box::pin(ping::run(arguments)).await,
        Command::Install(arguments) => install::run(&arguments),
        Command::Uninstall(arguments) => uninstall::run(&arguments),
        Command::Discover(arguments) => discover::run(&arguments),
        Command::Types(arguments) => types::run(arguments).await,
        Command::Connect(arguments) => connect::connect(arguments).await,
        Command::Connections(arguments) => connect::connections(arguments).await,
        Command::Disconnect(arguments) => connect::disconnect(arguments).await,
        Command::Answer(arguments) => answer::answer(arguments).await,
        Command::Questions(arguments) => answer::questions(arguments).await,
        Command::Auth(arguments) => Box::pin(auth::run(arguments)).await,
        Command::Completions(arguments) => completions::run(&arguments),
        Command::Background(arguments) => background::run(&arguments).await,
        Command::Run(arguments) => run::run(arguments).await,
        Command::Dev(arguments) => dev::run(arguments).await,
        Command::Record(arguments) => record::run(arguments).await,
        Command::Replay(arguments) => replay::run(arguments).await,
    }
}
