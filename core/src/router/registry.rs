//! The ordered, paged collection used for tools, resources, templates and prompts.

use std::sync::{Arc, OnceLock};

use rustc_hash::FxHashMap;

use super::{Changes, Component, Visibility, meta_keys};
use crate::{error::Error, protocol::Spellings};

/// An ordered set with copy-on-write sharing between clones.
#[derive(Debug)]
pub struct Registry<T: Component> {
    kind: &'static str,
    entries: Arc<Entries<T>>,
}

/// One page of a list, in order.
#[derive(Debug)]
pub struct Page<L> {
    pub items: Arc<[Arc<L>]>,
    pub spellings: Arc<Spellings>,
    /// The entry after which the next page begins; `None` on the last page.
    pub next: Option<u64>,
}

#[derive(Debug)]
struct Entries<T: Component> {
    list: Vec<Entry<T>>,
    index: FxHashMap<Box<str>, u64>,
    next: u64,
    /// The number of components with restricted visibility.
    guarded: usize,
    /// The number of components of which the check of a small request or reply may take long.
    slow: usize,
    /// Created on first use; every change discards them.
    pages: OnceLock<Pages<T::Listed>>,
}

/// The pages of one size, by the position of their first entry.
#[derive(Debug)]
struct Pages<L> {
    size: usize,
    pages: Box<[OnceLock<Page<L>>]>,
}

#[derive(Debug)]
struct Entry<T> {
    /// Increases with every addition, so that cursors stay valid when other entries are added or removed.
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
    /// Clones the entries for a change, without the cached pages.
    fn clone(&self) -> Self {
        #[cfg(test)]
        counted::count(&counted::COPIES);
        Self { list: self.list.clone(), index: self.index.clone(), pages: OnceLock::new(), ..*self }
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
        let entries = Entries {
            list: Vec::new(),
            index: FxHashMap::default(),
            next: 0,
            guarded: 0,
            slow: 0,
            pages: OnceLock::new(),
        };
        Self { kind, entries: Arc::new(entries) }
    }

    /// Adds a component. Returns warnings about properties that known hosts reject. Errors if the key is taken.
    pub fn add(&mut self, component: T, enabled: bool) -> Result<Vec<String>, Error> {
        if self.entries.index.contains_key(component.key()) {
            return Err(Error::misuse(format!(
                "a {} named {:?} is already registered: give this one another name, or remove that one first",
                self.kind,
                component.key()
            )));
        }
        let mut warnings = component.lint();
        let problems = component.meta().map(|meta| meta_keys::problems(meta)).unwrap_or_default();
        let place = format!("{} {:?}: _meta", self.kind, component.key());
        warnings.extend(problems.iter().map(|problem| format!("{place}: {problem}")));
        let entries = self.change();
        entries.count(&component);
        let order = entries.next;
        entries.next += 1;
        entries.index.insert(component.key().into(), order);
        entries.list.push(Entry { order, enabled, component: Arc::new(component) });
        Ok(warnings)
    }

    /// Undoes the last call, which was [`Registry::add`].
    pub(super) fn undo_add(&mut self) {
        let entries = self.change();
        if let Some(entry) = entries.list.pop() {
            entries.next = entry.order;
            entries.forget(&entry.component);
        }
    }

