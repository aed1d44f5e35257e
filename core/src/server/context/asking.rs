//! Questions of a handler to its client, and journaled steps.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, MutexGuard, PoisonError},
};

use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use tokio::sync::{OnceCell, oneshot};

use super::Context;
use crate::{
    driver::Work,
    engine::Effect,
    error::Fault,
    protocol::{Method, Question as Asked, Raw, exact, json},
    router::Failure,
    server::{
        ToolError,
        ask::{self, Outcome, Question, QuestionRequest, Questions},
    },
    session::{
        asking::{AskId, QuestionKeys, QuestionSet, Unsent},
        server::handler_finished,
    },
};

tokio::task_local! {
    /// The key of the step that this task runs in.
    static STEP: String;
}

/// The questions and steps of a call.
#[derive(Default)]
pub(super) struct Asking {
    keys: QuestionKeys,
    next: u64,
    waiting: HashMap<AskId, oneshot::Sender<Result<Raw, Fault>>>,
    /// The results of finished steps.
    steps: BTreeMap<String, Arc<OnceCell<Raw>>>,
    is_over: bool,
}

/// Runs a future whose questions have keys of their own, which begin with `key`.
#[cfg(feature = "bindings")]
pub(in crate::server) async fn within<T>(key: &str, future: impl Future<Output = T>) -> T {
    STEP.scope(key.to_owned(), future).await
}

/// Questions asked together, with the client's latest result for each.
struct AskedTogether {
    set: QuestionSet,
    results: Vec<Raw>,
}

impl Context {
    /// Asks the user to fill in a form and waits for the answer (Elicitation). A plain type such as `bool` is asked
    /// as a form with the single property `value`, a struct by its fields.
    ///
    /// In revision 2026-07-28, where questions are part of results (Multi Round-Trip Requests), the handler is
    /// suspended until the client repeats its request with the answer. If the repeated request reaches another
    /// process or arrives too late, the handler is replayed from the start with the earlier answers; use
    /// [`Context::step`] for effects that must not be repeated.
    ///
    /// An answer that does not fit the form or the type (`#[serde(try_from = "…")]` can check more than forms) is
    /// asked for again, up to three times in all.
    ///
    /// Errors if the user declines or cancels, if no answer fits, if the client did not declare elicitation, and if
    /// the client's revision has no form for the type; in the last case nothing is sent.
    ///
    /// ```
    /// # use gudgeon::{Context, Server, ToolError};
    /// async fn delete(ctx: Context) -> Result<&'static str, ToolError> {
    ///     match ctx.elicit("Delete it?").await? {
    ///         true => Ok("deleted"),
    ///         false => Ok("kept"),
    ///     }
    /// }
    ///
    /// let server = Server::new("shelf").tool("delete", delete);
    /// ```
    pub async fn elicit<T>(&self, message: impl Into<String>) -> Result<T, ToolError>
    where
        T: DeserializeOwned + JsonSchema,
    {
        self.ask(Self::form(message.into())?).await
    }

    /// Like [`Context::elicit`], but returns the user's decline or cancellation as a value.
    pub async fn try_elicit<T>(&self, message: impl Into<String>) -> Result<Outcome<T>, ToolError>
    where
        T: DeserializeOwned + JsonSchema,
    {
        let question = Self::form(message.into())?;
        let mut asked = self.asked(&[&question.request]);
        loop {
            match question.outcome(&self.results(&mut asked).await?[0])? {
                Ok(outcome) => return Ok(outcome),
                Err(problem) => asked.set.reject(0, problem),
            }
        }
    }

    /// Asks one or several [questions](crate::server::ask) at once and waits for all answers. Questions with an invalid answer
    /// are asked again, as by [`Context::elicit`].
    ///
    /// ```
    /// # use gudgeon::{Context, ToolError, ask};
    /// async fn tidy(ctx: Context) -> Result<usize, ToolError> {
    ///     let (sure, roots) = ctx.ask((ask::elicit::<bool>("Tidy up?"), ask::roots())).await?;
    ///     Ok(if sure { roots.len() } else { 0 })
    /// }
    /// ```
    pub async fn ask<Q: Questions>(&self, questions: Q) -> Result<Q::Answers, ToolError> {
        let mut asked = self.asked(&questions.requests());
        loop {
            match questions.read(self.results(&mut asked).await?)? {
                Ok(answers) => return Ok(answers),
                Err(invalid) => {
                    for (at, problem) in invalid {
                        asked.set.reject(at, problem);
                    }
                }
            }
        }
    }

