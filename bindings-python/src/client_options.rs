//! The options and operations of clients, from JSON to the core's types.

use std::{
    collections::HashMap,
    os::fd::{BorrowedFd, OwnedFd},
    os::unix::net::UnixStream,
    time::Duration,
};

use gudgeon::{
    client::{CallOptions, Client, ClientBuilder, ListName, Operation, Target},
    error::Error,
    protocol::{CompletionTarget, Implementation, LoggingLevel, Raw, Root},
    transport::{Command, Link},
};
use serde::Deserialize;

/// The settings of a client.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Options {
    revisions: Option<Vec<String>>,
    timeout: Option<f64>,
    max_timeout: Option<f64>,
    client_info: Option<Implementation>,
    roots: Option<Vec<Root>>,
    /// Header names and values.
    #[serde(default)]
    headers: Vec<(String, String)>,
    max_message: Option<usize>,
    max_rounds: Option<usize>,
    #[serde(default)]
    validate: bool,
    /// The registered callbacks.
    pub(crate) callbacks: Vec<String>,
}

/// The target of a client.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Place {
    /// The name used in error messages.
    name: Option<String>,
    url: Option<String>,
    #[serde(default)]
    argv: Vec<String>,
    #[serde(default)]
    env: HashMap<String, String>,
    cwd: Option<String>,
}

/// An operation.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(crate) enum Order {
    List {
        list: String,
    },
    ListPage {
        list: String,
        cursor: Option<String>,
    },
    CallTool {
        name: String,
        arguments: Option<Raw>,
    },
    CallToolRound {
        name: String,
        arguments: Option<Raw>,
        answers: Option<Raw>,
        state: Option<String>,
    },
    ReadResource {
        uri: String,
        variables: Option<Raw>,
    },
    GetPrompt {
        name: String,
        arguments: Option<Raw>,
    },
    Complete {
        target: String,
        argument: String,
        value: String,
        arguments: Option<Raw>,
    },
    SetLogLevel {
        level: String,
    },
    Ping,
    Request {
        method: String,
        params: Option<Raw>,
    },
}

/// Options that differ from the client's defaults.
#[expect(clippy::option_option, reason = "absent, null and a number are three things here")]
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct How {
    /// `Some(None)`: no timeout.
    #[serde(default, deserialize_with = "even_null")]
    timeout: Option<Option<f64>>,
    meta: Option<Raw>,
    raise_on_error: Option<bool>,
}

impl Options {
    pub(crate) fn builder(&self, target: Target) -> Result<ClientBuilder, Error> {
        let mut builder = Client::builder(target)
            .timeout(self.timeout.map(seconds))
            .max_timeout(self.max_timeout.map(seconds))
            .headers(self.headers.iter().cloned())
            .validate(self.validate);
        if let Some(names) = &self.revisions {
            builder = builder.speaks(names)?;
        }
        if let Some(info) = &self.client_info {
            builder = builder.client_info(info.clone());
        }
        if let Some(roots) = &self.roots {
            builder = builder.roots(roots.iter().cloned());
        }
        if let Some(bytes) = self.max_message {
            builder = builder.max_message(bytes);
        }
        if let Some(rounds) = self.max_rounds {
            builder = builder.max_rounds(rounds);
        }
        Ok(builder)
    }

    pub(crate) fn has(&self, callback: &str) -> bool {
        self.callbacks.iter().any(|it| it == callback)
    }
}

impl Place {
    /// Must be called inside the runtime. `stream` is one end of a socket pair.
    pub(crate) fn target(self, stream: Option<OwnedFd>) -> Result<Target, Error> {
        if let Some(url) = &self.url {
            return Target::url(url);
        }
        let Some(stream) = stream else {
            let mut words = self.argv.into_iter();
            let program = words.next().ok_or_else(|| Error::misuse("a command needs a program"))?;
            let mut command = Command::new(program).args(words);
            for (name, value) in self.env {
                command = command.env(name, value);
            }
            if let Some(folder) = self.cwd {
                command = command.cwd(folder);
            }
            return Ok(Target::Command(command));
        };
        let unusable =
            |it: std::io::Error| Error::misuse(format!("the stream can't be used: {it}"));
        let stream = UnixStream::from(stream);
        stream.set_nonblocking(true).map_err(unusable)?;
        let stream = tokio::net::UnixStream::from_std(stream).map_err(unusable)?;
        let (input, output) = stream.into_split();
        Ok(Target::Stream(Link::new(input, output), self.name.unwrap_or_else(|| "stream".into())))
    }
}

/// Returns a duplicate of the descriptor.
pub(crate) fn duplicate(fd: i32) -> std::io::Result<OwnedFd> {
    if fd < 0 {
        return Err(std::io::Error::new(
            std::io::ErrorKind::InvalidInput,
            "no file descriptor is negative",
        ));
    }
    // SAFETY: it is borrowed for as long as it takes to duplicate it; a closed one is an error of `fcntl`.
    #[expect(unsafe_code, reason = "descriptors come from Python as numbers")]
    let fd = unsafe { BorrowedFd::borrow_raw(fd) };
    Ok(rustix::io::fcntl_dupfd_cloexec(fd, 3)?)
}

impl TryFrom<Order> for Operation {
    type Error = Error;

    fn try_from(order: Order) -> Result<Self, Error> {
        Ok(match order {
            Order::List { list } => Self::List(list_name(&list)?),
            Order::ListPage { list, cursor } => Self::ListPage(list_name(&list)?, cursor),
            Order::CallTool { name, arguments } => Self::CallTool { name, arguments },
            Order::CallToolRound { name, arguments, answers, state } => {
                Self::CallToolRound { name, arguments, answers, state }
            }
            Order::ReadResource { uri, variables } => Self::ReadResource { uri, variables },
            Order::GetPrompt { name, arguments } => Self::GetPrompt { name, arguments },
            Order::Complete { target, argument, value, arguments: given } => {
                let target = CompletionTarget::named(target);
                Self::Complete { target, argument, value, given }
            }
            Order::SetLogLevel { level } => Self::SetLogLevel(LoggingLevel::named(&level)?),
            Order::Ping => Self::Ping,
            Order::Request { method, params } => Self::Request { method, params },
        })
    }
}

fn list_name(name: &str) -> Result<ListName, Error> {
    match name {
        "tools" => Ok(ListName::Tools),
        "resources" => Ok(ListName::Resources),
        "resourceTemplates" => Ok(ListName::ResourceTemplates),
        "prompts" => Ok(ListName::Prompts),
        _ => Err(Error::misuse(format!("there is no list of {name}"))),
    }
}

impl How {
    pub(crate) fn apply(self, options: &mut CallOptions) {
        if let Some(timeout) = self.timeout {
            options.timeout = timeout.map(seconds);
        }
        options.meta = self.meta;
        options.raise_on_error = self.raise_on_error.unwrap_or(options.raise_on_error);
    }
}

/// A duration that exceeds the clock's range means no limit.
fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX)
}

#[expect(clippy::option_option, reason = "absent, null and a number are three things here")]
fn even_null<'de, D: serde::Deserializer<'de>>(it: D) -> Result<Option<Option<f64>>, D::Error> {
    Option::<f64>::deserialize(it).map(Some)
}
