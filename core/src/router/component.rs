//! The interface shared by registered tools, resources, templates and prompts.

use std::{fmt::Debug, sync::Arc, time::Duration};

use serde_json::Value;

use crate::{
    error::Error,
    protocol::{CacheScope, Raw, json, unknown::Entry},
};

/// A tool, resource, template or prompt registered with a server.
pub trait Component {
    /// The entry that clients see in a list.
    type Listed: Debug;

    /// The key, unique in its registry: a tool's name, a resource's URI.
    fn key(&self) -> &str;
    fn listed(&self) -> &Arc<Self::Listed>;
    fn options(&self) -> &ComponentOptions;
    /// The `_meta` of the listed entry.
    fn meta(&self) -> Option<&Raw>;
    /// Returns warnings about properties that known hosts reject.
    fn lint(&self) -> Vec<String> {
        Vec::new()
    }
    /// Returns whether the check of a small request or reply may take long.
    fn checks_slowly(&self) -> bool {
        false
    }
    /// Changes the listed entry. Errors if a member can't be changed.
    fn update(&mut self, changes: &Changes) -> Result<(), Error>;
}

/// The options of a component that are not part of the protocol; clients never see them.
#[derive(Clone, Debug, Default)]
pub struct ComponentOptions {
    /// Tags by which components are enabled and disabled together.
    pub tags: Vec<String>,
    /// The maximum run time of the handler; time spent waiting for the client does not count.
    pub timeout: Option<Duration>,
    /// `true` if the visibility filter decides who sees the component; otherwise everyone does.
    pub is_guarded: bool,
    /// The maximum number of concurrent calls of a tool; suspended calls do not count.
    pub concurrency: Option<usize>,
    /// `true` if a tool's handler must not be run again from its start after the client answers.
    pub forbids_replay: bool,
    /// The time that clients may cache what they read from a resource.
    pub cache_ttl: Duration,
    /// The scope of such caches; `None`: public, or private if the caller can be identified.
    pub cache_scope: Option<CacheScope>,
    /// The variables of a template that are paths, besides `{+x}`. No value leads out of a folder.
    pub paths: Vec<String>,
    /// The variables of a template that take any value, although they are paths.
    pub unchecked_paths: Vec<String>,
    /// The time that the server caches what is read from a resource, per URI and principal.
    pub keep: Option<Duration>,
    /// The scopes that a caller over a network needs.
    pub scopes: Vec<String>,
}

/// New values of members, by their names in the JSON of the newest revision.
pub type Changes = serde_json::Map<String, Value>;

/// The members that can change, by their names in the JSON of the newest revision. The others decide how calls are
/// answered.
pub(crate) mod changeable {
    pub(crate) const TOOL: &[&str] = &["title", "description", "icons", "_meta", "annotations"];
    pub(crate) const RESOURCE: &[&str] =
        &["name", "title", "description", "icons", "_meta", "annotations", "mimeType", "size"];
    pub(crate) const RESOURCE_TEMPLATE: &[&str] =
        &["name", "title", "description", "icons", "_meta", "annotations", "mimeType"];
    pub(crate) const PROMPT: &[&str] = &["title", "description", "icons", "_meta"];
}

/// Returns a copy of a listed entry with some members changed. Errors if one is not in `changeable`.
pub(super) fn updated<T>(listed: &T, changes: &Changes, changeable: &[&str]) -> Result<T, Error>
where
    T: Entry + serde::de::DeserializeOwned,
{
    let mut text = serde_json::from_str::<Changes>(json::to_raw(listed).get())
        .map_err(|error| Error::misuse(error.to_string()))?;
    for (name, value) in changes {
        if !changeable.contains(&name.as_str()) {
            return Err(Error::misuse(format!(
                "{name:?} can't be changed: remove the old one and register the new one"
            )));
        }
        match value.is_null() {
            true => drop(text.remove(name)),
            false => drop(text.insert(name.clone(), value.clone())),
        }
    }
    let mut entry: T = serde_json::from_str(&Value::Object(text).to_string())
        .map_err(|error| Error::misuse(format!("the changes are not valid: {error}")))?;
    entry.set_unknown(listed.unknown().cloned());
    Ok(entry)
}