    /// Asks these questions at once, given by method and params, and waits for all answers, which are results as the client sent
    /// them.
    pub(crate) async fn ask_raw(&self, questions: Vec<(Method, Raw)>) -> Result<Vec<Raw>, Failure> {
        let requests: Vec<_> = questions
            .into_iter()
            .map(|(method, params)| QuestionRequest::raw(method, params))
            .collect();
        let mut asked = self.asked(&requests.iter().collect::<Vec<_>>());
        match self.results(&mut asked).await {
            Ok(results) => Ok(results.to_vec()),
            Err(error) => Err(error.into_reply(self).err().unwrap_or(Failure::Cancelled)),
        }
    }

    /// Runs a future once per call and records its result. If the handler is replayed from the start, because its
    /// client's answer reached another process or arrived too late, the recorded result is used instead.
    ///
    /// The guarantee is at least once, not exactly once: a process that ends between the step and the next question
    /// loses the record. The result is serialized as JSON, on the first run too. A failed step is not recorded. A key
    /// identifies a step within a call: a second step with the same key waits for the first and gets its result.
    /// Questions inside a step are numbered separately, as in `<key>/elicit-1`.
    ///
    /// ```
    /// # use gudgeon::{Context, Server, ToolError};
    /// async fn order(ctx: Context) -> Result<String, ToolError> {
    ///     let number: u32 = ctx.step("reserve", async { Ok::<_, ToolError>(42) }).await?;
    ///     match ctx.elicit(format!("Order {number}?")).await? {
    ///         true => Ok(format!("ordered {number}")),
    ///         false => Ok("left".into()),
    ///     }
    /// }
    ///
    /// let server = Server::new("shelf").tool("order", order);
    /// ```
    pub async fn step<T, E>(
        &self,
        key: &str,
        step: impl Future<Output = Result<T, E>>,
    ) -> Result<T, ToolError>
    where
        T: Serialize + DeserializeOwned,
        ToolError: From<E>,
    {
        let cell = Arc::clone(self.asking().steps.entry(key.to_owned()).or_default());
        let done = async || {
            let known = self.context().answers.step(key);
            if let Some(known) = known {
                return Ok(known);
            }
            let value = exact::to_raw(
                &STEP.scope(key.to_owned(), step).await?,
                &format!("the result of step {key:?}"),
            )?;
            self.call.connection.step(self.call.id, key, value.clone());
            Ok::<_, ToolError>(value)
        };
        let value = cell.get_or_try_init(done).await?;
        Ok(serde_json::from_str(value.get())?)
    }

    /// Returns the answer to a question that the handler has returned. `None` means that there is no valid answer
    /// yet: return the question again. Errors if the user declined, and after three invalid answers.
    pub fn answer<T>(&self, question: &Question<T>) -> Result<Option<T>, ToolError> {
        let Some(known) = self.known(&question.request) else { return Ok(None) };
        let problem = match question.decode(&known)? {
            Ok(answer) => return Ok(Some(answer)),
            Err(problem) => problem,
        };
        let asked = self.question(&question.request);
        let refused = self.context().answers.refuse(&asked, &problem);
        refused.map(|()| None).map_err(|fault| ToolError::from_failure(Failure::from(fault)))
    }

