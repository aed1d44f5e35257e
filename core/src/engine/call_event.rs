//! Events of calls, and their delivery to the session.

use std::time::Instant;

use super::id::{CallId, PeerId};
use crate::{
    error::Fault,
    protocol::{Method, Raw, Response, SubscriptionFilter},
    session::{
        InboundKey,
        asking::AskId,
        server::{Input, Log, Progress},
    },
};

/// An event of a call.
#[derive(Debug)]
pub(crate) enum CallEvent {
    Answered(Result<Response, Fault>),
    /// The subscription begins, with this part of the requested filter.
    Listening(SubscriptionFilter),
    /// These questions are sent as requests.
    Asks(Vec<(AskId, Method, Raw)>),
    Progress(Progress),
    /// A message for the log. With `is_lagging`, when the client does not read, it is not sent at once.
    Log {
        now: Instant,
        log: Log,
        is_lagging: bool,
    },
    /// A notification's handler is done.
    NotificationDone,
    /// No event for the session.
    Nothing,
}

/// An event, and the request that it concerns.
#[derive(Debug)]
pub(crate) struct Delivery {
    pub(crate) call: CallId,
    pub(crate) peer: PeerId,
    pub(crate) key: InboundKey,
    pub(crate) event: CallEvent,
}

impl CallEvent {
    /// Passes the event to the session in which the request has this key.
    pub(crate) fn deliver(self, key: InboundKey, mut session: impl FnMut(Input<'static>)) {
        match self {
            Self::Answered(answer) => session(Input::Done(key, answer)),
            Self::Listening(filter) => session(Input::Listening(key, filter)),
            Self::Asks(asks) => {
                for (ask, method, params) in asks {
                    session(Input::Ask { call: key, ask, method, params });
                }
            }
            Self::Progress(progress) => session(Input::Progress(key, progress)),
            Self::Log { now, log, is_lagging } => {
                session(Input::Log { now, call: key, log, is_lagging });
            }
            Self::NotificationDone => session(Input::Heard(key)),
            Self::Nothing => (),
        }
    }
}
