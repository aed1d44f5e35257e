//! The states of a call. ARCHITECTURE.md draws the transitions.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    Run,
    call::Load,
    handler_event::Finished,
    id::{CallId, RunId, Ticket},
    read_cache::Read,
    request_state::RoundId,
    spans::SpanSubject,
};
use crate::{
    error::Fault,
    protocol::{Question, Raw, Request},
    router::{Failure, Handler, Job, MiddlewareFrame, ResultBuilder, Route},
    session::{
        asking::{Answers, AskId, Journal},
        server::{self as session, CallContext},
    },
    wire::Wire,
};

/// The state of a call. Large ones are boxed; `Running`, which every call passes, is not.
#[derive(Debug)]
pub(super) enum State {
    /// The call waits for the host's reply to this request, or for its dispatch outside the lock.
    AwaitingHost(Ticket, Continuation),
    /// The call gets the answer of another call.
    Joined(Box<Joined>),
    /// The call's tool runs as many calls at once as it may.
    Queued(Box<Queued>),
    /// The call's handler runs.
    Running(Running),
    /// The call's handler waits for the client.
    Suspended(Box<Suspended>),
    /// A notification, whose handler runs.
    Notified(Box<Notified>),
    /// An HTTP request for a route of the program, whose handler runs.
    Routed(Routed),
}

