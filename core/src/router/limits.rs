//! Limits that ready-made middleware enforces.

use std::{
    collections::{BTreeMap, HashMap},
    net::IpAddr,
    sync::Arc,
};

use super::{Failure, HandlerKind, Reply};
use crate::{
    error::{Error, option_name},
    log_text::single_line,
    protocol::ClientKey,
};

/// HTTP statuses as error codes, because negative codes are reserved (2026-07-28, "Error Codes").
const TOO_MANY: i64 = 429;
const TOO_LARGE: i64 = 413;
/// The maximum number of callers whose requests are counted.
const MAX_BUCKETS: usize = 10_000;
/// Methods that are never rejected, because a client could not learn the reason without them.
const EXEMPT: [&str; 3] = ["initialize", "server/discover", "ping"];

/// The callers that share a limit.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub enum CountedBy {
    /// Each principal; each address that requests come from, if there is no principal; or all callers together, where the
    /// address is unknown.
    Principal,
    /// Each client name, which clients choose themselves.
    Client,
    /// All callers together.
    Server,
}

/// The caller of a request.
#[derive(Clone, Copy, Debug)]
pub struct Caller<'a> {
    /// The subject of the principal.
    pub principal: Option<&'a str>,
    /// The address that the request came from, if known.
    pub remote: Option<IpAddr>,
    /// The client's name.
    pub client: &'a str,
}

/// A limit for the rate of requests: a token bucket for each caller.
#[derive(Debug)]
pub struct RateLimit {
    per_second: f64,
    burst: f64,
    by: CountedBy,
    buckets: HashMap<Arc<str>, Bucket>,
    /// The callers by their latest request, oldest first.
    order: BTreeMap<u64, Arc<str>>,
    next: u64,
}

#[derive(Debug)]
struct Bucket {
    left: f64,
    /// The time of the latest request, in seconds.
    at: f64,
    /// The key in the order.
    place: u64,
}

/// The reason of a rejection: for a tool, a text that the model reads; else an error with a code.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Rejection {
    pub code: Option<i64>,
    pub message: String,
}

/// A limit for the size of results, in bytes of JSON.
#[derive(Clone, Copy, Debug)]
pub struct ResponseLimit(usize);

impl CountedBy {
    #[doc(hidden)] // For the language bindings.
    pub fn parse(name: &str) -> Result<Self, Error> {
        match name {
            "principal" => Ok(Self::Principal),
            "client" => Ok(Self::Client),
            "server" => Ok(Self::Server),
            other => Err(Error::misuse(format!(
                "by must be \"principal\", \"client\" or \"server\", not {other:?}"
            ))),
        }
    }
}

impl RateLimit {
    /// Allows this many requests a second on average, `burst` at once. Errors if a number is too small.
    pub fn new(per_second: f64, burst: f64, by: CountedBy) -> Result<Self, Error> {
        let problem = if per_second.is_nan() || per_second <= 0.0 {
            let name = option_name("per_second");
            format!("{name} must be a number of requests a second above 0, not {per_second}")
        } else if burst.is_nan() || burst < 1.0 {
            format!("burst must be at least 1, not {burst}")
        } else {
            let (buckets, order) = (HashMap::new(), BTreeMap::new());
            return Ok(Self { per_second, burst, by, buckets, order, next: 0 });
        };
        Err(Error::misuse(problem))
    }

    /// Returns `true` if requests of this method are counted. Notifications never are.
    pub fn counts(method: &str) -> bool {
        !EXEMPT.contains(&method)
    }

