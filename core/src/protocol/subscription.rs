//! Subscriptions: one long request that brings what changes (since 2026-07-28).

use serde::{Deserialize, Serialize};

use super::{EmptyResult, Raw};

/// What a client wants to hear of; nothing else is sent (spec: Subscriptions).
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SubscriptionFilter {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools_list_changed: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompts_list_changed: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources_list_changed: Option<bool>,
    /// URIs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_subscriptions: Option<Vec<String>>,
}

impl SubscriptionFilter {
    /// The list of tools, too.
    #[must_use]
    pub fn tools(mut self) -> Self {
        self.tools_list_changed = Some(true);
        self
    }

    /// The list of prompts, too.
    #[must_use]
    pub fn prompts(mut self) -> Self {
        self.prompts_list_changed = Some(true);
        self
    }

    /// The list of resources, too.
    #[must_use]
    pub fn resources(mut self) -> Self {
        self.resources_list_changed = Some(true);
        self
    }

    /// What the resource with this URI holds, too.
    #[must_use]
    pub fn uri(mut self, uri: impl Into<String>) -> Self {
        self.resource_subscriptions.get_or_insert_default().push(uri.into());
        self
    }
}

/// What `subscriptions/listen` asks (spec: Subscriptions).
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct SubscriptionsListenRequestParams {
    pub notifications: SubscriptionFilter,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Raw>,
}

/// What `notifications/subscriptions/acknowledged` says: the part of the filter that the server honours
/// (spec: Subscriptions).
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct SubscriptionsAcknowledgedNotificationParams {
    pub notifications: SubscriptionFilter,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Raw>,
}

/// What `subscriptions/listen` answers when the server ends it; `_meta` names the subscription (spec: Subscriptions).
pub type SubscriptionsListenResult = EmptyResult;
