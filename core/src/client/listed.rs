//! The entries and pages of lists.

use crate::{
    peer::ListKind as ListName,
    protocol::{Prompt, Resource, ResourceTemplate, Tool},
};

/// A page of a list.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub struct PageOf<T> {
    /// The entries of the page.
    pub items: Vec<T>,
    /// The cursor of the next page; `None` on the last page.
    pub next_cursor: Option<String>,
}

/// An entry of a list that [`Client::list`](super::Client::list) and [`Client::list_page`](super::Client::list_page) fetch.
pub trait Listed: sealed::Listed {}

pub(super) mod sealed {
    #[expect(unnameable_types, reason = "so that nobody else implements `Listed`")]
    pub trait Listed: for<'de> serde::Deserialize<'de> {
        const LIST: super::ListName;
    }
}

/// Implements [`Listed`] for the entries of a list.
macro_rules! listed {
    ($($entry:ty => $list:ident),*) => {$(
        impl Listed for $entry {}

        impl sealed::Listed for $entry {
            const LIST: ListName = ListName::$list;
        }
    )*};
}

listed!(Tool => Tools, Resource => Resources, ResourceTemplate => ResourceTemplates, Prompt => Prompts);
