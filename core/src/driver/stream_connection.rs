//! A connection over a pipe, such as standard input and output: threads of the shell pass it input and write what is queued.
//! Lines are written in the order in which the endpoint made them.

use std::{fs::File, sync::Arc};

use super::{EndpointServer, Outbox, Unread, Work, writer::BatchWriter};
use crate::{
    engine::TestMode,
    framing::LineDecoder,
    http::{ConnectionId, EndpointConfig, Part},
    router::Components,
    session::server::HttpFacts,
};

/// Unwritten bytes above which reading pauses.
const MAX_UNWRITTEN: usize = 4 * 1024 * 1024;

/// Unanswered requests at which reading pauses.
const MAX_IN_FLIGHT: usize = 10_000;

/// The only connection of an endpoint, and the writer of its frames.
#[derive(Debug)]
pub struct StreamConnection {
    server: Arc<EndpointServer>,
    id: ConnectionId,
    writer: BatchWriter,
}

impl StreamConnection {
    pub fn new(components: Arc<Components>, output: File) -> Arc<Self> {
        Self::opened(EndpointServer::new(components, config()), output)
    }

    /// Serves a test; `facts` are the principal and headers of every call.
    pub fn for_test(
        components: Arc<Components>,
        output: File,
        test_mode: TestMode,
        facts: Option<HttpFacts>,
    ) -> Arc<Self> {
        Self::opened(EndpointServer::for_test(components, config(), test_mode, facts), output)
    }

    /// Returns the endpoint, which has this connection only.
    pub fn server(&self) -> &Arc<EndpointServer> {
        &self.server
    }

    /// Handles a chunk of input. Replies are queued, not yet written.
    pub fn feed(&self, decoder: &mut LineDecoder, chunk: &[u8]) -> Work {
        self.server.lines(self.id, decoder, chunk)
    }

    /// Handles the end of the input. A last line without a newline counts, and pending questions fail.
    pub fn end_of_input(&self, decoder: &mut LineDecoder) -> Work {
        let last = decoder.finish();
        let mut work = last.map_or_else(Work::default, |frame| self.server.frame(self.id, frame));
        work.extend(self.server.end_of_input(self.id));
        work
    }

    /// Writes everything that is queued; blocks while the peer reads slowly. Returns at once if another thread is writing.
    pub fn flush(&self) {
        self.writer.flush();
    }

    /// Writes while the pipe has room, and leaves the rest to a thread. Never blocks.
    pub fn try_flush(&self) {
        self.writer.try_flush();
    }

    /// Returns whether the reader should wait before it reads on.
    pub fn is_full(&self) -> bool {
        self.is_backed_up() || self.server.is_full_for(self.id)
    }

    /// Returns whether the peer leaves so much unread that nothing should be added.
    pub fn is_backed_up(&self) -> bool {
        self.writer.unwritten() > MAX_UNWRITTEN
    }

    /// Returns the number of bytes that wait to be written.
    pub fn unwritten(&self) -> usize {
        self.writer.unwritten()
    }

    /// Blocks while too much is unread or unanswered: the reader's back pressure.
    pub fn wait_for_room(&self) {
        while self.is_full() && !self.writer.is_broken() {
            self.writer.wait_for_change();
        }
    }

    /// Returns the descriptor that frames are written to, to wait for its reader to go.
    #[cfg(unix)]
    pub fn output(&self) -> std::os::fd::BorrowedFd<'_> {
        self.writer.output()
    }

    /// Returns whether the peer has closed its end, so that nothing can be written any more.
    pub fn is_broken(&self) -> bool {
        self.writer.is_broken()
    }

    fn opened(server: Arc<EndpointServer>, output: File) -> Arc<Self> {
        let writer = BatchWriter::new(output);
        let id = server.connect(None, None, Box::new(writer.clone()));
        Arc::new(Self { server, id, writer })
    }
}

impl Outbox for BatchWriter {
    fn deliver(&mut self, part: Part) {
        // The end is that of the process, or of the shell that closes the pipe.
        if let Part::Bytes(frame) = part {
            self.push(frame);
        }
    }

    fn unread(&self) -> Unread {
        self.waiting()
    }
}

fn config() -> EndpointConfig {
    EndpointConfig { max_in_flight: MAX_IN_FLIGHT, ..EndpointConfig::default() }
}
