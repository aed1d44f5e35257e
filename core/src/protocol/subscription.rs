//! Subscriptions: a long-running request that delivers change notifications (since 2026-07-28).

use serde::{Deserialize, Serialize};

use super::{EmptyResult, Raw};

/// The notifications that a client subscribes to; the server sends no others (spec: Subscriptions).
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SubscriptionFilter {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools_list_changed: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompts_list_changed: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources_list_changed: Option<bool>,
    /// The URIs of resources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_subscriptions: Option<Vec<String>>,
}

impl SubscriptionFilter {
    /// Adds changes of the list of tools.
    #[must_use]
    pub fn tools(mut self) -> Self {
        self.tools_list_changed = Some(true);
        self
    }

    /// Adds changes of the list of prompts.
    #[must_use]
    pub fn prompts(mut self) -> Self {
        self.prompts_list_changed = Some(true);
        self
    }

    /// Adds changes of the list of resources.
    #[must_use]
    pub fn resources(mut self) -> Self {
        self.resources_list_changed = Some(true);
        self
    }

    /// Adds updates of the resource with this URI.
    #[must_use]
    pub fn uri(mut self, uri: impl Into<String>) -> Self {
        self.resource_subscriptions.get_or_insert_default().push(uri.into());
        self
    }
}

/// Params of `subscriptions/listen` (spec: Subscriptions).
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct SubscriptionsListenRequestParams {
    pub notifications: SubscriptionFilter,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Raw>,
}

/// Params of `notifications/subscriptions/acknowledged`: the part of the filter that the server honours
/// (spec: Subscriptions).
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct SubscriptionsAcknowledgedNotificationParams {
    pub notifications: SubscriptionFilter,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Raw>,
}

/// Result of `subscriptions/listen` when the server ends it; `_meta` names the subscription (spec: Subscriptions).
pub type SubscriptionsListenResult = EmptyResult;
