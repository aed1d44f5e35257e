//! Names and icons of programs, and icons of tools, resources and prompts.

use serde::{Deserialize, Serialize};

/// The name and version of a client or server (spec: Common Types).
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub struct Implementation {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(default)]
    pub version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub website_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub icons: Option<Vec<Icon>>,
}

/// An icon to display beside a name (spec: Icons).
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub struct Icon {
    pub src: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Sizes such as `48x48`, or `any`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sizes: Option<Vec<String>>,
    /// The background that the icon was drawn for: `light` or `dark`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub theme: Option<String>,
}

impl Implementation {
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self { name: name.into(), version: version.into(), ..Self::default() }
    }
}

/// A name, without a version.
impl From<&str> for Implementation {
    fn from(name: &str) -> Self {
        Self::new(name, "")
    }
}

/// A name, without a version.
impl From<String> for Implementation {
    fn from(name: String) -> Self {
        Self::new(name, "")
    }
}

/// An icon at this URL.
impl From<&str> for Icon {
    fn from(src: &str) -> Self {
        Self { src: src.into(), ..Self::default() }
    }
}
