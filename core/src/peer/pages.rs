//! Collection of paginated lists, with bounds for a server whose list never ends.

use std::{
    collections::HashSet,
    hash::{DefaultHasher, Hash, Hasher},
};

use super::{broken, count_values, read};
use crate::{
    error::Error,
    protocol::{Members, Method, Raw, json},
};

/// The maximum number of pages in a list.
const MAX_PAGES: usize = 1_000;
/// The maximum total size of a list's entries and cursors in bytes.
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// The lists of a server.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub enum ListKind {
    Tools,
    Resources,
    ResourceTemplates,
    Prompts,
}

/// A page of a list; the entries are raw JSON.
#[derive(Clone, Debug)]
pub struct Page {
    pub items: Vec<Raw>,
    pub next_cursor: Option<String>,
}

/// The pages of a list collected so far.
#[derive(Debug)]
pub struct Pages {
    kind: ListKind,
    items: Vec<Raw>,
    /// The total size of the entries and cursors in bytes.
    bytes: usize,
    objects: usize,
    /// Hashes of the received pages, to detect repetition.
    seen: HashSet<u64>,
    /// True if the last page has an empty cursor.
    follows_empty: bool,
}

impl ListKind {
    pub(crate) const ALL: [Self; 4] =
        [Self::Tools, Self::Resources, Self::ResourceTemplates, Self::Prompts];

    /// Returns the method that lists these items.
    pub fn method(self) -> Method {
        match self {
            Self::Tools => Method::ListTools,
            Self::Resources => Method::ListResources,
            Self::ResourceTemplates => Method::ListResourceTemplates,
            Self::Prompts => Method::ListPrompts,
        }
    }

    /// Returns the member of a result that has these items.
    pub fn member(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources => "resources",
            Self::ResourceTemplates => "resourceTemplates",
            Self::Prompts => "prompts",
        }
    }
}

impl Page {
    /// Reads a page from the result of a list request. Errors if the result is malformed.
    pub fn read(kind: ListKind, result: &Raw) -> Result<Self, Error> {
        let method = kind.method().as_str();
        let members: Members<Raw> = read(method, result)?;
        let items = members.get(kind.member()).ok_or_else(|| {
            broken(format!("{method}: the server's result has no member {:?}", kind.member()))
        })?;
        let next_cursor = match members.get("nextCursor") {
            None => None,
            Some(cursor) => read(method, cursor)?,
        };
        let items: Vec<Raw> = read(method, items)?;
        match items.iter().all(|item| item.get().starts_with('{')) {
            true => Ok(Self { items, next_cursor }),
            false => {
                Err(broken(format!("{method}: an entry of the server's list is not an object")))
            }
        }
    }

    fn hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.items.iter().for_each(|item| item.get().hash(&mut hasher));
        self.next_cursor.hash(&mut hasher);
        hasher.finish()
    }

    /// Returns the page as `{"items": […], "nextCursor": …}`.
    pub fn to_json(&self) -> Raw {
        let mut page = json::ObjectWriter::with_capacity(64);
        page.member("items", &self.items);
        if let Some(cursor) = &self.next_cursor {
            page.member("nextCursor", cursor);
        }
        json::raw(page.finish())
    }
}

impl Pages {
    /// Creates an empty collection of pages.
    pub fn new(kind: ListKind) -> Self {
        Self {
            kind,
            items: Vec::new(),
            bytes: 0,
            objects: 0,
            seen: HashSet::new(),
            follows_empty: false,
        }
    }

    /// Adds a page and returns the cursor of the next page, if any. Errors if the result is not a page, if the same
    /// page arrives twice, and at 1,000 pages or 64 MiB.
    pub fn push(&mut self, result: &Raw) -> Result<Option<String>, Error> {
        let page = Page::read(self.kind, result)?;
        let hash = page.hash();
        let method = self.kind.method().as_str();
        if self.seen.contains(&hash) && self.follows_empty {
            tracing::warn!(
                "the server's {method} ends with an empty \"nextCursor\", which leads to its first page again"
            );
            return Ok(None);
        }
        self.follows_empty = page.next_cursor.as_deref() == Some("");
        self.bytes += page.items.iter().map(|item| item.get().len()).sum::<usize>();
        self.bytes += page.next_cursor.as_ref().map_or(0, String::len);
        if self.bytes > MAX_BYTES {
            return Err(broken(format!("{method}: the server's list exceeds {MAX_BYTES} bytes")));
        }
        self.objects +=
            page.items.iter().map(|item| count_values(item.get(), usize::MAX)).sum::<usize>();
        self.items.extend(page.items);
        let Some(cursor) = page.next_cursor else { return Ok(None) };
        // A repeated cursor alone is not an error: it may lead to a different page (Pagination).
        if !self.seen.insert(hash) {
            return Err(broken(format!(
                "{method}: the server returned the same page twice, with the cursor {cursor:?}, so the list would never end"
            )));
        }
        if self.seen.len() >= MAX_PAGES {
            return Err(broken(format!("{method}: the server's list exceeds {MAX_PAGES} pages")));
        }
        Ok(Some(cursor))
    }