    /// Counts a request. `now` is in seconds, from any start. Errors if the caller has exceeded the rate.
    pub fn admit(&mut self, now: f64, method: &str, caller: Caller<'_>) -> Result<(), Rejection> {
        let key = match (self.by, caller.principal) {
            (CountedBy::Server, _) => String::new(),
            (CountedBy::Client, _) => caller.client.to_owned(),
            (CountedBy::Principal, Some(subject)) => format!("principal {subject}"),
            (CountedBy::Principal, None) => format!("{:?}", ClientKey::new(None, caller.remote)),
        };
        let (key, left) = match self.buckets.remove_entry(key.as_str()) {
            None => (Arc::from(key), self.burst),
            Some((key, Bucket { left, at, place })) => {
                self.order.remove(&place);
                (key, self.burst.min(left + (now - at).max(0.0) * self.per_second))
            }
        };
        let is_granted = left >= 1.0;
        let bucket =
            Bucket { left: if is_granted { left - 1.0 } else { left }, at: now, place: self.next };
        self.order.insert(self.next, Arc::clone(&key));
        self.buckets.insert(key, bucket);
        self.next += 1;
        // The least recently used bucket is probably full again.
        if self.buckets.len() > MAX_BUCKETS
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.buckets.remove(&oldest);
        }
        if is_granted {
            return Ok(());
        }
        let (per_second, wait) = (self.per_second, (1.0 - left) / self.per_second);
        let message = format!(
            "too many requests: at most {per_second} per second are allowed; try again in {wait:.1} s"
        );
        Err(Rejection::new(method, TOO_MANY, message))
    }
}

impl ResponseLimit {
    /// Errors if the limit is 0.
    pub fn new(max_bytes: usize) -> Result<Self, Error> {
        let name = option_name("max_bytes");
        let problem = || Error::misuse(format!("{name} must be a number of bytes above 0, not 0"));
        if max_bytes == 0 { Err(problem()) } else { Ok(Self(max_bytes)) }
    }

    /// Errors if a result is too large. `subject` is the name or URI in the request.
    pub(crate) fn check(
        self,
        method: &str,
        subject: Option<&str>,
        size: usize,
    ) -> Result<(), Rejection> {
        let Self(limit) = self;
        if size <= limit || EXEMPT.contains(&method) {
            return Ok(());
        }
        let subject = describe(method, subject);
        let message = format!(
            "the result of {subject} has {size} bytes, more than the limit of {limit}; request less"
        );
        Err(Rejection::new(method, TOO_LARGE, message))
    }
}

impl ResponseLimit {
    /// Errors if the result of a handler's reply is too large in the vocabulary of the newest revision. An invalid reply
    /// has no size, because it fails anyway.
    pub fn check_reply(
        self,
        method: &str,
        subject: Option<&str>,
        reply: Reply,
    ) -> Result<(), Rejection> {
        let size = match reply {
            Reply::Result(json) => json.len(),
            reply => {
                let uri = subject.unwrap_or_default();
                HandlerKind::for_method(method)
                    .result(uri, None, reply)
                    .map_or(0, |result| result.len())
            }
        };
        self.check(method, subject, size)
    }
}

/// Returns the method with the name or URI in the request, on one line.
pub fn describe(method: &str, subject: Option<&str>) -> String {
    let text = subject.map_or_else(|| method.to_owned(), |subject| format!("{method} {subject}"));
    single_line(&text).into_owned()
}

impl Rejection {
    fn new(method: &str, code: i64, message: String) -> Self {
        Self { code: Some(code).filter(|_| method != "tools/call"), message }
    }
}

