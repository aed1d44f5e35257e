//! What users say of tools, resources and prompts alike.

use serde::Serialize;

use crate::{protocol::Raw, router::OfferOptions};

/// What a builder keeps of an offer beside what clients see.
#[derive(Debug)]
pub(super) struct Common {
    pub(super) options: OfferOptions,
    pub(super) enabled: bool,
}

impl Default for Common {
    fn default() -> Self {
        Self { options: OfferOptions::default(), enabled: true }
    }
}

/// The methods of a builder that has these in its field `common`, and what clients see in itself or in the field that is
/// named.
macro_rules! common_methods {
    ($($listed:ident)?) => {
        /// Pictures that a host may show.
        pub fn icons(mut self, icons: impl IntoIterator<Item = $crate::protocol::Icon>) -> Self {
            self$(.$listed)?.icons = Some(icons.into_iter().collect());
            self
        }

        /// `_meta`, an object: for hosts that know your names.
        ///
        /// # Panics
        /// When it is no object.
        #[track_caller]
        pub fn meta(mut self, meta: impl serde::Serialize) -> Self {
            self$(.$listed)?.meta = Some($crate::server::common::object("meta", &meta));
            self
        }

        /// By which it can be shown and hidden together with others; clients don't see them.
        pub fn tags<T: Into<String>>(mut self, tags: impl IntoIterator<Item = T>) -> Self {
            self.common.options.tags = tags.into_iter().map(Into::into).collect();
            self
        }

        /// Who sees it: `false` hides it from whoever asks, as if it were not there. It is asked each time, so that it may
        /// look at what is configured as well; the principal is whom [`HttpService`](crate::HttpService) or its host let
        /// in. Default: everybody.
        pub fn visible(
            mut self,
            visible: impl Fn(Option<&$crate::protocol::Principal>) -> bool + Send + Sync + 'static,
        ) -> Self {
            self.common.options.visible = Some($crate::server::visible::Predicate::handle(visible));
            self
        }

        /// `false`: hidden, until [`Registry::enable`](crate::Registry::enable) shows it.
        pub fn enabled(mut self, enabled: bool) -> Self {
            self.common.enabled = enabled;
            self
        }
    };
}

pub(super) use common_methods;

/// A member that must be an object.
#[track_caller]
pub(super) fn object(name: &str, value: &impl Serialize) -> Raw {
    match serde_json::value::to_raw_value(value) {
        Ok(json) if json.get().starts_with('{') => json,
        Ok(_) => panic!("{name} must be an object: give a map, a struct, or json!({{…}})"),
        Err(error) => panic!("{name} can't be written as JSON: {error}"),
    }
}
