//! Prompts as added to a server.

use super::{
    entry::Entry,
    handler::{Components, Erased, Handler, HandlerOf},
    kind::PromptKind,
    registry::{Component, Registered, sealed::Sealed},
    schema,
};
use crate::{
    error::Error,
    protocol::{self, PromptArgument},
    router::{Definition, List},
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
pub type Prompt = Entry<PromptParts>;

/// The options that only prompts have.
#[derive(Debug)]
pub struct PromptParts {
    name: String,
    arguments: Vec<PromptArgument>,
    decoder: Option<serde_json::Value>,
}

impl Prompt {
    /// Creates a prompt. The fields of the arguments' type are the prompt's arguments, their doc comments the
    /// descriptions. Clients send strings, from which fields of other types are parsed.
    pub fn new<H: Handler<Form>, Form: HandlerOf<PromptKind>>(
        name: impl Into<String>,
        handler: H,
    ) -> Self {
        let decoder = Form::arguments().map(schema::written_out);
        let arguments = decoder.as_ref().map(schema::properties).unwrap_or_default();
        let arguments = arguments.into_iter().map(|(name, description, required)| PromptArgument {
            name,
            description,
            required: Some(required),
            ..PromptArgument::default()
        });
        let parts = PromptParts { name: name.into(), arguments: arguments.collect(), decoder };
        Self::with_parts(parts, Form::erase(handler))
    }

    /// Describes an argument beyond its type, or adds one.
    pub fn argument(
        mut self,
        name: impl Into<String>,
        description: impl Into<String>,
        required: bool,
    ) -> Self {
        let argument = PromptArgument {
            name: name.into(),
            description: Some(description.into()),
            required: Some(required),
            ..PromptArgument::default()
        };
        match self.parts.arguments.iter_mut().find(|known| known.name == argument.name) {
            Some(known) => *known = argument,
            None => self.parts.arguments.push(argument),
        }
        self
    }

    fn decoder(&self) -> Result<Option<Schema>, Error> {
        let place = format!("the arguments of prompt {:?}", self.parts.name);
        self.parts.decoder.as_ref().map(|decoder| schema::compile(decoder, &place)).transpose()
    }
}

impl Sealed for Prompt {}

impl Component for Prompt {
    fn handler(&mut self) -> &mut Erased {
        &mut self.handler
    }

    fn register(mut self, components: &mut Components) -> Result<Registered, Error> {
        if let Some(decoder) = self.decoder()? {
            self.handler.decode_with(decoder);
        }
        let Self { parts: PromptParts { name, arguments, .. }, handler, options, enabled, .. } =
            self;
        let prompt = protocol::Prompt {
            title: self.title,
            description: self.description,
            icons: self.icons,
            arguments: (!arguments.is_empty()).then_some(arguments),
            meta: self.meta,
            ..(&*name).into()
        };
        let warnings =
            components.register(Definition::Prompt(prompt, options), handler.kept(), enabled)?;
        Ok(Registered { list: List::Prompts, key: name, warnings })
    }
}