    /// Returns the number of objects in the entries so far, their schemas and `_meta` not included.
    pub fn objects(&self) -> usize {
        self.objects
    }

    /// Returns the size of the entries and cursors so far, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the entries of all pages.
    pub fn into_items(self) -> Vec<Raw> {
        self.items
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(cursor: &str) -> Raw {
        json::raw(format!(r#"{{"tools":[{{"name":"a"}}]{cursor}}}"#))
    }

    #[test]
    fn pages_are_joined_until_there_is_no_cursor() {
        let mut pages = Pages::new(ListKind::Tools);
        let next = pages.push(&page(r#","nextCursor":"2""#)).expect("a page");
        assert_eq!(next.as_deref(), Some("2"));
        assert_eq!(pages.push(&page(r#","nextCursor":null"#)).expect("a page"), None);
        assert_eq!(pages.into_items().len(), 2);
    }

    /// An empty string is a cursor (Pagination, "Implementation Guidelines"), but some servers end their lists with it.
    #[test]
    fn an_empty_cursor_that_leads_back_is_the_end() {
        let mut pages = Pages::new(ListKind::Tools);
        let other = json::raw(r#"{"tools":[{"name":"b"}],"nextCursor":""}"#.into());
        for (page, next) in [
            (page(r#","nextCursor":"""#), Some("")),
            (other, Some("")),
            (page(r#","nextCursor":"""#), None),
        ] {
            assert_eq!(pages.push(&page).expect("a page").as_deref(), next);
        }
        assert_eq!(pages.into_items().len(), 2);
    }

    #[test]
    fn a_list_that_never_ends_is_an_error() {
        let mut pages = Pages::new(ListKind::Tools);
        pages.push(&page(r#","nextCursor":"2""#)).expect("a page");
        assert!(pages.push(&page(r#","nextCursor":"2""#)).is_err());
        let other = json::raw(r#"{"tools":[{"name":"b"}],"nextCursor":"2"}"#.into());
        pages.push(&other).expect("another page under the same cursor");

        let mut pages = Pages::new(ListKind::Tools);
        let end = (0..2 * MAX_PAGES)
            .find(|number| pages.push(&page(&format!(r#","nextCursor":"{number}""#))).is_err());
        assert_eq!(end, Some(MAX_PAGES - 1));
    }

    #[test]
    fn a_list_that_nobody_could_keep_is_an_error() {
        let mut pages = Pages::new(ListKind::Tools);
        let tool = "x".repeat(1024 * 1024);
        let end = (0..100).find(|number| {
            let page = format!(r#"{{"tools":[{{"name":"{tool}"}}],"nextCursor":"{number}"}}"#);
            pages.push(&json::raw(page)).is_err()
        });
        assert_eq!(end, Some(63), "64 of them are over it");
    }

    #[test]
    fn the_bytes_of_cursors_count() {
        let mut pages = Pages::new(ListKind::Tools);
        let cursor = "x".repeat(1024 * 1024);
        let end = (0..100).find(|number| {
            pages.push(&page(&format!(r#","nextCursor":"{cursor}{number}""#))).is_err()
        });
        assert_eq!(end, Some(63), "64 of them are over the limit");
    }

    #[test]
    fn a_page_without_its_list_is_an_error() {
        assert!(Pages::new(ListKind::Prompts).push(&page("")).is_err());
    }

    #[test]
    fn an_entry_that_is_not_an_object_is_an_error() {
        let page = json::raw(r#"{"tools":[{"name":"a"},3]}"#.into());
        assert!(Pages::new(ListKind::Tools).push(&page).is_err());
    }
}
