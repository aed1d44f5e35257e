//! The arguments that all commands with a target share, and the client that they describe.

use std::{ffi::OsString, time::Duration};

use clap::Args;
use gudgeon::{Client, Revision, client::ClientBuilder};

use crate::{failure::Failure, target::Target, tokens};

/// The connection to a target.
#[derive(Args, Debug)]
#[command(next_help_heading = "Connection")]
pub struct ConnectionArguments {
    /// Speak this revision of the protocol instead of the newest that the server speaks
    #[arg(long, value_name = "DATE", value_parser = revision)]
    pub revision: Option<Revision>,
    /// Send this HTTP header; may be given several times
    #[arg(long = "header", short = 'H', value_name = "NAME: VALUE", value_parser = header)]
    pub headers: Vec<(String, String)>,
    /// The longest time to wait for a response, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds)]
    pub timeout: Duration,
    /// The command of a server over stdio
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

impl ConnectionArguments {
    /// Splits positional arguments into the target, which is the command after `--` or else the first of them, and the
    /// rest.
    pub fn target(&self, mut words: Vec<String>) -> Result<(Target, Vec<String>), Failure> {
        if !self.command.is_empty() {
            return Ok((Target::Command(self.command.clone()), words));
        }
        if words.is_empty() {
            let hint = "give a URL, a file, a name, or a command after `--`; see `gudgeon --help`";
            return Err(Failure::usage("the target is missing").with_hint(hint));
        }
        let target = Target::parse(&words.remove(0))?;
        Ok((target, words))
    }

    /// Returns a client of the target that is not connected yet.
    pub fn builder(&self, target: &Target) -> Result<ClientBuilder, Failure> {
        let builder = target.builder()?;
        let stored =
            match self.headers.iter().any(|(it, _)| it.eq_ignore_ascii_case("authorization")) {
                true => None,
                false => tokens::stored_for(builder.target()),
            };
        let builder = builder.options(|it| {
            it.info.name = "gudgeon".into();
            it.info.version = env!("CARGO_PKG_VERSION").into();
            it.timeout = Some(self.timeout);
            it.headers.extend(self.headers.iter().cloned());
            it.auth = it.auth.take().or(stored);
            if let Some(revision) = self.revision {
                it.revisions = vec![revision];
            }
        });
        Ok(builder)
    }

    /// Connects to the target.
    pub async fn connect(&self, target: &Target) -> Result<Client, Failure> {
        Ok(self.builder(target)?.connect().await?)
    }
}

fn revision(text: &str) -> Result<Revision, String> {
    text.parse().map_err(|_| {
        let all = Revision::ALL.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        format!("the revisions are {all}")
    })
}

fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(':').ok_or("a header is NAME: VALUE")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().map_err(|_| "a number of seconds is expected, such as 2.5")?;
    let duration = Duration::try_from_secs_f64(seconds).map_err(|it| it.to_string())?;
    if duration.is_zero() { Err("it must be above 0".into()) } else { Ok(duration) }
}
