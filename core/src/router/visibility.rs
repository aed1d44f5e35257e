//! Visibility of components. Predicates are functions of the host's language. Before a request that touches components
//! with a predicate is dispatched, the host is asked which of them the caller sees. A server may also hide the components
//! whose scopes the caller lacks.

use std::{
    collections::{BTreeSet, HashSet},
    sync::Arc,
};

use serde_json::json;

use super::{ComponentOptions, Components, Registry, component::Component};
use crate::protocol::{
    CompletionTarget, Method, Principal, Request, scope_hierarchy::ScopeHierarchy,
};

/// The components that a caller may see.
#[derive(Clone, Debug, Default)]
pub struct Visibility {
    /// The visible components of those with a predicate; `None`: all.
    shown: Option<HashSet<(&'static str, String)>>,
    /// The scopes of the caller, if components that need others are hidden.
    granted: Option<BTreeSet<String>>,
}

impl Visibility {
    /// Creates the visibility of the server itself: all components.
    pub fn everything() -> Self {
        Self::default()
    }

    /// Creates the visibility of a caller without a filter result: public components only.
    pub fn public() -> Self {
        Self { shown: Some(HashSet::new()), granted: None }
    }

    /// Applies the host's answers about these components, given by kind and key, in the same order. Components without an
    /// answer are hidden.
    pub fn resolved(components: &[(&'static str, String)], answers: &[bool]) -> Self {
        let shown = components.iter().zip(answers).filter(|(_, shown)| **shown);
        Self { shown: Some(shown.map(|(component, _)| component.clone()).collect()), granted: None }
    }

    /// Returns whether the caller's scopes restrict what it sees.
    pub(super) fn is_by_scope(&self) -> bool {
        self.granted.is_some()
    }

    /// Returns whether the caller sees this component.
    pub(super) fn shows<T: Component>(&self, kind: &'static str, component: &T) -> bool {
        self.passes(kind, component) && self.grants(component.options())
    }

    /// Returns whether the component's predicate, if it has one, lets the caller see it.
    pub(super) fn passes<T: Component>(&self, kind: &'static str, component: &T) -> bool {
        let has = |shown: &HashSet<_>| shown.contains(&(kind, component.key().to_owned()));
        !component.options().is_guarded || self.shown.as_ref().is_none_or(has)
    }

    /// Returns whether the caller has the scopes without which a component is hidden from it.
    pub(super) fn grants(&self, options: &ComponentOptions) -> bool {
        let has_all =
            |granted: &BTreeSet<_>| options.scopes.iter().all(|scope| granted.contains(scope));
        self.granted.as_ref().is_none_or(has_all)
    }
}

/// Returns the question whether a principal sees these components as JSON, for hosts in other languages: `{"principal",
/// "components"}`, where `components` is a list of `[kind, key]` pairs.
pub fn visibility_question(
    principal: Option<&Principal>,
    components: &[(&'static str, String)],
) -> String {
    json!({ "principal": principal, "components": components }).to_string()
}

impl Components {
    /// Returns the kind and key of the components with a predicate that a request touches; `None` if there are none.
    #[doc(hidden)] // For the drivers and the language bindings.
    pub fn unresolved(&self, request: &Request) -> Option<Arc<[(&'static str, String)]>> {
        let mut found = Vec::new();
        match request {
            Request::ListTools { .. } | Request::ListWhole { list: Method::ListTools } => {
                self.tools.guarded(|_| true, &mut found);
            }
            Request::ListPrompts { .. } | Request::ListWhole { list: Method::ListPrompts } => {
                self.prompts.guarded(|_| true, &mut found);
            }
            Request::ListResources { .. } => self.resources.guarded(|_| true, &mut found),
            Request::ListResourceTemplates { .. } => self.templates.guarded(|_| true, &mut found),
            Request::ListWhole { .. } => {
                self.resources.guarded(|_| true, &mut found);
                self.templates.guarded(|_| true, &mut found);
            }
            Request::CallTool { name, .. } => one(&self.tools, name, &mut found),
            Request::GetPrompt { name, .. } => one(&self.prompts, name, &mut found),
            Request::ReadResource { uri, .. } | Request::Subscribe { uri } => {
                self.at(uri, &mut found);
            }
            Request::Complete(request) => match &request.target {
                CompletionTarget::Prompt(name) => one(&self.prompts, name, &mut found),
                CompletionTarget::Resource(uri) => self.at(uri, &mut found),
            },
            Request::Listen { notifications } => {
                for uri in notifications.resource_subscriptions.iter().flatten() {
                    self.at(uri, &mut found);
                }
            }
            _ => (),
        }
        (!found.is_empty()).then(|| found.into())
    }

    /// Hides the components whose scopes a caller lacks, if the server hides them. Callers that no network separates from the
    /// server need no scopes.
    pub(crate) fn hide_by_scope(
        &self,
        visibility: Visibility,
        principal: Option<&Principal>,
        is_remote: bool,
    ) -> Visibility {
        if !self.server.hide_unauthorized || !is_remote && principal.is_none() {
            return visibility;
        }
        let hierarchy = ScopeHierarchy::new(self.server.scope_implies.clone());
        let granted =
            principal.map(|principal| hierarchy.expand(&principal.scopes)).unwrap_or_default();
        Visibility { granted: Some(granted), ..visibility }
    }

    /// Returns whether callers may be told that a resource does not exist although it does.
    pub(super) fn may_hide_resources(&self) -> bool {
        self.server.hide_unauthorized || self.resources.is_guarded() || self.templates.is_guarded()
    }

    /// Collects the resource with this URI, and templates that match it or are equal to it.
    fn at(&self, uri: &str, found: &mut Vec<(&'static str, String)>) {
        one(&self.resources, uri, found);
        let concerns = |template: &super::RegisteredTemplate| {
            template.key() == uri || template.match_uri(uri).is_some()
        };
        self.templates.guarded(concerns, found);
    }
}

fn one<T: Component>(registry: &Registry<T>, key: &str, found: &mut Vec<(&'static str, String)>) {
    if registry.get(key).is_some_and(|component| component.options().is_guarded) {
        found.push((registry.kind(), key.to_owned()));
    }
}
