//! The arguments of commands that send one request for something that is named, and print its result.

use clap::Args;
use gudgeon::Client;

use crate::{
    connection::ConnectionArguments, failure::Failure, interaction::InteractionArguments,
    render::RenderArguments, session, target::Target,
};

#[derive(Args, Debug)]
pub struct RequestArguments {
    /// Print the result as JSON, as the protocol defines it
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub render: RenderArguments,
    #[command(flatten)]
    pub connection: ConnectionArguments,
    #[command(flatten)]
    pub interaction: InteractionArguments,
}

impl RequestArguments {
    /// Splits positional arguments into the target, the name, and the rest. Errors if there is no name; `noun` is the word
    /// for it, and `list` that for the things with such names.
    pub fn split(
        &self,
        words: Vec<String>,
        noun: &str,
        list: &str,
    ) -> Result<(Target, String, Vec<String>), Failure> {
        let (target, mut words) = self.connection.target(words)?;
        if words.is_empty() {
            let hint = format!("`gudgeon list` shows a server's {list}");
            return Err(Failure::usage(format!("the {noun} is missing")).with_hint(hint));
        }
        let name = words.remove(0);
        Ok((target, name, words))
    }

    /// Connects to the target and runs `work` with the client.
    pub async fn run<T>(
        &self,
        target: &Target,
        work: impl AsyncFnOnce(&Client) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        session::run(&self.connection, &self.interaction.read()?, target, work).await
    }
}
