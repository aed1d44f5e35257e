//! The four lists of what a server offers, for whoever changes one without caring what is in it.

use serde::Serialize;

use super::{Changes, Component, Components, Registry};
use crate::{error::Error, protocol::json, session::server::ListKind};

/// Which list an entry is in.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum List {
    /// By name.
    Tools,
    /// By URI.
    Resources,
    /// By URI template.
    Templates,
    /// By name.
    Prompts,
}

impl List {
    /// What clients are told has changed: templates are in the list of resources.
    pub fn kind(self) -> ListKind {
        match self {
            Self::Tools => ListKind::Tools,
            Self::Resources | Self::Templates => ListKind::Resources,
            Self::Prompts => ListKind::Prompts,
        }
    }

    /// What an entry is called in a server that offers it under a prefix: URIs stay as they are.
    pub fn mounted_key(self, prefix: &str, key: &str) -> String {
        match self {
            Self::Tools | Self::Prompts => format!("{prefix}_{key}"),
            Self::Resources | Self::Templates => key.to_owned(),
        }
    }
}

/// A registry, whatever it holds. What is said of entries is said of those that are not enabled, too.
pub trait AnyRegistry {
    fn has(&self, key: &str) -> bool;
    /// In order.
    fn keys(&self) -> Vec<String>;
    /// The keys of what carries one of these tags.
    fn tagged(&self, tags: &[String]) -> Vec<String>;
    /// What clients see of one, as JSON.
    fn listed(&self, key: &str) -> Option<String>;
    fn remove(&mut self, key: &str) -> Result<(), Error>;
    /// Changes what clients see of one.
    fn update(&mut self, key: &str, changes: &Changes) -> Result<(), Error>;
    /// Shows or hides the named ones and all that carry one of the tags; whether that changed anything.
    fn set_enabled(
        &mut self,
        keys: &[String],
        tags: &[String],
        enabled: bool,
    ) -> Result<bool, Error>;
}

impl<T: Component<Listed: Serialize>> AnyRegistry for Registry<T> {
    fn has(&self, key: &str) -> bool {
        self.find(key).is_some()
    }

    fn keys(&self) -> Vec<String> {
        self.all().map(|(it, _)| it.key().to_owned()).collect()
    }

    fn tagged(&self, tags: &[String]) -> Vec<String> {
        let carries = |component: &T| component.options().tags.iter().any(|it| tags.contains(it));
        self.all().filter(|it| carries(it.0)).map(|it| it.0.key().to_owned()).collect()
    }

    fn listed(&self, key: &str) -> Option<String> {
        self.find(key).map(|it| json::to_raw(&**it.listed()).get().to_owned())
    }

    fn remove(&mut self, key: &str) -> Result<(), Error> {
        self.remove(key)
    }

    fn update(&mut self, key: &str, changes: &Changes) -> Result<(), Error> {
        self.update(key, changes)
    }

    fn set_enabled(
        &mut self,
        keys: &[String],
        tags: &[String],
        enabled: bool,
    ) -> Result<bool, Error> {
        self.set_enabled(keys, tags, enabled)
    }
}

impl Components {
    pub fn list(&self, list: List) -> &dyn AnyRegistry {
        match list {
            List::Tools => &self.tools,
            List::Resources => &self.resources,
            List::Templates => &self.templates,
            List::Prompts => &self.prompts,
        }
    }

    pub fn list_mut(&mut self, list: List) -> &mut dyn AnyRegistry {
        match list {
            List::Tools => &mut self.tools,
            List::Resources => &mut self.resources,
            List::Templates => &mut self.templates,
            List::Prompts => &mut self.prompts,
        }
    }
}
