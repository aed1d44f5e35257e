//! Requests from JavaScript: operations and their options, each as JSON.

use gudgeon::{
    client::{CallOptions, ListName, Operation},
    error::Error,
    protocol::{CompletionTarget, LoggingLevel, Raw},
};
use serde::{Deserialize, de::DeserializeOwned};

use super::settings;

/// Options that differ from those of the client.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Options {
    timeout_ms: Option<f64>,
    #[serde(default)]
    wants_progress: bool,
    throw_on_error: Option<bool>,
    meta: Option<Raw>,
}

#[derive(Deserialize)]
struct Named {
    name: String,
    arguments: Option<Raw>,
    answers: Option<Raw>,
    state: Option<String>,
}

#[derive(Deserialize)]
struct Listed {
    cursor: Option<String>,
}

#[derive(Deserialize)]
struct Read {
    uri: String,
    variables: Option<Raw>,
}

#[derive(Deserialize)]
struct Completed {
    target: String,
    argument: String,
    value: String,
    arguments: Option<Raw>,
}

#[derive(Deserialize)]
struct Level {
    level: String,
}

#[derive(Deserialize)]
struct Other {
    method: String,
    params: Option<Raw>,
}

pub(super) fn read(what: &str, params: &str) -> Result<Operation, Error> {
    let operation = match what {
        "listTools" => Operation::List(ListName::Tools),
        "listResources" => Operation::List(ListName::Resources),
        "listResourceTemplates" => Operation::List(ListName::ResourceTemplates),
        "listPrompts" => Operation::List(ListName::Prompts),
        "listToolsPage" => page(ListName::Tools, params)?,
        "listResourcesPage" => page(ListName::Resources, params)?,
        "listResourceTemplatesPage" => page(ListName::ResourceTemplates, params)?,
        "listPromptsPage" => page(ListName::Prompts, params)?,
        "callTool" => {
            let Named { name, arguments, .. } = parse(what, params)?;
            Operation::CallTool { name, arguments }
        }
        "callToolRound" => {
            let Named { name, arguments, answers, state } = parse(what, params)?;
            Operation::CallToolRound { name, arguments, answers, state }
        }
        "readResource" => {
            let Read { uri, variables } = parse(what, params)?;
            Operation::ReadResource { uri, variables }
        }
        "getPrompt" => {
            let Named { name, arguments, .. } = parse(what, params)?;
            Operation::GetPrompt { name, arguments }
        }
        "complete" => {
            let Completed { target, argument, value, arguments } = parse(what, params)?;
            let target = CompletionTarget::named(target);
            Operation::Complete { target, argument, value, given: arguments }
        }
        "setLogLevel" => {
            let Level { level } = parse(what, params)?;
            Operation::SetLogLevel(LoggingLevel::named(&level)?)
        }
        "ping" => Operation::Ping,
        "request" => {
            let Other { method, params } = parse(what, params)?;
            Operation::Request { method, params }
        }
        _ => return Err(Error::misuse(format!("{what:?} is not an operation of a client"))),
    };
    Ok(operation)
}

/// The options of one call, and whether progress is requested.
pub(super) fn options(
    usual: CallOptions,
    given: Option<&str>,
) -> Result<(CallOptions, bool), Error> {
    let Some(given) = given else { return Ok((usual, false)) };
    let given: Options = parse("the call's options", given)?;
    let options = CallOptions {
        timeout: given.timeout_ms.map_or(usual.timeout, settings::duration),
        raise_on_error: given.throw_on_error.unwrap_or(usual.raise_on_error),
        meta: given.meta,
        ..usual
    };
    Ok((options, given.wants_progress))
}

fn page(list: ListName, params: &str) -> Result<Operation, Error> {
    let Listed { cursor } = parse("a page", params)?;
    Ok(Operation::ListPage(list, cursor))
}

fn parse<T: DeserializeOwned>(what: &str, json: &str) -> Result<T, Error> {
    serde_json::from_str(json).map_err(|it| Error::misuse(format!("{what} can't be read: {it}")))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn usual() -> CallOptions {
        CallOptions {
            timeout: Some(Duration::from_secs(60)),
            max_timeout: None,
            on_progress: None,
            meta: None,
            raise_on_error: true,
        }
    }

    #[test]
    fn arguments_stay_as_they_are() {
        let read =
            read("callTool", r#"{"name":"a","arguments":{"n":12345678901234567890}}"#).unwrap();
        let Operation::CallTool { name, arguments: Some(arguments) } = read else {
            panic!("{read:?}")
        };
        assert_eq!((name.as_str(), arguments.get()), ("a", r#"{"n":12345678901234567890}"#));
    }

    #[test]
    fn only_what_is_given_differs() {
        let (options, wants) = options(usual(), Some(r#"{"throwOnError":false}"#)).unwrap();
        assert_eq!(
            (options.timeout, options.raise_on_error, wants),
            (usual().timeout, false, false)
        );
        let (options, _) = super::options(usual(), Some(r#"{"timeoutMs":-1}"#)).unwrap();
        assert_eq!(options.timeout, None);
    }

    #[test]
    fn what_a_client_does_not_do_is_refused() {
        assert!(read("fly", "{}").is_err());
        assert!(read("setLogLevel", r#"{"level":"loud"}"#).unwrap_err().message.contains("debug"));
    }
}
