//! Operations of clients and their options, from the JSON of a binding.

use serde::{Deserialize, de::DeserializeOwned};

use super::client_settings::{Limit, limit, time_limit};
use crate::{
    client::{CallOptions, Operation},
    error::Error,
    peer::ListKind,
    protocol::{CompletionTarget, Raw, json},
};

#[derive(Deserialize)]
struct Called {
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

/// Returns the operation named `what` with these params, a JSON object.
pub fn operation(what: &str, params: &[u8]) -> Result<Operation, Error> {
    Ok(match what {
        "listTools" => Operation::List(ListKind::Tools),
        "listResources" => Operation::List(ListKind::Resources),
        "listResourceTemplates" => Operation::List(ListKind::ResourceTemplates),
        "listPrompts" => Operation::List(ListKind::Prompts),
        "listToolsPage" => page(ListKind::Tools, params)?,
        "listResourcesPage" => page(ListKind::Resources, params)?,
        "listResourceTemplatesPage" => page(ListKind::ResourceTemplates, params)?,
        "listPromptsPage" => page(ListKind::Prompts, params)?,
        "callTool" => {
            let Called { name, arguments, .. } = parse(what, params)?;
            Operation::CallTool { name, arguments }
        }
        "callToolRound" => {
            let Called { name, arguments, answers, state } = parse(what, params)?;
            Operation::CallToolRound { name, arguments, answers, state }
        }
        "readResource" => {
            let Read { uri, variables } = parse(what, params)?;
            Operation::ReadResource { uri, variables }
        }
        "getPrompt" => {
            let Called { name, arguments, .. } = parse(what, params)?;
            Operation::GetPrompt { name, arguments }
        }
        "complete" => {
            let Completed { target, argument, value, arguments } = parse(what, params)?;
            let target = CompletionTarget::named(target);
            Operation::Complete { target, argument, value, given: arguments }
        }
        "setLogLevel" => {
            let Level { level } = parse(what, params)?;
            Operation::SetLogLevel(level.parse()?)
        }
        "ping" => Operation::Ping,
        "request" => {
            let Other { method, params } = parse(what, params)?;
            Operation::Request { method, params }
        }
        _ => return Err(Error::misuse(format!("{what:?} is not an operation of a client"))),
    })
}

/// Options of one call.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Options {
    #[serde(default, deserialize_with = "limit")]
    timeout_ms: Limit,
    throw_on_error: Option<bool>,
    meta: Option<Raw>,
}

/// Applies the options of one call, JSON, to those of the client.
pub fn apply_options(options: &mut CallOptions, given: &[u8]) -> Result<(), Error> {
    let given: Options = parse("the call's options", given)?;
    if let Some(timeout) = given.timeout_ms {
        options.timeout = time_limit(timeout);
    }
    options.raise_on_error = given.throw_on_error.unwrap_or(options.raise_on_error);
    options.meta = given.meta;
    Ok(())
}

fn page(list: ListKind, params: &[u8]) -> Result<Operation, Error> {
    let Listed { cursor } = parse("a page", params)?;
    Ok(Operation::ListPage(list, cursor))
}

pub(super) fn parse<T: DeserializeOwned>(what: &str, json: &[u8]) -> Result<T, Error> {
    json::from_bytes(json).map_err(|error| Error::misuse(format!("{what} can't be read: {error}")))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn arguments_stay_as_they_are() {
        let params = br#"{"name":"a","arguments":{"n":12345678901234567890}}"#;
        let read = operation("callTool", params).unwrap();
        let Operation::CallTool { name, arguments: Some(arguments) } = read else {
            panic!("{read:?}")
        };
        assert_eq!((name.as_str(), arguments.get()), ("a", r#"{"n":12345678901234567890}"#));
    }

    #[test]
    fn only_what_is_given_differs() {
        let usual = CallOptions {
            timeout: Some(Duration::from_secs(60)),
            max_timeout: None,
            on_progress: None,
            meta: None,
            raise_on_error: true,
            questioner: None,
            is_passed_on: false,
        };
        for (given, timeout, raises) in [
            ("{}", usual.timeout, true),
            (r#"{"throwOnError":false}"#, usual.timeout, false),
            (r#"{"timeoutMs":null}"#, None, true),
            (r#"{"timeoutMs":1e300}"#, None, true),
            (r#"{"timeoutMs":1500}"#, Some(Duration::from_millis(1500)), true),
        ] {
            let mut options = usual.clone();
            apply_options(&mut options, given.as_bytes()).unwrap();
            assert_eq!((options.timeout, options.raise_on_error), (timeout, raises), "{given}");
        }
    }

    #[test]
    fn an_unknown_operation_is_refused() {
        assert!(operation("fly", b"{}").is_err());
        let error = operation("setLogLevel", br#"{"level":"loud"}"#).unwrap_err();
        assert!(error.message.contains("debug"));
    }
}
