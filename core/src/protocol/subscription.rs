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
