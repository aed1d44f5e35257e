//! Operations in the form of the protocol: the params of a request and its result, as middleware sees them.

use serde::de::DeserializeOwned;

use super::{
    Operation,
    params::{complete_params, cursor_params, expand, tool_params},
};
use crate::{
    error::Error,
    peer::{self, Page, with_answers},
    protocol::{CompleteResult, Members, Raw, json},
};

impl Operation {
    /// Returns the params of the operation's request. Errors if variables don't fit their template.
    pub(super) fn params(&self) -> Result<String, Error> {
        Ok(match self {
            Self::List(_) | Self::Ping => "{}".to_owned(),
            Self::ListPage(_, cursor) => cursor_params(cursor.clone()),
            Self::CallTool { name, arguments } | Self::GetPrompt { name, arguments } => {
                tool_params(name, arguments.as_ref())
            }
            Self::CallToolRound { name, arguments, answers, state } => {
                let state = state.as_ref().map(json::to_raw);
                let params = tool_params(name, arguments.as_ref());
                with_answers(&params, answers.as_deref(), state.as_deref())
            }
            Self::ReadResource { uri, variables } => {
                let expanded =
                    variables.as_ref().map(|variables| expand(uri, variables)).transpose()?;
                let uri = expanded.as_ref().unwrap_or(uri);
                let mut params = json::ObjectWriter::with_capacity(uri.len() + 16);
                params.member("uri", uri);
                params.finish()
            }
            Self::Complete { target, argument, value, given } => {
                complete_params(target, argument, value, given.as_ref())
            }
            Self::SetLogLevel(level) => format!(r#"{{"level":{:?}}}"#, level.as_str()),
            Self::Request { params, .. } => {
                params.as_deref().map_or("{}", |params| params.get()).to_owned()
            }
        })
    }

    /// Returns the operation with other params, and their `_meta`. Errors if the params are not those of the method.
    pub(super) fn with_params(&self, params: &Raw) -> Result<(Self, Option<Raw>), Error> {
        let mut params = Given::read(self.method(), params)?;
        if let Self::Request { method, params: given } = self {
            let is_empty = given.is_none() && params.members.is_empty();
            let params = (!is_empty).then_some(params.whole);
            return Ok((Self::Request { method: method.clone(), params }, None));
        }
        let meta = params.take("_meta")?;
        let changed = match self {
            Self::List(kind) => Self::List(*kind),
            Self::Ping => Self::Ping,
            Self::ListPage(kind, _) => Self::ListPage(*kind, params.take("cursor")?),
            Self::CallTool { .. } => Self::CallTool {
                name: params.need("name")?,
                arguments: params.object("arguments")?,
            },
            Self::CallToolRound { .. } => Self::CallToolRound {
                name: params.need("name")?,
                arguments: params.object("arguments")?,
                answers: params.object("inputResponses")?,
                state: params.take("requestState")?,
            },
            Self::ReadResource { .. } => {
                Self::ReadResource { uri: params.need("uri")?, variables: None }
            }
            Self::GetPrompt { .. } => Self::GetPrompt {
                name: params.need("name")?,
                arguments: params.object("arguments")?,
            },
            Self::Complete { .. } => params.complete()?,
            Self::SetLogLevel(_) => Self::SetLogLevel(params.need("level")?),
            Self::Request { .. } => unreachable!("returned above"),
        };
        params.is_used_up()?;
        Ok((changed, meta))
    }

    /// Returns the result of the protocol for the outcome of the operation.
    pub(super) fn to_result(&self, outcome: &Raw) -> Raw {
        let mut result = json::ObjectWriter::with_capacity(outcome.get().len() + 32);
        match self {
            Self::List(kind) => result.raw(kind.member(), outcome.get()),
            Self::ListPage(kind, _) => {
                let page: Members<Raw> = serde_json::from_str(outcome.get()).unwrap_or_default();
                for (name, value) in &page.0 {
                    let name = if name == "items" { kind.member() } else { name };
                    result.raw(name, value.get());
                }
                &mut result
            }
            Self::Complete { .. } => result.raw("completion", outcome.get()),
            _ => return outcome.clone(),
        };
        json::raw(result.finish())
    }

    /// Returns what the operation comes to with this result. Errors if it is not a result of the method.
    pub(super) fn of_result(&self, result: &Raw) -> Result<Raw, Error> {
        let method = self.method();
        match self {
            Self::List(kind) => Page::read(*kind, result).map(|page| json::to_raw(&page.items)),
            Self::ListPage(kind, _) => Page::read(*kind, result).map(|page| page.to_json()),
            Self::Complete { .. } => {
                let read: CompleteResult = peer::read(method, result)?;
                Ok(json::to_raw(&read.completion))
            }
            _ => Ok(result.clone()),
        }
    }
}

/// The params that middleware gives.
struct Given<'a> {
    method: &'a str,
    whole: Raw,
    members: Members<Raw>,
}

