//! The options of a server.

use std::{fmt, path::PathBuf, sync::Arc, time::Duration};

use serde_json::{Map, Value};

#[cfg(feature = "http")]
use super::HttpOptions;
#[cfg(feature = "http")]
use super::Store;
use super::{Server, handler::Components, serve::Limits, spans};
use crate::{
    driver::{set_state_keys, shows_errors},
    error::Error,
    framing::DEFAULT_LINE_LIMIT,
    protocol::{Dialect, Implementation, OwnCapabilities, Revision},
    router::{RoundLimits, ServerFacts},
    schema::SchemaProfile,
};
#[cfg(feature = "http")]
use crate::{http::EndpointConfig, store::SharedStore, stores::OwnStore};

/// The options of a server, for [`Server::options`].
#[derive(Clone)]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub struct ServerOptions {
    /// The supported revisions, in any order. Default: all.
    pub revisions: Vec<Revision>,
    /// The supported dialects, older descriptions of the protocol. Default: none.
    pub dialects: Vec<Dialect>,
    /// The number of entries per page of a list. Default: 100.
    pub page_size: usize,
    /// The time for which a client may cache lists. Default: none (Caching, from revision 2026-07-28).
    pub list_ttl: Duration,
    /// The extensions that this server implements, such as `com.example/search`, with their settings: objects, which may be
    /// empty. Their methods have handlers by [`Server::method`]. Default: none. Spec: Extensions.
    ///
    /// ```
    /// # use gudgeon::{Client, Context, Server};
    /// # use serde_json::{Value, json};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), gudgeon::Error> {
    /// let server = Server::new("shelf")
    ///     .options(|options| {
    ///         options.extensions.insert("com.example/search".into(), json!({"depth": 2}));
    ///     })
    ///     .method("com.example/search/find", |_: Value, _: Context| async { Ok(json!({"found": 3})) });
    ///
    /// let client = Client::connect(&server).await?;
    /// let capabilities: Value = serde_json::from_str(client.server().capabilities.get()).expect("JSON");
    /// assert_eq!(capabilities["extensions"]["com.example/search"]["depth"], 2);
    /// # Ok(())
    /// # }
    /// ```
    pub extensions: Map<String, Value>,
    /// Capabilities that no specification defines, with their settings. Default: none.
    pub experimental: Map<String, Value>,
    /// The form in which schemas are published; it must be set before the first tool is added.
    /// [`SchemaProfile::Portable`], the default, expands `$ref`, which many hosts misread, and rejects recursive types;
    /// [`SchemaProfile::Full`] leaves schemas unchanged.
    pub schema_profile: SchemaProfile,
    /// If true, callers see the text of panics and hidden errors, which are otherwise only logged. Default: false, unless the
    /// environment variable `GUDGEON_DEBUG` is `1`, which `gudgeon dev` sets.
    pub debug: bool,
    /// The maximum size of a received message in bytes; a longer one is rejected, and the connection stays open.
    /// Default: 16 MiB.
    pub max_message: usize,
    /// The time for pending calls to finish after the client has disconnected or the process was told to end.
    /// Default: 2 s.
    pub grace: Duration,
    /// The keys that seal the state which clients return between the rounds of a call (Multi Round-Trip Requests,
    /// "Server Requirements"). The first key seals; every key can open, so that keys can be rotated while calls are
    /// pending. Servers behind one address need the same keys and the same name. A key has at least 32 bytes.
    ///
    /// Default: the keys in the environment variable `GUDGEON_STATE_KEYS`, separated by commas; those in the file that
    /// `GUDGEON_STATE_KEYS_FILE` names; or else a random key of this process, whose states no other process can open.
    pub request_state_keys: Vec<Vec<u8>>,
    /// A file with such keys, separated by commas or line breaks, instead of `request_state_keys`. It is read again
    /// within seconds after it has changed. If it can't be used then, the keys that were read before stay in use.
    /// Default: none.
    pub request_state_keys_file: Option<PathBuf>,
    /// The maximum size of a sealed state in bytes. From a larger one earlier answers are left out, and a handler that
    /// is not suspended any more asks again. Default: 256 KiB.
    pub max_request_state: usize,
    /// The time for a client to answer questions. Default: 15 min.
    pub state_ttl: Duration,
    /// The maximum number of handlers suspended until a later request (2026-07-28); others are replayed when the
    /// answers arrive. Default: 1,000.
    pub suspended_limit: usize,
    /// The maximum time that a handler waits for answers in any revision: then it is stopped, and its call fails before
    /// 2026-07-28 or is replayed when the answer arrives. Default: 5 min.
    pub suspended_ttl: Duration,
    /// The store of what outlives a process and what the servers of one address share: events of streams that clients resume,
    /// changes of lists and resources, answers and cancellations for another process, subscriptions and log levels of sessions,
    /// and used `DPoP` proofs (RFC 9449, section 11.1). They need the same store, [`name`](Server::new) and
    /// [`request_state_keys`](Self::request_state_keys), with which all of it is sealed. Default: none, and each process has its
    /// own.
    #[cfg(feature = "http")]
    pub store: Option<Arc<dyn Store>>,
    /// The options of HTTP.
    #[cfg(feature = "http")]
    pub http: HttpOptions,
}

