//! The key set of an issuer: fetched when it is needed, kept while it is fresh.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use http::header;

use super::{
    issuer::{Discovered, Discovery},
    jwk::Jwks,
};
use crate::auth::{
    fetch::{FetchError, FetchRequest, FetchResponse, MAX_KEY_SET},
    metadata::ServerMetadata,
};

/// The time between two requests that unknown keys cause.
const UNKNOWN_KEY_INTERVAL: Duration = Duration::from_secs(30);
/// The time after a failure before the next request, and its maximum after several.
const FIRST_RETRY: Duration = Duration::from_secs(1);
const MAX_RETRY: Duration = Duration::from_secs(30);
/// The bounds of the time that a set is fresh, and the time if the answer names none.
const MIN_AGE: Duration = Duration::from_secs(60);
const MAX_AGE: Duration = Duration::from_secs(24 * 60 * 60);
const USUAL_AGE: Duration = Duration::from_secs(60 * 60);
/// The time that a set is used after it has expired, while its issuer fails.
const MAX_STALE: Duration = Duration::from_secs(24 * 60 * 60);

/// The key set of one issuer. At most one request is under way.
#[derive(Debug)]
pub struct Keys {
    source: Source,
    current: Option<Fetched>,
    is_fetching: bool,
    /// The request that the shell has not taken yet.
    wanted: Option<FetchRequest>,
    last_attempt: Option<Instant>,
    /// The time of the last request that an unknown key caused.
    last_refresh: Option<Instant>,
    failures: u32,
    failure: Option<String>,
}

enum Source {
    /// A set that the program gives. It never changes.
    Fixed(Arc<Jwks>),
    Url(String),
    /// The metadata of the issuer has the URL.
    Issuer {
        issuer: String,
        search: Option<Discovery>,
        found: Option<Box<ServerMetadata>>,
    },
}

#[derive(Debug)]
struct Fetched {
    keys: Arc<Jwks>,
    at: Instant,
    age: Duration,
}

/// The result of a look-up.
#[derive(Clone, Debug)]
pub enum Lookup {
    Ready(Arc<Jwks>),
    /// A request is under way: look again when it has been answered.
    Wait,
    /// There is no set and its issuer fails; the text is for the log.
    Failed(String),
}

impl Keys {
    pub fn fixed(keys: Jwks) -> Self {
        Self::new(Source::Fixed(Arc::new(keys)))
    }

    /// Creates the set at this URL.
    pub fn at(url: &str) -> Self {
        Self::new(Source::Url(url.to_owned()))
    }

    /// Creates the set of an issuer, whose metadata has its URL.
    pub fn of_issuer(issuer: &str) -> Self {
        let issuer = issuer.to_owned();
        Self::new(Source::Issuer { issuer, search: None, found: None })
    }

    fn new(source: Source) -> Self {
        Self {
            source,
            current: None,
            is_fetching: false,
            wanted: None,
            last_attempt: None,
            last_refresh: None,
            failures: 0,
            failure: None,
        }
    }

    /// Returns the set. Starts a request if the set is missing, expired, or has only a fifth of its time left.
    pub fn get(&mut self, now: Instant) -> Lookup {
        if let Source::Fixed(keys) = &self.source {
            return Lookup::Ready(Arc::clone(keys));
        }
        let Some(Fetched { keys, at, age }) = &self.current else {
            return if self.start(now) { Lookup::Wait } else { self.failed() };
        };
        let (keys, end) = (Arc::clone(keys), *at + *age);
        if now < end {
            if now + *age / 5 >= end {
                self.start(now);
            }
            return Lookup::Ready(keys);
        }
        let is_usable = now < end + MAX_STALE;
        match self.start(now) {
            // While its issuer fails, nobody waits for it.
            true if self.failures == 0 || !is_usable => Lookup::Wait,
            _ if is_usable => Lookup::Ready(keys),
            _ => self.failed(),
        }
    }

