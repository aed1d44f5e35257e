//! Checks of a request against the server's capabilities, before it is sent.

use serde_json::value::RawValue;

use super::{ListKind, ServerIdentity};
use crate::{
    error::{Error, ErrorKind},
    protocol::{Dialect, Members, Method, MethodName, Raw, SubscriptionFilter},
    wire::Wire,
};

/// Errors if the revision lacks the method, or the server did not declare the required capability.
pub(super) fn check(
    wire: &Wire,
    server: &ServerIdentity,
    method: &MethodName,
) -> Result<(), Error> {
    let MethodName::Standard(method) = method else { return Ok(()) };
    let who = || match server.info.name.as_str() {
        "" => "the server".to_owned(),
        name => format!("the server {name:?}"),
    };
    if !wire.client_requests.contains(method) {
        let message =
            format!("{} has no {}, the revision of {} speaks", wire.name(), method.as_str(), who());
        return Err(Error::new(ErrorKind::Unsupported, message));
    }
    let Some((capability, detail)) = needed(wire, *method) else { return Ok(()) };
    let declared = server.declared(capability);
    let missing = match (declared, detail) {
        (None, _) => capability.to_owned(),
        (Some(value), Some(detail)) if !is_set(&value, detail) => format!("{capability}.{detail}"),
        _ => return Ok(()),
    };
    let message = format!(
        "{} can't answer {}: it did not declare the capability {missing:?}",
        who(),
        method.as_str()
    );
    Err(Error::new(ErrorKind::Unsupported, message))
}

impl ServerIdentity {
    /// Returns `true` if the server answers requests with this method, by its revision and its capabilities.
    pub(crate) fn answers(&self, method: Method) -> bool {
        check(self.spoken().wire(), self, &method.into()).is_ok()
    }

    /// Returns `true` if a subscription is one long-running request (from 2026-07-28).
    pub(crate) fn has_listen(&self) -> bool {
        self.spoken().wire().client_requests.contains(&Method::Listen)
    }

    /// Returns `true` if the server declared change notifications for this list.
    pub(crate) fn notifies_of(&self, list: ListKind) -> bool {
        self.check_list(list).is_ok()
    }

    /// Returns `true` if the server declared notifications of updated resources.
    pub(crate) fn notifies_of_updates(&self) -> bool {
        self.check_updates().is_ok()
    }

    /// Errors if the server did not declare the notifications that this filter needs.
    pub(crate) fn check_filter(&self, filter: &SubscriptionFilter) -> Result<(), Error> {
        for (asked, list) in [
            (filter.tools_list_changed, ListKind::Tools),
            (filter.resources_list_changed, ListKind::Resources),
            (filter.prompts_list_changed, ListKind::Prompts),
        ] {
            if asked == Some(true) {
                self.check_list(list)?;
            }
        }
        match &filter.resource_subscriptions {
            Some(uris) if !uris.is_empty() => self.check_updates(),
            _ => Ok(()),
        }
    }

    fn check_list(&self, list: ListKind) -> Result<(), Error> {
        let method = match list {
            ListKind::Tools => Method::ToolListChanged,
            ListKind::Resources => Method::ResourceListChanged,
            ListKind::Prompts => Method::PromptListChanged,
        };
        let name = list.as_str();
        let what = format!("the server does not report when its {name} change");
        self.check_capability(&what, method, name, "listChanged")
    }

    fn check_updates(&self) -> Result<(), Error> {
        let what = "the server sends no notification when a resource is updated";
        self.check_capability(what, Method::ResourceUpdated, "resources", "subscribe")
    }

    fn check_capability(
        &self,
        what: &str,
        method: Method,
        capability: &str,
        detail: &str,
    ) -> Result<(), Error> {
        let wire = self.spoken().wire();
        let why = if !wire.server_notifications.contains(&method) {
            format!("{} has no {}", wire.name(), method.as_str())
        } else if !self.declared(capability).is_some_and(|value| is_set(&value, detail)) {
            format!("it did not declare {capability}.{detail}")
        } else {
            return Ok(());
        };
        Err(Error::new(ErrorKind::Unsupported, format!("{what}: {why}")))
    }

    /// Returns the declared value of a capability.
    pub(crate) fn declared(&self, capability: &str) -> Option<Raw> {
        member(&self.capabilities, capability)
            .filter(|value| !matches!(value.get(), "null" | "false"))
    }
}

fn needed(wire: &Wire, method: Method) -> Option<(&'static str, Option<&'static str>)> {
    // The format of the capability values is not defined.
    if wire.dialect == Some(Dialect::V0_7) {
        return None;
    }
    match method {
        Method::ListTools | Method::CallTool => Some(("tools", None)),
        Method::ListPrompts | Method::GetPrompt => Some(("prompts", None)),
        Method::ListResources | Method::ListResourceTemplates | Method::ReadResource => {
            Some(("resources", None))
        }
        Method::Subscribe | Method::Unsubscribe => Some(("resources", Some("subscribe"))),
        Method::Complete if wire.vocabulary.completions_capability => Some(("completions", None)),
        Method::SetLevel => Some(("logging", None)),
        _ => None,
    }
}

fn is_set(capability: &RawValue, detail: &str) -> bool {
    member(capability, detail).is_some_and(|value| value.get() == "true")
}

fn member(object: &RawValue, name: &str) -> Option<Raw> {
    let members: Members<Raw> = serde_json::from_str(object.get()).ok()?;
    members.get(name).cloned()
}
