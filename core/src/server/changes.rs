//! Changes to a server's tools, resources and prompts, and their propagation to the servers that it is mounted into.

use std::sync::Arc;

use super::{
    handler::{self, Components},
    middleware::Stack,
    registry::{Hub, Registered},
};
use crate::{
    error::Error,
    router::{Changes, List, Registrar as _},
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
    Enable { list: List, keys: Vec<String>, tags: Vec<String>, enabled: bool },
}

impl Outer {
    /// Adds the entry of the mounted server that is registered under this key.
    pub(super) fn follow(
        &self,
        list: List,
        key: &str,
        components: &Components,
    ) -> Result<(), Error> {
        let wrap = |handler: &_, name: Option<&str>| handler::mounted(handler, &self.stack, name);
        self.hub.grow(|into| {
            let warnings = into.mount_one(&self.prefix, components, list, key, &wrap)?;
            Ok(Registered { list, key: list.mounted_key(&self.prefix, key), warnings })
        })
    }

    /// Mounts a list of the mounted server again, whose entries had these keys `before`.
    pub(super) fn repeat(
        &self,
        list: List,
        before: &[String],
        components: &Components,
    ) -> Result<(), Error> {
        let wrap = |handler: &_, name: Option<&str>| handler::mounted(handler, &self.stack, name);
        self.hub.change(list, &mut |into| {
            for key in before {
                // The program may have removed it there.
                let _ = into.list_mut(list).remove(&list.mounted_key(&self.prefix, key));
            }
            for key in components.list(list).keys() {
                into.mount_one(&self.prefix, components, list, &key, &wrap)?;
            }
            Ok(true)
        })
    }
}

impl Change {
    /// Returns the changed list; `None` if the change is not visible in any list. Changes nothing if it fails.
    pub(super) fn make(&self, components: &mut Components) -> Result<Option<ListKind>, Error> {
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
        };
        Ok(list.map(|list| list.kind()))
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
                let keys = keys.iter().map(|key| list.mounted_key(&outer.prefix, key));
                let keys = keys.filter(|key| there.list(*list).has(key)).collect();
                Some(Self::Enable { list: *list, keys, tags: Vec::new(), enabled: *enabled })
            }
        }
    }
}
