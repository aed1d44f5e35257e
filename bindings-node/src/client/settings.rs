//! The settings of a client, read from JSON.

use std::time::Duration;

use gudgeon::{
    client::{Client, ClientBuilder, Target},
    error::Error,
    protocol::{Implementation, Root},
    transport::Command,
};
use serde::{Deserialize, de::DeserializeOwned};

/// The settings from JavaScript.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(clippy::struct_excessive_bools, reason = "each is a member of the JSON by itself")]
pub(super) struct Settings {
    revisions: Option<Vec<String>>,
    timeout_ms: Option<f64>,
    max_timeout_ms: Option<f64>,
    client_info: Option<Implementation>,
    max_message: Option<usize>,
    max_rounds: Option<usize>,
    #[serde(default)]
    validate: bool,
    /// The names of the registered callbacks.
    #[serde(default)]
    pub(super) logs: bool,
    #[serde(default)]
    pub(super) hears_lists: bool,
    #[serde(default)]
    pub(super) elicits: bool,
    #[serde(default)]
    pub(super) samples: bool,
    #[serde(default)]
    pub(super) asks_roots: bool,
    roots: Option<Vec<Root>>,
}

#[derive(Deserialize)]
struct CommandLine {
    command: String,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: Vec<(String, String)>,
    cwd: Option<String>,
}

impl Settings {
    pub(super) fn parse(json: &str) -> Result<Self, Error> {
        parse("the client's options", json)
    }

    pub(super) fn apply(&mut self, target: Target) -> Result<ClientBuilder, Error> {
        let mut builder = Client::builder(target).validate(self.validate);
        if let Some(revisions) = &self.revisions {
            builder = builder.speaks(revisions)?;
        }
        if let Some(timeout) = self.timeout_ms {
            builder = builder.timeout(duration(timeout));
        }
        if let Some(timeout) = self.max_timeout_ms {
            builder = builder.max_timeout(duration(timeout));
        }
        if let Some(info) = self.client_info.take() {
            builder = builder.client_info(info);
        }
        if let Some(bytes) = self.max_message {
            builder = builder.max_message(bytes);
        }
        if let Some(rounds) = self.max_rounds {
            builder = builder.max_rounds(rounds);
        }
        if let Some(roots) = self.roots.take() {
            builder = builder.roots(roots);
        }
        Ok(builder)
    }
}

/// Header names and values.
pub(super) fn headers(json: &str) -> Result<Vec<(String, String)>, Error> {
    parse("the headers", json)
}

pub(super) fn command(json: &str) -> Result<Target, Error> {
    let CommandLine { command, args, env, cwd } = parse("the command", json)?;
    let command = env
        .into_iter()
        .fold(Command::new(command).args(args), |it, (name, value)| it.env(name, value));
    Ok(match cwd {
        Some(folder) => command.cwd(folder),
        None => command,
    }
    .into())
}

pub(super) fn roots(json: &str) -> Result<Vec<Root>, Error> {
    parse("the roots", json)
}

/// Negative durations and those beyond the clock's range mean no limit.
pub(super) fn duration(milliseconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(milliseconds / 1000.0).ok()
}

fn parse<T: DeserializeOwned>(what: &str, json: &str) -> Result<T, Error> {
    serde_json::from_str(json).map_err(|it| Error::misuse(format!("{what} can't be read: {it}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_shows_as_it_was_given() {
        let target = command(r#"{"command":"npx","args":["-y","a b"],"env":[["A","1"]]}"#).unwrap();
        assert_eq!(target.to_string(), r#"npx -y "a b""#);
        assert!(command("{}").is_err());
    }

    #[test]
    fn below_zero_is_for_ever() {
        assert_eq!(duration(-1.0), None);
        assert_eq!(duration(1500.0), Some(Duration::from_millis(1500)));
    }
}
