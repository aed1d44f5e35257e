//! The settings of the connection, as the page shows and changes them.
//!
//! Secrets are sent to the program only: where the page shows a stored one, its value is null, and null keeps it.

use std::time::Duration;

use gudgeon::{
    Client, Revision,
    client::{
        self, ClientBuilder,
        auth::{ClientCredentials, OAuth},
    },
    error::Error,
    protocol::Root,
    transport::Command,
};
use serde::{Deserialize, Serialize};

use crate::{connection::ConnectionArguments, failure::Failure, target::Target};

/// The maximum size of a message in bytes.
const MAX_MESSAGE: usize = 64 * 1024 * 1024;

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Settings {
    pub transport: Transport,
    /// The target of the command line, as text.
    pub start: String,
    pub url: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    pub folder: String,
    pub environment: Vec<Setting>,
    pub headers: Vec<Setting>,
    /// Empty for the newest that the server speaks.
    pub revision: String,
    /// In seconds.
    pub timeout: f64,
    pub auth: AuthSettings,
    pub answers: Answers,
    pub roots: Vec<Root>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Transport {
    /// The target of the command line.
    Start,
    #[default]
    Url,
    Command,
}

/// A header or an environment variable.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Setting {
    pub name: String,
    pub value: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct AuthSettings {
    pub kind: AuthKind,
    pub token: Option<String>,
    pub client_id: String,
    pub client_secret: Option<String>,
    /// Separated by spaces.
    pub scopes: String,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum AuthKind {
    #[default]
    None,
    Token,
    OAuth,
    ClientCredentials,
}

/// The questions that the page answers: the capabilities that are declared to the server.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Answers {
    pub elicitation: bool,
    pub sampling: bool,
    pub roots: bool,
}

impl Default for Answers {
    fn default() -> Self {
        Self { elicitation: true, sampling: true, roots: true }
    }
}

impl Settings {
    /// Returns the settings that the command line describes.
    pub fn new(target: Option<&Target>, connection: &ConnectionArguments) -> Self {
        let headers = connection
            .headers
            .iter()
            .map(|(name, value)| Setting { name: name.clone(), value: Some(value.clone()) });
        let settings = Self {
            start: target.map(ToString::to_string).unwrap_or_default(),
            headers: headers.collect(),
            revision: connection.revision.map(|revision| revision.to_string()).unwrap_or_default(),
            timeout: connection.timeout.as_secs_f64(),
            ..Self::default()
        };
        match target {
            None => settings,
            Some(Target::Url(url)) => Self { url: url.clone(), ..settings },
            Some(Target::Command(words)) => {
                let command =
                    words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
                Self { transport: Transport::Command, command, ..settings }
            }
            Some(_) => Self { transport: Transport::Start, ..settings },
        }
    }

    /// Returns the settings without secrets.
    #[must_use]
    pub fn shown(&self) -> Self {
        let mut shown = self.clone();
        for setting in shown.headers.iter_mut().chain(&mut shown.environment) {
            setting.value = None;
        }
        shown.auth.token = None;
        shown.auth.client_secret = None;
        shown
    }

    /// Fills in the secrets that were left as they are.
    #[must_use]
    pub fn with_secrets_of(mut self, stored: &Self) -> Self {
        keep(&mut self.environment, &stored.environment);
        // A stored secret must not be sent to another server.
        if self.url == stored.url && self.transport == stored.transport {
            keep(&mut self.headers, &stored.headers);
            self.auth.token = self.auth.token.or_else(|| stored.auth.token.clone());
            self.auth.client_secret =
                self.auth.client_secret.or_else(|| stored.auth.client_secret.clone());
        }
        self.start.clone_from(&stored.start);
        self
    }

    /// Returns a client without callbacks. `start` is the target of the command line.
    pub fn builder(&self, start: Option<&Target>) -> Result<ClientBuilder, Failure> {
        let builder = match (self.transport, start) {
            (Transport::Start, Some(target)) => target.builder()?,
            (Transport::Start, None) => {
                return Err(Failure::usage("the command line has no target"));
            }
            (Transport::Url, _) => Client::builder(client::Target::url(self.url.trim())?),
            (Transport::Command, _) => Client::builder(self.command()?),
        };
        let revisions = match self.revision.as_str() {
            "" => Revision::ALL.to_vec(),
            text => vec![
                text.parse().map_err(|_| Failure::usage(format!("unknown revision {text:?}")))?,
            ],
        };
        let timeout =
            Duration::try_from_secs_f64(self.timeout).ok().filter(|timeout| !timeout.is_zero());
        let timeout = timeout
            .ok_or_else(|| Failure::usage("the timeout is not a number of seconds above 0"))?;
        let headers = self
            .headers
            .iter()
            .filter(|header| !header.name.is_empty())
            .map(value)
            .collect::<Result<Vec<_>, _>>()?;
        let auth = self.auth.auth();
        let builder = builder.options(|options| {
            options.info.name = "gudgeon".into();
            options.info.version = env!("CARGO_PKG_VERSION").into();
            options.timeout = Some(timeout);
            // The user may have to sign in.
            options.connect_timeout =
                Some(if auth.is_some() { timeout.max(Duration::from_secs(300)) } else { timeout });
            options.revisions = revisions;
            options.max_message = MAX_MESSAGE;
            options.headers.extend(headers);
            options.roots = self.answers.roots.then(|| self.roots.clone());
            options.auth = auth;
            options.cache_results = false;
        });
        Ok(builder)
    }

    fn command(&self) -> Result<Command, Failure> {
        let (program, arguments) =
            self.command.split_first().filter(|words| !words.0.is_empty()).ok_or_else(|| {
                Failure::usage("the command is empty").with_hint("give a program and its arguments")
            })?;
        let mut command = Command::new(program).args(arguments);
        if !self.folder.is_empty() {
            command = command.cwd(&self.folder);
        }
        for setting in self.environment.iter().filter(|setting| !setting.name.is_empty()) {
            let (name, value) = value(setting)?;
            command = command.env(name, value);
        }
        Ok(command)
    }
}

impl AuthSettings {
    fn auth(&self) -> Option<client::auth::Auth> {
        let scopes = self.scopes.split_whitespace().map(ToOwned::to_owned).collect();
        match self.kind {
            AuthKind::None => None,
            AuthKind::Token => {
                Some(client::auth::Auth::Token(self.token.clone().unwrap_or_default()))
            }
            AuthKind::OAuth => {
                let client_id = Some(self.client_id.clone()).filter(|id| !id.is_empty());
                let client_secret = self
                    .client_secret
                    .clone()
                    .filter(|secret| client_id.is_some() && !secret.is_empty());
                Some(OAuth { client_id, client_secret, scopes, ..OAuth::default() }.into())
            }
            AuthKind::ClientCredentials => {
                let client_id = self.client_id.clone();
                let client_secret = Some(self.client_secret.clone().unwrap_or_default());
                Some(
                    ClientCredentials {
                        client_id,
                        client_secret,
                        scopes,
                        ..ClientCredentials::default()
                    }
                    .into(),
                )
            }
        }
    }
}

fn value(setting: &Setting) -> Result<(String, String), Failure> {
    let name = setting.name.clone();
    let value = setting.value.clone().ok_or_else(|| {
        Failure::usage(format!("{name} has no value"))
            .with_hint("values are not kept for another server: enter it again")
    })?;
    Ok((name, value))
}

fn keep(settings: &mut [Setting], stored: &[Setting]) {
    for setting in settings.iter_mut().filter(|setting| setting.value.is_none()) {
        setting.value = stored
            .iter()
            .find(|known| known.name == setting.name)
            .and_then(|known| known.value.clone());
    }
}

/// Returns an error as the page shows it.
pub fn described(error: &Error) -> serde_json::Value {
    serde_json::json!({
        "kind": error.kind.to_string(),
        "message": error.message,
        "hint": error.hint,
        "code": error.code,
        "data": error.data,
        "httpStatus": error.http_status,
        "exitStatus": error.exit_status,
        "stderr": error.stderr,
        "phase": error.phase,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Settings {
        let header = Setting { name: "X-Key".into(), value: Some("s3cret".into()) };
        let auth = AuthSettings { token: Some("t0ken".into()), ..AuthSettings::default() };
        Settings {
            url: "http://a".into(),
            headers: vec![header],
            auth,
            timeout: 60.0,
            ..Settings::default()
        }
    }

    #[test]
    fn secrets_are_not_shown_and_kept() {
        let stored = settings();
        let shown = serde_json::to_string(&stored.shown()).unwrap();
        assert!(shown.contains("X-Key") && !shown.contains("s3cret") && !shown.contains("t0ken"));
        let changed: Settings = serde_json::from_str(&shown).unwrap();
        let changed = changed.with_secrets_of(&stored);
        assert_eq!(changed.headers, stored.headers);
        assert_eq!(changed.auth.token.as_deref(), Some("t0ken"));
    }

    #[test]
    fn a_token_is_not_kept_for_another_server() {
        let stored = settings();
        let changed =
            Settings { url: "http://b".into(), ..stored.shown() }.with_secrets_of(&stored);
        assert_eq!(changed.auth.token, None);
        assert!(changed.builder(None).unwrap_err().to_string().contains("X-Key has no value"));
    }

    #[test]
    fn wrong_settings_say_what_is_wrong() {
        let error = |settings: Settings| settings.builder(None).unwrap_err().to_string();
        assert!(error(Settings { revision: "1999".into(), ..settings() }).contains("1999"));
        assert!(error(Settings { timeout: -1.0, ..settings() }).contains("timeout"));
        assert!(error(Settings { transport: Transport::Command, ..settings() }).contains("empty"));
        assert!(
            error(Settings { transport: Transport::Start, ..settings() }).contains("no target")
        );
    }
}