    /// Returns the kind of the components, such as `tool`.
    pub(crate) fn kind(&self) -> &'static str {
        self.kind
    }

    /// Returns the component with this key if it is enabled and visible.
    pub(crate) fn get_visible(&self, key: &str, visibility: &Visibility) -> Option<&Arc<T>> {
        self.get(key).filter(|component| visibility.shows(self.kind, &***component))
    }

    /// Returns the enabled, visible components in order.
    pub(crate) fn visible<'a, 'v>(
        &'a self,
        visibility: &'v Visibility,
    ) -> impl Iterator<Item = &'a Arc<T>> + use<'a, 'v, T> {
        self.iter().filter(|component| visibility.shows(self.kind, &***component))
    }

    /// Returns `true` if at least one component has restricted visibility.
    pub(crate) fn is_guarded(&self) -> bool {
        self.entries.guarded > 0
    }

    /// Returns whether the check of a small request for one of the components, or of its reply, may take long.
    pub(super) fn checks_slowly(&self) -> bool {
        self.entries.slow > 0
    }

    /// Collects the kind and key of the matching components with restricted visibility.
    pub(super) fn guarded(
        &self,
        chosen: impl Fn(&T) -> bool,
        found: &mut Vec<(&'static str, String)>,
    ) {
        if self.is_guarded() {
            let components =
                self.iter().filter(|component| component.options().is_guarded && chosen(component));
            found.extend(components.map(|component| (self.kind, component.key().to_owned())));
        }
    }

    /// Returns the component with this key if it is enabled.
    pub fn get(&self, key: &str) -> Option<&Arc<T>> {
        self.entry(key).filter(|entry| entry.enabled).map(|entry| &entry.component)
    }

    /// Returns the component with this key, enabled or not.
    pub fn find(&self, key: &str) -> Option<&Arc<T>> {
        self.entry(key).map(|entry| &entry.component)
    }

    /// Returns `true` if nothing was ever registered. A list whose entries were all removed is not empty in this sense.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.next == 0
    }

    /// Returns the enabled components in order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<T>> {
        self.entries.list.iter().filter(|entry| entry.enabled).map(|entry| &entry.component)
    }

    /// Returns all components in order; the flag is `true` for enabled ones.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&Arc<T>, bool)> {
        self.entries.list.iter().map(|entry| (&entry.component, entry.enabled))
    }

    /// Returns a component; the flag is `true` if it is enabled.
    pub(super) fn entry_of(&self, key: &str) -> Option<(&Arc<T>, bool)> {
        self.entry(key).map(|entry| (&entry.component, entry.enabled))
    }

    pub fn remove(&mut self, key: &str) -> Result<(), Error> {
        let at = self.position(key)?;
        let entries = self.change();
        let entry = entries.list.remove(at);
        entries.forget(&entry.component);
        Ok(())
    }

    /// Enables or disables the named components and those with one of the tags. Returns `true` if anything changed.
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
            keys.iter().any(|key| key == component.key())
                || component.options().tags.iter().any(|tag| tags.contains(tag))
        };
        let changes = |entry: &Entry<T>| entry.enabled != enabled && chosen(&entry.component);
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

    /// Returns `true` if a page can begin after this entry.
    pub fn has_place(&self, after: u64) -> bool {
        after < self.entries.next
    }

    /// Returns one page of the enabled, visible components, beginning after entry `after`.
    pub fn page(
        &self,
        after: Option<u64>,
        size: usize,
        visibility: &Visibility,
    ) -> Page<T::Listed> {
        let list = &self.entries.list;
        let start = after.map_or(0, |after| list.partition_point(|entry| entry.order <= after));
        if self.is_guarded() || visibility.is_by_scope() {
            return self.make(start, size, visibility);
        }
        let pages = self.entries.pages.get_or_init(|| {
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
            .filter(|entry| entry.enabled && visibility.shows(self.kind, &*entry.component))
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
        entries.pages = OnceLock::new();
        entries
    }

    /// Replaces the component at a position by another one with the same key.
    fn replace(&mut self, at: usize, component: T) {
        let entries = self.change();
        entries.count(&component);
        let old = std::mem::replace(&mut entries.list[at].component, Arc::new(component));
        entries.discount(&old);
    }

    fn entry(&self, key: &str) -> Option<&Entry<T>> {
        self.entries.list.get(self.entries.position(key)?)
    }

    fn position(&self, key: &str) -> Result<usize, Error> {
        let missing = || Error::misuse(format!("no {} named {key:?} is registered", self.kind));
        self.entries.position(key).ok_or_else(missing)
    }
}

impl<T: Component> Entries<T> {
    /// Returns the position of the component with this key. An entry stands at its order, less at most as many places as
    /// entries were removed; so without removals there is nothing to search.
    fn position(&self, key: &str) -> Option<usize> {
        let order = *self.index.get(key)?;
        let latest = usize::try_from(order).ok()?.min(self.list.len().checked_sub(1)?);
        let removed = usize::try_from(self.next).ok()? - self.list.len();
        let earliest = usize::try_from(order).ok()?.saturating_sub(removed);
        let places = self.list.get(earliest..=latest)?;
        places
            .binary_search_by_key(&order, |entry| entry.order)
            .ok()
            .map(|offset| earliest + offset)
    }

    fn count(&mut self, component: &T) {
        self.guarded += usize::from(component.options().is_guarded);
        self.slow += usize::from(component.checks_slowly());
    }

    fn discount(&mut self, component: &T) {
        self.guarded -= usize::from(component.options().is_guarded);
        self.slow -= usize::from(component.checks_slowly());
    }

    /// Forgets a component that is no longer in the list.
    fn forget(&mut self, component: &T) {
        self.discount(component);
        self.index.remove(component.key());
    }
}

impl<T: Component + Clone> Registry<T> {
    pub fn update(&mut self, key: &str, changes: &Changes) -> Result<(), Error> {
        let at = self.position(key)?;
        let mut component = T::clone(&self.entries.list[at].component);
        component.update(changes)?;
        self.replace(at, component);
        Ok(())
    }

    /// Changes a property of a component that clients do not see.
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
        self.replace(at, component);
        Ok(())
    }
}