    /// Starts a request because a token names a key that is not in the set. Returns false if an unknown key caused one a
    /// moment ago.
    ///
    /// Requests with other causes don't count: the issuer may replace its keys a moment after the set was fetched.
    pub fn refresh(&mut self, now: Instant) -> bool {
        let is_early = self.last_refresh.is_some_and(|last| now < last + UNKNOWN_KEY_INTERVAL);
        match self.source {
            Source::Fixed(_) => return false,
            _ if self.is_fetching => return true,
            _ if is_early => return false,
            _ => (),
        }
        let has_started = self.start(now);
        if has_started {
            self.last_refresh = Some(now);
        }
        has_started
    }

    /// Returns the request to send. [`Keys::answered`] takes its answer.
    pub fn poll(&mut self) -> Option<FetchRequest> {
        self.wanted.take()
    }

    /// Handles the answer to a request. Returns true if look-ups may have another result now.
    pub fn answered(&mut self, now: Instant, answer: Result<FetchResponse, FetchError>) -> bool {
        if !self.is_fetching {
            return false;
        }
        if let Source::Issuer { search: Some(search), found, .. } = &mut self.source {
            let failure = match search.answered(answer.as_ref().map_err(Clone::clone)) {
                Discovered::Continue => None,
                Discovered::Failed(reason) => Some(reason),
                Discovered::Found(metadata) if metadata.jwks_uri.is_none() => {
                    Some("the metadata of the issuer has no jwks_uri".to_owned())
                }
                Discovered::Found(metadata) => {
                    *found = Some(metadata);
                    self.end_search();
                    None
                }
            };
            match failure {
                None => self.request(),
                Some(reason) => {
                    self.end_search();
                    self.fail(reason);
                }
            }
            return !self.is_fetching;
        }
        let read = answer.and_then(|answer| {
            answer.document::<serde::de::IgnoredAny>()?;
            let keys = Jwks::read(&answer.body).map_err(FetchError::Connection)?;
            Ok(Fetched { keys: Arc::new(keys), at: now, age: age(&answer) })
        });
        match read {
            Ok(fetched) => {
                self.is_fetching = false;
                self.failures = 0;
                self.failure = None;
                self.current = Some(fetched);
            }
            Err(error) => {
                // The issuer may have moved its keys.
                if let Source::Issuer { found, .. } = &mut self.source {
                    *found = None;
                }
                self.fail(error.to_string());
            }
        }
        true
    }

    /// Returns the time since the set was fetched; `None` if there is none, or if it never changes.
    pub fn age(&self, now: Instant) -> Option<Duration> {
        let fetched = self.current.as_ref()?;
        Some(now.saturating_duration_since(fetched.at))
    }

    /// Returns the metadata of the issuer, if it has been asked for.
    pub fn metadata(&self) -> Option<&ServerMetadata> {
        match &self.source {
            Source::Issuer { found, .. } => found.as_deref(),
            _ => None,
        }
    }

    /// Starts a request, unless one failed a moment ago. Returns whether one is under way.
    fn start(&mut self, now: Instant) -> bool {
        let pause = FIRST_RETRY * 2_u32.saturating_pow(self.failures.saturating_sub(1).min(10));
        let is_early = self.last_attempt.is_some_and(|last| now < last + pause.min(MAX_RETRY));
        if self.is_fetching {
            return true;
        }
        if self.failures > 0 && is_early {
            return false;
        }
        self.last_attempt = Some(now);
        self.is_fetching = true;
        if let Source::Issuer { issuer, search, found: None } = &mut self.source {
            *search = Some(Discovery::new(issuer));
        }
        self.request();
        self.is_fetching
    }

    /// Makes the next request.
    fn request(&mut self) {
        let request = match &self.source {
            Source::Fixed(_) => return,
            Source::Url(url) => FetchRequest::get(url, MAX_KEY_SET),
            Source::Issuer { search: Some(search), .. } => search.request(),
            Source::Issuer { found, .. } => {
                let url = found.as_ref().and_then(|metadata| metadata.jwks_uri.as_deref());
                FetchRequest::get(url.unwrap_or_default(), MAX_KEY_SET)
            }
        };
        match request {
            Ok(request) => self.wanted = Some(request),
            Err(error) => {
                self.end_search();
                self.fail(error.to_string());
            }
        }
    }