impl Default for ServerOptions {
    fn default() -> Self {
        let facts = ServerFacts::from(Implementation::default());
        Self {
            revisions: facts.revisions,
            dialects: facts.dialects,
            page_size: facts.page_size,
            list_ttl: facts.list_ttl,
            extensions: Map::new(),
            experimental: Map::new(),
            schema_profile: SchemaProfile::default(),
            debug: facts.debug,
            max_message: DEFAULT_LINE_LIMIT,
            grace: Duration::from_secs(2),
            request_state_keys: Vec::new(),
            request_state_keys_file: None,
            max_request_state: facts.rounds.max_state,
            state_ttl: facts.rounds.state_ttl,
            suspended_limit: facts.rounds.suspended_limit,
            suspended_ttl: facts.rounds.suspended_ttl,
            #[cfg(feature = "http")]
            store: None,
            #[cfg(feature = "http")]
            http: HttpOptions::default(),
        }
    }
}

impl Server {
    /// Changes the server's options.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use gudgeon::{SchemaProfile, Server};
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Tree {
    ///     name: String,
    ///     children: Vec<Tree>,
    /// }
    ///
    /// let server = Server::new("garden")
    ///     .options(|options| {
    ///         options.schema_profile = SchemaProfile::Full;
    ///         options.list_ttl = Duration::from_secs(60);
    ///     })
    ///     .tool("plant", |tree: Tree| async move { tree.name });
    /// ```
    ///
    /// # Panics
    /// Panics if there is no revision, if a key is empty, if `schema_profile` changes after tools were added, if an
    /// entry of `allowed_hosts`, `allowed_origins`, `cors` or `public_url` can match nothing, if `health` or `ready` is not a
    /// path of its own, if a method of `auth` can't work, or if an extension's name has no prefix or its settings are not an object.
    #[track_caller]
    pub fn options(mut self, change: impl FnOnce(&mut ServerOptions)) -> Self {
        change(&mut self.options);
        let applied = self.hub.edit(|components| self.options.apply(components));
        self.registered(applied)
    }

    pub(super) fn limits(&self) -> Limits {
        Limits { line: self.options.max_message, grace: self.options.grace }
    }
}

impl ServerOptions {
    /// Returns the options of an endpoint: those of the address, changed by these.
    #[cfg(feature = "http")]
    pub(super) fn endpoint(&self, address: EndpointConfig) -> EndpointConfig {
        let mut config = self.http.endpoint(address);
        if let Some(store) = &self.store {
            let store = SharedStore(Arc::new(OwnStore(Arc::clone(store))));
            #[cfg(feature = "auth")]
            if let Some(auth) = &config.auth {
                auth.set_store(Arc::clone(&store.0));
            }
            config.store = Some(store);
        }
        config
    }

    /// Sets the options that the core's layers below read.
    pub(super) fn apply(&self, components: &mut Components) -> Result<(), Error> {
        #[cfg(feature = "http")]
        self.http.check()?;
        if components.schemas != self.schema_profile && !components.tools.is_empty() {
            return Err(Error::misuse("schema_profile must be set before tools are added"));
        }
        components.schemas = self.schema_profile;
        let facts = Arc::make_mut(&mut components.server);
        facts.set_revisions(self.revisions.iter().copied())?;
        facts.dialects.clone_from(&self.dialects);
        facts.page_size = self.page_size.max(1);
        facts.list_ttl = self.list_ttl;
        facts.own = OwnCapabilities::new(&self.extensions, &self.experimental);
        facts.own.check()?;
        if let Some(name) = facts.own.conflict(&facts.mounted) {
            return Err(Error::misuse(format!(
                "a mounted server declares {name:?} with other settings; give both the same ones"
            )));
        }
        facts.debug = shows_errors(self.debug);
        if spans::are_wanted() {
            facts.traces.turn_on();
        }
        #[cfg(all(feature = "auth", feature = "http"))]
        {
            facts.scope_implies.clone_from(&self.http.scope_implies);
            facts.hide_unauthorized = self.http.hide_unauthorized;
        }
        let (keys, file) = (&self.request_state_keys, &self.request_state_keys_file);
        set_state_keys(facts, keys.clone(), file.clone())?;
        facts.rounds = RoundLimits {
            max_state: self.max_request_state,
            state_ttl: self.state_ttl,
            suspended_limit: self.suspended_limit,
            suspended_ttl: self.suspended_ttl,
            ..RoundLimits::default()
        };
        Ok(())
    }
}

impl fmt::Debug for ServerOptions {
    /// Leaves out the keys, which are secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerOptions")
            .field("revisions", &self.revisions)
            .field("dialects", &self.dialects)
            .finish_non_exhaustive()
    }
}
