//! Changes of what a server offers, as they reach the servers that it is mounted into.

use std::sync::Arc;

use super::{handler, middleware::Stack, registry::Hub};
use crate::{
    error::Error,
    router::{Changes, List, Offers},
    session::server::ListKind,
};

/// The server that another is mounted into.
pub(super) struct Outer {
    /// Held on to: nobody else may know the one in the middle.
    pub(super) hub: Arc<Hub>,
    pub(super) prefix: String,
    /// Middleware of the one that is mounted.
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
    /// A server that is mounted here offers one more.
    Follow {
        list: List,
        key: String,
        offers: Offers,
        prefix: String,
        stack: Arc<Stack>,
    },
}

/// What came of a change.
#[derive(Default)]
pub(super) struct Changed {
    /// `None`: nothing that a list shows.
    pub(super) list: Option<ListKind>,
    /// What known hosts will not take.
    pub(super) warnings: Vec<String>,
}

impl Outer {
    /// The change that adds there what is registered here under this key.
    pub(super) fn follow(&self, list: List, key: &str, offers: &Offers) -> Change {
        Change::Follow {
            list,
            key: key.to_owned(),
            offers: offers.clone(),
            prefix: self.prefix.clone(),
            stack: Arc::clone(&self.stack),
        }
    }
}

impl Change {
    pub(super) fn make(&self, offers: &mut Offers) -> Result<Changed, Error> {
        let mut warnings = Vec::new();
        let list = match self {
            Self::Remove(list, key) => {
                offers.list_mut(*list).remove(key)?;
                Some(list)
            }
            Self::Update(list, key, changes) => {
                offers.list_mut(*list).update(key, changes)?;
                Some(list)
            }
            Self::Enable { list, keys, tags, enabled } => {
                offers.list_mut(*list).set_enabled(keys, tags, *enabled)?.then_some(list)
            }
            Self::Follow { list, key, offers: of, prefix, stack } => {
                let wrap = |handler: &_, name: Option<&str>| handler::mounted(handler, stack, name);
                warnings = offers.mount_one(prefix, of, *list, key, &wrap)?;
                Some(list)
            }
        };
        Ok(Changed { list: list.map(|it| it.kind()), warnings })
    }

    /// The same one level up, where these are the offers of this level and those of that one. What is not there any more
    /// is left alone; tags choose what carries them here.
    pub(super) fn above(&self, outer: &Outer, here: &Offers, there: &Offers) -> Option<Self> {
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
