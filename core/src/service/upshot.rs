//! What comes of a call, and how its session is told.

use crate::{
    error::Fault,
    protocol::{Method, Raw, Response, SubscriptionFilter},
    session::{CallId, asking::AskId, server::Input},
};

/// What has come of a call just now.
#[derive(Debug)]
pub(super) enum Upshot {
    Answered(Result<Response, Fault>),
    /// The client listens from now on, to this part of what it asked for.
    Listening(SubscriptionFilter),
    /// These questions go out as requests.
    Asks(Vec<(AskId, Method, Raw)>),
    /// Nothing that its client is to hear: a handler runs or waits, or nobody waits for it any more.
    Nothing,
}

impl Upshot {
    /// Tells the session in which the call has this number.
    pub(super) fn tell(self, call: CallId, mut session: impl FnMut(Input<'static>)) {
        match self {
            Self::Answered(answer) => session(Input::Done(call, answer)),
            Self::Listening(filter) => session(Input::Listening(call, filter)),
            Self::Asks(asks) => {
                for (ask, method, params) in asks {
                    session(Input::Ask { call, ask, method, params });
                }
            }
            Self::Nothing => (),
        }
    }
}
