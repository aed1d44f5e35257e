//! The switch of the spans of requests.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// Tells whether the host of a server makes spans of requests that are answered without a handler. Clones share the switch, which
/// is off at first.
#[derive(Clone, Debug, Default)]
pub struct Traces(Arc<AtomicBool>);

impl Traces {
    pub fn turn_on(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub fn is_on(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
