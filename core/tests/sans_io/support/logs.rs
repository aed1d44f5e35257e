//! The messages that the library logs.

use std::{
    fmt,
    sync::{Arc, Mutex},
};

use gudgeon::log_events::LogEvent;
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};

/// Returns the text of an event that reports something about the server's own code, or the reason of a cancellation.
pub(crate) fn report(event: &LogEvent) -> Option<String> {
    let is_cancellation = event.declaration().name == "call.cancelled";
    (event.is_for_host() || is_cancellation).then(|| event.to_string())
}

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
pub(crate) fn logged(run: impl FnOnce()) -> Vec<String> {
    let lines = Lines::default();
    tracing::subscriber::with_default(lines.clone(), run);
    let lines = lines.0.lock().unwrap();
    lines.clone()
}