/// Counts of work that would make a start with many components quadratic.
#[cfg(test)]
pub(crate) mod counted {
    use std::{cell::Cell, thread::LocalKey};

    thread_local! {
        /// The copies of all entries of a registry.
        pub(crate) static COPIES: Cell<usize> = const { Cell::new(0) };
    }

    pub(super) fn count(what: &'static LocalKey<Cell<usize>>) {
        what.set(what.get() + 1);
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, rc::Rc};

    use super::*;
    use crate::{protocol::Raw, router::ComponentOptions};

    const MANY: usize = 100;

    /// A component that counts how often it is looked at.
    struct Counting {
        key: String,
        listed: Arc<()>,
        options: ComponentOptions,
        looks: Rc<Cell<usize>>,
    }

    impl Component for Counting {
        type Listed = ();

        fn key(&self) -> &str {
            &self.key
        }

        fn listed(&self) -> &Arc<()> {
            &self.listed
        }

        fn options(&self) -> &ComponentOptions {
            self.looks.set(self.looks.get() + 1);
            &self.options
        }

        fn meta(&self) -> Option<&Raw> {
            None
        }

        fn checks_slowly(&self) -> bool {
            self.looks.set(self.looks.get() + 1);
            self.key == "7"
        }

        fn update(&mut self, _: &Changes) -> Result<(), Error> {
            Ok(())
        }
    }

    fn filled(looks: &Rc<Cell<usize>>) -> Registry<Counting> {
        let mut registry = Registry::new("thing");
        for index in 0..MANY {
            let options = ComponentOptions { is_guarded: index == 8, ..Default::default() };
            let (key, looks) = (index.to_string(), Rc::clone(looks));
            let thing = Counting { key, listed: Arc::default(), options, looks };
            registry.add(thing, true).expect("is added");
            assert_eq!(registry.is_guarded(), index >= 8);
            assert_eq!(registry.checks_slowly(), index >= 7);
        }
        registry
    }

    #[test]
    fn what_holds_for_some_component_is_known_without_a_search() {
        let looks = Rc::default();
        let mut registry = filled(&looks);
        assert!(looks.get() <= 2 * MANY, "{}", looks.get());
        for key in ["7", "8"] {
            registry.remove(key).expect("is there");
        }
        assert!(!registry.is_guarded() && !registry.checks_slowly());
    }

    #[test]
    fn components_are_found_after_any_removals() {
        for step in 1..10 {
            let mut registry = filled(&Rc::default());
            let (removed, left): (Vec<usize>, Vec<usize>) =
                (0..MANY).partition(|index| index % step == 0);
            for index in removed {
                registry.remove(&index.to_string()).expect("is there");
                registry.remove(&index.to_string()).expect_err("is gone");
            }
            for (at, index) in left.into_iter().enumerate() {
                let key = index.to_string();
                assert_eq!(registry.position(&key).expect("is there"), at);
                assert_eq!(registry.get(&key).expect("is there").key(), key);
            }
        }
    }

    #[test]
    fn an_addition_is_undone() {
        let mut registry = Registry::new("thing");
        let options = ComponentOptions { is_guarded: true, ..Default::default() };
        let thing = |key: &str| Counting {
            key: key.to_owned(),
            listed: Arc::default(),
            options: options.clone(),
            looks: Rc::default(),
        };
        registry.add(thing("one"), true).expect("is added");
        registry.undo_add();
        assert!(registry.is_empty() && !registry.is_guarded() && registry.find("one").is_none());
        registry.add(thing("one"), true).expect("is added again");
    }
}
