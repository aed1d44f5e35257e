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
    router::{Component, Registry, UnresolvedComponents},
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
    /// Replaces the predicates with those of the current items.
    pub(super) fn update(&self, components: &Components) {
        let mut found = HashMap::new();
        guarded(&components.tools, |it| &it.handler, &mut found);
        guarded(&components.resources, |it| &it.handler, &mut found);
        guarded(&components.templates, |it| &it.handler, &mut found);
        guarded(&components.prompts, |it| &it.handler, &mut found);
        *self.lock() = found;
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(String, String), Arc<Predicate>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Decides which of these items a principal sees.
    pub(super) fn answer(
        &self,
        principal: Option<&Principal>,
        components: &UnresolvedComponents,
    ) -> Vec<bool> {
        let is_seen = |kind: &str, key: &str| {
            let predicate = self.lock().get(&(kind.to_owned(), key.to_owned())).cloned()?;
            let answer = predicate.ask(principal);
            if answer.is_none() {
                report(&format!("visible(…) of the {kind} {key:?} panicked, so it stays hidden"));
            }
            answer
        };
        components.keys().map(|(kind, key)| is_seen(kind, key).unwrap_or(false)).collect()
    }
}

fn guarded<T: Component>(
    registry: &Registry<T>,
    handler: impl Fn(&T) -> &Arc<Erased>,
    found: &mut HashMap<(String, String), Arc<Predicate>>,
) {
    for (component, _) in registry.all().filter(|_| registry.is_guarded()) {
        if let Some(predicate) = &handler(component).visible {
            found.insert((registry.kind().into(), component.key().into()), Arc::clone(predicate));
        }
    }
}

impl fmt::Debug for VisibilityFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VisibilityFilter").finish_non_exhaustive()
    }
}
