//! Log messages that every unauthenticated request can cause, for example while an issuer hangs.

use std::{
    fmt,
    sync::{Arc, Mutex},
};

use gudgeon::auth::server::authenticator::{AuthInput, AuthOutput};
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};

use super::support::authenticator::{Fixture, introspection};

/// The messages of this library.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }
}

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("gudgeon")
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut message = Message(String::new());
        event.record(&mut message);
        self.0.lock().unwrap().push(message.0);
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

/// Returns the messages while something runs.
fn logged(run: impl FnOnce()) -> Vec<String> {
    let lines = Lines::default();
    tracing::subscriber::with_default(lines.clone(), run);
    let lines = lines.0.lock().unwrap();
    lines.clone()
}

#[test]
fn authentications_that_take_too_long_are_one_line_in_ten_seconds() {
    let lines = logged(|| {
        let mut fixture = Fixture::from(vec![introspection()]);
        for _ in 0..3 {
            for number in 0..50 {
                fixture.pending(&format!("opaque{number}"));
            }
            fixture.pass(15);
            fixture.handle(AuthInput::Tick);
        }
    });
    let more = " (and 49 times more since the last such message)";
    let expected = ["", more, more].map(|end| format!("an authentication took too long{end}"));
    assert_eq!(lines, expected);
}

#[test]
fn an_introspection_endpoint_that_fails_is_one_line_in_ten_seconds() {
    let lines = logged(|| {
        let mut fixture = Fixture::from(vec![introspection()]);
        for number in 0..100 {
            fixture.pending(&format!("opaque{number}"));
            let (id, _) = fixture.fetch();
            fixture.answer(id, 500, "");
            assert!(matches!(fixture.machine.poll(), Some(AuthOutput::Decided(..))));
        }
    });
    assert_eq!(lines, ["a token could not be introspected"]);
}

#[test]
fn requests_beyond_the_limit_are_one_line_in_ten_seconds() {
    let lines = logged(|| {
        let mut fixture = Fixture::from(vec![introspection()]);
        for number in 0..1_500 {
            fixture.bearer(&format!("opaque{number}"));
        }
    });
    assert_eq!(lines, ["too many tokens are being introspected"]);
}
