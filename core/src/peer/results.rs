//! The cache of a client's lists and resources.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use serde::Deserialize;

use crate::{
    protocol::{Method, Raw, ResultType},
    session::client::{Change, ListKind as ChangedList},
};

/// The maximum number of cached results.
const MAX_RESULTS: usize = 1_000;
/// The maximum total size of cached results and their params in bytes.
const MAX_BYTES: usize = 16 * 1024 * 1024;
/// The longest time for which a result counts as fresh.
const MAX_FRESH: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Results that the server allows to reuse for a time (`ttlMs`), by method and params. Spec: Server Features › Utilities ›
/// Caching.
///
/// A cache belongs to one connection. So it is used with one identity only, and results with the scope `private` need no
/// treatment of their own.
#[derive(Debug, Default)]
pub struct ResultCache {
    results: HashMap<(Method, String), CachedResult>,
    bytes: usize,
    version: CacheVersion,
}

/// The number of times that results were removed because they may have changed.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct CacheVersion(u64);

#[derive(Debug)]
struct CachedResult {
    result: Raw,
    fresh_until: Instant,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Hints {
    result_type: Option<ResultType>,
    ttl_ms: Option<serde_json::Number>,
}

impl ResultCache {
    /// Returns the version to pass to [`Self::store`], as of the time at which a request is sent.
    pub fn version(&self) -> CacheVersion {
        self.version
    }

    /// Returns the result of the method with these params, if it is still fresh.
    pub fn get(&self, now: Instant, method: Method, params: &str) -> Option<Raw> {
        let cached = self.results.get(&(method, params.to_owned()))?;
        (now < cached.fresh_until).then(|| cached.result.clone())
    }

    /// Stores a result that arrived at `now`, unless the server does not allow that, or it is out of date because something
    /// changed after the request was sent.
    pub fn store(
        &mut self,
        now: Instant,
        sent: CacheVersion,
        method: Method,
        params: &str,
        result: &Raw,
    ) {
        let size = params.len() + result.get().len();
        let Some(fresh_until) = fresh_for(result).and_then(|duration| now.checked_add(duration))
        else {
            return;
        };
        if sent != self.version || size > MAX_BYTES {
            return;
        }
        let key = (method, params.to_owned());
        self.remove(&key);
        while self.results.len() >= MAX_RESULTS || self.bytes + size > MAX_BYTES {
            let oldest = self.results.iter().min_by_key(|(_, cached)| cached.fresh_until);
            let Some((oldest, _)) = oldest else { break };
            self.remove(&oldest.clone());
        }
        self.bytes += size;
        self.results.insert(key, CachedResult { result: result.clone(), fresh_until });
    }

    /// Removes what a change that the server notified of makes out of date.
    pub fn changed(&mut self, change: &Change) {
        match change {
            Change::List(ChangedList::Tools) => self.forget(&[Method::ListTools]),
            Change::List(ChangedList::Prompts) => self.forget(&[Method::ListPrompts]),
            // A resource whose list has changed may be gone.
            Change::List(ChangedList::Resources) => self.forget(&[
                Method::ListResources,
                Method::ListResourceTemplates,
                Method::ReadResource,
            ]),
            // The URI may be that of a part of a resource, and the specification does not say how the two are related.
            Change::Updated(_) => self.forget(&[Method::ReadResource]),
        }
    }

    /// Removes the results of these methods.
    pub fn forget(&mut self, methods: &[Method]) {
        self.version.0 += 1;
        self.results.retain(|(method, params), cached| {
            let stays = !methods.contains(method);
            if !stays {
                self.bytes -= params.len() + cached.result.get().len();
            }
            stays
        });
    }

    /// Removes all results.
    pub fn clear(&mut self) {
        self.version.0 += 1;
        self.results.clear();
        self.bytes = 0;
    }

    fn remove(&mut self, key: &(Method, String)) {
        if let Some(cached) = self.results.remove(key) {
            self.bytes -= key.1.len() + cached.result.get().len();
        }
    }
}

/// Returns the time for which the server allows to reuse a result; `None` if it does not.
fn fresh_for(result: &Raw) -> Option<Duration> {
    let Hints { result_type, ttl_ms } = serde_json::from_str(result.get()).ok()?;
    let is_complete = result_type.is_none_or(|kind| kind == ResultType::Complete);
    let time = Duration::from_millis(ttl_ms?.as_u64()?).min(MAX_FRESH);
    (is_complete && !time.is_zero()).then_some(time)
}
