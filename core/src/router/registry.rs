//! One ordered, paged set for tools, resources, templates and prompts.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use super::{Changes, Component, Visibility, meta_keys};
use crate::{error::Error, protocol::Spellings};

/// An ordered set; clones share until one of them changes.
#[derive(Debug)]
pub struct Registry<T: Component> {
    kind: &'static str,
    entries: Arc<Entries<T>>,
}

/// Some of a list, in order.
#[derive(Debug)]
pub struct Page<L> {
    pub items: Arc<[Arc<L>]>,
    pub spellings: Arc<Spellings>,
    /// After which entry the next page begins; `None`: this is the last.
    pub next: Option<u64>,
}

#[derive(Debug)]
struct Entries<T: Component> {
    list: Vec<Entry<T>>,
    index: HashMap<Box<str>, u64>,
    next: u64,
    /// Made when first asked for; every change begins anew.
    made: Made<T::Listed>,
}

#[derive(Debug)]
struct Made<L> {
    is_guarded: OnceLock<bool>,
    /// By the place of their first entry.
    pages: OnceLock<Pages<L>>,
}

/// Pages of one size.
#[derive(Debug)]
struct Pages<L> {
    size: usize,
    pages: Box<[OnceLock<Page<L>>]>,
}

#[derive(Debug)]
struct Entry<T> {
    /// Grows with every addition, so a cursor stays true when others come and go.
    order: u64,
    enabled: bool,
    component: Arc<T>,
}

impl<T> Clone for Entry<T> {
    fn clone(&self) -> Self {
        Self { order: self.order, enabled: self.enabled, component: Arc::clone(&self.component) }
    }
}

impl<T: Component> Clone for Registry<T> {
    fn clone(&self) -> Self {
        Self { kind: self.kind, entries: Arc::clone(&self.entries) }
    }
}

impl<T: Component> Clone for Entries<T> {
    /// For a change: what was made is not taken along.
    fn clone(&self) -> Self {
        Self {
            list: self.list.clone(),
            index: self.index.clone(),
            next: self.next,
            made: Made::default(),
        }
    }
}

impl<L> Default for Made<L> {
    fn default() -> Self {
        Self { is_guarded: OnceLock::new(), pages: OnceLock::new() }
    }
}

impl<L> Clone for Page<L> {
    fn clone(&self) -> Self {
        let (items, spellings) = (Arc::clone(&self.items), Arc::clone(&self.spellings));
        Self { items, spellings, next: self.next }
    }
}

impl<T: Component> Registry<T> {
    pub fn new(kind: &'static str) -> Self {
        let entries =
            Entries { list: Vec::new(), index: HashMap::new(), next: 0, made: Made::default() };
        Self { kind, entries: Arc::new(entries) }
    }

    /// Gives back what known hosts will not take: texts for whoever runs the server.
    pub fn add(&mut self, component: T, enabled: bool) -> Result<Vec<String>, Error> {
        if self.entries.index.contains_key(component.key()) {
            return Err(Error::misuse(format!(
                "a {} named {:?} is already registered: give this one another name, or remove that one first",
                self.kind,
                component.key()
            )));
        }
        let mut warnings = component.lint();
        let problems = component.meta().map(|it| meta_keys::problems(it)).unwrap_or_default();
        let place = format!("{} {:?}: _meta", self.kind, component.key());
        warnings.extend(problems.iter().map(|it| format!("{place}: {it}")));
        let entries = self.change();
        let order = entries.next;
        entries.next += 1;
        entries.index.insert(component.key().into(), order);
        entries.list.push(Entry { order, enabled, component: Arc::new(component) });
        Ok(warnings)
    }

