//! The events of the ready-made middleware, which logs requests.

use std::{borrow::Cow, time::Duration};

use super::{EventFacts, EventKind, LogEvent, fields::name};
use crate::{
    error::ComponentName,
    log_text::{beginning, single_line},
    metrics::Outcome,
};

/// The length in bytes to which the params of a request are cut.
const MAX_PARAMS: usize = 16 * 1024;

/// The part of a request's life that middleware logs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RequestStage<'a> {
    /// The request came, with these params if they are to be logged.
    Received(Option<&'a str>),
    /// The request has a result.
    Done(Duration),
    /// The request failed with this error.
    Failed(Duration, &'a str),
    /// The request was answered after this time.
    Timed(Duration),
}

impl LogEvent {
    /// Returns the event of a request for this method, with the name or URI in its params, in these circumstances.
    pub(crate) fn for_request(
        stage: RequestStage<'_>,
        method: &str,
        named: Option<&str>,
        caller: EventFacts,
    ) -> Self {
        let component = match (method, named) {
            ("tools/call", Some(name)) => Some(("tool", name)),
            ("prompts/get", Some(name)) => Some(("prompt", name)),
            ("resources/read", Some(uri)) => Some(("resource", uri)),
            _ => None,
        };
        let (kind, reason, duration, detail) = match stage {
            RequestStage::Received(None) => (EventKind::RequestReceived, "", None, String::new()),
            RequestStage::Received(Some(params)) => {
                let params = with_limit(params);
                (EventKind::RequestReceived, "", None, format!(" {params}"))
            }
            RequestStage::Done(after) => {
                let outcome = Outcome::Ok.as_str();
                (EventKind::RequestDone, outcome, Some(after), " is done".to_owned())
            }
            RequestStage::Failed(after, error) => {
                let text = format!(" failed: {}", with_limit(error));
                (EventKind::RequestDone, Outcome::Error.as_str(), Some(after), text)
            }
            RequestStage::Timed(after) => {
                let text = format!(" took {:.1} ms", after.as_secs_f64() * 1e3);
                (EventKind::RequestTimed, "", Some(after), text)
            }
        };
        let subject = match named {
            Some(named) => format!("{} {}", name(method), name(named)),
            None => name(method).into_owned(),
        };
        let facts = EventFacts {
            method: Some(method.to_owned()),
            component: component.map(|(kind, name)| Box::new(ComponentName::new(kind, name))),
            duration,
            ..caller
        };
        Self::new(kind, subject + &detail).because(reason).with(facts)
    }
}

/// Returns a text on one line, cut to the limit.
fn with_limit(text: &str) -> Cow<'_, str> {
    match beginning(text, MAX_PARAMS) {
        whole if whole.len() == text.len() => single_line(text),
        cut => Cow::Owned(format!("{}…", single_line(cut))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_named_with_its_component_and_its_outcome() {
        let second = Duration::from_secs(1);
        let event =
            |stage| LogEvent::for_request(stage, "tools/call", Some("open"), EventFacts::default());
        let done = event(RequestStage::Done(second));
        assert_eq!(done.to_string(), "tools/call open is done");
        let fields = done.fields();
        assert_eq!((&fields["outcome"], &fields["duration_ms"]), (&"ok".into(), &1_000.into()));
        assert_eq!((&fields["method"], &fields["tool"]), (&"tools/call".into(), &"open".into()));
        let failed = event(RequestStage::Failed(second, "a\nb"));
        assert_eq!(failed.to_string(), r"tools/call open failed: a\nb");
        assert_eq!(failed.fields()["outcome"], "error");
        assert_eq!(
            event(RequestStage::Timed(second)).to_string(),
            "tools/call open took 1000.0 ms"
        );
    }

    #[test]
    fn long_params_are_cut_and_say_so() {
        let params = "x".repeat(2 * MAX_PARAMS);
        let stage = RequestStage::Received(Some(&params));
        let text =
            LogEvent::for_request(stage, "tools/list", None, EventFacts::default()).to_string();
        assert!(text.starts_with("tools/list xx") && text.ends_with("x…"), "{text}");
        assert!(text.len() < MAX_PARAMS + 100);
    }
}
