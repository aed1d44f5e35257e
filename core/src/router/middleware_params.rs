//! Params of registered handlers as middleware sees and changes them, in the vocabulary of the newest revision.

use std::str::FromStr;

use serde_json::{Map, Value, json};

use super::uri_template::UriTemplate;
use crate::{
    error::Error,
    protocol::{CompletionTarget, json::ObjectWriter},
};

/// The kind of a registered handler, which decides the members of its params.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum HandlerKind {
    Tool,
    Prompt,
    /// A resource or a template.
    Resource,
    Completion,
    /// A method or a notification.
    Method,
}

impl FromStr for HandlerKind {
    type Err = Error;

    /// Reads a kind as the bindings name it.
    fn from_str(kind: &str) -> Result<Self, Error> {
        match kind.strip_suffix('s').unwrap_or(kind) {
            "tool" => Ok(Self::Tool),
            "prompt" => Ok(Self::Prompt),
            "resource" | "resourceTemplate" | "template" => Ok(Self::Resource),
            "completion" => Ok(Self::Completion),
            "method" | "notification" => Ok(Self::Method),
            _ => Err(Error::misuse(format!("{kind:?} is not a kind of handler"))),
        }
    }
}

impl HandlerKind {
    /// Returns the params of a request with this input of its handler; both are JSON.
    ///
    /// `key` is the name, URI or template under which the server has the handler, and `argument` that of a completion.
    /// Errors if the input can't be read.
    pub fn params(self, key: &str, argument: &str, input: &str) -> Result<String, Error> {
        let mut out = ObjectWriter::with_capacity(64);
        match self {
            Self::Tool | Self::Prompt => {
                out.member("name", key).raw("arguments", input);
            }
            Self::Resource if is_template(key) => {
                let template =
                    UriTemplate::parse(key).map_err(|error| Error::misuse(error.to_string()))?;
                let variables: Vec<_> = object(input)?.into_iter().collect();
                out.member("uri", &template.expand(&variables)).raw("variables", input);
            }
            Self::Resource => {
                out.member("uri", key);
            }
            Self::Completion => {
                let mut given = object(input)?;
                let target = match is_template(key) {
                    true => CompletionTarget::Resource(key.to_owned()),
                    false => CompletionTarget::Prompt(key.to_owned()),
                };
                let value = given.remove("value").unwrap_or_default();
                let others = given.remove("arguments").unwrap_or_else(|| json!({}));
                completion(&mut out, &target, argument, &value, &others.to_string());
            }
            Self::Method => return Ok(input.to_owned()),
        }
        Ok(out.finish())
    }

    /// Returns the handler's input for params that middleware may have changed; both are JSON. Names and URIs stay what
    /// they are in the handler's server. `None` if the params don't contain the input.
    pub fn input(self, params: &str) -> Result<Option<String>, Error> {
        let mut params = object(params)?;
        let mut member = |name: &str| params.remove(name).filter(|value| !value.is_null());
        let nothing = || json!({});
        let input = match self {
            Self::Tool | Self::Prompt => member("arguments").unwrap_or_else(nothing),
            Self::Resource => member("variables").unwrap_or_else(nothing),
            Self::Completion => {
                let value = member("argument")
                    .and_then(|mut argument| argument.get_mut("value").map(Value::take));
                let given = member("context")
                    .and_then(|mut context| context.get_mut("arguments").map(Value::take));
                let given = given.filter(|arguments| !arguments.is_null()).unwrap_or_else(nothing);
                let Some(value) = value else { return Ok(None) };
                json!({ "value": value, "arguments": given })
            }
            Self::Method => params.into(),
        };
        Ok(Some(input.to_string()))
    }
}

/// Writes the params of a completion; `given` are the other arguments, as JSON.
pub(super) fn completion(
    out: &mut ObjectWriter,
    target: &CompletionTarget,
    argument: &str,
    value: &Value,
    given: &str,
) {
    let target = match target {
        CompletionTarget::Prompt(name) => json!({ "type": "ref/prompt", "name": name }),
        CompletionTarget::Resource(uri) => json!({ "type": "ref/resource", "uri": uri }),
    };
    out.member("ref", &target)
        .member("argument", &json!({ "name": argument, "value": value }))
        .raw("context", &format!(r#"{{"arguments":{given}}}"#));
}

/// Names of prompts have no braces.
fn is_template(key: &str) -> bool {
    key.contains('{')
}

fn object(json: &str) -> Result<Map<String, Value>, Error> {
    serde_json::from_str(json)
        .map_err(|error| Error::misuse(format!("the params are not an object: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn params_name_the_handler_and_its_input_comes_back() {
        for (kind, key, argument, input, params) in [
            ("tool", "add", "", r#"{"a":1}"#, r#"{"name":"add","arguments":{"a":1}}"#),
            ("prompts", "greet", "", "{}", r#"{"name":"greet","arguments":{}}"#),
            ("resource", "a://b", "", "{}", r#"{"uri":"a://b"}"#),
            (
                "templates",
                "a://{b}",
                "",
                r#"{"b":"c"}"#,
                r#"{"uri":"a://c","variables":{"b":"c"}}"#,
            ),
            (
                "completion",
                "greet",
                "name",
                r#"{"value":"A","arguments":{}}"#,
                r#"{"ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"name","value":"A"},"context":{"arguments":{}}}"#,
            ),
            ("notifications", "acme/x", "", r#"{"x":1}"#, r#"{"x":1}"#),
        ] {
            let kind: HandlerKind = kind.parse().expect("a kind");
            assert_eq!(kind.params(key, argument, input).ok().as_deref(), Some(params));
            assert_eq!(kind.input(params).ok().flatten().as_deref(), Some(input));
        }
        let template = HandlerKind::Completion.params("a://{b}", "b", r#"{"value":""}"#);
        assert!(template.is_ok_and(|params| {
            params.starts_with(r#"{"ref":{"type":"ref/resource","uri":"a://{b}"}"#)
        }));
        assert!("moon".parse::<HandlerKind>().is_err());
    }

    #[test]
    fn members_that_middleware_removed_are_empty() {
        let input = |kind: HandlerKind, params: &str| kind.input(params).ok().flatten();
        for kind in [HandlerKind::Tool, HandlerKind::Resource, HandlerKind::Method] {
            assert_eq!(input(kind, "{}").as_deref(), Some("{}"));
        }
        assert_eq!(input(HandlerKind::Prompt, r#"{"arguments":null}"#).as_deref(), Some("{}"));
        assert_eq!(input(HandlerKind::Completion, "{}"), None);
        assert!(HandlerKind::Tool.input("[]").is_err());
        assert!(HandlerKind::Resource.params("a://{b}", "", "[").is_err());
    }
}
