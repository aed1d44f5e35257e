//! `gudgeon background`: the background process, which other commands start.

use std::{process::ExitCode, time::Duration};

use clap::Args;

use crate::{
    background::{self, Limits},
    failure::Failure,
};

#[derive(Args, Debug)]
pub struct Arguments {
    /// The time without use after which the process ends, in seconds
    #[arg(long, default_value_t = 1800)]
    idle: u64,
    /// The time for the answer to a question, in seconds
    #[arg(long, default_value_t = 900)]
    question_time: u64,
    /// The maximum number of questions that wait for answers
    #[arg(long, default_value_t = 64)]
    questions: usize,
}

pub async fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let limits = Limits {
        idle: Duration::from_secs(arguments.idle),
        question_time: Duration::from_secs(arguments.question_time),
        questions: arguments.questions,
    };
    background::run(limits).await?;
    Ok(ExitCode::SUCCESS)
}
