//! Log events of the core, passed to JavaScript's loggers.

use std::sync::Mutex;

use gudgeon::bindings::logs::{self, LogEvent};
use napi::{Status, bindgen_prelude::Function, threadsafe_function::ThreadsafeFunctionCallMode};
use napi_derive::napi;
use serde_json::{Value, json};

use crate::shared::{Wake, lock};

/// One for each thread of JavaScript that has loaded this module; the first that still runs takes the events.
static LISTENERS: Mutex<Vec<Wake<true>>> = Mutex::new(Vec::new());

/// Queues the events of the core from now on.
pub(crate) fn install() {
    logs::install(wake);
}

/// The log events of the native half.
#[napi]
#[derive(Debug)]
pub struct NativeLogs;

#[napi]
impl NativeLogs {
    /// Calls `wake` when there are events to take. It does not keep the process alive.
    #[napi(catch_unwind)]
    pub fn listen(wake: Function<'_, (), ()>) -> napi::Result<()> {
        let wake: Wake<true> = wake.build_threadsafe_function().weak::<true>().build()?;
        lock(&LISTENERS).push(wake);
        Ok(())
    }

    /// Returns the events since the last call, as a JSON array; `null` if there are none.
    #[napi(catch_unwind)]
    pub fn take() -> Option<String> {
        let events: Vec<_> = logs::take().into_iter().map(as_json).collect();
        (!events.is_empty()).then(|| json!(events).to_string())
    }
}

/// Returns an event as JavaScript gets it.
pub(crate) fn as_json(event: LogEvent) -> Value {
    json!({
        "level": event.level.as_str().to_ascii_lowercase(),
        "logger": event.logger,
        "message": event.message,
        "fields": event.fields,
    })
}

fn wake() {
    let mut listeners = lock(&LISTENERS);
    while let Some(listener) = listeners.first() {
        if listener.call((), ThreadsafeFunctionCallMode::NonBlocking) == Status::Ok {
            return;
        }
        listeners.remove(0);
    }
}
