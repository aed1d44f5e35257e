//! The trace context of a request, as W3C Trace Context and W3C Baggage spell it.

use http::HeaderMap;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::meta::TRACEPARENT;

const TRACESTATE: &str = "tracestate";
const BAGGAGE: &str = "baggage";
/// The length of a `traceparent` of version 00. Later versions may be longer.
const TRACEPARENT_LENGTH: usize = 55;

/// A trace context: the span that caused a request, and what goes with it. `traceparent` is valid.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct TraceContext {
    pub traceparent: Option<String>,
    /// Only with a `traceparent`.
    pub tracestate: Option<String>,
    pub baggage: Option<String>,
}

/// The ids of a trace and of one span of it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TraceIds {
    pub trace: u128,
    pub span: u64,
}

impl TraceContext {
    /// Creates a trace context of these values; an invalid `traceparent` is left out, and its `tracestate` with it.
    pub fn new(
        traceparent: Option<String>,
        tracestate: Option<String>,
        baggage: Option<String>,
    ) -> Self {
        let traceparent = traceparent.filter(|text| TraceIds::parse(text).is_some());
        let tracestate = tracestate.filter(|_| traceparent.is_some());
        Self { traceparent, tracestate, baggage }
    }

    /// Reads the members of a request's `_meta`. Those that are not strings are ignored.
    pub fn from_meta(meta: &RawValue) -> Self {
        #[derive(Default, Deserialize)]
        struct Members<'a> {
            #[serde(borrow)]
            traceparent: Option<&'a RawValue>,
            #[serde(borrow)]
            tracestate: Option<&'a RawValue>,
            #[serde(borrow)]
            baggage: Option<&'a RawValue>,
        }
        let text = meta.get();
        // Most requests have none.
        if ![TRACEPARENT, BAGGAGE].iter().any(|name| text.contains(name)) {
            return Self::default();
        }
        let members: Members<'_> = serde_json::from_str(text).unwrap_or_default();
        let string = |value: Option<&RawValue>| serde_json::from_str(value?.get()).ok();
        Self::new(string(members.traceparent), string(members.tracestate), string(members.baggage))
    }

    /// Reads the headers of an HTTP request. Several lines of a list are one list; several `traceparent` are none.
    pub fn from_headers(headers: &HeaderMap) -> Self {
        let list = |name: &str| {
            let lines: Vec<_> =
                headers.get_all(name).iter().filter_map(|line| line.to_str().ok()).collect();
            (!lines.is_empty()).then(|| lines.join(","))
        };
        Self::new(list(TRACEPARENT), list(TRACESTATE), list(BAGGAGE))
    }

    /// Returns the ids of the trace and of the span that caused the request.
    pub fn ids(&self) -> Option<TraceIds> {
        TraceIds::parse(self.traceparent.as_deref()?)
    }

    /// Returns whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.traceparent.is_none() && self.baggage.is_none()
    }

    /// Returns this context with the values of another one where it has none.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        let Self { traceparent, tracestate, baggage } = self;
        let baggage = baggage.or(other.baggage);
        match traceparent {
            Some(_) => Self { traceparent, tracestate, baggage },
            None => Self { baggage, ..other },
        }
    }
}

impl TraceIds {
    /// Reads the `traceparent` of a request's `_meta`; `None` if it is not valid.
    pub(crate) fn from_member(traceparent: &RawValue) -> Option<Self> {
        let text: String = serde_json::from_str(traceparent.get()).ok()?;
        Self::parse(&text)
    }

    /// Reads a `traceparent`; `None` if it is not valid.
    pub fn parse(traceparent: &str) -> Option<Self> {
        let hex = |text: &str| {
            text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')).then_some(())
        };
        let rest = traceparent.get(TRACEPARENT_LENGTH..)?;
        let mut parts = traceparent.get(..TRACEPARENT_LENGTH)?.split('-');
        let (version, trace) = (parts.next()?, parts.next()?);
        let (span, flags) = (parts.next()?, parts.next()?);
        [version, trace, span, flags].into_iter().try_for_each(hex)?;
        let lengths = [version.len(), trace.len(), span.len(), flags.len()];
        let is_complete = match version {
            "00" => rest.is_empty(),
            "ff" => false,
            _ => rest.is_empty() || rest.starts_with('-'),
        };
        let ids = Self {
            trace: u128::from_str_radix(trace, 16).ok()?,
            span: u64::from_str_radix(span, 16).ok()?,
        };
        let is_valid = is_complete && parts.next().is_none() && lengths == [2, 32, 16, 2];
        (is_valid && ids.trace != 0 && ids.span != 0).then_some(ids)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn raw(meta: &str) -> Box<RawValue> {
        RawValue::from_string(meta.to_owned()).expect("JSON")
    }

    #[test]
    fn a_traceparent_is_valid_or_is_not_used() {
        let ids = TraceIds::parse(PARENT).expect("valid");
        assert_eq!(ids.trace, 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736);
        assert_eq!(ids.span, 0x00f0_67aa_0ba9_02b7);
        let later = format!("01{}-more", &PARENT[2..]);
        assert_eq!(TraceIds::parse(&later), Some(ids));
        for invalid in [
            "",
            "00",
            &PARENT.to_uppercase(),
            &PARENT[..54],
            &format!("{PARENT}-more"),
            &format!("{PARENT},{PARENT}"),
            &format!("ff{}", &PARENT[2..]),
            &format!("01{}more", &PARENT[2..]),
            &PARENT.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
            &PARENT.replace("00f067aa0ba902b7", &"0".repeat(16)),
            &PARENT.replace("a3ce", "a-ce"),
            &PARENT.replace("a3ce", "+3ce"),
            &PARENT.replace("a3ce", "\u{e4}ce"),
        ] {
            assert_eq!(TraceIds::parse(invalid), None, "{invalid:?}");
        }
    }

    #[test]
    fn members_of_meta_that_are_not_strings_are_ignored() {
        let meta = raw(&format!(r#"{{"traceparent":"{PARENT}","tracestate":1,"baggage":"a=b"}}"#));
        let context = TraceContext::from_meta(&meta);
        assert_eq!(context.traceparent.as_deref(), Some(PARENT));
        assert_eq!((context.tracestate, context.baggage.as_deref()), (None, Some("a=b")));
        let invalid = raw(r#"{"traceparent":"x","tracestate":"a=b"}"#);
        assert_eq!(TraceContext::from_meta(&invalid), TraceContext::default());
    }

    #[test]
    fn headers_are_joined_and_two_parents_are_none() {
        let mut headers = HeaderMap::new();
        headers.append(TRACEPARENT, PARENT.parse().expect("a header"));
        headers.append(TRACESTATE, "a=1".parse().expect("a header"));
        headers.append(TRACESTATE, "b=2".parse().expect("a header"));
        let context = TraceContext::from_headers(&headers);
        assert_eq!(context.tracestate.as_deref(), Some("a=1,b=2"));
        headers.append(TRACEPARENT, PARENT.parse().expect("a header"));
        assert_eq!(TraceContext::from_headers(&headers), TraceContext::default());
    }
}
