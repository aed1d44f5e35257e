//! The content of an admitted request: the operation that it asks for, with its message.

use std::sync::Arc;

use super::PeerSession;
use crate::{
    protocol::{Frame, Id},
    router::Route,
    wire::RequestEra,
};

/// The operation that a request asks for, with its message.
#[derive(Debug)]
pub(super) enum Content<'a> {
    Post(Frame<'a>, RequestEra),
    /// A stateless request, with its id, that its session has read.
    Lifted(Box<PeerSession>, Id),
    Get,
    /// A request for the metrics of all processes.
    Metrics,
    Delete,
    OpenLegacySse {
        path: String,
    },
    PostLegacySse {
        session: Option<String>,
        frame: Frame<'a>,
    },
    /// A request for a route, with the input of its handler.
    Route(Arc<Route>, String),
}

impl Content<'_> {
    /// Returns the id if the body is a single request.
    pub(super) fn request_id(&self) -> Option<Id> {
        match self {
            Self::Post(frame, _) | Self::PostLegacySse { frame, .. } => frame.request_id().cloned(),
            Self::Lifted(_, id) => Some(id.clone()),
            Self::Get
            | Self::Metrics
            | Self::Delete
            | Self::OpenLegacySse { .. }
            | Self::Route(..) => None,
        }
    }
}
