//! Who sees what. Predicates belong to the shell, and only handlers of its own may run them: where a request touches components
//! that are not for everybody, the server's visibility filter is asked first, by kind and key.

use std::collections::HashSet;

use serde_json::json;

use super::{Components, Handler, Registry, component::Component, handler::Reply};
use crate::protocol::{CompletionTarget, Method, Principal, Request};

/// Which of the components with a predicate somebody sees; those without are for everybody.
#[derive(Clone, Debug, Default)]
pub struct Visibility(Option<HashSet<(&'static str, String)>>);

/// What the visibility filter is asked about one request: kinds and keys of components.
#[derive(Clone, Debug)]
pub struct UnresolvedComponents(Vec<(&'static str, String)>);

impl Visibility {
    /// Of the server itself: everything.
    pub fn everything() -> Self {
        Self(None)
    }

    /// Of somebody of whom the visibility filter said nothing: only what is for everybody.
    pub fn public() -> Self {
        Self(Some(HashSet::new()))
    }

    pub(super) fn sees<T: Component>(&self, kind: &'static str, component: &T) -> bool {
        let Self(Some(shown)) = self else { return true };
        component.options().visible.is_none() || shown.contains(&(kind, component.key().to_owned()))
    }
}

impl UnresolvedComponents {
    /// What the visibility filter is given: `{"principal", "components"}`, of which the second is a list of kinds and keys.
    pub fn question(&self, principal: Option<&Principal>) -> String {
        json!({ "principal": principal, "components": self.0 }).to_string()
    }

    /// What somebody sees whom the visibility filter answers so: a list of booleans, in the order of the question. Without an answer
    /// that is one, what was in doubt stays hidden.
    pub fn resolved(self, verdict: Option<Reply>) -> Visibility {
        let verdicts = match verdict {
            Some(Reply::Json(text) | Reply::Result(text) | Reply::Parts(text)) => {
                serde_json::from_str::<Vec<bool>>(&text).unwrap_or_default()
            }
            _ => Vec::new(),
        };
        let shown = self.0.into_iter().zip(verdicts).filter(|(_, shown)| *shown);
        Visibility(Some(shown.map(|(component, _)| component).collect()))
    }
}

impl Components {
    /// Answers who sees what. It is given [`UnresolvedComponents::question`].
    pub fn set_visibility_filter(&mut self, visibility_filter: Handler) {
        self.visibility_filter = Some(visibility_filter);
    }

    pub fn visibility_filter(&self) -> Option<&Handler> {
        self.visibility_filter.as_ref()
    }

    /// The components that a request touches and that are not for everybody; `None`: there are none.
    pub fn unresolved(&self, request: &Request) -> Option<UnresolvedComponents> {
        let guarded = self.tools.is_guarded()
            || self.resources.is_guarded()
            || self.templates.is_guarded()
            || self.prompts.is_guarded();
        if !guarded {
            return None;
        }
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
        (!found.is_empty()).then_some(UnresolvedComponents(found))
    }

    /// Whatever may be read at a URI, or is a template with this text.
    fn at(&self, uri: &str, found: &mut Vec<(&'static str, String)>) {
        one(&self.resources, uri, found);
        let concerns =
            |it: &super::RegisteredTemplate| it.key() == uri || it.uri.match_uri(uri).is_some();
        self.templates.guarded(concerns, found);
    }
}

fn one<T: Component>(registry: &Registry<T>, key: &str, found: &mut Vec<(&'static str, String)>) {
    if registry.get(key).is_some_and(|it| it.options().visible.is_some()) {
        found.push((registry.kind(), key.to_owned()));
    }
}
