//! Options shared by the builders of tools, resources and prompts.

use serde::Serialize;

use crate::{protocol::Raw, router::ComponentOptions};

/// Options of a tool, resource or prompt that are not sent to clients.
#[derive(Debug)]
pub(super) struct Common {
    pub(super) options: ComponentOptions,
    pub(super) enabled: bool,
}

impl Default for Common {
    fn default() -> Self {
        Self { options: ComponentOptions::default(), enabled: true }
    }
}

/// Defines the shared methods of a builder that has these options in its field `common`. The published members are in
/// the builder itself, or in the field given.
macro_rules! common_methods {
    ($($listed:ident)?) => {
        /// Sets icons that a host may display.
        pub fn icons(mut self, icons: impl IntoIterator<Item = $crate::protocol::Icon>) -> Self {
            self$(.$listed)?.icons = Some(icons.into_iter().collect());
            self
        }

        /// Sets the published `_meta`, which must serialize as an object.
        ///
        /// # Panics
        /// Panics if it does not serialize as an object.
        #[track_caller]
        pub fn meta(mut self, meta: impl serde::Serialize) -> Self {
            self$(.$listed)?.meta = Some($crate::server::common::object("meta", &meta));
            self
        }

        /// Sets tags, by which entries can be enabled and disabled together. Tags are not sent to clients.
        pub fn tags<T: Into<String>>(mut self, tags: impl IntoIterator<Item = T>) -> Self {
            self.common.options.tags = tags.into_iter().map(Into::into).collect();
            self
        }

        /// Sets a function that decides, for each request, whether the entry is visible; `false` hides it as if it
        /// did not exist. Its argument is the principal that [`HttpService`](crate::HttpService) or its host has
        /// authenticated. Default: visible to everybody.
        pub fn visible(
            mut self,
            visible: impl Fn(Option<&$crate::protocol::Principal>) -> bool + Send + Sync + 'static,
        ) -> Self {
            self.common.options.is_guarded = true;
            self.handler.visible = Some($crate::server::visible::Predicate::new(visible));
            self
        }

        /// If false, the entry is hidden until [`Registry::enable`](crate::Registry::enable) is called. Default:
        /// true.
        pub fn enabled(mut self, enabled: bool) -> Self {
            self.common.enabled = enabled;
            self
        }
    };
}

pub(super) use common_methods;

/// Serializes a value that must be an object.
#[track_caller]
pub(super) fn object(name: &str, value: &impl Serialize) -> Raw {
    match serde_json::value::to_raw_value(value) {
        Ok(json) if json.get().starts_with('{') => json,
        Ok(_) => panic!("{name} must be an object; pass a map, a struct, or json!({{…}})"),
        Err(error) => panic!("{name} can't be written as JSON: {error}"),
    }
}
