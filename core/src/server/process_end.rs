//! The end of a process that [`Server::run`](super::Server::run) serves: its signals and its watchdog.

use std::{io, time::Duration};

use tokio::sync::oneshot;

use super::run::blocks_runtime;
use crate::driver::Watchdog;

/// The watchdog of this process, while a server runs. Dropping it, with the future of `run`, leaves the process alone.
#[derive(Debug)]
pub(super) struct ProcessEnd {
    watchdog: Watchdog,
    first_signal: Option<oneshot::Receiver<()>>,
}

impl ProcessEnd {
    /// Receives SIGTERM and SIGINT from now on: a second one ends the process.
    pub(super) fn start() -> io::Result<Self> {
        let watchdog = Watchdog::new(|status| std::process::exit(status), Duration::ZERO);
        let (came, first_signal) = oneshot::channel();
        watchdog.receive_signals(move || {
            // The server may have ended already.
            let _ = came.send(());
        })?;
        Ok(Self { watchdog, first_signal: Some(first_signal) })
    }

    pub(super) fn watchdog(&self) -> &Watchdog {
        &self.watchdog
    }

    /// Waits for the first signal.
    pub(super) async fn signal(&mut self) {
        if let Some(signal) = &mut self.first_signal
            && signal.await.is_ok()
        {
            return;
        }
        // Signals are not received any more.
        std::future::pending::<()>().await;
    }

    /// Reports that the server has ended. The process is ended later only if a handler still blocks a thread of the
    /// program's runtime, which waits for its threads when it is dropped.
    pub(super) fn finish(self) {
        if blocks_runtime() {
            self.watchdog.only_if(blocks_runtime);
            std::mem::forget(self);
        }
    }
}

impl Drop for ProcessEnd {
    fn drop(&mut self) {
        self.watchdog.over();
    }
}
