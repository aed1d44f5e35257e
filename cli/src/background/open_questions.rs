//! Calls of tools whose questions are answered by other commands later. A call runs here until it asks; the command that
//! started it or answered its last question waits for its result or its next question.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, OnceLock, Weak},
    time::{Duration, Instant},
};

use gudgeon::{
    Error,
    client::{Answerer, Client, Operation, Question},
    error::ErrorKind,
    protocol::{Method, Raw},
    session::asking,
    transport::memory,
};
use serde_json::value::RawValue;
use tokio::{
    sync::{Mutex as AsyncMutex, mpsc, oneshot},
    task::AbortHandle,
};

use super::{
    connection::Connection,
    message::{Lines, lock},
    notice, peer,
    process::{Caller, Limits, send},
    values::{CallParams, Outcome, QuestionShown, ToolReply},
};
use crate::failure::{Failure, FailureKind};

/// The maximum number of events of a call that wait for a command. Progress and log messages beyond are dropped.
const QUEUE: usize = 1024;
/// The number of questions that are remembered after they were answered.
const REMEMBERED: usize = 256;

/// All questions that wait, by id.
pub struct OpenQuestions {
    limits: Limits,
    pending: Mutex<HashMap<String, Pending>>,
    answered: Mutex<VecDeque<String>>,
}

struct Pending {
    method: Method,
    params: Raw,
    expires: Instant,
    answer: oneshot::Sender<Result<Raw, Error>>,
    call: Arc<Call>,
}

/// A call in progress. It is cancelled once nobody waits for it and no question is open.
struct Call {
    connection: String,
    tool: String,
    events: AsyncMutex<mpsc::Receiver<Event>>,
    task: OnceLock<AbortHandle>,
}

enum Event {
    /// Progress or a log message, as a notification.
    Notice(String),
    Asked(String),
    Done(Result<ToolReply, Failure>),
}

impl OpenQuestions {
    pub fn new(limits: Limits) -> Arc<Self> {
        Arc::new(Self { limits, pending: Mutex::default(), answered: Mutex::default() })
    }

    /// Calls a tool on behalf of a command, whose end cancels the call.
    pub async fn call(
        self: &Arc<Self>,
        connection: Arc<Connection>,
        params: CallParams,
        command: &mut Caller,
    ) -> Result<Outcome, Failure> {
        let (events, receiver) = mpsc::channel(QUEUE);
        let call = Arc::new(Call {
            connection: connection.name.clone(),
            tool: params.tool.clone(),
            events: AsyncMutex::new(receiver),
            task: OnceLock::new(),
        });
        let (this, of_questions) = (Arc::downgrade(self), Arc::downgrade(&call));
        let asking = events.clone();
        let answerer: Answerer = Arc::new(move |question| {
            let (this, call, events) =
                (Weak::clone(&this), Weak::clone(&of_questions), asking.clone());
            Box::pin(async move {
                match (this.upgrade(), call.upgrade()) {
                    (Some(this), Some(call)) => this.ask(call, question, &events).await,
                    _ => Err(Error::new(ErrorKind::Cancelled, "the call was cancelled")),
                }
            })
        });
        let task = tokio::spawn(async move {
            let done = run(connection, params, answerer, &events).await;
            // The command that waits may have ended.
            let _ = events.send(Event::Done(done)).await;
        });
        let _ = call.task.set(task.abort_handle());
        self.wait(call, command).await
    }

    /// Answers a question and waits for the result or the next question. An answer that does not fit changes nothing.
    pub async fn answer(
        &self,
        id: &str,
        answer: Raw,
        command: &mut Caller,
    ) -> Result<Outcome, Failure> {
        let call = {
            let mut pending = lock(&self.pending);
            let question = pending.get(id).ok_or_else(|| self.unknown(id))?;
            if question.method == Method::Elicit {
                asking::fill(question.params.get(), &answer).map_err(|problem| {
                    let message =
                        format!("the answer to the question {id} does not fit: {problem}");
                    Failure::usage(message)
                        .with_hint("the question still waits; `gudgeon questions` shows its form")
                })?;
            }
            let Some(question) = pending.remove(id) else { return Err(self.unknown(id)) };
            let mut answered = lock(&self.answered);
            answered.truncate(REMEMBERED - 1);
            answered.push_front(id.to_owned());
            // The server may have cancelled the question.
            let _ = question.answer.send(Ok(answer));
            question.call
        };
        self.wait(call, command).await
    }

    /// Returns a question that waits.
    pub fn question(&self, id: &str) -> Result<QuestionShown, Failure> {
        let pending = lock(&self.pending);
        pending.get(id).map(|question| question.shown(id)).ok_or_else(|| self.unknown(id))
    }

    /// Returns all questions that wait, the oldest first.
    pub fn questions(&self) -> Vec<QuestionShown> {
        let mut all: Vec<_> =
            lock(&self.pending).iter().map(|(id, question)| question.shown(id)).collect();
        all.sort_by(|one, other| {
            (one.expires_in_seconds, &one.id).cmp(&(other.expires_in_seconds, &other.id))
        });
        all
    }

    pub fn is_empty(&self) -> bool {
        lock(&self.pending).is_empty()
    }

