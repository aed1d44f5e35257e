//! Keys of questions that the handler gave none.

use std::collections::BTreeMap;

use crate::protocol::Method;

/// The generated keys of one call. A handler that is replayed gets the same keys if it asks in the same order.
#[derive(Debug, Default)]
pub struct QuestionKeys(BTreeMap<String, u32>);

impl QuestionKeys {
    /// Returns the next key: `<kind>-<n>`, or `<step>/<kind>-<n>` in a step. Steps count their own questions, because a
    /// replay may skip them.
    pub fn next(&mut self, method: Method, step: Option<&str>) -> String {
        let kind = match method {
            Method::Elicit => "elicit",
            Method::CreateMessage => "sample",
            Method::ListRoots => "roots",
            other => other.as_str(),
        };
        let kind = step.map_or_else(|| kind.to_owned(), |step| format!("{step}/{kind}"));
        let count = self.0.entry(kind.clone()).or_default();
        *count += 1;
        format!("{kind}-{count}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_and_steps_count_apart() {
        let mut keys = QuestionKeys::default();
        let mut next = |method, step| keys.next(method, step);
        assert_eq!(next(Method::Elicit, None), "elicit-1");
        assert_eq!(next(Method::CreateMessage, None), "sample-1");
        assert_eq!(next(Method::Elicit, None), "elicit-2");
        assert_eq!(next(Method::Elicit, Some("pay")), "pay/elicit-1");
        assert_eq!(next(Method::ListRoots, None), "roots-1");
        assert_eq!(next(Method::Elicit, Some("pay")), "pay/elicit-2");
        assert_eq!(next(Method::Elicit, None), "elicit-3");
    }
}
