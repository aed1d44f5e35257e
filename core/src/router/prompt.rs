//! Prompts: what is offered, which arguments are demanded, and what a reply becomes.

use std::{sync::Arc, time::Duration};

use serde_json::value::RawValue;

use super::{
    Changes, Handler, Offer,
    completion::Completions,
    handler::{Failure, Reply, bad_result, nobody_to_ask},
    names, tool,
};
use crate::{
    error::{Error, Fault},
    protocol::{Prompt, Response, json},
};

/// A prompt and what makes it.
#[derive(Clone, Debug)]
pub struct PromptOffer {
    pub prompt: Arc<Prompt>,
    pub handler: Handler,
    pub tags: Vec<String>,
    pub timeout: Option<Duration>,
    /// The shell's own: by it the server's judge knows who sees the prompt.
    pub visible: Option<Handler>,
    pub(super) completions: Completions,
}

impl PromptOffer {
    /// Fails when the name is empty. A prompt that takes no arguments says so.
    pub fn new(mut prompt: Prompt, handler: Handler) -> Result<Self, Error> {
        names::check_prompt(&prompt.name)?;
        prompt.arguments.get_or_insert_default();
        Ok(Self {
            prompt: Arc::new(prompt),
            handler,
            tags: Vec::new(),
            timeout: None,
            visible: None,
            completions: Completions::new(),
        })
    }

    /// A required argument that is not given fails (Prompts, "Error Handling").
    pub(super) fn check(&self, given: &[(String, String)]) -> Result<(), Fault> {
        let missing: Vec<_> = self
            .prompt
            .arguments
            .iter()
            .flatten()
            .filter(|it| {
                it.required.unwrap_or(false) && !given.iter().any(|(name, _)| *name == it.name)
            })
            .map(|it| it.name.as_str())
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

impl Offer for PromptOffer {
    type Listed = Prompt;

    fn key(&self) -> &str {
        &self.prompt.name
    }

    fn listed(&self) -> &Arc<Prompt> {
        &self.prompt
    }

    fn tags(&self) -> &[String] {
        &self.tags
    }

    fn visible(&self) -> Option<&Handler> {
        self.visible.as_ref()
    }

    fn update(&mut self, changes: &Changes) -> Result<(), Error> {
        self.prompt = Arc::new(tool::updated(&*self.prompt, changes, &["name", "arguments"])?);
        Ok(())
    }
}

/// What a prompt's reply is to its reader: messages, in which strings stand for the user's.
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
        Reply::Questions(_) => Err(nobody_to_ask()),
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
                serde_json::from_str(&result).map_err(|it| bad_result(it.to_string()))?;
            Ok(Response::Messages {
                messages: list(whole.messages.get())?,
                description: whole.description,
                meta: whole.meta.map(ToOwned::to_owned),
            })
        }
        Reply::Json(_) | Reply::Blob(_) => {
            Err(bad_result("a prompt answers with a text, messages, or a list of both"))
        }
    }
}

fn list(parts: &str) -> Result<String, Failure> {
    let parts: Vec<&RawValue> =
        serde_json::from_str(parts).map_err(|it| bad_result(it.to_string()))?;
    let messages: Vec<_> = parts
        .into_iter()
        .map(|it| match it.get().starts_with('"') {
            true => user(it.get()),
            false => it.get().to_owned(),
        })
        .collect();
    Ok(format!("[{}]", messages.join(",")))
}

fn user(quoted: &str) -> String {
    format!(r#"{{"role":"user","content":{{"type":"text","text":{quoted}}}}}"#)
}
