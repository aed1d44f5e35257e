//! Fetches the lists of a server, and keeps what calls need to know of its tools.

use super::{
    CallOptions, Reply, connected::Connected, params::cursor_params, running_call::RunningCall,
};
use crate::{
    error::Error,
    peer::{self, KnownTools, ListKind, Page, Pages},
    protocol::{Raw, code},
};

impl Connected {
    pub(super) async fn list_all(
        &self,
        kind: ListKind,
        call: &RunningCall,
    ) -> Result<Vec<Raw>, Error> {
        let is_filtered = kind == ListKind::Tools && self.connection.mirrors();
        let mut pages = Pages::new(kind);
        let mut cursor = None;
        let mut has_cached_pages = false;
        loop {
            let params = cursor_params(cursor);
            let (result, is_cached) = match self.send_or_reuse(kind.method(), &params, call).await {
                // Caching, "Interaction with Pagination": the cursor of a cached page may have become invalid.
                Err(error) if has_cached_pages && error.code == Some(code::INVALID_PARAMS) => {
                    self.known.forget_results(&[kind.method()]);
                    (pages, cursor, has_cached_pages) = (Pages::new(kind), None, false);
                    continue;
                }
                outcome => outcome?,
            };
            has_cached_pages |= is_cached;
            cursor = pages.push(&result).map_err(|it| self.name(it))?;
            call.next_page();
            self.check_count(kind.method(), pages.objects())?;
            if cursor.is_none() {
                let mut items = pages.into_items();
                if is_filtered {
                    peer::retain_mirrored(&mut items);
                }
                if kind == ListKind::Tools {
                    self.with_tools(|it| it.learn(&items, true));
                }
                return Ok(items);
            }
        }
    }

    pub(super) async fn fetch_page(
        &self,
        kind: ListKind,
        cursor: Option<String>,
        call: &RunningCall,
    ) -> Result<Reply, Error> {
        let is_first = cursor.is_none();
        let params = cursor_params(cursor);
        let (result, _) = self.send_or_reuse(kind.method(), &params, call).await?;
        let mut page = Page::read(kind, &result).map_err(|it| self.name(it))?;
        if kind == ListKind::Tools {
            if self.connection.mirrors() {
                peer::retain_mirrored(&mut page.items);
            }
            let is_all = is_first && page.next_cursor.is_none();
            self.with_tools(|it| it.learn(&page.items, is_all));
        }
        Ok(page.to_json().into())
    }

    /// Learns the tools of the server.
    pub(super) async fn list_tools(&self, options: CallOptions) -> Result<(), Error> {
        self.list_all(ListKind::Tools, &RunningCall::begin(options)).await.map(drop)
    }

    /// Lists the tools if this one is unknown. A failure does not fail the call.
    pub(super) async fn list_tools_once(&self, name: &str, call: &RunningCall) {
        if !self.with_tools(|it| it.knows(name))
            // Boxed, so that the future of each call does not have the size of a list's.
            && let Err(error) = Box::pin(self.list_all(ListKind::Tools, &call.listing())).await
        {
            tracing::debug!(%error, "the tools could not be listed");
        }
    }

    /// Records that the program has a list.
    pub(super) fn was_listed(&self, kind: ListKind) {
        if kind == ListKind::Tools {
            self.with_tools(KnownTools::use_formats);
        }
    }
}
