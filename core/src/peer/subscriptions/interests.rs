//! The lists and URIs that a subscription covers.

use std::{collections::BTreeSet, fmt::Write};

use crate::{
    error::Error,
    protocol::SubscriptionFilter,
    session::client::{Change, ListKind},
};

/// The maximum number of URIs named in an error.
const SHOWN: usize = 3;

/// A subscription filter without duplicates.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Interests {
    lists: BTreeSet<ListKind>,
    uris: BTreeSet<String>,
}

impl Interests {
    /// Converts a filter. Errors with kind `Misuse` if the filter is empty.
    pub fn from_filter(filter: &SubscriptionFilter) -> Result<Self, Error> {
        let lists = [
            (filter.tools_list_changed, ListKind::Tools),
            (filter.resources_list_changed, ListKind::Resources),
            (filter.prompts_list_changed, ListKind::Prompts),
        ];
        let lists = lists.into_iter().filter(|(asked, _)| *asked == Some(true));
        let uris = filter.resource_subscriptions.iter().flatten().cloned();
        let this = Self { lists: lists.map(|(_, list)| list).collect(), uris: uris.collect() };
        match this.lists.is_empty() && this.uris.is_empty() {
            true => Err(Error::misuse(
                "the subscription is empty; name URIs of resources, or the list of tools, prompts or resources",
            )),
            false => Ok(this),
        }
    }

    /// Converts to the protocol's subscription filter.
    pub fn filter(&self) -> SubscriptionFilter {
        let asked = |list| self.lists.contains(&list).then_some(true);
        SubscriptionFilter {
            tools_list_changed: asked(ListKind::Tools),
            prompts_list_changed: asked(ListKind::Prompts),
            resources_list_changed: asked(ListKind::Resources),
            resource_subscriptions: (!self.uris.is_empty())
                .then(|| self.uris.iter().cloned().collect()),
        }
    }

    /// Describes the part of the filter that the server did not acknowledge.
    pub(super) fn left_out(&self, kept: &SubscriptionFilter) -> Option<String> {
        let kept = Self::from_filter(kept).unwrap_or_default();
        let mut out = Vec::new();
        for list in self.lists.difference(&kept.lists) {
            out.push(match list {
                ListKind::Tools => "when its tools change".to_owned(),
                ListKind::Resources => "when its resources change".to_owned(),
                ListKind::Prompts => "when its prompts change".to_owned(),
            });
        }
        let uris: Vec<_> = self.uris.difference(&kept.uris).collect();
        if !uris.is_empty() {
            let shown: Vec<_> = uris.iter().take(SHOWN).map(|uri| uri.as_str()).collect();
            let mut said = format!("when {} is updated", shown.join(", "));
            if uris.len() > SHOWN {
                let _ = write!(said, " (and {} more)", uris.len() - SHOWN);
            }
            out.push(said);
        }
        (!out.is_empty()).then(|| out.join(", nor "))
    }

    pub(super) fn uris(&self) -> impl Iterator<Item = &String> {
        self.uris.iter()
    }

    /// Returns everything that may have changed while the subscription was broken.
    pub(super) fn all(&self) -> impl Iterator<Item = Change> {
        let lists = self.lists.iter().map(|kind| Change::List(*kind));
        lists.chain(self.uris.iter().cloned().map(Change::Updated))
    }

    /// Returns the number of lists and URIs.
    pub(super) fn len(&self) -> usize {
        self.lists.len() + self.uris.len()
    }

    /// Returns whether the filter names the changed list or resource, or a resource that contains the changed one.
    pub(super) fn cover(&self, change: &Change) -> bool {
        match change {
            Change::List(list) => self.lists.contains(list),
            Change::Updated(uri) => self.covering(uri).is_some(),
        }
    }

    /// Returns whether the change may belong to this subscription's own request. There the server decides which
    /// resources are part of a subscribed one, so any URI is allowed if the filter names at least one.
    pub(super) fn allow(&self, change: &Change) -> bool {
        match change {
            Change::List(list) => self.lists.contains(list),
            Change::Updated(_) => !self.uris.is_empty(),
        }
    }

    /// Returns the subscribed URI that contains this URI ("This might be a sub-resource of the one that the client
    /// actually subscribed to").
    pub(super) fn covering(&self, uri: &str) -> Option<&str> {
        if let Some(own) = self.uris.get(uri) {
            return Some(own);
        }
        uri.char_indices()
            .rev()
            .filter(|(_, character)| matches!(character, '/' | '?' | '#'))
            .find_map(|(at, delimiter)| {
                let folder = (delimiter == '/').then(|| self.uris.get(&uri[..=at])).flatten();
                folder.or_else(|| self.uris.get(&uri[..at])).map(String::as_str)
            })
    }
}
