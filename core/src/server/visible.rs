//! Visibility predicates of users, and their evaluation for the core.

use std::{
    collections::HashMap,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::{
    handler::{Components, Erased},
    run::report,
};
use crate::{
    protocol::Principal,
    router::{Component, Handler, List, Registry},
};

/// A predicate that decides by principal whether an item is visible.
pub(super) struct Predicate(Box<Visible>);

type Visible = dyn Fn(Option<&Principal>) -> bool + Send + Sync;

/// The predicates of the current items, by kind and key.
#[derive(Default)]
pub(super) struct VisibilityFilter(Mutex<HashMap<(String, String), Arc<Predicate>>>);

impl Predicate {
    pub(super) fn new(
        visible: impl Fn(Option<&Principal>) -> bool + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self(Box::new(visible)))
    }

    /// Evaluates the predicate; a panic hides the item.
    fn ask(&self, principal: Option<&Principal>) -> Option<bool> {
        catch_unwind(AssertUnwindSafe(|| (self.0)(principal))).ok()
    }
}

impl VisibilityFilter {
    /// Adds the predicate of an item, if it has one.
    pub(super) fn add(&self, components: &Components, list: List, key: &str) {
        let (kind, handler) = match list {
            List::Tools => found(&components.tools, key, |tool| &tool.handler),
            List::Resources => found(&components.resources, key, |resource| &resource.handler),
            List::Templates => found(&components.templates, key, |template| &template.handler),
            List::Prompts => found(&components.prompts, key, |prompt| &prompt.handler),
        };
        if let Some(predicate) = handler.and_then(|kept| Erased::from_kept(kept).visible.clone()) {
            self.lock().insert((kind.to_owned(), key.to_owned()), predicate);
        }
    }

    /// Forgets the predicate of an item that was removed.
    pub(super) fn remove(&self, components: &Components, list: List, key: &str) {
        let kind = match list {
            List::Tools => components.tools.kind(),
            List::Resources => components.resources.kind(),
            List::Templates => components.templates.kind(),
            List::Prompts => components.prompts.kind(),
        };
        self.lock().remove(&(kind.to_owned(), key.to_owned()));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(String, String), Arc<Predicate>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Decides which of these items a principal sees.
    pub(super) fn answer(
        &self,
        principal: Option<&Principal>,
        components: &[(&'static str, String)],
    ) -> Vec<bool> {
        let is_seen = |kind: &str, key: &str| {
            let predicate = self.lock().get(&(kind.to_owned(), key.to_owned())).cloned()?;
            let answer = predicate.ask(principal);
            if answer.is_none() {
                report(&format!("visible(…) of the {kind} {key:?} panicked, so it stays hidden"));
            }
            answer
        };
        components.iter().map(|(kind, key)| is_seen(kind, key).unwrap_or(false)).collect()
    }
}

/// Returns the kind of a registry, and the handler of one of its components.
fn found<'a, T: Component>(
    registry: &'a Registry<T>,
    key: &str,
    handler: impl Fn(&T) -> &Handler,
) -> (&'static str, Option<&'a Handler>) {
    (registry.kind(), registry.find(key).map(|component| handler(component)))
}

impl fmt::Debug for VisibilityFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VisibilityFilter").finish_non_exhaustive()
    }
}
