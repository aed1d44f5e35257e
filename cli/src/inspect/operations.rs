//! The requests of the page that the server answers.

use gudgeon::{
    LoggingLevel,
    client::Operation,
    peer::ListKind,
    protocol::{CompletionTarget, Raw},
};
use serde::Deserialize;

/// A request, as `{"callTool": {"name": …, "arguments": …}}`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Requested {
    List(List),
    CallTool {
        name: String,
        arguments: Option<Raw>,
    },
    ReadResource {
        uri: String,
        variables: Option<Raw>,
    },
    GetPrompt {
        name: String,
        arguments: Option<Raw>,
    },
    CompletePrompt {
        name: String,
        argument: String,
        value: String,
        given: Option<Raw>,
    },
    CompleteResource {
        uri: String,
        argument: String,
        value: String,
        given: Option<Raw>,
    },
    SetLogLevel(String),
    Ping,
    /// Any method.
    Request {
        method: String,
        params: Option<Raw>,
    },
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum List {
    Tools,
    Resources,
    ResourceTemplates,
    Prompts,
}

impl Requested {
    /// Returns the client's operation.
    pub fn operation(self) -> Result<Operation, String> {
        let complete =
            |target, argument, value, given| Operation::Complete { target, argument, value, given };
        Ok(match self {
            Self::List(list) => Operation::List(match list {
                List::Tools => ListKind::Tools,
                List::Resources => ListKind::Resources,
                List::ResourceTemplates => ListKind::ResourceTemplates,
                List::Prompts => ListKind::Prompts,
            }),
            Self::CallTool { name, arguments } => Operation::CallTool { name, arguments },
            Self::ReadResource { uri, variables } => Operation::ReadResource { uri, variables },
            Self::GetPrompt { name, arguments } => Operation::GetPrompt { name, arguments },
            Self::CompletePrompt { name, argument, value, given } => {
                complete(CompletionTarget::Prompt(name), argument, value, given)
            }
            Self::CompleteResource { uri, argument, value, given } => {
                complete(CompletionTarget::Resource(uri), argument, value, given)
            }
            Self::SetLogLevel(level) => {
                let level: LoggingLevel = serde_json::from_value(level.as_str().into())
                    .map_err(|_| format!("{level:?} is not a level of log messages"))?;
                Operation::SetLogLevel(level)
            }
            Self::Ping => Operation::Ping,
            Self::Request { method, params } => Operation::Request { method, params },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_stay_as_written() {
        let json = r#"{"callTool":{"name":"add","arguments":{"a":1.0}}}"#;
        let requested: Requested = serde_json::from_str(json).unwrap();
        let Ok(Operation::CallTool { name, arguments: Some(arguments) }) = requested.operation()
        else {
            panic!("not a call");
        };
        assert_eq!((&*name, arguments.get()), ("add", r#"{"a":1.0}"#));
    }

    #[test]
    fn levels_are_checked() {
        let level = |name: &str| Requested::SetLogLevel(name.into()).operation();
        assert!(level("debug").is_ok());
        assert!(level("loud").unwrap_err().contains("loud"));
    }
}
