//! Pages that the user was asked to visit, until the server reports their completion (2025-11-25, Elicitation, "URL
//! mode").

use std::collections::VecDeque;

use serde::Deserialize;

use super::incoming::member;
use crate::protocol::{ErrorObject, Params, code};

/// The maximum number of open pages; beyond it the oldest is forgotten.
const MAX_PAGES: usize = 1_000;

/// The open pages, by elicitation id.
#[derive(Debug, Default)]
pub(super) struct Pages {
    open: VecDeque<String>,
}

impl Pages {
    /// Adds the page of a question.
    pub(super) fn ask(&mut self, params: &Params<'_>) {
        self.open(member(params, "elicitationId"));
    }

    /// Adds the pages of a request that failed because they must be visited first.
    pub(super) fn refused(&mut self, error: &ErrorObject) {
        #[derive(Deserialize)]
        struct Data {
            elicitations: Vec<Page>,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Page {
            elicitation_id: Option<String>,
        }
        if error.code != code::URL_ELICITATION_REQUIRED {
            return;
        }
        let data =
            error.data.as_ref().and_then(|data| serde_json::from_str::<Data>(data.get()).ok());
        let pages = data.into_iter().flat_map(|data| data.elicitations);
        pages.for_each(|page| self.open(page.elicitation_id));
    }

    /// Removes a completed page. Returns `true` if it was open; a client MUST ignore others.
    pub(super) fn finish(&mut self, params: &Params<'_>) -> bool {
        let id: Option<String> = member(params, "elicitationId");
        let at = id.and_then(|id| self.open.iter().position(|page| *page == id));
        at.and_then(|index| self.open.remove(index)).is_some()
    }

    fn open(&mut self, id: Option<String>) {
        let Some(id) = id.filter(|id| !self.open.contains(id)) else { return };
        if self.open.len() == MAX_PAGES {
            self.open.pop_front();
        }
        self.open.push_back(id);
    }
}