    /// Returns the question's key; a question without a key gets its number when it is first used.
    pub(in crate::server) fn key<'p>(&self, request: &'p QuestionRequest) -> &'p str {
        request.key(|method| match STEP.try_with(String::clone) {
            Ok(step) => self.asking().keys.next(method, Some(&step)),
            Err(_) => self.asking().keys.next(method, None),
        })
    }

    fn known(&self, request: &QuestionRequest) -> Option<Raw> {
        let key = self.key(request);
        let answers = self.context().answers.clone();
        answers.get(key, request.method, request.params.get())
    }

    fn form<T: DeserializeOwned + JsonSchema>(message: String) -> Result<Question<T>, ToolError> {
        ask::form(message).map_err(ToolError::hidden)
    }

    fn asked(&self, requests: &[&QuestionRequest]) -> AskedTogether {
        let questions = requests.iter().map(|request| self.question(request)).collect();
        let set = QuestionSet::new(questions, &self.context());
        AskedTogether { set, results: vec![json::raw("null".into()); requests.len()] }
    }

    /// Sends the open questions and waits. Returns the client's results in order, or the first error.
    async fn results<'a>(&self, asked: &'a mut AskedTogether) -> Result<&'a [Raw], ToolError> {
        let sent: Vec<_> =
            asked.set.send().into_iter().map(|unsent| (unsent.at, self.send(unsent))).collect();
        if !sent.is_empty() {
            self.wait_for_round().await;
        }
        for (at, receiver) in sent {
            let outcome =
                receiver.await.map_err(|_| ToolError::from_failure(Failure::Cancelled))?;
            asked.set.settle(at, outcome);
        }
        for (at, outcome) in asked.set.take() {
            asked.results[at] =
                outcome.map_err(|fault| ToolError::from_failure(Failure::from(fault)))?;
        }
        Ok(&asked.results)
    }

    fn question(&self, request: &QuestionRequest) -> Asked {
        let key = self.key(request).to_owned();
        Asked { key, method: request.method, params: request.params.clone() }
    }

    fn send(&self, unsent: Unsent) -> oneshot::Receiver<Result<Raw, Fault>> {
        let Unsent { question, problem, .. } = unsent;
        let (sender, receiver) = oneshot::channel();
        let ask = {
            let mut asking = self.asking();
            if asking.is_over {
                if !self.is_cancelled() {
                    // The receiver still exists here.
                    let _ = sender.send(Err(handler_finished()));
                }
                return receiver;
            }
            let ask = AskId(asking.next);
            asking.next += 1;
            asking.waiting.insert(ask, sender);
            ask
        };
        let (connection, call) = (&self.call.connection, self.call.id);
        let work = match problem {
            None => connection.ask(call, ask, question),
            Some(problem) => connection.ask_again(call, ask, question, problem),
        };
        let rest = work.into_iter().filter_map(|effect| match effect {
            Effect::Answered { run, ask, outcome } if run == call => {
                self.answered(ask, *outcome);
                None
            }
            other => Some(other),
        });
        let rest: Work = rest.collect();
        if let Some(runner) = self.call.runner.upgrade() {
            runner.hand_on(rest);
        }
        self.call.connection.flush();
        receiver
    }

    /// Yields, so that concurrent tasks of the call can add questions to the round, which is then sent.
    async fn wait_for_round(&self) {
        tokio::task::yield_now().await;
        let work = self.call.connection.waits(self.call.id, false);
        if let Some(runner) = self.call.runner.upgrade() {
            runner.hand_on(work);
            runner.settle();
        }
    }

    pub(in crate::server) fn answered(&self, ask: AskId, outcome: Result<Raw, Fault>) {
        let waiting = self.asking().waiting.remove(&ask);
        if let Some(sender) = waiting {
            // The receiver may have been dropped.
            let _ = sender.send(outcome);
        }
    }

    /// Returns whether this context asked a question that has no answer yet.
    #[cfg(feature = "bindings")]
    pub(in crate::server) fn waits_for(&self, ask: AskId) -> bool {
        self.asking().waiting.contains_key(&ask)
    }

    /// Ends the call: pending questions get no answer.
    pub(in crate::server) fn end(&self) {
        let mut asking = self.asking();
        asking.is_over = true;
        asking.waiting.clear();
    }

    /// Numbers the questions of this context from here on.
    #[cfg(feature = "bindings")]
    pub(in crate::server) fn ask_from(&self, first: u64) {
        self.asking().next = first;
    }

    fn asking(&self) -> MutexGuard<'_, Asking> {
        self.call.asking.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
