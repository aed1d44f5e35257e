//! The thread that reads one stream, answers requests that need no handler, and keeps the deadlines.

use std::{
    fs::File,
    io::{ErrorKind, PipeReader, Read},
    os::fd::BorrowedFd,
    time::{Duration, Instant},
};

use gudgeon::{
    driver::{ReadBuffer, StreamConnection},
    framing::LineDecoder,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::{shared::Shared, stream::Stream};

/// The interval at which a full stream is checked again.
const FULL: Duration = Duration::from_millis(20);

/// The reason why a wait ended.
struct Ready {
    input: bool,
    /// Nobody reads the output any more.
    peer_gone: bool,
    is_woken: bool,
}

/// Reads until the stream is stopped; after the end of the input only deadlines are kept.
pub(crate) fn read(
    shared: &Shared,
    stream: &Stream,
    input: &File,
    mut wake_ups: &PipeReader,
    max_message: usize,
) {
    let connection = &stream.connection;
    let mut decoder = LineDecoder::new(max_message);
    let mut buffer = ReadBuffer::default();
    let mut is_open = true;
    while !stream.is_stopped() {
        let was_open = is_open;
        let is_full = connection.is_full() || shared.has_long_queue();
        let listens = is_open && !is_full && !stream.is_paused();
        let timeout = until(connection).into_iter().chain(is_full.then_some(FULL)).min();
        let output = connection.output();
        let watched = is_open.then_some(&output);
        let ready = wait(listens.then_some(input), watched, wake_ups, timeout);
        if stream.is_stopped() {
            return;
        }
        if ready.is_woken {
            // The bytes only signal that something changed.
            let _ = wake_ups.read(&mut [0; 64]);
        }
        if ready.input {
            is_open = match buffer.read(input) {
                Ok([]) => false,
                Ok(chunk) => {
                    shared.push(connection.feed(&mut decoder, chunk));
                    true
                }
                Err(error) => {
                    matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock)
                }
            };
        }
        // Messages that the peer sent before it left are still read.
        is_open &= !connection.is_broken() && (ready.input || !ready.peer_gone);
        if was_open && !is_open {
            shared.push(connection.end_of_input(&mut decoder));
            shared.push_end();
        }
        if until(connection).is_some_and(|rest| rest.is_zero()) {
            shared.push(connection.server().tick());
        }
        connection.try_flush();
    }
}

/// Returns the time until the next deadline.
fn until(connection: &StreamConnection) -> Option<Duration> {
    connection
        .server()
        .deadline()
        .map(|deadline| deadline.saturating_duration_since(Instant::now()))
}

fn wait(
    input: Option<&File>,
    output: Option<&BorrowedFd<'_>>,
    wake_ups: &PipeReader,
    timeout: Option<Duration>,
) -> Ready {
    let mut fds = vec![PollFd::new(wake_ups, PollFlags::IN)];
    // Ready only once nobody reads it any more.
    fds.extend(output.map(|output| PollFd::new(output, PollFlags::empty())));
    fds.extend(input.map(|input| PollFd::new(input, PollFlags::IN)));
    // Rounded up, so that the deadline has come when the wait is over.
    let timeout = timeout
        .map(|timeout| timeout + Duration::from_millis(1))
        .and_then(|timeout| Timespec::try_from(timeout).ok());
    let count = poll(&mut fds, timeout.as_ref()).unwrap_or(0);
    let is_ready = |at: usize| count > 0 && fds.get(at).is_some_and(|fd| !fd.revents().is_empty());
    let at_input = fds.len() - 1;
    Ready {
        input: input.is_some() && is_ready(at_input),
        peer_gone: output.is_some() && is_ready(1),
        is_woken: is_ready(0),
    }
}