impl From<Rejection> for Failure {
    fn from(Rejection { code, message }: Rejection) -> Self {
        match code {
            None => Self::Tool { message, meta: None },
            Some(code) => Self::Protocol { code, message, data: None },
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that fails here says where")]

    use std::net::Ipv4Addr;

    use super::*;

    const HERE: Option<IpAddr> = Some(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)));
    const THERE: Option<IpAddr> = Some(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2)));
    const CLIENT: Caller<'_> = Caller { principal: None, remote: HERE, client: "c" };

    #[test]
    fn rates_come_back_with_time() {
        let mut limit = RateLimit::new(2.0, 1.0, CountedBy::Principal).unwrap();
        limit.admit(100.0, "tools/list", CLIENT).unwrap();
        let refused = limit.admit(100.0, "tools/call", CLIENT).unwrap_err();
        assert_eq!(refused.code, None);
        assert_eq!(
            refused.message,
            "too many requests: at most 2 per second are allowed; try again in 0.5 s"
        );
        assert_eq!(limit.admit(100.0, "tools/list", CLIENT).unwrap_err().code, Some(429));
        limit.admit(100.5, "tools/list", CLIENT).unwrap();
        limit.admit(50.0, "tools/list", CLIENT).unwrap_err();
        let ada = Caller { principal: Some("ada"), ..CLIENT };
        limit.admit(100.5, "tools/list", ada).unwrap();
        limit.admit(100.5, "tools/list", ada).unwrap_err();
    }

    #[test]
    fn callers_share_a_bucket_as_configured() {
        let refuses = |by| {
            let mut limit = RateLimit::new(1.0, 1.0, by).unwrap();
            limit.admit(0.0, "x", CLIENT).unwrap();
            [(Some("ada"), HERE, "c"), (None, HERE, "d"), (None, THERE, "c")].map(
                |(principal, remote, client)| {
                    limit.admit(0.0, "x", Caller { principal, remote, client }).is_err()
                },
            )
        };
        // Another name does not help: clients choose it themselves.
        assert_eq!(refuses(CountedBy::Principal), [false, true, false]);
        assert_eq!(refuses(CountedBy::Client), [true, false, true]);
        assert_eq!(refuses(CountedBy::Server), [true, true, true]);
    }

    #[test]
    fn callers_that_cannot_be_told_apart_share_a_bucket() {
        let mut limit = RateLimit::new(1.0, 1.0, CountedBy::Principal).unwrap();
        let unknown = Caller { remote: None, ..CLIENT };
        limit.admit(0.0, "x", unknown).unwrap();
        limit.admit(0.0, "x", Caller { client: "d", ..unknown }).unwrap_err();
        limit.admit(0.0, "x", CLIENT).unwrap();
    }

    #[test]
    fn the_least_recently_used_bucket_is_dropped() {
        let mut limit = RateLimit::new(1e-9, 1.0, CountedBy::Client).unwrap();
        let mut admit = |client: &str| limit.admit(0.0, "x", Caller { client, ..CLIENT }).is_ok();
        for number in 0..MAX_BUCKETS {
            assert!(admit(&number.to_string()));
        }
        assert!(!admit("0"), "its bucket is now the latest");
        assert!(admit("new"));
        assert!(!admit("0"));
        assert!(admit("1"), "its bucket was dropped");
        assert_eq!((limit.buckets.len(), limit.order.len()), (MAX_BUCKETS, MAX_BUCKETS));
    }

    #[test]
    fn large_results_are_refused() {
        let limit = ResponseLimit::new(10).unwrap();
        limit.check("tools/call", Some("a"), 10).unwrap();
        limit.check("ping", None, 11).unwrap();
        let refused = limit.check("resources/read", Some("a:b"), 11).unwrap_err();
        assert_eq!(refused.code, Some(413));
        assert_eq!(
            refused.message,
            "the result of resources/read a:b has 11 bytes, more than the limit of 10; request less"
        );
    }

    #[test]
    fn the_whole_result_of_a_reply_is_measured() {
        let size = |method: &str, reply: Reply| {
            let rejected = ResponseLimit(0).check_reply(method, Some("a:b"), reply).err();
            rejected.map_or(0, |rejection| {
                let number =
                    rejection.message.split(" has ").nth(1).and_then(|rest| rest.split(' ').next());
                number.unwrap().parse().unwrap()
            })
        };
        let text = || Reply::Text("abc".into());
        let part = r#"{"type":"text","text":"abc"}"#;
        for (method, reply, result) in [
            ("tools/call", text(), format!(r#"{{"content":[{part}]}}"#)),
            ("tools/call", Reply::Parts(format!("[{part}]")), format!(r#"{{"content":[{part}]}}"#)),
            ("tools/call", Reply::Result("{}".into()), "{}".into()),
            ("resources/read", text(), r#"{"contents":[{"uri":"a:b","mimeType":"text/plain","text":"abc"}],"ttlMs":0,"cacheScope":"public"}"#.into()),
            ("prompts/get", text(), format!(r#"{{"messages":[{{"role":"user","content":{part}}}]}}"#)),
            ("acme/x", Reply::Json(r#"{"a":1}"#.into()), r#"{"a":1}"#.into()),
            ("acme/x", Reply::Nothing, "{}".into()),
        ] {
            assert_eq!(size(method, reply), result.len(), "{result}");
        }
    }

    #[test]
    fn invalid_limits_are_errors() {
        for (per_second, burst) in [(0.0, 1.0), (f64::NAN, 1.0), (-1.0, 1.0), (1.0, 0.0)] {
            RateLimit::new(per_second, burst, CountedBy::Server).unwrap_err();
        }
        CountedBy::parse("moon").unwrap_err();
        ResponseLimit::new(0).unwrap_err();
    }
}
