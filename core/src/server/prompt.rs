//! Prompts as added to a server.

use std::{sync::Arc, time::Duration};

use super::{
    common::{Common, common_methods},
    handler::{Components, Erased, Handler},
    kind::PromptKind,
    registry::{Component, Registered, sealed::Sealed},
    schema,
};
use crate::{
    error::Error,
    protocol::{self, PromptArgument},
    router::List,
    schema::Schema,
};

/// A prompt: messages for a model that a user selects (Prompts).
///
/// ```
/// # use gudgeon::{Prompt, Server};
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Review {
///     /// the book's title
///     title: String,
///     stars: Option<u8>,
/// }
///
/// async fn review(Review { title, stars }: Review) -> String {
///     format!("Write a review of {title} with {} stars.", stars.unwrap_or(5))
/// }
///
/// let server = Server::new("shelf").add(Prompt::new("review", review).description("Review a book."));
/// ```
#[derive(Debug)]
#[must_use = "a prompt is available only after it is added to a server"]
pub struct Prompt {
    listed: protocol::Prompt,
    arguments: Vec<PromptArgument>,
    handler: Erased,
    decoder: Option<serde_json::Value>,
    common: Common,
}

impl Prompt {
    /// Creates a prompt. The fields of the arguments' type are the prompt's arguments, their doc comments the
    /// descriptions. Clients send strings, from which fields of other types are parsed.
    pub fn new<H: Handler<PromptKind, Form>, Form>(name: impl Into<String>, handler: H) -> Self {
        let decoder = H::arguments().map(schema::written_out);
        let arguments = decoder.as_ref().map(schema::properties).unwrap_or_default();
        let arguments = arguments.into_iter().map(|(name, description, required)| PromptArgument {
            description,
            required: Some(required),
            ..PromptArgument::new(name)
        });
        Self {
            listed: protocol::Prompt::new(name),
            arguments: arguments.collect(),
            handler: handler.erase(),
            decoder,
            common: Common::default(),
        }
    }

    /// Sets the name to display.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.listed.title = Some(title.into());
        self
    }

    /// Sets the description.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.listed.description = Some(description.into());
        self
    }

    /// Describes an argument beyond its type, or adds one.
    pub fn argument(
        mut self,
        name: impl Into<String>,
        description: impl Into<String>,
        required: bool,
    ) -> Self {
        let argument = PromptArgument {
            description: Some(description.into()),
            required: Some(required),
            ..PromptArgument::new(name)
        };
        match self.arguments.iter_mut().find(|it| it.name == argument.name) {
            Some(known) => *known = argument,
            None => self.arguments.push(argument),
        }
        self
    }

    /// Sets the time limit, after which the prompt fails. Time in which the handler waits for its client's answer
    /// does not count. Default: no limit.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.common.options.timeout = Some(timeout);
        self
    }

    common_methods!(listed);

    fn decoder(&self) -> Result<Option<Schema>, Error> {
        let place = format!("the arguments of prompt {:?}", self.listed.name);
        self.decoder.as_ref().map(|it| schema::compile(it, &place)).transpose()
    }
}

impl Sealed for Prompt {}

impl Component for Prompt {
    fn register(mut self, components: &mut Components) -> Result<Registered, Error> {
        if let Some(decoder) = self.decoder()? {
            self.handler.decode_with(decoder);
        }
        self.listed.arguments = (!self.arguments.is_empty()).then_some(self.arguments);
        let Common { options, enabled } = self.common;
        let key = self.listed.name.clone();
        let handler = Arc::new(self.handler);
        let warnings = components.register(self.listed.into(), handler, options, enabled)?;
        Ok(Registered { list: List::Prompts, key, warnings })
    }
}