impl<'a> Given<'a> {
    fn read(method: &'a str, params: &Raw) -> Result<Self, Error> {
        let members = serde_json::from_str(params.get()).map_err(|_| {
            Error::misuse(format!("middleware: the params of {method} must be an object"))
        })?;
        Ok(Self { method, whole: params.clone(), members })
    }

    /// Removes a param; one that is null counts as missing.
    fn take<T: DeserializeOwned>(&mut self, name: &str) -> Result<Option<T>, Error> {
        let Some(at) = self.members.0.iter().position(|(key, _)| key == name) else {
            return Ok(None);
        };
        let (_, value) = self.members.0.remove(at);
        serde_json::from_str(value.get()).map_err(|error| self.wrong(name, &error.to_string()))
    }

    fn need<T: DeserializeOwned>(&mut self, name: &str) -> Result<T, Error> {
        let given = self.take(name)?;
        given.ok_or_else(|| self.wrong(name, "it is missing"))
    }

    fn object(&mut self, name: &str) -> Result<Option<Raw>, Error> {
        let given: Option<Raw> = self.take(name)?;
        match given {
            Some(it) if !it.get().starts_with('{') => Err(self.wrong(name, "it must be an object")),
            given => Ok(given),
        }
    }

    fn complete(&mut self) -> Result<Operation, Error> {
        #[derive(serde::Deserialize)]
        struct Reference {
            name: Option<String>,
            uri: Option<String>,
        }
        #[derive(serde::Deserialize)]
        struct Argument {
            name: String,
            value: String,
        }
        #[derive(Default, serde::Deserialize)]
        struct Context {
            arguments: Option<Raw>,
        }
        let reference: Reference = self.need("ref")?;
        let target = match (reference.name, reference.uri) {
            (Some(name), None) => crate::protocol::CompletionTarget::Prompt(name),
            (None, Some(uri)) => crate::protocol::CompletionTarget::Resource(uri),
            _ => return Err(self.wrong("ref", "it needs a name or a uri")),
        };
        let Argument { name, value } = self.need("argument")?;
        let Context { arguments } = self.take("context")?.unwrap_or_default();
        Ok(Operation::Complete { target, argument: name, value, given: arguments })
    }

    /// Errors if a param was not taken.
    fn is_used_up(&self) -> Result<(), Error> {
        match self.members.0.first() {
            None => Ok(()),
            Some((name, _)) => Err(self.wrong(name, "the client does not send it")),
        }
    }

    fn wrong(&self, name: &str, why: &str) -> Error {
        Error::misuse(format!("middleware: the param {name:?} of {}: {why}", self.method))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        client::params::with_meta,
        error::ErrorKind,
        peer::ListKind,
        protocol::{CompletionTarget, LoggingLevel},
    };

    fn raw(text: &str) -> Raw {
        json::raw(text.to_owned())
    }

