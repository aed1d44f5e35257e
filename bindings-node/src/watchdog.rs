//! The watchdog of a process that a server owns. It receives signals also while JavaScript blocks the event loop.

use std::{ffi::c_int, sync::Arc, time::Duration};

use gudgeon::driver::Watchdog;
use napi_derive::napi;

use crate::{error::io, work_queue::NativeWorkQueue};

/// The time for JavaScript to end the process itself after a second signal, which runs its exit handlers.
const AFTER_SECOND: Duration = Duration::from_millis(300);

mod raw {
    use std::ffi::c_int;

    #[expect(
        unsafe_code,
        reason = "the standard library has only `exit`, which runs destructors that V8's threads still need"
    )]
    unsafe extern "C" {
        pub(super) safe fn _exit(status: c_int) -> !;
    }
}

#[napi]
#[derive(Debug)]
pub struct NativeWatchdog {
    watchdog: Watchdog,
}

#[napi]
impl NativeWatchdog {
    /// Receives SIGTERM and SIGINT from now on, beside the handlers that JavaScript has installed before.
    #[napi(constructor, catch_unwind)]
    pub fn new() -> napi::Result<Self> {
        let watchdog = Watchdog::new(|status: c_int| raw::_exit(status), AFTER_SECOND);
        watchdog.receive_signals(|| ()).map_err(|error| io("signals can't be received", error))?;
        Ok(Self { watchdog })
    }

    /// Ends the process if handlers keep it from ending by itself, from the end of the input or the first signal on.
    /// `grace`: milliseconds for calls in flight.
    #[napi(catch_unwind)]
    pub fn watch(&self, queue: &NativeWorkQueue, grace: f64) {
        let shared = queue.shared();
        let grace = Duration::try_from_secs_f64(grace.max(0.0) / 1000.0).unwrap_or(Duration::MAX);
        let watched = Arc::downgrade(shared);
        self.watchdog.watch(grace, move || {
            let io = watched.upgrade().and_then(|shared| shared.io());
            io.map(|io| io.endpoint().running()).unwrap_or_default()
        });
        shared.end_with(self.watchdog.clone());
    }

    /// Reports that no handler runs any more that could block the process.
    #[napi(catch_unwind)]
    pub fn handlers_ended(&self) {
        self.watchdog.handlers_ended();
    }

    /// Never ends the process from now on.
    #[napi(catch_unwind)]
    pub fn close(&self) {
        self.watchdog.over();
    }
}