/// The reply that a call waits for, with the data that it needs to continue.
#[derive(Debug)]
pub(super) enum Continuation {
    /// The reply says which of these components, given by kind and key, the caller sees.
    Visibility { call: Box<session::Call>, components: Arc<[(&'static str, String)]> },
    /// The reply is the dispatch of the request.
    Dispatch,
}

/// A request that gets the answer of another one.
#[derive(Debug)]
pub(super) struct Joined {
    pub(super) leader: CallId,
    pub(super) kind: JoinedKind,
}

#[derive(Debug)]
pub(super) enum JoinedKind {
    /// Both calls read the same resource. If the answer turns out to be for the other caller only, this handler is started.
    Read(Start),
    /// Both calls brought the same answers to the same round. If the other is cancelled, the handler continues for this one.
    Round(CallContext),
}

/// A handler to be started.
#[derive(Debug)]
pub(super) struct Start {
    pub(super) job: Job,
    pub(super) context: CallContext,
    pub(super) replay: Option<Box<ReplayState>>,
    /// The place of the result in the read cache.
    pub(super) read: Option<Box<Read>>,
    /// The subject of its span, if the host traces.
    pub(super) subject: Option<Box<SpanSubject>>,
}

/// A call in the line of its tool.
#[derive(Debug)]
pub(super) enum Queued {
    Start(Start),
    /// Its client answered requests.
    Answered(Suspended),
    /// This request brought the answers.
    Resumed(Suspended, CallContext),
}

/// A handler that was handed out.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) run: RunId,
    pub(super) result_builder: ResultBuilder,
    /// The tool whose concurrency limit it counts against.
    pub(super) slot: Option<String>,
    pub(super) timeout: Option<Duration>,
    pub(super) wire: &'static Wire,
    /// `None` if the client can't be asked.
    pub(super) replay: Option<Box<ReplayState>>,
    /// A read whose result is kept.
    pub(super) read: Option<Box<Read>>,
    /// Calls that get the same answer.
    pub(super) joined: Vec<CallId>,
}

/// The data needed to ask the client, and to run a handler again when its questions are answered.
#[derive(Debug)]
pub(super) struct ReplayState {
    pub(super) request: Request,
    pub(super) handler: Handler,
    pub(super) input: String,
    pub(super) middleware_frame: Option<Box<MiddlewareFrame>>,
    pub(super) context: CallContext,
    /// Answers and steps beyond what came with the first request.
    pub(super) recorded: Journal,
    /// Answers that came with the request that the handler goes on for.
    pub(super) brought: Answers,
    /// Questions that travel in the next result.
    pub(super) asked: Vec<(AskId, Question)>,
    /// The number of questions so far.
    pub(super) questions: usize,
    /// Questions that went out as requests and are open.
    pub(super) sent: Vec<(AskId, Question)>,
    /// The round whose answers it goes on with.
    pub(super) round: Option<RoundId>,
}

/// A handler that waits for its client: neither its timeout runs nor does it count against its tool's limit.
#[derive(Debug)]
pub(super) struct Suspended {
    pub(super) running: Running,
    /// The rest of its timeout.
    pub(super) left: Option<Duration>,
    pub(super) wait: Wait,
}

#[derive(Debug)]
pub(super) enum Wait {
    /// For answers to requests.
    Requests(Requests),
    /// For a request that brings the answers of a round. The request that it ran for is answered.
    Round(Round),
}

/// The handler's request is open, and its client was sent requests.
#[derive(Debug, Default)]
pub(super) struct Requests {
    /// Answers that the handler gets when it goes on.
    pub(super) held: Vec<(AskId, Result<Raw, Fault>)>,
    /// The handler returned the questions, and runs again with the answers.
    pub(super) rerun: Option<Rerun>,
}

/// A handler that returned questions.
#[derive(Debug)]
pub(super) struct Rerun {
    /// Its next run, whose number is not valid yet.
    pub(super) run: Run,
    /// The questions that are not answered yet.
    pub(super) open: HashMap<AskId, Question>,
}

/// A round of questions that went out in a result.
#[derive(Debug, Default)]
pub(super) struct Round {
    pub(super) id: RoundId,
    /// Its place in the order of suspension.
    pub(super) age: u64,
    /// The questions that the client was asked.
    pub(super) open: Vec<(AskId, Question)>,
    /// The client's answers, or the reason why it is not asked any more.
    pub(super) answered: Vec<(AskId, Result<Raw, Fault>)>,
    /// Questions that the handler asked since.
    pub(super) later: Vec<(AskId, Question)>,
    /// `true` if these are to be sent with the next round.
    pub(super) is_ready: bool,
    /// The handler went on without the answers, and is done.
    pub(super) outcome: Option<Result<Finished, Failure>>,
    /// `true` if the handler holds a thread.
    pub(super) blocks: bool,
    /// Bytes that it counts for.
    pub(super) weight: usize,
}

/// The handler of a route.
#[derive(Debug)]
pub(super) struct Routed {
    pub(super) run: RunId,
    pub(super) route: Arc<Route>,
}

/// The handler of a notification. It has no answer, and may ask.
#[derive(Debug)]
pub(super) struct Notified {
    pub(super) run: RunId,
    /// The spelling of the notification.
    pub(super) wire: &'static Wire,
    /// Answers that were rejected.
    pub(super) rejected: Journal,
    /// Open questions, and until when each waits.
    pub(super) asked: Vec<(AskId, Question, Option<Instant>)>,
}

impl State {
    /// The handler that runs, is suspended, or waits in line with its answers.
    pub(super) fn running(&self) -> Option<&Running> {
        match self {
            Self::Running(running) => Some(running),
            Self::Suspended(suspended) => Some(&suspended.running),
            Self::Queued(queued) => match &**queued {
                Queued::Answered(suspended) | Queued::Resumed(suspended, _) => {
                    Some(&suspended.running)
                }
                Queued::Start(_) => None,
            },
            Self::AwaitingHost(..) | Self::Joined(_) | Self::Notified(_) | Self::Routed(_) => None,
        }
    }

    pub(super) fn running_mut(&mut self) -> Option<&mut Running> {
        match self {
            Self::Running(running) => Some(running),
            Self::Suspended(suspended) => Some(&mut suspended.running),
            Self::Queued(queued) => match &mut **queued {
                Queued::Answered(suspended) | Queued::Resumed(suspended, _) => {
                    Some(&mut suspended.running)
                }
                Queued::Start(_) => None,
            },
            Self::AwaitingHost(..) | Self::Joined(_) | Self::Notified(_) | Self::Routed(_) => None,
        }
    }

    /// The round whose answers the handler waits for, or has and waits for its turn.
    pub(super) fn round_mut(&mut self) -> Option<&mut Round> {
        let suspended = match self {
            Self::Suspended(suspended) => &mut **suspended,
            Self::Queued(queued) => match &mut **queued {
                Queued::Resumed(suspended, _) => suspended,
                Queued::Start(_) | Queued::Answered(_) => return None,
            },
            _ => return None,
        };
        match &mut suspended.wait {
            Wait::Round(round) => Some(round),
            Wait::Requests(_) => None,
        }
    }

    /// The next run of a handler that returned questions.
    pub(super) fn rerun(&self) -> Option<&Rerun> {
        let Self::Suspended(suspended) = self else { return None };
        match &suspended.wait {
            Wait::Requests(requests) => requests.rerun.as_ref(),
            Wait::Round(_) => None,
        }
    }

    /// The requests that the handler waits for, also where it waits in line with the answers.
    pub(super) fn requests_mut(&mut self) -> Option<&mut Requests> {
        let suspended = match self {
            Self::Suspended(suspended) => &mut **suspended,
            Self::Queued(queued) => match &mut **queued {
                Queued::Answered(suspended) => suspended,
                Queued::Start(_) | Queued::Resumed(..) => return None,
            },
            _ => return None,
        };
        match &mut suspended.wait {
            Wait::Requests(requests) => Some(requests),
            Wait::Round(_) => None,
        }
    }
}

impl Running {
    /// Returns whether its client has still to answer a request.
    pub(super) fn is_asking(&self) -> bool {
        self.replay.as_ref().is_some_and(|replay| !replay.sent.is_empty())
    }
}

impl Suspended {
    /// Returns whether the request that it ran for was answered, with its questions.
    pub(super) fn has_answered(&self) -> bool {
        matches!(self.wait, Wait::Round(_))
    }

    /// Returns its share of the totals; `bytes` are those of its input.
    pub(super) fn load(&self, bytes: usize) -> Load {
        match &self.wait {
            Wait::Requests(requests) => {
                let asking = usize::from(requests.rerun.is_some() || self.running.is_asking());
                Load { requests: 1, asking, bytes, ..Load::default() }
            }
            Wait::Round(round) => Load {
                suspended: 1,
                suspended_bytes: round.weight,
                suspended_threads: usize::from(round.blocks),
                ..Load::default()
            },
        }
    }
}
