//! The options that tools, resources and prompts share.

use std::time::Duration;

use serde::Serialize;

use super::{handler::Erased, visible::Predicate};
use crate::{
    protocol::{Icon, Principal, Raw},
    router::ComponentOptions,
};

/// A [`Tool`](super::Tool), [`Resource`](super::Resource) or [`Prompt`](super::Prompt) and its options.
#[derive(Debug)]
#[must_use = "it is available only after it is added to a server"]
pub struct Entry<Parts> {
    /// The options of this kind only.
    pub(super) parts: Parts,
    pub(super) title: Option<String>,
    pub(super) description: Option<String>,
    pub(super) icons: Option<Vec<Icon>>,
    pub(super) meta: Option<Raw>,
    pub(super) handler: Erased,
    pub(super) options: ComponentOptions,
    pub(super) enabled: bool,
}

impl<Parts> Entry<Parts> {
    pub(super) fn with_parts(parts: Parts, handler: Erased) -> Self {
        Self {
            parts,
            title: None,
            description: None,
            icons: None,
            meta: None,
            handler,
            options: ComponentOptions::default(),
            enabled: true,
        }
    }

    /// Sets the name to display.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Sets the description. A tool's is for models: what the tool does and when to use it.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Sets icons that a host may display.
    pub fn icons<I: Into<Icon>>(mut self, icons: impl IntoIterator<Item = I>) -> Self {
        self.icons = Some(icons.into_iter().map(Into::into).collect());
        self
    }

    /// Sets the published `_meta`, which must serialize as an object.
    ///
    /// # Panics
    /// Panics if it does not serialize as an object.
    #[track_caller]
    pub fn meta(mut self, meta: impl Serialize) -> Self {
        self.meta = Some(object("meta", &meta));
        self
    }

    /// Sets the time limit of the handler, after which the request fails. Time in which the handler waits for its
    /// client's answer does not count ([`ServerOptions::suspended_ttl`](super::ServerOptions::suspended_ttl) limits it). Default: no limit.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.options.timeout = Some(timeout);
        self
    }

    /// Sets tags, by which entries can be enabled and disabled together. Tags are not sent to clients.
    pub fn tags<T: Into<String>>(mut self, tags: impl IntoIterator<Item = T>) -> Self {
        self.options.tags = tags.into_iter().map(Into::into).collect();
        self
    }

    /// Sets a function that decides, for each request, whether the entry is visible; `false` hides it as if it did
    /// not exist. Its argument is the principal that [`HttpService`](crate::HttpService) or its host has
    /// authenticated. Default: visible to everybody.
    pub fn visible(
        mut self,
        visible: impl Fn(Option<&Principal>) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.options.is_guarded = true;
        self.handler.visible = Some(Predicate::new(visible));
        self
    }

    /// Sets the scopes that a caller over a network needs to use the entry; others are answered with 403, which names the
    /// scopes. Default: none. Spec: Authorization › Runtime Insufficient Scope Errors.
    pub fn scopes<T: Into<String>>(mut self, scopes: impl IntoIterator<Item = T>) -> Self {
        self.options.scopes = scopes.into_iter().map(Into::into).collect();
        self
    }

    /// If false, the entry is hidden until [`Registry::set_enabled`](super::Registry::set_enabled) shows it. Default: true.
    pub fn enabled(mut self, enabled: bool) -> Self {
        self.enabled = enabled;
        self
    }
}

/// Serializes a value that must be an object.
#[track_caller]
fn object(name: &str, value: &impl Serialize) -> Raw {
    match serde_json::value::to_raw_value(value) {
        Ok(json) if json.get().starts_with('{') => json,
        Ok(_) => panic!("{name} must be an object; pass a map, a struct, or json!({{…}})"),
        Err(error) => panic!("{name} can't be written as JSON: {error}"),
    }
}
