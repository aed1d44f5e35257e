//! Changes to a server's tools, resources and prompts, and their propagation to the servers that it is mounted into.

use std::sync::Arc;

use super::{
    handler::{self, Components},
    middleware::Stack,
    registry::Hub,
};
use crate::{
    error::Error,
    router::{Changes, List},
    session::server::ListKind,
};

/// A server that another one is mounted into.
pub(super) struct Outer {
    /// Owned here, because an intermediate server may have no other owner.
    pub(super) hub: Arc<Hub>,
    pub(super) prefix: String,
    /// The middleware of the mounted server.
    pub(super) stack: Arc<Stack>,
}

pub(super) enum Change {
    Remove(List, String),
    Update(List, String, Changes),
    Enable {
        list: List,
        keys: Vec<String>,
        tags: Vec<String>,
        enabled: bool,
    },
    /// A mounted server has a new tool, resource or prompt.
    Follow {
        list: List,
        key: String,
        components: Components,
        prefix: String,
        stack: Arc<Stack>,
    },
}

/// The outcome of a change.
#[derive(Default)]
pub(super) struct Changed {
    /// The changed list; `None` if the change is not visible in any list.
    pub(super) list: Option<ListKind>,
    /// Reasons why known hosts will not accept the changed entry.
    pub(super) warnings: Vec<String>,
}

impl Outer {
    /// Returns the change that adds the entry registered under this key to the outer server.
    pub(super) fn follow(&self, list: List, key: &str, components: &Components) -> Change {
        Change::Follow {
            list,
            key: key.to_owned(),
            components: components.clone(),
            prefix: self.prefix.clone(),
            stack: Arc::clone(&self.stack),
        }
    }
}

impl Change {
    pub(super) fn make(&self, components: &mut Components) -> Result<Changed, Error> {
        let mut warnings = Vec::new();
        let list = match self {
            Self::Remove(list, key) => {
                components.list_mut(*list).remove(key)?;
                Some(list)
            }
            Self::Update(list, key, changes) => {
                components.list_mut(*list).update(key, changes)?;
                Some(list)
            }
            Self::Enable { list, keys, tags, enabled } => {
                components.list_mut(*list).set_enabled(keys, tags, *enabled)?.then_some(list)
            }
            Self::Follow { list, key, components: of, prefix, stack } => {
                let wrap = |handler: &_, name: Option<&str>| handler::mounted(handler, stack, name);
                warnings = components.mount_one(prefix, of, *list, key, &wrap)?;
                Some(list)
            }
        };
        Ok(Changed { list: list.map(|it| it.kind()), warnings })
    }

    /// Returns the corresponding change of the outer server, given the entries of both. Entries that no longer exist
    /// there are skipped; tags select the entries that carry them here.
    pub(super) fn above(
        &self,
        outer: &Outer,
        here: &Components,
        there: &Components,
    ) -> Option<Self> {
        match self {
            Self::Remove(list, key) => {
                let key = list.mounted_key(&outer.prefix, key);
                there.list(*list).has(&key).then_some(Self::Remove(*list, key))
            }
            Self::Update(list, key, changes) => {
                let key = list.mounted_key(&outer.prefix, key);
                there.list(*list).has(&key).then(|| Self::Update(*list, key, changes.clone()))
            }
            Self::Enable { list, keys, tags, enabled } => {
                let mut keys = keys.clone();
                keys.extend(here.list(*list).tagged(tags));
                let keys = keys.iter().map(|it| list.mounted_key(&outer.prefix, it));
                let keys = keys.filter(|it| there.list(*list).has(it)).collect();
                Some(Self::Enable { list: *list, keys, tags: Vec::new(), enabled: *enabled })
            }
            Self::Follow { list, key, prefix, .. } => {
                Some(outer.follow(*list, &list.mounted_key(prefix, key), here))
            }
        }
    }
}
