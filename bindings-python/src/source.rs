//! The source of a shell's calls and the destination of their answers.

use std::{
    fs::File,
    ops::Deref,
    os::fd::OwnedFd,
    sync::{Arc, Mutex},
};

use gudgeon::{
    driver::{EndpointServer, StreamConnection},
    engine::TestMode,
    framing::LineDecoder,
    router::Components,
    session::server::HttpFacts,
};

use crate::response_queue::LoopNotifier;

/// One stream read by the leader itself, or many peers served by IO threads.
#[derive(Debug)]
pub(crate) enum Source {
    Frames(Frames),
    Peers {
        server: Arc<EndpointServer>,
        /// The notifier, where an event loop moves the bytes.
        notifier: Option<Arc<LoopNotifier>>,
    },
}

/// A single stream of frames.
#[derive(Debug)]
pub(crate) struct Frames {
    pub(crate) connection: Arc<StreamConnection>,
    pub(crate) input: File,
    pub(crate) decoder: Mutex<LineDecoder>,
}

impl Source {
    pub(crate) fn frames(
        components: Arc<Components>,
        testing: Option<(TestMode, HttpFacts)>,
        (input, output): (OwnedFd, File),
        line: usize,
    ) -> Self {
        let connection = match testing {
            None => StreamConnection::new(components, output),
            Some((test_mode, facts)) => {
                StreamConnection::for_test(components, output, test_mode, Some(facts))
            }
        };
        Self::Frames(Frames {
            connection,
            input: input.into(),
            decoder: Mutex::new(LineDecoder::new(line)),
        })
    }

    /// Returns the endpoint, which both kinds of source have.
    pub(crate) fn endpoint(&self) -> &Arc<EndpointServer> {
        match self {
            Self::Frames(it) => it.connection.server(),
            Self::Peers { server, .. } => server,
        }
    }

    /// Writes everything queued; blocks while the peer reads slowly.
    pub(crate) fn flush(&self) {
        if let Self::Frames(it) = self {
            it.connection.flush();
        }
    }

    /// Writes as much as the peer accepts. Never blocks.
    pub(crate) fn try_flush(&self) {
        if let Self::Frames(it) = self {
            it.connection.try_flush();
        }
    }

    /// Returns `true` if the reader should pause.
    pub(crate) fn is_full(&self) -> bool {
        self.as_frames().is_some_and(StreamConnection::is_full)
    }

    /// Returns `true` if the peer leaves so much unread that nothing should be added.
    pub(crate) fn is_backed_up(&self) -> bool {
        self.as_frames().is_some_and(StreamConnection::is_backed_up)
    }

    /// Returns `true` if nothing can be written any more.
    pub(crate) fn is_broken(&self) -> bool {
        self.as_frames().is_some_and(StreamConnection::is_broken)
    }

    /// Returns the number of bytes that wait to be written.
    pub(crate) fn unwritten(&self) -> usize {
        self.as_frames().map_or(0, StreamConnection::unwritten)
    }

    fn as_frames(&self) -> Option<&StreamConnection> {
        match self {
            Self::Frames(it) => Some(&it.connection),
            Self::Peers { .. } => None,
        }
    }
}

impl Deref for Source {
    type Target = EndpointServer;

    fn deref(&self) -> &Self::Target {
        self.endpoint()
    }
}
