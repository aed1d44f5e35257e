//! What a server says of itself, and how it behaves, as far as its builder sets it.

use std::{sync::Arc, time::Duration};

use super::{HttpOptions, Server};
use crate::{
    driver::state_keys,
    protocol::{Dialect, Icon, Revision},
    schema::SchemaProfile,
};

impl Server {
    /// Of your server. Default: none.
    pub fn version(self, version: impl Into<String>) -> Self {
        self.facts(|it| it.info.version = version.into())
    }

    /// A name for people.
    pub fn title(self, title: impl Into<String>) -> Self {
        self.facts(|it| it.info.title = Some(title.into()))
    }

    /// What the server is, for people.
    pub fn description(self, description: impl Into<String>) -> Self {
        self.facts(|it| it.info.description = Some(description.into()))
    }

    /// Where to read more.
    pub fn website_url(self, url: impl Into<String>) -> Self {
        self.facts(|it| it.info.website_url = Some(url.into()))
    }

    /// Pictures that a host may show.
    pub fn icons(self, icons: impl IntoIterator<Item = Icon>) -> Self {
        self.facts(|it| it.info.icons = Some(icons.into_iter().collect()))
    }

    /// How the server as a whole is to be used, for models.
    pub fn instructions(self, instructions: impl Into<String>) -> Self {
        self.facts(|it| it.instructions = Some(instructions.into()))
    }

    /// Which revisions of the protocol are spoken, in any order. Default: all.
    ///
    /// # Panics
    /// When there is none.
    #[track_caller]
    pub fn revisions(self, revisions: impl IntoIterator<Item = Revision>) -> Self {
        let spoken = self.hub.edit(|offers| Arc::make_mut(&mut offers.server).speak(revisions));
        self.registered(spoken)
    }

    /// Which older descriptions of the protocol are understood beside the revisions. Default: none.
    pub fn dialects(self, dialects: impl IntoIterator<Item = Dialect>) -> Self {
        self.facts(|it| it.dialects = dialects.into_iter().collect())
    }

    /// Entries on one page of a list; clients fetch the next page with a cursor. Default: 100.
    pub fn page_size(self, entries: usize) -> Self {
        self.facts(|it| it.page_size = entries.max(1))
    }

    /// How long a client may keep lists. Default: not at all (Caching, from revision 2026-07-28).
    pub fn list_ttl(self, ttl: Duration) -> Self {
        self.facts(|it| it.list_ttl = ttl)
    }

    /// What seals the state that clients carry between the rounds of a call (Multi Round-Trip Requests, "Server
    /// Requirements"): the first key seals, every one opens, so that keys can be changed while calls are under way. Servers
    /// that share the work need the same keys.
    ///
    /// Default: those of the environment variable `GUDGEON_STATE_KEYS`, separated by commas; else a key of this
    /// process's own, so that a state is good here only.
    ///
    /// # Panics
    /// When a key is empty: it would be a secret that everybody knows.
    #[track_caller]
    pub fn request_state_keys<K: Into<Vec<u8>>>(self, keys: impl IntoIterator<Item = K>) -> Self {
        match state_keys(keys.into_iter().map(Into::into).collect()) {
            Ok(keys) => self.facts(|it| it.request_state_keys = keys),
            Err(error) => panic!("{error}"),
        }
    }

    /// The longest sealed state: bytes. In a longer one earlier answers are left out, and a handler that is no longer
    /// waiting asks for them again. Default: 256 KiB.
    pub fn max_request_state(self, bytes: usize) -> Self {
        self.facts(|it| it.rounds.max_state = bytes)
    }

    /// How long a client may take for its answers. Default: 15 min.
    pub fn state_ttl(self, ttl: Duration) -> Self {
        self.facts(|it| it.rounds.state_ttl = ttl)
    }

    /// How many handlers may wait for answers that come with a later request (2026-07-28): others are run again from their
    /// top when those come. And how long a handler waits for its client's answer in any revision before it is stopped: its
    /// call fails then before 2026-07-28, and is run again from its top when the answer comes from then on. Default: 1,000,
    /// and 5 min.
    pub fn park(self, limit: usize, ttl: Duration) -> Self {
        self.facts(|it| (it.rounds.park_limit, it.rounds.park_ttl) = (limit, ttl))
    }

    /// How schemas are shown to clients: [`SchemaProfile::Portable`], the default, writes them without `$ref`, which many
    /// hosts misread, and has none for types that contain themselves; [`SchemaProfile::Full`] leaves them as they are. To be
    /// called before the first tool is added.
    ///
    /// ```
    /// # use gudgeon::{Server, schema::SchemaProfile};
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Tree {
    ///     name: String,
    ///     children: Vec<Tree>,
    /// }
    ///
    /// let server = Server::new("garden")
    ///     .schema_profile(SchemaProfile::Full)
    ///     .tool("plant", |tree: Tree| async move { tree.name });
    /// ```
    ///
    /// # Panics
    /// When there are tools already.
    #[track_caller]
    pub fn schema_profile(self, profile: SchemaProfile) -> Self {
        let is_first = self.hub.edit(|offers| {
            offers.schemas = profile;
            offers.tools.is_empty()
        });
        assert!(
            is_first,
            "schema_profile({profile:?}) comes too late for the tools that are there: call it before"
        );
        self
    }

    /// Whether callers see what is otherwise only logged: the text of a panic or of a hidden error. Default: no.
    pub fn debug(self, debug: bool) -> Self {
        self.facts(|it| it.debug = debug)
    }

    /// The longest message that is read: bytes. A longer one is refused, and the connection goes on. Default: 16 MiB.
    pub fn max_message(mut self, bytes: usize) -> Self {
        self.limits.line = bytes;
        self
    }

    /// How long calls in flight may go on when the client has gone or the process is told to end. Default: 2 s.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.limits.grace = grace;
        self
    }

    /// How the server behaves over HTTP.
    pub fn http(mut self, options: HttpOptions) -> Self {
        self.http = options;
        self
    }
}
