//! Fetches the lists of a server, and keeps what calls need to know of its tools.

use super::{
    CallOptions, OperationReply, connected::Connected, params::cursor_params,
    running_call::RunningCall,
};
use crate::{
    error::Error,
    peer::{ListKind, ListedTools, Page, Pages},
    protocol::{Raw, code},
    transport::off_thread::off_thread_if_large,
};

impl Connected {
    /// Fetches all pages of a list. Returns its entries, and their size in bytes.
    pub(super) async fn list_all(
        &self,
        kind: ListKind,
        call: &RunningCall,
    ) -> Result<(Vec<Raw>, usize), Error> {
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
            let next;
            (pages, next) = off_thread_if_large(result.get().len(), move || {
                let next = pages.push(&result);
                (pages, next)
            })
            .await;
            cursor = next.map_err(|error| self.name(error))?;
            call.next_page();
            self.check_count(kind.method(), pages.objects())?;
            if cursor.is_none() {
                let bytes = pages.bytes();
                let items = self.learn(kind, pages.into_items(), bytes, true).await;
                return Ok((items, bytes));
            }
        }
    }

    /// Fetches a page of a list.
    pub(super) async fn fetch_page(
        &self,
        kind: ListKind,
        cursor: Option<String>,
        call: &RunningCall,
    ) -> Result<OperationReply, Error> {
        let is_first = cursor.is_none();
        let params = cursor_params(cursor);
        let (result, _) = self.send_or_reuse(kind.method(), &params, call).await?;
        let bytes = result.get().len();
        let page = off_thread_if_large(bytes, move || Page::read(kind, &result)).await;
        let Page { items, next_cursor } = page.map_err(|error| self.name(error))?;
        let is_all = is_first && next_cursor.is_none();
        let items = self.learn(kind, items, bytes, is_all).await;
        let page = Page { items, next_cursor };
        Ok(off_thread_if_large(bytes, move || page.to_json()).await.into())
    }

    /// Learns the tools in a list of this size in bytes, if it has tools. Returns the entries, without those that can't be
    /// called.
    async fn learn(
        &self,
        kind: ListKind,
        mut items: Vec<Raw>,
        bytes: usize,
        is_complete: bool,
    ) -> Vec<Raw> {
        if kind != ListKind::Tools {
            return items;
        }
        let version = self.with_tools(|tools| tools.version());
        let is_mirrored = self.connection.mirrors();
        let (items, listed) = off_thread_if_large(bytes, move || {
            let listed = ListedTools::read(&mut items, is_mirrored);
            (items, listed)
        })
        .await;
        self.with_tools(|tools| {
            // With another version, the list has changed meanwhile.
            if tools.version() == version {
                tools.learn(listed, is_complete);
            }
        });
        items
    }

    /// Learns the tools of the server.
    pub(super) async fn list_tools(&self, options: CallOptions) -> Result<(), Error> {
        self.list_all(ListKind::Tools, &RunningCall::begin(options)).await.map(drop)
    }

    /// Lists the tools if this one is unknown. A failure does not fail the call.
    pub(super) async fn list_tools_once(&self, name: &str, call: &RunningCall) {
        if !self.with_tools(|tools| tools.knows(name))
            // Boxed, so that the future of each call does not have the size of a list's.
            && let Err(error) = Box::pin(self.list_all(ListKind::Tools, &call.listing())).await
        {
            tracing::debug!(%error, "the tools could not be listed");
        }
    }
}
