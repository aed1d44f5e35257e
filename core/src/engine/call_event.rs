//! What comes of a call, and how its session is told.

use std::time::Instant;

use crate::{
    error::Fault,
    protocol::{Method, Raw, Response, SubscriptionFilter},
    session::{
        CallId,
        asking::AskId,
        server::{Input, Log, Progress},
    },
};

/// What has come of a call just now.
#[derive(Debug)]
pub(crate) enum Upshot {
    Answered(Result<Response, Fault>),
    /// The client listens from now on, to this part of what it asked for.
    Listening(SubscriptionFilter),
    /// These questions go out as requests.
    Asks(Vec<(AskId, Method, Raw)>),
    /// Its handler got further.
    Progress(Progress),
    /// Its handler has something to tell. With `is_lagging`, when the client does not read, it is not told at once.
    Log {
        now: Instant,
        log: Log,
        is_lagging: bool,
    },
    /// It was a notification, and who listened to it is done.
    Heard,
    /// Nothing that its client is to hear: a handler runs or waits, or nobody waits for it any more.
    Nothing,
}

impl Upshot {
    /// Tells the session in which the call has this number.
    pub(crate) fn tell(self, call: CallId, mut session: impl FnMut(Input<'static>)) {
        match self {
            Self::Answered(answer) => session(Input::Done(call, answer)),
            Self::Listening(filter) => session(Input::Listening(call, filter)),
            Self::Asks(asks) => {
                for (ask, method, params) in asks {
                    session(Input::Ask { call, ask, method, params });
                }
            }
            Self::Progress(progress) => session(Input::Progress(call, progress)),
            Self::Log { now, log, is_lagging } => {
                session(Input::Log { now, call, log, is_lagging })
            }
            Self::Heard => session(Input::Heard(call)),
            Self::Nothing => (),
        }
    }
}
