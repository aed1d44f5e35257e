//! Where the calls of a shell come from, and where their answers go.

use std::{
    fs::File,
    ops::Deref,
    os::fd::OwnedFd,
    sync::{Arc, Mutex},
};

use gudgeon::{
    driver::{Backend, EndpointServer, StreamServer},
    engine::TestMode,
    framing::LineDecoder,
    router::Components,
    session::server::HttpFacts,
};

use crate::response_queue::LoopNotifier;

/// One stream that the leader reads itself, or many peers whose bytes others move.
#[derive(Debug)]
pub(crate) enum Source {
    Frames(Frames),
    Peers {
        server: Arc<EndpointServer>,
        /// Where an event loop moves the bytes: what it is told.
        notifier: Option<Arc<LoopNotifier>>,
    },
}

/// One stream of frames.
#[derive(Debug)]
pub(crate) struct Frames {
    pub(crate) server: Arc<StreamServer>,
    pub(crate) input: OwnedFd,
    pub(crate) decoder: Mutex<LineDecoder>,
}

impl Source {
    pub(crate) fn frames(
        components: Arc<Components>,
        testing: Option<(TestMode, HttpFacts)>,
        (input, output): (OwnedFd, File),
        line: usize,
    ) -> Self {
        let server = match testing {
            None => StreamServer::new(components, output),
            Some((test_mode, facts)) => {
                StreamServer::for_test(components, output, test_mode, Some(facts))
            }
        };
        Self::Frames(Frames { server, input, decoder: Mutex::new(LineDecoder::new(line)) })
    }

    /// Writes all that is queued; blocks while the peer reads slowly.
    pub(crate) fn flush(&self) {
        if let Self::Frames(it) = self {
            it.server.flush();
        }
    }

    /// Writes while the peer has room. Never blocks.
    pub(crate) fn try_flush(&self) {
        if let Self::Frames(it) = self {
            it.server.try_flush();
        }
    }

    /// Whether the reader should wait before it reads on.
    pub(crate) fn is_full(&self) -> bool {
        self.as_frames().is_some_and(StreamServer::is_full)
    }

    /// Whether the peer leaves so much unread that nothing should be added.
    pub(crate) fn is_backed_up(&self) -> bool {
        self.as_frames().is_some_and(StreamServer::is_backed_up)
    }

    /// Whether nothing can be written any more.
    pub(crate) fn is_broken(&self) -> bool {
        self.as_frames().is_some_and(StreamServer::is_broken)
    }

    /// Bytes that wait to be written here.
    pub(crate) fn unwritten(&self) -> usize {
        self.as_frames().map_or(0, StreamServer::unwritten)
    }

    fn as_frames(&self) -> Option<&StreamServer> {
        match self {
            Self::Frames(it) => Some(&it.server),
            Self::Peers { .. } => None,
        }
    }
}

/// What handlers need is the same for both.
impl Deref for Source {
    type Target = dyn Backend;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Frames(it) => &*it.server,
            Self::Peers { server, .. } => &**server,
        }
    }
}
