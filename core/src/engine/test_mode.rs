//! The differences of an engine that serves a test.

use crate::{
    protocol::{Question, Raw, json, meta},
    router::RoundLimits,
};

/// The differences between a test's service and one that is served to users.
#[derive(Clone, Copy, Debug, Default)]
pub struct TestMode {
    /// No handler is suspended: each is run from its top when its answers come, as after a restart.
    pub replays: bool,
    /// States are sealed with this where the server has no keys: another service with the same opens them. `None`: with a
    /// key of the service's own.
    pub state_key: Option<[u8; 32]>,
}

impl TestMode {
    pub(crate) fn limits(self, limits: RoundLimits) -> RoundLimits {
        let suspended_limit = if self.replays { 0 } else { limits.suspended_limit };
        RoundLimits { suspended_limit, ..limits }
    }

    /// A question that is sent as a request contains its key, by which tests answer it.
    pub(crate) fn named(question: Question) -> Question {
        let Question { key, method, params } = question;
        let mut named = json::ObjectWriter::with_capacity(params.get().len() + key.len() + 32);
        let meta: Raw = json::to_raw(&serde_json::json!({ meta::QUESTION_KEY: key }));
        named.splice(params.get()).raw("_meta", meta.get());
        Question { params: json::raw(named.finish()), key, method }
    }
}
