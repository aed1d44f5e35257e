//! The lines of message connections, of which a chunk may hold many. Long ones are parsed while others use the endpoint.

use super::{EndpointServer, Work, work::EndpointStep};
use crate::{
    clock,
    engine::MAX_UNDER_LOCK,
    framing::{self, LineDecoder, TooLong},
    http::{ConnectionId, EndpointInput},
    protocol::Frame,
};

impl EndpointServer {
    /// Handles the lines in a chunk of a message connection. What a long line needs is computed before the next line is
    /// handled. The work of all is returned together, so that a call that the next line cancels is not started.
    pub(crate) fn lines(
        &self,
        connection: ConnectionId,
        decoder: &mut LineDecoder,
        chunk: &[u8],
    ) -> Work {
        let compute = |step| EndpointStep::new(self.finish(step));
        self.finish(self.handle_lines(connection, decoder, chunk, compute))
    }

    /// Handles the lines in a chunk like [`Self::lines`], without the computations that may take long.
    pub(crate) fn begin_lines(
        &self,
        connection: ConnectionId,
        decoder: &mut LineDecoder,
        chunk: &[u8],
    ) -> EndpointStep {
        self.handle_lines(connection, decoder, chunk, |step| step)
    }

    /// `pause` is called with each step while others may use the endpoint.
    fn handle_lines(
        &self,
        connection: ConnectionId,
        decoder: &mut LineDecoder,
        chunk: &[u8],
        pause: impl Fn(EndpointStep) -> EndpointStep,
    ) -> EndpointStep {
        // What came of the lines before those whose work is not taken yet.
        let (mut rest, mut before) = (chunk, None);
        let mut state = self.lock();
        let mut now = clock::now();
        // The rest of the chunk when the lock was taken.
        let mut left = rest.len();
        while let Some(frame) = decoder.next(&mut rest) {
            let is_long =
                matches!(frame, framing::Frame::Line(line) if line.len() > MAX_UNDER_LOCK);
            if !is_long {
                state.pass(now, input(connection, frame));
                if left - rest.len() < MAX_UNDER_LOCK {
                    continue;
                }
            }
            // Other threads use the endpoint after so many bytes, and while a long frame is parsed. The work so far is taken
            // first, because not every one of them can run handlers.
            let mut so_far = state.drain(now);
            drop(state);
            if so_far.unlocked.is_some() {
                self.write_events(&mut so_far);
            }
            let step = before.get_or_insert_with(|| EndpointStep::new(Work::default()));
            step.extend(pause(so_far));
            if is_long {
                step.extend(pause(self.begin(|_| (), input(connection, frame))));
            }
            state = self.lock();
            now = clock::now();
            left = rest.len();
        }
        let last = state.drain(now);
        drop(state);
        let mut step = match before {
            None => last,
            Some(mut step) => {
                step.extend(last);
                step
            }
        };
        self.announce(&mut step);
        step
    }

    /// Handles a frame of a message connection, or answers one that was discarded because of its length.
    pub(crate) fn frame(&self, connection: ConnectionId, frame: framing::Frame<'_>) -> Work {
        self.handle(input(connection, frame))
    }

    /// Answers a frame that was discarded because of its length.
    pub fn too_long(&self, connection: ConnectionId, message: TooLong<'_>) -> Work {
        self.handle(EndpointInput::TooLong(connection, message))
    }
}

fn input(connection: ConnectionId, frame: framing::Frame<'_>) -> EndpointInput<'_> {
    match frame {
        framing::Frame::Line(line) => EndpointInput::Message(connection, Frame::parse(line)),
        framing::Frame::TooLong(message) => EndpointInput::TooLong(connection, message),
    }
}
