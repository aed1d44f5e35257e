//! A prompt, as it is put together before a server offers it.

use std::{sync::Arc, time::Duration};

use serde::Serialize;

use super::{
    handler::{Erased, Handler},
    kind::PromptKind,
    registry::{Offering, Registered, sealed::Sealed},
    schema,
    visible::Predicate,
};
use crate::{
    error::Error,
    protocol::{self, Icon, Principal, PromptArgument},
    router::{List, Offers, PromptOffer},
    schema::Schema,
};

/// Messages for a model, on the user's demand (Prompts).
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
#[must_use = "a prompt is offered once it is added to a server"]
pub struct Prompt {
    listed: protocol::Prompt,
    arguments: Vec<PromptArgument>,
    handler: Erased,
    decoder: Option<serde_json::Value>,
    tags: Vec<String>,
    timeout: Option<Duration>,
    visible: Option<crate::router::Handler>,
    enabled: bool,
}

impl Prompt {
    /// The fields of the arguments' type are the prompt's arguments, their doc comments the descriptions. Clients send
    /// texts; fields of other types are read from them.
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
            tags: Vec::new(),
            timeout: None,
            visible: None,
            enabled: true,
        }
    }

    /// For people.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.listed.title = Some(title.into());
        self
    }

    /// What the prompt is for.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.listed.description = Some(description.into());
        self
    }

    /// Says about an argument what its type does not, or adds one.
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

    /// Pictures that a host may show.
    pub fn icons(mut self, icons: impl IntoIterator<Item = Icon>) -> Self {
        self.listed.icons = Some(icons.into_iter().collect());
        self
    }

    /// `_meta`, an object: for hosts that know your names.
    ///
    /// # Panics
    /// When it is no object.
    #[track_caller]
    pub fn meta(mut self, meta: impl Serialize) -> Self {
        self.listed.meta = Some(super::object("meta", &meta));
        self
    }

    /// By which it can be shown and hidden together with others; clients don't see them.
    pub fn tags<T: Into<String>>(mut self, tags: impl IntoIterator<Item = T>) -> Self {
        self.tags = tags.into_iter().map(Into::into).collect();
        self
    }

    /// A prompt that takes longer is stopped and fails. Default: no limit.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Who sees it: `false` hides it from whoever asks, as if it were not there. It is asked each time, so that it may look at
    /// what is configured as well; the principal is whom [`HttpService`](super::HttpService) or its host let in. Default:
    /// everybody.
    pub fn visible(
        mut self,
        visible: impl Fn(Option<&Principal>) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.visible = Some(Predicate::handle(visible));
        self
    }

    /// `false`: hidden, until [`Registry::enable`](super::Registry::enable) shows it.
    pub fn enabled(mut self, enabled: bool) -> Self {
        self.enabled = enabled;
        self
    }

    fn decoder(&self) -> Result<Option<Schema>, Error> {
        let place = format!("the arguments of prompt {:?}", self.listed.name);
        self.decoder.as_ref().map(|it| super::compile(it, &place)).transpose()
    }
}

impl Sealed for Prompt {}

impl Offering for Prompt {
    fn register(mut self, offers: &mut Offers) -> Result<Registered, Error> {
        if let Some(decoder) = self.decoder()? {
            self.handler.decode_with(decoder);
        }
        self.listed.arguments = (!self.arguments.is_empty()).then_some(self.arguments);
        let mut offer = PromptOffer::new(self.listed, Arc::new(self.handler))?;
        offer.tags = self.tags;
        offer.timeout = self.timeout;
        offer.visible = self.visible;
        let key = offer.prompt.name.clone();
        let warnings = offers.prompts.add(offer, self.enabled)?;
        Ok(Registered { list: List::Prompts, key, warnings })
    }
}
