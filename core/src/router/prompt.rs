//! Prompts: registration, argument checks, and the conversion of replies.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::value::RawValue;

use super::{
    Changes, Component, ComponentOptions, Handler,
    completion::Completions,
    component::{changeable, updated},
    content,
    handler::{Failure, Reply, bad_result, cannot_ask, own_meta},
    names,
};
use crate::{
    error::{Error, Fault},
    protocol::{Prompt, Raw, Response, json},
};

/// A prompt and its handler.
#[derive(Clone, Debug)]
pub struct RegisteredPrompt {
    pub prompt: Arc<Prompt>,
    pub handler: Handler,
    pub options: ComponentOptions,
    pub(super) completions: Completions,
}

impl RegisteredPrompt {
    /// Errors if the name is empty. Missing `arguments` are published as an empty list.
    pub fn new(mut prompt: Prompt, handler: Handler) -> Result<Self, Error> {
        names::check_prompt(&prompt.name)?;
        prompt.arguments.get_or_insert_default();
        Ok(Self {
            prompt: Arc::new(prompt),
            handler,
            options: ComponentOptions::default(),
            completions: Completions::new(),
        })
    }

    /// Errors if a required argument is missing (Prompts, "Error Handling").
    pub(super) fn check(&self, given: &[(String, String)]) -> Result<(), Fault> {
        let missing: Vec<_> = self
            .prompt
            .arguments
            .iter()
            .flatten()
            .filter(|argument| {
                argument.required.unwrap_or(false)
                    && !given.iter().any(|(name, _)| *name == argument.name)
            })
            .map(|argument| argument.name.as_str())
            .collect();
        match missing.is_empty() {
            true => Ok(()),
            false => Err(Fault::invalid_params(format!(
                "prompt {:?} needs the argument {}",
                self.prompt.name,
                missing.join(", ")
            ))),
        }
    }
}

impl Component for RegisteredPrompt {
    type Listed = Prompt;

    fn key(&self) -> &str {
        &self.prompt.name
    }

    fn listed(&self) -> &Arc<Prompt> {
        &self.prompt
    }

    fn options(&self) -> &ComponentOptions {
        &self.options
    }

    fn meta(&self) -> Option<&Raw> {
        self.prompt.meta.as_ref()
    }

    fn update(&mut self, changes: &Changes) -> Result<(), Error> {
        self.prompt = Arc::new(updated(&*self.prompt, changes, changeable::PROMPT)?);
        Ok(())
    }
}

/// Converts a prompt's reply into messages; strings become user messages.
pub(super) fn messages(reply: Reply) -> Result<Response, Failure> {
    let plain = |messages: String| Response::Messages { messages, description: None, meta: None };
    match reply {
        Reply::Nothing => Ok(plain("[]".into())),
        Reply::Text(text) => {
            let mut quoted = String::with_capacity(text.len() + 2);
            json::push_string(&mut quoted, &text);
            Ok(plain(format!("[{}]", user(&quoted))))
        }
        Reply::Parts(parts) => list(&parts).map(plain),
        Reply::Questions(_) => Err(cannot_ask()),
        Reply::Result(result) => {
            #[derive(serde::Deserialize)]
            struct Whole<'a> {
                #[serde(borrow)]
                messages: &'a RawValue,
                description: Option<String>,
                #[serde(borrow, rename = "_meta")]
                meta: Option<&'a RawValue>,
            }
            let whole: Whole<'_> =
                serde_json::from_str(&result).map_err(|error| bad_result(error.to_string()))?;
            Ok(Response::Messages {
                messages: list(whole.messages.get())?,
                description: whole.description,
                meta: own_meta(whole.meta)?,
            })
        }
        Reply::Json(_) | Reply::Blob(_) => {
            Err(bad_result("a prompt returns a string, messages, or a list of both"))
        }
    }
}

fn list(parts: &str) -> Result<String, Failure> {
    let parts: Vec<&RawValue> =
        serde_json::from_str(parts).map_err(|error| bad_result(error.to_string()))?;
    let mut messages = Vec::with_capacity(parts.len());
    for part in parts {
        match part.get().starts_with('"') {
            true => messages.push(user(part.get())),
            false => one_each(part.get(), &mut messages)?,
        }
    }
    Ok(format!("[{}]", messages.join(",")))
}

/// Splits a message: prompt messages hold one content block each, and lists of blocks are for sampling only.
fn one_each(message: &str, messages: &mut Vec<String>) -> Result<(), Failure> {
    #[derive(serde::Deserialize)]
    struct Message<'a> {
        #[serde(borrow)]
        content: &'a RawValue,
    }
    let Ok(Message { content }) = serde_json::from_str(message) else {
        messages.push(message.to_owned());
        return Ok(());
    };
    if !content.get().starts_with('[') {
        content::check(content.get())?;
        messages.push(message.to_owned());
        return Ok(());
    }
    let blocks: Vec<Raw> =
        serde_json::from_str(content.get()).map_err(|error| bad_result(error.to_string()))?;
    let mut whole: BTreeMap<&str, Raw> =
        serde_json::from_str(message).map_err(|error| bad_result(error.to_string()))?;
    for block in blocks {
        content::check(block.get())?;
        whole.insert("content", block);
        messages.push(json::to_raw(&whole).get().to_owned());
    }
    Ok(())
}

fn user(quoted: &str) -> String {
    format!(r#"{{"role":"user","content":{{"type":"text","text":{quoted}}}}}"#)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages_of(reply: Reply) -> Result<String, Failure> {
        messages(reply).map(|response| match response {
            Response::Messages { messages, .. } => messages,
            other => panic!("{other:?}"),
        })
    }

    #[test]
    fn several_contents_of_one_message_are_so_many_messages() {
        let text = |text: &str| format!(r#"{{"type":"text","text":"{text}"}}"#);
        let of = |content: &str| {
            format!(r#"{{"role":"assistant","content":{content},"_meta":{{"k":1}}}}"#)
        };
        let list = format!("[{}, {}]", text("a"), text("b"));
        let parts = format!("[{},{},\"c\"]", of(&list), of(&text("d")));
        let expected = [(0, "a"), (1, "b"), (2, "d"), (3, "c")];
        for reply in
            [Reply::Parts(parts.clone()), Reply::Result(format!(r#"{{"messages":{parts}}}"#))]
        {
            let messages: Vec<serde_json::Value> =
                serde_json::from_str(&messages_of(reply).expect("messages")).expect("JSON");
            assert_eq!(messages.len(), expected.len());
            for (at, text) in expected {
                assert_eq!(messages[at]["content"]["text"], text);
                assert_eq!(messages[at]["_meta"]["k"] == 1, text != "c", "{text}");
            }
        }
        assert_eq!(
            messages_of(Reply::Parts(format!("[{}]", of("[]")))).ok().as_deref(),
            Some("[]")
        );
        let call = r#"{"type":"tool_use","id":"1","name":"look","input":{}}"#;
        for content in [call.to_owned(), format!("[{call}]")] {
            assert!(messages_of(Reply::Parts(format!("[{}]", of(&content)))).is_err());
        }
    }
}
