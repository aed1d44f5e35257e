//! Builder methods for the server's description and behaviour.

use std::{sync::Arc, time::Duration};

#[cfg(feature = "http")]
use super::HttpOptions;
use super::Server;
use crate::{
    driver::state_keys,
    protocol::{Dialect, Icon, Revision},
    schema::SchemaProfile,
};

impl Server {
    /// Sets the server's version. Default: empty.
    pub fn version(self, version: impl Into<String>) -> Self {
        self.facts(|it| it.info.version = version.into())
    }

    /// Sets the name to display.
    pub fn title(self, title: impl Into<String>) -> Self {
        self.facts(|it| it.info.title = Some(title.into()))
    }

    /// Sets a description for people.
    pub fn description(self, description: impl Into<String>) -> Self {
        self.facts(|it| it.info.description = Some(description.into()))
    }

    /// Sets the URL of a web page about the server.
    pub fn website_url(self, url: impl Into<String>) -> Self {
        self.facts(|it| it.info.website_url = Some(url.into()))
    }

    /// Sets icons that a host may display.
    pub fn icons(self, icons: impl IntoIterator<Item = Icon>) -> Self {
        self.facts(|it| it.info.icons = Some(icons.into_iter().collect()))
    }

    /// Sets instructions for models on how to use the server as a whole.
    pub fn instructions(self, instructions: impl Into<String>) -> Self {
        self.facts(|it| it.instructions = Some(instructions.into()))
    }

    /// Sets the supported revisions, in any order. Default: all.
    ///
    /// # Panics
    /// Panics if the list is empty.
    #[track_caller]
    pub fn revisions(self, revisions: impl IntoIterator<Item = Revision>) -> Self {
        let spoken = self
            .hub
            .edit(|components| Arc::make_mut(&mut components.server).set_revisions(revisions));
        self.registered(spoken)
    }

    /// Sets the supported dialects, older descriptions of the protocol. Default: none.
    pub fn dialects(self, dialects: impl IntoIterator<Item = Dialect>) -> Self {
        self.facts(|it| it.dialects = dialects.into_iter().collect())
    }

    /// Sets the number of entries per page of a list. Default: 100.
    pub fn page_size(self, entries: usize) -> Self {
        self.facts(|it| it.page_size = entries.max(1))
    }

    /// Sets the time for which a client may cache lists. Default: none (Caching, from revision 2026-07-28).
    pub fn list_ttl(self, ttl: Duration) -> Self {
        self.facts(|it| it.list_ttl = ttl)
    }

    /// Sets the keys that seal the state which clients return between the rounds of a call (Multi Round-Trip
    /// Requests, "Server Requirements"). The first key seals; every key can open, so that keys can be rotated while
    /// calls are pending. Servers behind one address need the same keys.
    ///
    /// Default: the keys in the environment variable `GUDGEON_STATE_KEYS`, separated by commas, or else a random key
    /// of this process, whose states no other process can open.
    ///
    /// # Panics
    /// Panics if a key is empty.
    #[track_caller]
    pub fn request_state_keys<K: Into<Vec<u8>>>(self, keys: impl IntoIterator<Item = K>) -> Self {
        match state_keys(keys.into_iter().map(Into::into).collect()) {
            Ok(keys) => self.facts(|it| it.request_state_keys = keys),
            Err(error) => panic!("{error}"),
        }
    }

    /// Sets the maximum size of a sealed state in bytes. From a larger one earlier answers are left out, and a
    /// handler that is not suspended any more asks again. Default: 256 KiB.
    pub fn max_request_state(self, bytes: usize) -> Self {
        self.facts(|it| it.rounds.max_state = bytes)
    }

    /// Sets the time for a client to answer questions. Default: 15 min.
    pub fn state_ttl(self, ttl: Duration) -> Self {
        self.facts(|it| it.rounds.state_ttl = ttl)
    }

    /// Sets limits for handlers that wait for answers. `limit` is the maximum number of handlers suspended until a
    /// later request (2026-07-28); others are replayed when the answers arrive. `ttl` is the maximum time that a
    /// handler waits in any revision: then it is stopped, and its call fails before 2026-07-28 or is replayed when
    /// the answer arrives. Default: 1,000 and 5 min.
    pub fn park(self, limit: usize, ttl: Duration) -> Self {
        self.facts(|it| (it.rounds.park_limit, it.rounds.park_ttl) = (limit, ttl))
    }

    /// Sets the form in which schemas are published. [`SchemaProfile::Portable`], the default, expands `$ref`, which
    /// many hosts misread, and rejects recursive types; [`SchemaProfile::Full`] leaves schemas unchanged. Must be
    /// called before the first tool is added.
    ///
    /// ```
    /// # use gudgeon::{SchemaProfile, Server};
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
    /// Panics if tools have been added already.
    #[track_caller]
    pub fn schema_profile(self, profile: SchemaProfile) -> Self {
        let is_first = self.hub.edit(|components| {
            components.schemas = profile;
            components.tools.is_empty()
        });
        assert!(is_first, "schema_profile({profile:?}) must be called before tools are added");
        self
    }

    /// If true, callers see the text of panics and hidden errors, which are otherwise only logged. Default: false.
    pub fn debug(self, debug: bool) -> Self {
        self.facts(|it| it.debug = debug)
    }

    /// Sets the maximum size of a received message in bytes; a longer one is rejected, and the connection stays open.
    /// Default: 16 MiB.
    pub fn max_message(mut self, bytes: usize) -> Self {
        self.limits.line = bytes;
        self
    }

    /// Sets the time for pending calls to finish after the client has disconnected or the process was told to end.
    /// Default: 2 s.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.limits.grace = grace;
        self
    }

    /// Sets the HTTP options.
    ///
    /// # Panics
    /// Panics if an entry of `allowed_hosts`, `allowed_origins`, `cors` or `public_url` can match nothing.
    #[cfg(feature = "http")]
    #[track_caller]
    pub fn http(mut self, options: HttpOptions) -> Self {
        options.check().unwrap_or_else(|error| panic!("{error}"));
        self.http = options;
        self
    }
}
