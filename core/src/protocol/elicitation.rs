//! Elicitation: the server asks the user to fill in a form or to visit a URL.

use serde::{Deserialize, Serialize};

use super::{Raw, ResultType, TaskMetadata, code};
use crate::error::Error;

/// Params of `elicitation/create`; without a `mode` it is a form (spec: Elicitation).
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "mode", rename_all = "lowercase", try_from = "AnyElicitation")]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub enum ElicitRequestParams {
    Form(ElicitRequestFormParams),
    Url(ElicitRequestUrlParams),
}

/// Params of a form elicitation (spec: Elicitation).
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub struct ElicitRequestFormParams {
    pub message: String,
    /// The JSON Schema of the form: an object whose properties are strings, numbers, booleans and choices.
    pub requested_schema: Raw,
    /// Defined in 2025-11-25 only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskMetadata>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Raw>,
}

/// Params of a URL elicitation (spec: Elicitation).
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub struct ElicitRequestUrlParams {
    pub message: String,
    pub url: String,
    /// Defined in 2025-11-25 only, and required there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elicitation_id: Option<String>,
    /// Defined in 2025-11-25 only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskMetadata>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Raw>,
}

impl ElicitRequestUrlParams {
    /// Returns whether a browser can open this URL: it is absolute, has a host, and consists of valid URL characters.
    pub(crate) fn is_address(url: &str) -> bool {
        http::Uri::try_from(url).is_ok_and(|uri| uri.scheme().is_some() && uri.host().is_some())
    }
}

/// Result of `elicitation/create` (spec: Elicitation).
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub struct ElicitResult {
    pub action: ElicitAction,
    /// The form's fields as a JSON object; present only for an accepted form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<Raw>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Raw>,
}

impl ElicitResult {
    /// Creates an answer; `content` is a JSON object with the form's fields.
    pub fn new(action: ElicitAction, content: Option<Raw>) -> Self {
        Self { action, content, result_type: None, meta: None }
    }
}

/// The user's decision (spec: Elicitation).
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub enum ElicitAction {
    Accept,
    Decline,
    Cancel,
}

/// Params of `notifications/elicitation/complete`, in 2025-11-25 only (spec: Elicitation).
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ElicitationCompleteNotificationParams {
    pub elicitation_id: String,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Raw>,
}

/// The data of error -32042: the URLs to visit before the request is repeated, in 2025-11-25 only (spec:
/// Elicitation).
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct UrlElicitationRequiredData {
    pub elicitations: Vec<ElicitRequestParams>,
}

impl Error {
    /// Returns the URLs that the user must visit before the request is repeated: those of an error -32042
    /// (2025-11-25, Elicitation, "URL Elicitation Required Error"). Returns none for any other error.
    ///
    /// ```
    /// # use gudgeon::{error::Error, protocol::ElicitRequestParams};
    /// fn pages(error: &Error) -> Vec<String> {
    ///     let pages = error.elicitations().into_iter();
    ///     pages.filter_map(|page| match page {
    ///         ElicitRequestParams::Url(page) => Some(page.url),
    ///         _ => None,
    ///     })
    ///     .collect()
    /// }
    /// assert!(pages(&Error::misuse("another")).is_empty());
    /// ```
    pub fn elicitations(&self) -> Vec<ElicitRequestParams> {
        if self.code != Some(code::URL_ELICITATION_REQUIRED) {
            return Vec::new();
        }
        let data = self.data.as_ref().and_then(|data| serde_json::from_str(data.get()).ok());
        data.map(|data: UrlElicitationRequiredData| data.elicitations).unwrap_or_default()
    }
}

/// Params of either mode, before its members are checked.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AnyElicitation {
    mode: Option<String>,
    message: String,
    requested_schema: Option<Raw>,
    url: Option<String>,
    elicitation_id: Option<String>,
    task: Option<TaskMetadata>,
    #[serde(rename = "_meta")]
    meta: Option<Raw>,
}

impl TryFrom<AnyElicitation> for ElicitRequestParams {
    type Error = String;

    fn try_from(any: AnyElicitation) -> Result<Self, String> {
        let AnyElicitation { mode, message, requested_schema, url, elicitation_id, task, meta } =
            any;
        match mode.as_deref().unwrap_or("form") {
            "form" => {
                let requested_schema = requested_schema
                    .ok_or(r#"an elicitation of mode "form" needs a "requestedSchema""#)?;
                Ok(Self::Form(ElicitRequestFormParams { message, requested_schema, task, meta }))
            }
            "url" => {
                let url = url.ok_or(r#"an elicitation of mode "url" needs a "url""#)?;
                Ok(Self::Url(ElicitRequestUrlParams { message, url, elicitation_id, task, meta }))
            }
            mode => {
                Err(format!(r#"unknown mode {mode:?} of elicitation: expected "form" or "url""#))
            }
        }
    }
}
