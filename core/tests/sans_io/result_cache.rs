//! The cache of a client's lists and resources (Server Features › Utilities › Caching).

use std::time::{Duration, Instant};

use gudgeon::{
    peer::ResultCache,
    protocol::Method,
    session::client::{Change, ListKind},
};
use serde_json::{Value, json};

use crate::support::wire::raw;

const LISTS: [Method; 4] =
    [Method::ListTools, Method::ListPrompts, Method::ListResources, Method::ListResourceTemplates];

/// A cache with a clock.
struct Clocked {
    cache: ResultCache,
    now: Instant,
}

impl Clocked {
    fn new() -> Self {
        Self { cache: ResultCache::default(), now: Instant::now() }
    }

    fn store(&mut self, method: Method, params: &str, result: &Value) {
        let sent = self.cache.version();
        self.cache.store(self.now, sent, method, params, &raw(result));
    }

    fn has(&self, method: Method, params: &str) -> bool {
        self.cache.get(self.now, method, params).is_some()
    }
}

fn fresh(ttl: impl Into<Value>) -> Value {
    json!({"resultType": "complete", "tools": [], "ttlMs": ttl.into(), "cacheScope": "private"})
}

#[test]
fn a_result_is_fresh_until_its_time_is_over() {
    let mut clocked = Clocked::new();
    clocked.store(Method::ListTools, "{}", &fresh(1_000));
    clocked.now += Duration::from_millis(999);
    let cached = clocked.cache.get(clocked.now, Method::ListTools, "{}").expect("is fresh");
    assert_eq!(serde_json::from_str::<Value>(cached.get()).expect("JSON"), fresh(1_000));
    clocked.now += Duration::from_millis(1);
    assert!(
        !clocked.has(Method::ListTools, "{}"),
        "Freshness Calculation: now < t_received + ttlMs"
    );
}

#[test]
fn a_result_serves_the_method_and_params_of_its_request_only() {
    let mut clocked = Clocked::new();
    clocked.store(Method::ReadResource, r#"{"uri":"a:/b"}"#, &fresh(1_000));
    assert!(clocked.has(Method::ReadResource, r#"{"uri":"a:/b"}"#));
    assert!(!clocked.has(Method::ReadResource, r#"{"uri":"a:/c"}"#));
    assert!(!clocked.has(Method::ListResources, r#"{"uri":"a:/b"}"#));
    clocked.store(Method::ReadResource, r#"{"uri":"a:/b"}"#, &fresh(5_000));
    clocked.now += Duration::from_secs(2);
    assert!(clocked.has(Method::ReadResource, r#"{"uri":"a:/b"}"#), "the newer result replaced it");
}

#[test]
fn what_the_server_does_not_allow_to_reuse_is_not_stored() {
    let mut clocked = Clocked::new();
    for result in [
        fresh(0),
        fresh(-1),
        fresh("1000"),
        fresh(0.5),
        fresh(Value::Null),
        json!({"tools": []}),
        json!({"resultType": "input_required", "ttlMs": 1_000, "requestState": "x"}),
        json!({"resultType": "task", "ttlMs": 1_000}),
        json!([]),
    ] {
        clocked.store(Method::ListTools, "{}", &result);
        assert!(!clocked.has(Method::ListTools, "{}"), "{result}");
    }
    clocked.store(Method::ListTools, "{}", &fresh(u64::MAX));
    assert!(clocked.has(Method::ListTools, "{}"), "a time beyond the clock's range is a long one");
}

#[test]
fn a_change_removes_what_it_makes_out_of_date() {
    use Method::{ListPrompts, ListResourceTemplates, ListResources, ListTools, ReadResource};
    for (change, removed) in [
        (Change::List(ListKind::Tools), &[ListTools][..]),
        (Change::List(ListKind::Prompts), &[ListPrompts]),
        (Change::List(ListKind::Resources), &[ListResources, ListResourceTemplates, ReadResource]),
        (Change::Updated("a:/b/part".into()), &[ReadResource]),
    ] {
        let mut clocked = Clocked::new();
        let all = LISTS.into_iter().chain([ReadResource]);
        all.clone().for_each(|method| clocked.store(method, "{}", &fresh(1_000)));
        clocked.cache.changed(&change);
        for method in all {
            assert_eq!(
                clocked.has(method, "{}"),
                !removed.contains(&method),
                "{change:?}, {method:?}"
            );
        }
    }
}

#[test]
fn a_result_that_a_change_overtook_is_not_stored() {
    let mut clocked = Clocked::new();
    let sent = clocked.cache.version();
    clocked.cache.changed(&Change::List(ListKind::Tools));
    clocked.cache.store(clocked.now, sent, Method::ListTools, "{}", &raw(&fresh(1_000)));
    assert!(!clocked.has(Method::ListTools, "{}"));

    let sent = clocked.cache.version();
    clocked.cache.clear();
    clocked.cache.store(clocked.now, sent, Method::ListTools, "{}", &raw(&fresh(1_000)));
    assert!(!clocked.has(Method::ListTools, "{}"));
}

#[test]
fn a_server_can_not_fill_the_memory() {
    let mut clocked = Clocked::new();
    for n in 0..2_000 {
        clocked.store(Method::ReadResource, &n.to_string(), &fresh(1_000 + n));
    }
    let kept = (0..2_000).filter(|n| clocked.has(Method::ReadResource, &n.to_string()));
    assert_eq!(kept.collect::<Vec<_>>(), (1_000..2_000).collect::<Vec<_>>(), "those fresh longest");

    let mut clocked = Clocked::new();
    let mut large = fresh(1_000);
    large["text"] = "x".repeat(1024 * 1024).into();
    for n in 0..40 {
        clocked.store(Method::ReadResource, &format!("large {n}"), &large);
    }
    let kept = (0..40).filter(|n| clocked.has(Method::ReadResource, &format!("large {n}"))).count();
    assert_eq!(kept, 15, "16 of them are over 16 MiB");
    large["text"] = "x".repeat(17 * 1024 * 1024).into();
    clocked.store(Method::ListTools, "{}", &large);
    assert!(!clocked.has(Method::ListTools, "{}"), "one result is over the limit");
}
