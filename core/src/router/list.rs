//! The four lists of a server, for code that changes a list regardless of the type of its entries.

use serde::Serialize;

use super::{Changes, Component, Components, Registry};
use crate::{error::Error, protocol::json, session::server::ListKind};

/// The list that an entry belongs to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub enum List {
    /// Keyed by name.
    Tools,
    /// Keyed by URI.
    Resources,
    /// Keyed by URI template.
    Templates,
    /// Keyed by name.
    Prompts,
}

impl List {
    /// Returns the kind named in the `list_changed` notification; templates are part of the resource list.
    #[doc(hidden)] // For the drivers and the language bindings.
    pub fn kind(self) -> ListKind {
        match self {
            Self::Tools => ListKind::Tools,
            Self::Resources | Self::Templates => ListKind::Resources,
            Self::Prompts => ListKind::Prompts,
        }
    }

    /// Returns the list of this kind of component, in the singular or the plural.
    #[doc(hidden)] // For the drivers and the language bindings.
    pub fn of_kind(kind: &str) -> Result<Self, Error> {
        match kind {
            "tool" | "tools" => Ok(Self::Tools),
            "resource" | "resources" => Ok(Self::Resources),
            "resourceTemplate" | "templates" => Ok(Self::Templates),
            "prompt" | "prompts" => Ok(Self::Prompts),
            _ => Err(Error::misuse(format!("{kind:?} is not a kind of component"))),
        }
    }

    /// Returns the key of an entry after mounting with a prefix; URIs do not change.
    pub(crate) fn mounted_key(self, prefix: &str, key: &str) -> String {
        match self {
            Self::Tools | Self::Prompts => format!("{prefix}_{key}"),
            Self::Resources | Self::Templates => key.to_owned(),
        }
    }
}

/// A registry with its entry type erased. All methods include disabled entries.
pub trait AnyRegistry {
    fn has(&self, key: &str) -> bool;
    /// The keys of all entries, in order.
    fn keys(&self) -> Vec<String>;
    /// Returns whether there is an entry with this key, and it is enabled.
    fn is_enabled(&self, key: &str) -> bool;
    /// The keys of entries with at least one of these tags.
    fn tagged(&self, tags: &[String]) -> Vec<String>;
    /// The listed entry of a key, as JSON.
    fn listed(&self, key: &str) -> Option<String>;
    fn remove(&mut self, key: &str) -> Result<(), Error>;
    /// Undoes the last change, which was an addition.
    fn undo_add(&mut self);
    /// Changes the listed entry of a key.
    fn update(&mut self, key: &str, changes: &Changes) -> Result<(), Error>;
    /// Enables or disables the named entries and those with one of the tags. Returns `true` if anything changed.
    fn set_enabled(
        &mut self,
        keys: &[String],
        tags: &[String],
        enabled: bool,
    ) -> Result<bool, Error>;
}

impl<T: Component<Listed: Serialize> + Clone> AnyRegistry for Registry<T> {
    fn has(&self, key: &str) -> bool {
        self.find(key).is_some()
    }

    fn keys(&self) -> Vec<String> {
        self.all().map(|(component, _)| component.key().to_owned()).collect()
    }

    fn is_enabled(&self, key: &str) -> bool {
        self.all().any(|(component, is_enabled)| is_enabled && component.key() == key)
    }

    fn tagged(&self, tags: &[String]) -> Vec<String> {
        let carries = |component: &T| component.options().tags.iter().any(|tag| tags.contains(tag));
        self.all().filter(|entry| carries(entry.0)).map(|entry| entry.0.key().to_owned()).collect()
    }

    fn listed(&self, key: &str) -> Option<String> {
        self.find(key).map(|component| json::to_raw(&**component.listed()).get().to_owned())
    }

    fn remove(&mut self, key: &str) -> Result<(), Error> {
        self.remove(key)
    }

    fn undo_add(&mut self) {
        self.undo_add();
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
    #[doc(hidden)] // For the drivers and the language bindings.
    pub fn list(&self, list: List) -> &dyn AnyRegistry {
        match list {
            List::Tools => &self.tools,
            List::Resources => &self.resources,
            List::Templates => &self.templates,
            List::Prompts => &self.prompts,
        }
    }

    #[doc(hidden)] // For the drivers and the language bindings.
    pub fn list_mut(&mut self, list: List) -> &mut dyn AnyRegistry {
        match list {
            List::Tools => &mut self.tools,
            List::Resources => &mut self.resources,
            List::Templates => &mut self.templates,
            List::Prompts => &mut self.prompts,
        }
    }
}
