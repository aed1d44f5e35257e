//! Changes of what a server offers, as they reach the servers that it is mounted into.

use std::sync::Arc;

use super::{
    handler,
    middleware::Stack,
    registry::{Hub, List},
};
use crate::{
    error::Error,
    router::{Changes, Offers},
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
    /// What a tool or prompt is called there.
    fn name(&self, list: List, key: &str) -> String {
        name(list, &self.prefix, key)
    }

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
        let list = match self {
            Self::Remove(list, key) => {
                match list {
                    List::Tools => offers.tools.remove(key),
                    List::Resources => offers.resources.remove(key),
                    List::Templates => offers.templates.remove(key),
                    List::Prompts => offers.prompts.remove(key),
                }?;
                Some(list.kind())
            }
            Self::Update(list, key, changes) => {
                match list {
                    List::Tools => offers.tools.update(key, changes),
                    List::Resources => offers.resources.update(key, changes),
                    List::Templates => offers.templates.update(key, changes),
                    List::Prompts => offers.prompts.update(key, changes),
                }?;
                Some(list.kind())
            }
            Self::Enable { list, keys, tags, enabled } => {
                let changed = match list {
                    List::Tools => offers.tools.set_enabled(keys, tags, *enabled),
                    List::Resources => offers.resources.set_enabled(keys, tags, *enabled),
                    List::Templates => offers.templates.set_enabled(keys, tags, *enabled),
                    List::Prompts => offers.prompts.set_enabled(keys, tags, *enabled),
                }?;
                changed.then(|| list.kind())
            }
            Self::Follow { list, key, offers: of, prefix, stack } => {
                let wrap = |handler: &_, name: Option<&str>| {
                    handler::mounted(handler, stack.mounted(name.map(ToOwned::to_owned)))
                };
                let warnings = match list {
                    List::Tools => offers.mount_tool(prefix, of, key, wrap),
                    List::Resources => offers.mount_resource(of, key, wrap),
                    List::Templates => offers.mount_template(of, key, wrap),
                    List::Prompts => offers.mount_prompt(prefix, of, key, wrap),
                }?;
                return Ok(Changed { list: Some(list.kind()), warnings });
            }
        };
        Ok(Changed { list, warnings: Vec::new() })
    }

    /// The same one level up, where these are the offers of this level and those of that one. What is not there any more
    /// is left alone; tags choose what carries them here.
    pub(super) fn above(&self, outer: &Outer, here: &Offers, there: &Offers) -> Option<Self> {
        match self {
            Self::Remove(list, key) => {
                let key = outer.name(*list, key);
                has(there, *list, &key).then_some(Self::Remove(*list, key))
            }
            Self::Update(list, key, changes) => {
                let key = outer.name(*list, key);
                has(there, *list, &key).then(|| Self::Update(*list, key, changes.clone()))
            }
            Self::Enable { list, keys, tags, enabled } => {
                let mut keys = keys.clone();
                keys.extend(tagged(here, *list, tags));
                let keys = keys.iter().map(|it| outer.name(*list, it));
                let keys = keys.filter(|it| has(there, *list, it)).collect();
                Some(Self::Enable { list: *list, keys, tags: Vec::new(), enabled: *enabled })
            }
            Self::Follow { list, key, prefix, .. } => {
                Some(outer.follow(*list, &name(*list, prefix, key), here))
            }
        }
    }
}

fn name(list: List, prefix: &str, key: &str) -> String {
    match list {
        List::Tools | List::Prompts => format!("{prefix}_{key}"),
        List::Resources | List::Templates => key.to_owned(),
    }
}

fn has(offers: &Offers, list: List, key: &str) -> bool {
    match list {
        List::Tools => offers.tools.find(key).is_some(),
        List::Resources => offers.resources.find(key).is_some(),
        List::Templates => offers.templates.find(key).is_some(),
        List::Prompts => offers.prompts.find(key).is_some(),
    }
}

/// The keys of what carries one of the tags.
fn tagged(offers: &Offers, list: List, tags: &[String]) -> Vec<String> {
    match list {
        List::Tools => offers.tools.tagged(tags),
        List::Resources => offers.resources.tagged(tags),
        List::Templates => offers.templates.tagged(tags),
        List::Prompts => offers.prompts.tagged(tags),
    }
}
