//! Notices that the client of a stream is gone while the reading thread can't: when a handler blocks it, or when it waits
//! for input and only the output was closed.

use std::{
    fs::File,
    io,
    sync::{
        Arc,
        mpsc::{self, RecvTimeoutError},
    },
    time::Duration,
};

use rustix::event::{PollFd, PollFlags, poll};

use super::run::Runner;
use crate::driver::StreamConnection;

/// Watches the client on a thread of its own. Calls `ended` once the output has no reader any more, or once the input was
/// closed and no handler has started for `grace`, so that the rest of the input is not being read. Dropping the result
/// says that the input was read to its end.
pub(super) fn watch(
    input: &File,
    stream: &Arc<StreamConnection>,
    runner: &Arc<Runner>,
    grace: Duration,
    ended: impl FnOnce() + Send + 'static,
) -> io::Result<mpsc::Sender<()>> {
    let (input, stream) = (input.try_clone()?, Arc::downgrade(stream));
    let runner = Arc::downgrade(runner);
    let (read_all, is_read) = mpsc::channel();
    let watch = move || {
        let Some(output) =
            stream.upgrade().and_then(|stream| stream.output().try_clone_to_owned().ok())
        else {
            return;
        };
        // Ready only once the other end is closed.
        let mut ends =
            [PollFd::new(&input, PollFlags::empty()), PollFd::new(&output, PollFlags::empty())];
        while poll(&mut ends, None) == Err(rustix::io::Errno::INTR) {}
        let is_read_from = ends[1].revents().is_empty();
        let started = || runner.upgrade().map(|runner| runner.started());
        if is_read_from && reads_on(&is_read, grace, started) {
            return;
        }
        ended();
    };
    let thread = std::thread::Builder::new().name("gudgeon-hangup".into());
    thread.spawn(watch)?;
    Ok(read_all)
}

/// Waits until the closed input was read to its end. Returns `false` if no handler has started for `grace` before that.
fn reads_on(
    is_read: &mpsc::Receiver<()>,
    grace: Duration,
    started: impl Fn() -> Option<u64>,
) -> bool {
    let mut before = started();
    while is_read.recv_timeout(grace) == Err(RecvTimeoutError::Timeout) {
        let now = started();
        if now == before {
            return false;
        }
        before = now;
    }
    true
}
