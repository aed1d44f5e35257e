//! One ordered, paged set for tools, resources, templates and prompts.

use std::{collections::HashMap, sync::Arc};

use crate::{
    error::{Error, Fault},
    protocol::{CacheHint, Listing},
};

/// Something a server offers under a name.
pub trait Offer: Clone {
    /// What clients see in a list.
    type Listed;

    /// What tells it from its siblings: a tool's name, a resource's URI.
    fn key(&self) -> &str;
    fn listed(&self) -> &Arc<Self::Listed>;
    fn tags(&self) -> &[String];
    /// Changes what clients see; fails on a member that can't change.
    fn update(&mut self, changes: &Changes) -> Result<(), Error>;
}

/// New values by the name that each has in the newest revision's JSON.
pub type Changes = serde_json::Map<String, serde_json::Value>;

/// An ordered set; clones share until one of them changes.
#[derive(Debug)]
pub struct Registry<T> {
    kind: &'static str,
    entries: Arc<Entries<T>>,
}

#[derive(Clone, Debug)]
struct Entries<T> {
    list: Vec<Entry<T>>,
    index: HashMap<Box<str>, u64>,
    next: u64,
}

#[derive(Clone, Debug)]
struct Entry<T> {
    /// Grows with every addition, so a cursor stays true when others come and go.
    order: u64,
    enabled: bool,
    offer: Arc<T>,
}

impl<T> Clone for Registry<T> {
    fn clone(&self) -> Self {
        Self { kind: self.kind, entries: Arc::clone(&self.entries) }
    }
}

impl<T: Offer> Registry<T> {
    pub fn new(kind: &'static str) -> Self {
        let entries = Entries { list: Vec::new(), index: HashMap::new(), next: 0 };
        Self { kind, entries: Arc::new(entries) }
    }

    pub fn add(&mut self, offer: T, enabled: bool) -> Result<(), Error> {
        if self.entries.index.contains_key(offer.key()) {
            return Err(Error::misuse(format!(
                "a {} named {:?} is already registered: give this one another name, or remove that one first",
                self.kind,
                offer.key()
            )));
        }
        let entries = Arc::make_mut(&mut self.entries);
        let order = entries.next;
        entries.next += 1;
        entries.index.insert(offer.key().into(), order);
        entries.list.push(Entry { order, enabled, offer: Arc::new(offer) });
        Ok(())
    }

    /// The offer of this name, if it is there and enabled.
    pub fn get(&self, key: &str) -> Option<&Arc<T>> {
        self.entry(key).filter(|it| it.enabled).map(|it| &it.offer)
    }

    /// The offer of this name, enabled or not.
    pub fn find(&self, key: &str) -> Option<&Arc<T>> {
        self.entry(key).map(|it| &it.offer)
    }

    /// Whether nothing was ever offered, be it enabled or not.
    pub fn is_empty(&self) -> bool {
        self.entries.list.is_empty()
    }

    pub fn len(&self) -> usize {
        self.entries.list.len()
    }

    /// Everything enabled, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<T>> {
        self.entries.list.iter().filter(|it| it.enabled).map(|it| &it.offer)
    }

    /// Everything enabled as one page.
    pub fn whole(&self) -> Listing<T::Listed> {
        let items = self.iter().map(|it| Arc::clone(it.listed())).collect();
        Listing { items, next_cursor: None, cache: CacheHint::default() }
    }

    /// Everything, in order, with whether it is enabled.
    pub fn all(&self) -> impl Iterator<Item = (&Arc<T>, bool)> {
        self.entries.list.iter().map(|it| (&it.offer, it.enabled))
    }

    pub fn remove(&mut self, key: &str) -> Result<(), Error> {
        let at = self.position(key)?;
        let entries = Arc::make_mut(&mut self.entries);
        entries.list.remove(at);
        entries.index.remove(key);
        Ok(())
    }

    pub fn update(&mut self, key: &str, changes: &Changes) -> Result<(), Error> {
        let at = self.position(key)?;
        let entry = &mut Arc::make_mut(&mut self.entries).list[at];
        let mut offer = T::clone(&entry.offer);
        offer.update(changes)?;
        entry.offer = Arc::new(offer);
        Ok(())
    }

    /// Shows or hides the named offers and all that carry one of the tags.
    pub fn set_enabled(
        &mut self,
        keys: &[String],
        tags: &[String],
        enabled: bool,
    ) -> Result<(), Error> {
        for key in keys {
            self.position(key)?;
        }
        let chosen = |offer: &T| {
            keys.iter().any(|it| it == offer.key())
                || offer.tags().iter().any(|it| tags.contains(it))
        };
        for entry in &mut Arc::make_mut(&mut self.entries).list {
            if chosen(&entry.offer) {
                entry.enabled = enabled;
            }
        }
        Ok(())
    }

    /// One page of what is enabled, from where the cursor of the page before points.
    pub fn page(
        &self,
        cursor: Option<&str>,
        size: usize,
        cache: CacheHint,
    ) -> Result<Listing<T::Listed>, Fault> {
        let start = match cursor {
            None => 0,
            Some(cursor) => {
                cursor::decode(self.kind, cursor)
                    .filter(|it| *it < self.entries.next)
                    .ok_or_else(|| Fault::invalid_params("invalid cursor"))?
                    + 1
            }
        };
        let mut rest =
            self.entries.list.iter().filter(|it| it.enabled && it.order >= start).peekable();
        let mut items = Vec::new();
        let mut last = start;
        while items.len() < size
            && let Some(entry) = rest.next()
        {
            items.push(Arc::clone(entry.offer.listed()));
            last = entry.order;
        }
        let next_cursor = rest.peek().map(|_| cursor::encode(self.kind, last));
        Ok(Listing { items, next_cursor, cache })
    }

    fn entry(&self, key: &str) -> Option<&Entry<T>> {
        let order = *self.entries.index.get(key)?;
        let at = self.entries.list.binary_search_by_key(&order, |it| it.order).ok()?;
        self.entries.list.get(at)
    }

    fn position(&self, key: &str) -> Result<usize, Error> {
        let order = self.entries.index.get(key);
        order
            .and_then(|order| self.entries.list.binary_search_by_key(order, |it| it.order).ok())
            .ok_or_else(|| Error::misuse(format!("no {} named {key:?} is registered", self.kind)))
    }
}

/// Opaque to clients: which list, and the order of the last entry given out.
mod cursor {
    use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

    pub(super) fn encode(kind: &str, order: u64) -> String {
        URL_SAFE_NO_PAD.encode(format!("{kind}:{order}"))
    }

    pub(super) fn decode(kind: &str, cursor: &str) -> Option<u64> {
        let bytes = URL_SAFE_NO_PAD.decode(cursor).ok()?;
        let text = std::str::from_utf8(&bytes).ok()?;
        text.strip_prefix(kind)?.strip_prefix(':')?.parse().ok()
    }
}