    async fn ask(
        &self,
        call: Arc<Call>,
        question: Question,
        events: &mpsc::Sender<Event>,
    ) -> Result<Raw, Error> {
        /// Forgets a question that was cancelled.
        struct Forget<'a>(&'a OpenQuestions, &'a str);
        impl Drop for Forget<'_> {
            fn drop(&mut self) {
                // The lock is released before the call may be dropped.
                let forgotten = lock(&self.0.pending).remove(self.1);
                drop(forgotten);
            }
        }
        let id = new_id()?;
        let (sender, answer) = oneshot::channel();
        {
            let mut pending = lock(&self.pending);
            if pending.len() >= self.limits.questions {
                let message = format!("{} questions wait for answers already", pending.len());
                return Err(Error::new(ErrorKind::Cancelled, message));
            }
            let Question { method, params, .. } = question;
            let expires = Instant::now() + self.limits.question_time;
            let asked = Pending { method, params, expires, answer: sender, call };
            pending.insert(id.clone(), asked);
        }
        let _forget = Forget(self, &id);
        let cancelled = || Error::new(ErrorKind::Cancelled, "nobody answered the question");
        events.send(Event::Asked(id.clone())).await.map_err(|_| cancelled())?;
        match tokio::time::timeout(self.limits.question_time, answer).await {
            Ok(Ok(answer)) => answer,
            _ => Err(cancelled()),
        }
    }

    async fn wait(&self, call: Arc<Call>, command: &mut Caller) -> Result<Outcome, Failure> {
        let Caller { lines, writer } = command;
        let next = async {
            loop {
                let event = call.events.lock().await.recv().await;
                match event {
                    Some(Event::Notice(line)) => drop(send(writer, &line).await),
                    Some(Event::Asked(id)) => {
                        if let Some(question) = lock(&self.pending).get(&id) {
                            return Ok(Outcome::Question(question.shown(&id)));
                        }
                    }
                    Some(Event::Done(outcome)) => return outcome.map(Outcome::Result),
                    None => return Err(Failure::new(FailureKind::Cancelled, "the call ended")),
                }
            }
        };
        tokio::select! {
            outcome = next => outcome,
            () = lines.closed() => {
                call.cancel();
                Err(Failure::new(FailureKind::Cancelled, "the command has ended"))
            }
        }
    }

    fn unknown(&self, id: &str) -> Failure {
        let message = match lock(&self.answered).iter().any(|answered| answered == id) {
            true => format!("the question {id} was answered already"),
            false => format!("there is no question {id:?}; it may have expired"),
        };
        Failure::new(FailureKind::NotFound, message)
            .with_hint("`gudgeon questions` lists the questions that wait")
    }
}

impl Pending {
    fn shown(&self, id: &str) -> QuestionShown {
        QuestionShown {
            id: id.to_owned(),
            connection: self.call.connection.clone(),
            tool: self.call.tool.clone(),
            method: self.method.as_str().to_owned(),
            params: self.params.clone(),
            expires_in_seconds: self.expires.saturating_duration_since(Instant::now()).as_secs(),
        }
    }
}

impl Call {
    fn cancel(&self) {
        if let Some(task) = self.task.get() {
            task.abort();
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.cancel();
    }
}

/// Calls the tool as a command of its own would.
async fn run(
    connection: Arc<Connection>,
    params: CallParams,
    answerer: Answerer,
    events: &mpsc::Sender<Event>,
) -> Result<ToolReply, Failure> {
    /// Ends with the call.
    struct Serving(tokio::task::JoinHandle<()>);
    impl Drop for Serving {
        fn drop(&mut self) {
            self.0.abort();
        }
    }
    // A failure is reported as it is, not as one of the connection inside this process.
    connection.client().await?;
    let roots = connection.roots();
    let (ours, theirs) = memory::pair();
    let (reader, writer) = theirs.into_halves();
    let _serving = Serving(tokio::spawn(peer::serve(connection, Lines::new(reader), writer)));
    let milliseconds = |limit: Option<u64>| limit.map(Duration::from_millis);
    let mut builder = Client::builder(ours)
        .options(|options| {
            options.info.name = "gudgeon".into();
            options.timeout = milliseconds(params.timeout_milliseconds);
            options.max_timeout = milliseconds(params.max_timeout_milliseconds);
            options.log_level = params.log_level;
            options.roots = roots;
        })
        .on_elicit_raw(Arc::clone(&answerer))
        .on_sample_raw(answerer);
    if !params.is_quiet {
        let (steps, logs) = (events.clone(), events.clone());
        builder = builder
            .on_progress(move |step| {
                let _ = steps.try_send(Event::Notice(notice::progress(&step, &0.into())));
            })
            .on_log(move |message| {
                let _ = logs.try_send(Event::Notice(notice::log(&message)));
            });
    }
    let client = builder.connect().await?.with_options(|options| options.raise_on_error = false);
    let tool = params.tool;
    let operation = Operation::CallTool { name: tool.clone(), arguments: params.arguments };
    let reply = client.call(operation, client.options()).await?;
    let data = reply.data().and_then(|text| RawValue::from_string(text.to_owned()).ok());
    Ok(ToolReply { tool, result: reply.result, data })
}

/// Returns a random id: an old one must not belong to a later question.
fn new_id() -> Result<String, Error> {
    let mut bytes = [0; 4];
    getrandom::fill(&mut bytes)
        .map_err(|error| Error::new(ErrorKind::Cancelled, format!("no random bytes: {error}")))?;
    Ok(format!("{:08x}", u32::from_be_bytes(bytes)))
}