    /// What one of its components is called.
    pub fn kind(&self) -> &'static str {
        self.kind
    }

    /// The component of this name, if it is enabled and somebody sees it.
    pub fn seen(&self, key: &str, visibility: &Visibility) -> Option<&Arc<T>> {
        self.get(key).filter(|it| visibility.sees(self.kind, &***it))
    }

    /// Everything enabled that somebody sees, in order.
    pub fn visible<'a>(&'a self, visibility: &'a Visibility) -> impl Iterator<Item = &'a Arc<T>> {
        self.iter().filter(|it| visibility.sees(self.kind, &***it))
    }

    /// Whether something of it is not for everybody.
    pub fn is_guarded(&self) -> bool {
        let find = || self.entries.list.iter().any(|it| it.component.options().visible.is_some());
        *self.entries.made.is_guarded.get_or_init(find)
    }

    /// Those of the chosen that are not for everybody, by kind and key.
    pub(super) fn guarded(
        &self,
        chosen: impl Fn(&T) -> bool,
        found: &mut Vec<(&'static str, String)>,
    ) {
        if self.is_guarded() {
            let components = self.iter().filter(|it| it.options().visible.is_some() && chosen(it));
            found.extend(components.map(|it| (self.kind, it.key().to_owned())));
        }
    }

    /// The component of this name, if it is there and enabled.
    pub fn get(&self, key: &str) -> Option<&Arc<T>> {
        self.entry(key).filter(|it| it.enabled).map(|it| &it.component)
    }

    /// The component of this name, enabled or not.
    pub fn find(&self, key: &str) -> Option<&Arc<T>> {
        self.entry(key).map(|it| &it.component)
    }

    /// Whether nothing was ever offered, be it enabled or not. A list whose offers are all gone is still a list.
    pub fn is_empty(&self) -> bool {
        self.entries.next == 0
    }

    /// Everything enabled, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<T>> {
        self.entries.list.iter().filter(|it| it.enabled).map(|it| &it.component)
    }

    /// Everything, in order, with whether it is enabled.
    pub fn all(&self) -> impl Iterator<Item = (&Arc<T>, bool)> {
        self.entries.list.iter().map(|it| (&it.component, it.enabled))
    }

    /// A component, and whether it is enabled.
    pub(super) fn entry_of(&self, key: &str) -> Option<(&Arc<T>, bool)> {
        self.entry(key).map(|it| (&it.component, it.enabled))
    }

    pub fn remove(&mut self, key: &str) -> Result<(), Error> {
        let at = self.position(key)?;
        let entries = self.change();
        entries.list.remove(at);
        entries.index.remove(key);
        Ok(())
    }

    pub fn update(&mut self, key: &str, changes: &Changes) -> Result<(), Error> {
        let at = self.position(key)?;
        let mut component = T::clone(&self.entries.list[at].component);
        component.update(changes)?;
        self.change().list[at].component = Arc::new(component);
        Ok(())
    }

    /// Changes a component in what clients don't see.
    pub(super) fn amend<E>(
        &mut self,
        key: &str,
        amend: impl FnOnce(&mut T) -> Result<(), E>,
    ) -> Result<(), E>
    where
        E: From<Error>,
    {
        let at = self.position(key)?;
        let mut component = T::clone(&self.entries.list[at].component);
        amend(&mut component)?;
        self.change().list[at].component = Arc::new(component);
        Ok(())
    }

    /// Shows or hides the named components and all that carry one of the tags; whether that changed anything.
    pub fn set_enabled(
        &mut self,
        keys: &[String],
        tags: &[String],
        enabled: bool,
    ) -> Result<bool, Error> {
        for key in keys {
            self.position(key)?;
        }
        let chosen = |component: &T| {
            keys.iter().any(|it| it == component.key())
                || component.options().tags.iter().any(|it| tags.contains(it))
        };
        let changes = |it: &Entry<T>| it.enabled != enabled && chosen(&it.component);
        if !self.entries.list.iter().any(changes) {
            return Ok(false);
        }
        for entry in &mut self.change().list {
            if chosen(&entry.component) {
                entry.enabled = enabled;
            }
        }
        Ok(true)
    }

    /// Whether a page can begin after this.
    pub fn has_place(&self, after: u64) -> bool {
        after < self.entries.next
    }

    /// One page of what is enabled and seen, after the place where the one before ended.
    pub fn page(
        &self,
        after: Option<u64>,
        size: usize,
        visibility: &Visibility,
    ) -> Page<T::Listed> {
        let list = &self.entries.list;
        let start = after.map_or(0, |after| list.partition_point(|it| it.order <= after));
        if self.is_guarded() {
            return self.make(start, size, visibility);
        }
        let pages = self.entries.made.pages.get_or_init(|| {
            let pages = (0..=list.len()).map(|_| OnceLock::new()).collect();
            Pages { size, pages }
        });
        match pages.pages.get(start).filter(|_| pages.size == size) {
            Some(page) => page.get_or_init(|| self.make(start, size, visibility)).clone(),
            None => self.make(start, size, visibility),
        }
    }

    fn make(&self, start: usize, size: usize, visibility: &Visibility) -> Page<T::Listed> {
        let rest = self.entries.list.get(start..).unwrap_or_default();
        let mut rest = rest
            .iter()
            .filter(|it| it.enabled && visibility.sees(self.kind, &*it.component))
            .peekable();
        let (mut items, mut last) = (Vec::new(), None);
        while items.len() < size
            && let Some(entry) = rest.next()
        {
            items.push(Arc::clone(entry.component.listed()));
            last = Some(entry.order);
        }
        let next = last.filter(|_| rest.peek().is_some());
        Page { items: items.into(), spellings: Arc::default(), next }
    }

    fn change(&mut self) -> &mut Entries<T> {
        let entries = Arc::make_mut(&mut self.entries);
        entries.made = Made::default();
        entries
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
