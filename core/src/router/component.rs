//! What a tool, a resource, a template and a prompt have in common.

use std::{fmt::Debug, sync::Arc, time::Duration};

use serde_json::Value;

use super::Handler;
use crate::{
    error::Error,
    protocol::{Raw, json},
};

/// Something a server offers under a name.
pub trait Component: Clone {
    /// What clients see in a list.
    type Listed: Debug;

    /// What tells it from its siblings: a tool's name, a resource's URI.
    fn key(&self) -> &str;
    fn listed(&self) -> &Arc<Self::Listed>;
    fn options(&self) -> &ComponentOptions;
    /// What clients see beside it.
    fn meta(&self) -> Option<&Raw>;
    /// What known hosts will not take of it.
    fn lint(&self) -> Vec<String> {
        Vec::new()
    }
    /// Changes what clients see; fails on a member that can't change.
    fn update(&mut self, changes: &Changes) -> Result<(), Error>;
}

/// What is ours of a component, and nothing that clients see.
#[derive(Clone, Debug, Default)]
pub struct ComponentOptions {
    /// By which it is shown and hidden together with others.
    pub tags: Vec<String>,
    /// How long its handler may take, without what it waits for its client.
    pub timeout: Option<Duration>,
    /// The shell's own: by it the server's visibility filter knows who sees the component. `None`: everybody does.
    pub visible: Option<Handler>,
}

/// New values by the name that each has in the newest revision's JSON.
pub type Changes = serde_json::Map<String, Value>;

/// What clients see of a component, with some members changed.
pub(super) fn updated<T>(listed: &T, changes: &Changes, fixed: &[&str]) -> Result<T, Error>
where
    T: serde::Serialize + serde::de::DeserializeOwned,
{
    let mut text = serde_json::from_str::<Changes>(json::to_raw(listed).get())
        .map_err(|it| Error::misuse(it.to_string()))?;
    for (name, value) in changes {
        if fixed.contains(&name.as_str()) {
            return Err(Error::misuse(format!(
                "{name:?} can't be changed: remove the old one and register the new one"
            )));
        }
        match value.is_null() {
            true => drop(text.remove(name)),
            false => drop(text.insert(name.clone(), value.clone())),
        }
    }
    serde_json::from_str(&Value::Object(text).to_string())
        .map_err(|it| Error::misuse(format!("the changes don't fit: {it}")))
}