    fn operations() -> Vec<(Operation, &'static str)> {
        let arguments = Some(raw(r#"{"n":12345678901234567890.5}"#));
        let target = CompletionTarget::Prompt("greet".into());
        vec![
            (Operation::List(ListKind::Tools), "{}"),
            (Operation::ListPage(ListKind::Tools, None), "{}"),
            (Operation::ListPage(ListKind::Prompts, Some("2".into())), r#"{"cursor":"2"}"#),
            (
                Operation::CallTool { name: "add".into(), arguments: arguments.clone() },
                r#"{"name":"add","arguments":{"n":12345678901234567890.5}}"#,
            ),
            (
                Operation::CallToolRound {
                    name: "add".into(),
                    arguments: None,
                    answers: Some(raw(r#"{"q":{}}"#)),
                    state: Some("s".into()),
                },
                r#"{"name":"add","inputResponses":{"q":{}},"requestState":"s"}"#,
            ),
            (Operation::ReadResource { uri: "a:/b".into(), variables: None }, r#"{"uri":"a:/b"}"#),
            (Operation::GetPrompt { name: "greet".into(), arguments: None }, r#"{"name":"greet"}"#),
            (
                Operation::Complete {
                    target,
                    argument: "who".into(),
                    value: "A".into(),
                    given: Some(raw(r#"{"x":"y"}"#)),
                },
                r#"{"ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"who","value":"A"},"context":{"arguments":{"x":"y"}}}"#,
            ),
            (Operation::SetLogLevel(LoggingLevel::Error), r#"{"level":"error"}"#),
            (Operation::Ping, "{}"),
            (Operation::Request { method: "x/y".into(), params: None }, "{}"),
            (
                Operation::Request { method: "x/y".into(), params: Some(raw(r#"{"a":1}"#)) },
                r#"{"a":1}"#,
            ),
        ]
    }

    #[test]
    fn params_are_read_as_they_were_written() {
        for (operation, expected) in operations() {
            let params = raw(&operation.params().unwrap());
            assert_eq!(params.get(), expected, "{operation:?}");
            let (read, meta) = operation.with_params(&params).unwrap();
            assert_eq!(read.params().unwrap(), expected, "{operation:?}");
            assert!(meta.is_none());
            if matches!(operation, Operation::Request { .. }) {
                continue;
            }
            let with_meta = raw(&with_meta(&operation.params().unwrap(), Some(&raw(r#"{"m":1}"#))));
            let (read, meta) = operation.with_params(&with_meta).unwrap();
            assert_eq!(meta.unwrap().get(), r#"{"m":1}"#);
            assert_eq!(read.params().unwrap(), expected);
        }
    }

    #[test]
    fn variables_are_in_the_uri() {
        let variables = Some(raw(r#"{"id":"b c"}"#));
        let operation = Operation::ReadResource { uri: "a:/{id}".into(), variables };
        assert_eq!(operation.params().unwrap(), r#"{"uri":"a:/b%20c"}"#);
    }

    #[test]
    fn params_that_the_method_does_not_have_are_refused() {
        let call = Operation::CallTool { name: "add".into(), arguments: None };
        let list = Operation::List(ListKind::Tools);
        let level = Operation::SetLogLevel(LoggingLevel::Error);
        let complete = &operations()[7].0;
        for (operation, params, part) in [
            (&call, "[]", "must be an object"),
            (&call, "{}", r#""name" of tools/call: it is missing"#),
            (&call, r#"{"name":1}"#, r#""name" of tools/call: invalid type"#),
            (
                &call,
                r#"{"name":"a","arguments":[]}"#,
                r#""arguments" of tools/call: it must be an object"#,
            ),
            (
                &call,
                r#"{"name":"a","argument":{}}"#,
                r#""argument" of tools/call: the client does not send it"#,
            ),
            (&list, r#"{"cursor":"2"}"#, r#""cursor" of tools/list: the client does not send it"#),
            (&level, r#"{"level":"loud"}"#, r#""level" of logging/setLevel"#),
            (
                complete,
                r#"{"ref":{},"argument":{"name":"a","value":"b"}}"#,
                "it needs a name or a uri",
            ),
        ] {
            let error = operation.with_params(&raw(params)).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Misuse);
            assert!(error.message.contains(part), "{params}: {}", error.message);
        }
    }

    #[test]
    fn results_are_read_as_they_were_written() {
        let operations: Vec<_> = operations().into_iter().map(|(operation, _)| operation).collect();
        for (operation, outcome, result) in [
            (&operations[0], r#"[{"name":"a"}]"#, r#"{"tools":[{"name":"a"}]}"#),
            (
                &operations[1],
                r#"{"items":[{"name":"a"}],"nextCursor":"2"}"#,
                r#"{"tools":[{"name":"a"}],"nextCursor":"2"}"#,
            ),
            (&operations[7], r#"{"values":["Ada"]}"#, r#"{"completion":{"values":["Ada"]}}"#),
            (&operations[3], r#"{"content":[]}"#, r#"{"content":[]}"#),
        ] {
            assert_eq!(operation.to_result(&raw(outcome)).get(), result);
            assert_eq!(operation.of_result(&raw(result)).unwrap().get(), outcome);
        }
        for operation in [&operations[0], &operations[1], &operations[7]] {
            let error = operation.of_result(&raw(r#"{"other":1}"#)).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Protocol);
        }
    }
}
