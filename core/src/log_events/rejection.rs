//! The events of requests that are answered with an error.

use super::{EventFacts, EventKind, LogEvent, fields::name};
use crate::{
    error::{Fault, FaultKind},
    metrics::Outcome,
};

impl LogEvent {
    /// Returns the event of a request for this method that failed with this fault; `None` if its handler is the one that
    /// failed, which the host reports. Messages of faults may quote arguments, so they are not used.
    pub(crate) fn for_fault(fault: &Fault, method: &str) -> Option<Self> {
        let component = fault.component.as_deref();
        let named = || match component {
            Some(component) => component.for_log(),
            None => name(method).into_owned(),
        };
        let is_unknown = component.is_some_and(|component| !component.exists);
        match Outcome::of_fault(fault.kind) {
            Outcome::Timeout => {
                let event = Self::new(EventKind::CallTimedOut, fault.message.clone());
                return Some(event.with_component(fault));
            }
            Outcome::Invalid | Outcome::Refused => (),
            Outcome::Ok | Outcome::Error | Outcome::Cancelled => return None,
        }
        let (reason, detail) = match fault.kind {
            FaultKind::UnknownTool => ("unknown_tool", format!("unknown {}", named())),
            FaultKind::InvalidParams if is_unknown => {
                ("unknown_prompt", format!("unknown {}", named()))
            }
            FaultKind::ResourceNotFound => ("unknown_resource", format!("unknown {}", named())),
            FaultKind::UnknownMethod => {
                ("unknown_method", format!("unknown method {:?}", name(method)))
            }
            FaultKind::InvalidArguments => {
                ("invalid_arguments", format!("invalid arguments for {}", named()))
            }
            FaultKind::InvalidParams => {
                ("invalid_params", format!("invalid params for {}", named()))
            }
            FaultKind::InsufficientScope => {
                ("insufficient_scope", format!("its caller lacks scopes for {}", named()))
            }
            _ => ("invalid_request", format!("{} is not allowed as it was sent", name(method))),
        };
        Some(Self::new(EventKind::CallRejected, detail).because(reason).with_component(fault))
    }

    fn with_component(self, fault: &Fault) -> Self {
        self.with(EventFacts { component: fault.component.clone(), ..EventFacts::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(fault: &Fault) -> Option<String> {
        LogEvent::for_fault(fault, "tools/call").map(|event| event.to_string())
    }

    #[test]
    fn a_rejection_names_the_component_and_not_its_arguments() {
        let secret =
            "Invalid arguments for tool \"a\": password must be an integer, not \"hunter2\"";
        let fault = Fault::new(FaultKind::InvalidArguments, secret).about("tool", "a\n");
        assert_eq!(
            text(&fault).as_deref(),
            Some(r#"rejected a request: invalid arguments for tool "a\\n""#)
        );
        let fault = Fault::new(FaultKind::InvalidParams, secret);
        assert_eq!(
            text(&fault).as_deref(),
            Some("rejected a request: invalid params for tools/call")
        );
        let unknown = Fault::invalid_params(secret).about_unknown("prompt", "b");
        let event = LogEvent::for_fault(&unknown, "prompts/get").expect("an event");
        assert_eq!((event.reason, &*event.detail), ("unknown_prompt", r#"unknown prompt "b""#));
        assert_eq!(event.fields()["prompt"], "b");
    }

    #[test]
    fn what_a_handler_says_is_not_an_event() {
        for kind in [FaultKind::Tool, FaultKind::Handler, FaultKind::Protocol(1)] {
            assert_eq!(text(&Fault::new(kind, "no")), None);
        }
    }
}
