//! The questions of an upstream server, which the client of the call answers.

use std::sync::{Arc, Mutex};

use super::lock;
use crate::{
    client::{Question, Questioner},
    error::{Error, ErrorKind},
    protocol::{Method, Raw},
    router::Failure,
    server::Context,
};

/// Puts questions to the client of a call.
#[derive(Clone)]
pub(super) struct Asking {
    context: Context,
    /// The reason why the last question had no answer.
    failure: Arc<Mutex<Option<Failure>>>,
}

/// The calls that use a connection at the moment.
#[derive(Clone, Default)]
pub(super) struct Usage(Arc<Mutex<Used>>);

#[derive(Default)]
struct Used {
    running: Vec<(u64, Context)>,
    next: u64,
    /// The call whose client is asked what the server asks on the connection.
    asking: Option<Asking>,
}

/// A use of a connection by a call. Dropping it ends it.
pub(super) struct InUse {
    usage: Usage,
    number: u64,
    is_asked: bool,
}

impl Asking {
    pub(super) fn new(context: Context) -> Self {
        Self { context, failure: Arc::default() }
    }

    /// Takes the reason why a question had no answer, with which the call then ends.
    pub(super) fn take_failure(&self) -> Option<Failure> {
        lock(&self.failure).take()
    }

    /// Returns the function that answers the questions in results.
    pub(super) fn questioner(&self) -> Questioner {
        let asking = self.clone();
        Arc::new(move |questions| {
            let asking = asking.clone();
            Box::pin(async move { asking.ask(questions).await })
        })
    }

    /// Asks several questions together; returns the answers in their order.
    async fn ask(&self, questions: Vec<Question>) -> Result<Vec<Raw>, Error> {
        // Without the server's keys: it may use one again in another round.
        let questions = questions.into_iter().map(|asked| (asked.method, asked.params)).collect();
        self.context.ask_raw(questions).await.map_err(|failure| {
            let error = error_of(&failure);
            *lock(&self.failure) = Some(failure);
            error
        })
    }
}

impl Usage {
    /// Begins a use of the connection; with `asking`, that call is asked until it ends.
    pub(super) fn begin(&self, context: Context, asking: Option<Asking>) -> InUse {
        let mut used = lock(&self.0);
        let (number, is_asked) = (used.next, asking.is_some());
        used.next += 1;
        used.running.push((number, context));
        if is_asked {
            used.asking = asking;
        }
        drop(used);
        InUse { usage: self.clone(), number, is_asked }
    }

    /// Returns the only call that uses the connection, which its messages then concern.
    pub(super) fn only_call(&self) -> Option<Context> {
        match &lock(&self.0).running[..] {
            [(_, context)] => Some(context.clone()),
            _ => None,
        }
    }

    pub(super) async fn answer(&self, question: Question) -> Result<Raw, Error> {
        let asking = lock(&self.0).asking.clone();
        let Some(asking) = asking else { return Err(nobody(question.method)) };
        let answers = asking.ask(vec![question]).await?;
        answers.into_iter().next().ok_or_else(|| Error::new(ErrorKind::Cancelled, "no answer"))
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        let mut used = lock(&self.usage.0);
        used.running.retain(|(number, _)| *number != self.number);
        if self.is_asked {
            used.asking = None;
        }
    }
}

fn nobody(method: Method) -> Error {
    let message = format!(
        "{} can't be answered: no call is in progress whose client can be asked",
        method.as_str()
    );
    Error::new(ErrorKind::Unsupported, message)
}

/// Returns the error that the server gets for a question that failed.
fn error_of(failure: &Failure) -> Error {
    let (kind, message) = match failure {
        Failure::Declined(message) => (ErrorKind::Declined, message.as_str()),
        Failure::Dismissed(message) => (ErrorKind::Cancelled, message.as_str()),
        Failure::Cancelled => (ErrorKind::Cancelled, "the call was cancelled"),
        Failure::MissingCapability { message, .. }
        | Failure::NotSupported(message)
        | Failure::Protocol { message, .. } => (ErrorKind::Unsupported, message.as_str()),
        _ => (ErrorKind::Cancelled, "the question was not answered"),
    };
    Error::new(kind, message)
}