    fn end_search(&mut self) {
        if let Source::Issuer { search, .. } = &mut self.source {
            *search = None;
        }
    }

    fn fail(&mut self, reason: String) {
        tracing::warn!(%reason, keys = ?self.source, "the keys for access tokens could not be fetched");
        self.is_fetching = false;
        self.failures += 1;
        self.failure = Some(reason);
    }

    fn failed(&self) -> Lookup {
        Lookup::Failed(self.failure.clone().unwrap_or_default())
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(keys) => write!(f, "{} keys", keys.len()),
            Self::Url(url) => f.write_str(url),
            Self::Issuer { issuer, .. } => write!(f, "of {issuer}"),
        }
    }
}

/// Returns the time that an answer is fresh, by its `Cache-Control`, within bounds.
fn age(answer: &FetchResponse) -> Duration {
    let directives = answer.headers.get_all(header::CACHE_CONTROL).iter();
    let directives =
        directives.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    let mut age = USUAL_AGE;
    for directive in directives {
        let directive = directive.trim().to_ascii_lowercase();
        if directive == "no-store" || directive == "no-cache" {
            return MIN_AGE;
        }
        if let Some(seconds) = directive.strip_prefix("max-age=") {
            age = seconds.trim_matches('"').parse().map_or(age, Duration::from_secs);
        }
    }
    age.clamp(MIN_AGE, MAX_AGE)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that fails here says where")]

    use http::{HeaderMap, HeaderValue, StatusCode};

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[expect(clippy::unnecessary_wraps, reason = "it stands for the result of a request")]
    fn answer(body: &str, cache_control: &str) -> Result<FetchResponse, FetchError> {
        let mut headers = HeaderMap::new();
        headers.insert(header::CACHE_CONTROL, HeaderValue::try_from(cache_control).unwrap());
        let url = String::new();
        Ok(FetchResponse { url, status: StatusCode::OK, headers, body: body.into() })
    }

    fn keys() -> Result<FetchResponse, FetchError> {
        answer(r#"{"keys":[]}"#, "public, max-age=100")
    }

    fn failure() -> Result<FetchResponse, FetchError> {
        Err(FetchError::TimedOut(SECOND))
    }

    fn is_ready(lookup: &Lookup) -> bool {
        matches!(lookup, Lookup::Ready(_))
    }

    #[test]
    fn one_request_serves_all_who_wait() {
        let (mut set, now) = (Keys::at("https://as.example.com/keys"), Instant::now());
        assert!(matches!(set.get(now), Lookup::Wait));
        assert!(matches!(set.get(now), Lookup::Wait));
        assert_eq!(set.age(now), None);
        assert_eq!(set.poll().unwrap().url, "https://as.example.com/keys");
        assert!(set.refresh(now) && set.poll().is_none(), "one request is under way already");
        assert!(set.answered(now, keys()));
        assert!(is_ready(&set.get(now)) && set.poll().is_none());
        assert_eq!(set.age(now + SECOND), Some(SECOND));
        assert!(!set.answered(now, failure()), "an answer to nothing");
    }

    #[test]
    fn a_set_is_refreshed_ahead_of_its_end() {
        let (mut set, now) = (Keys::at("https://as.example.com/keys"), Instant::now());
        set.get(now);
        set.answered(now, keys());
        set.wanted = None;
        assert!(is_ready(&set.get(now + 79 * SECOND)) && set.poll().is_none());
        assert!(is_ready(&set.get(now + 80 * SECOND)) && set.poll().is_some());
        set.answered(now + 80 * SECOND, keys());
        assert!(matches!(set.get(now + 181 * SECOND), Lookup::Wait));
    }

    #[test]
    fn a_set_is_used_while_its_issuer_fails() {
        let (mut set, now) = (Keys::at("https://as.example.com/keys"), Instant::now());
        set.get(now);
        set.answered(now, keys());
        let later = now + 101 * SECOND;
        assert!(matches!(set.get(later), Lookup::Wait));
        set.answered(later, failure());
        assert!(is_ready(&set.get(later)));
        // The next attempt waits, and does not hold up requests.
        set.wanted = None;
        assert!(is_ready(&set.get(later + SECOND / 2)) && set.poll().is_none());
        assert!(is_ready(&set.get(later + SECOND)) && set.poll().is_some());
        let much_later = now + 100 * SECOND + MAX_STALE;
        set.answered(much_later, failure());
        assert!(matches!(set.get(much_later), Lookup::Wait));
        set.answered(much_later, failure());
        assert!(matches!(set.get(much_later), Lookup::Failed(_)));
    }

    #[test]
    fn an_unknown_key_causes_one_request_in_thirty_seconds() {
        let (mut set, now) = (Keys::at("https://as.example.com/keys"), Instant::now());
        set.get(now);
        set.answered(now, keys());
        set.wanted = None;
        // The set is a second old, and the issuer has replaced its keys.
        assert!(set.refresh(now + SECOND) && set.poll().is_some());
        set.answered(now + SECOND, keys());
        assert!(!set.refresh(now + 30 * SECOND) && set.poll().is_none());
        assert!(set.refresh(now + 31 * SECOND) && set.poll().is_some());
        set.answered(now + 31 * SECOND, keys());
        assert!(!set.refresh(now + 60 * SECOND));
        assert!(!Keys::fixed(Jwks::default()).refresh(now));
    }

    #[test]
    fn failures_are_retried_ever_later() {
        let (mut set, mut now) = (Keys::at("https://as.example.com/keys"), Instant::now());
        for pause in [1, 2, 4, 8, 16, 30, 30] {
            assert!(matches!(set.get(now), Lookup::Wait));
            set.answered(now, failure());
            let early = now + (10 * pause - 1) * SECOND / 10;
            let Lookup::Failed(reason) = set.get(early) else { panic!("too early after {pause}") };
            assert!(reason.contains("no answer within"));
            now += pause * SECOND;
        }
    }

    #[test]
    fn the_metadata_of_the_issuer_has_the_url() {
        let (mut set, now) = (Keys::of_issuer("https://as.example.com"), Instant::now());
        set.get(now);
        assert!(set.poll().unwrap().url.ends_with("/.well-known/oauth-authorization-server"));
        assert!(!set.answered(now, failure()));
        assert!(set.poll().unwrap().url.ends_with("/.well-known/openid-configuration"));
        let document = r#"{"issuer":"https://as.example.com","jwks_uri":"https://k.example/k"}"#;
        assert!(!set.answered(now, answer(document, "")));
        assert_eq!(set.poll().unwrap().url, "https://k.example/k");
        // The keys moved: the metadata is read again.
        assert!(set.answered(now, failure()));
        assert!(matches!(set.get(now + 2 * SECOND), Lookup::Wait));
        assert!(set.poll().unwrap().url.ends_with("/.well-known/oauth-authorization-server"));
    }

    #[test]
    fn a_hostile_issuer_gives_no_keys() {
        for body in ["", "[]", "{}", r#"{"keys":{}}"#] {
            let (mut set, now) = (Keys::at("https://as.example.com/keys"), Instant::now());
            set.get(now);
            assert!(set.answered(now, answer(body, "")));
            assert!(matches!(set.get(now), Lookup::Failed(_)), "{body}");
        }
        let mut set = Keys::at("http://as.example.com/keys");
        let Lookup::Failed(reason) = set.get(Instant::now()) else { panic!("plain http") };
        assert!(reason.contains("use https"), "{reason}");
    }

    #[test]
    fn the_time_a_set_is_fresh_is_bounded() {
        for (cache_control, expected) in [
            ("max-age=0", MIN_AGE),
            ("no-store", MIN_AGE),
            ("public, Max-Age=\"3000\"", Duration::from_secs(3_000)),
            ("max-age=99999999999", MAX_AGE),
            ("max-age=-1", USUAL_AGE),
            ("", USUAL_AGE),
        ] {
            assert_eq!(age(&answer("", cache_control).unwrap()), expected, "{cache_control}");
        }
    }
}
