//! What a handler asks its client, and the steps that it takes once.

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
    error::Fault,
    protocol::{
        CreateMessageRequestParams, CreateMessageResult, Question as Asked, Raw, Root, exact,
    },
    router::Failure,
    server::{
        ToolError,
        ask::{self, Misfits, Outcome, Put, Question, Questions},
    },
    session::{asking::AskId, server::too_late},
};

tokio::task_local! {
    /// The key of the step that this code runs in.
    static STEP: String;
}

/// What one call has asked.
#[derive(Default)]
pub(super) struct Asking {
    /// Questions without a key of their own, by kind, those of a step apart: it may not be done again on a later run.
    counts: BTreeMap<String, u32>,
    next: u64,
    waiting: HashMap<AskId, oneshot::Sender<Result<Raw, Failure>>>,
    /// What was done already.
    steps: BTreeMap<String, Arc<OnceCell<Raw>>>,
    is_over: bool,
}

impl Context {
    /// Asks the user by a form, and waits for the answer (Elicitation). A plain type, such as `bool`, is asked as the one
    /// property `value`, a struct by its fields.
    ///
    /// Where questions travel in results (2026-07-28, Multi Round-Trip Requests) the handler waits until the client sends
    /// its request again with the answer. If that comes to another process, or too late, the handler is run again from its
    /// top and the earlier answers are there at once; see [`Context::step`] for what must not happen twice.
    ///
    /// An answer that does not fit the form, or that the type can't be read from (`#[serde(try_from = "…")]` checks more
    /// than forms can say), is asked for again, three times in all.
    ///
    /// It fails when the user said no or closed the form, when no answer fits, when the client did not declare
    /// elicitation, and when the client's revision has no form for the type: then nothing is sent.
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

    /// [`Context::elicit`] that gives a no back instead of failing.
    pub async fn try_elicit<T>(&self, message: impl Into<String>) -> Result<Outcome<T>, ToolError>
    where
        T: DeserializeOwned + JsonSchema,
    {
        let question = Self::form(message.into())?;
        let puts = [&question.put];
        let mut results = self.put(&puts).await?;
        loop {
            let problem = match question.outcome(&results[0])? {
                Ok(outcome) => return Ok(outcome),
                Err(problem) => problem,
            };
            self.put_again(&puts, vec![(0, problem)], &mut results).await?;
        }
    }

    /// Sends the user to a page (Elicitation, "URL Mode"), and gives the elicitation's id. Fails as
    /// [`Context::elicit`] does.
    pub async fn elicit_url(
        &self,
        message: impl Into<String>,
        url: impl Into<String>,
    ) -> Result<String, ToolError> {
        self.ask(ask::elicit_url(message, url)).await
    }

    /// Asks the client's model (Sampling). Fails as [`Context::elicit`] does.
    pub async fn sample(
        &self,
        request: CreateMessageRequestParams,
    ) -> Result<CreateMessageResult, ToolError> {
        self.ask(ask::sample(request)).await
    }

    /// Asks for the folders that the client lets a server work in (Roots). Fails as [`Context::elicit`] does.
    pub async fn roots(&self) -> Result<Vec<Root>, ToolError> {
        self.ask(ask::roots()).await
    }

    /// Asks one question or several at once, and waits until all are answered. Those whose answers don't fit are asked
    /// again, as [`Context::elicit`] does.
    pub async fn ask<Q: Questions>(&self, questions: Q) -> Result<Q::Answers, ToolError> {
        let mut results = self.put(&questions.puts()).await?;
        loop {
            let misfits = match questions.read(&results)? {
                Ok(answers) => return Ok(answers),
                Err(misfits) => misfits,
            };
            self.put_again(&questions.puts(), misfits, &mut results).await?;
        }
    }

    /// Does something once for the call, and remembers what it gave: should the handler have to run again from its top,
    /// because its client's answer came to another process or too late for this one, the step is not done again.
    ///
    /// That is at least once, not exactly once: a process that dies between the deed and the next question has forgotten
    /// it. What the step gives goes through JSON, on the first run too. A failed step is not remembered. A key names one
    /// step of a call: a second one under it waits for the first, and gives the same. What a step asks is numbered for
    /// itself, as `<key>/elicit-1`.
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

    /// The answer to a question that the handler returned before; `None` until it was answered with what its type can be
    /// read from: return it once more then. It fails when the user said no, and when it was answered three times with what
    /// does not fit.
    pub fn answer<T>(&self, question: &Question<T>) -> Result<Option<T>, ToolError> {
        let Some(known) = self.known(&question.put) else { return Ok(None) };
        let problem = match question.decode(&known)? {
            Ok(answer) => return Ok(Some(answer)),
            Err(problem) => problem,
        };
        let asked = self.question(&question.put);
        let refused = self.context().answers.refuse(&asked, &problem);
        refused.map(|()| None).map_err(|fault| ToolError::of(Failure::from(fault)))
    }

    /// A question without a key of its own gets its number when the call first names it.
    pub(in crate::server) fn key<'p>(&self, put: &'p Put) -> &'p str {
        put.key(|kind| {
            let kind = STEP.try_with(|step| format!("{step}/{kind}")).unwrap_or(kind.to_owned());
            let mut asking = self.asking();
            let count = asking.counts.entry(kind.clone()).or_insert(0);
            *count += 1;
            format!("{kind}-{count}")
        })
    }

    fn known(&self, put: &Put) -> Option<Raw> {
        let key = self.key(put);
        let answers = self.context().answers.clone();
        answers.get(key, put.method, put.params.get())
    }

    fn form<T: DeserializeOwned + JsonSchema>(message: String) -> Result<Question<T>, ToolError> {
        ask::form(message).map_err(ToolError::hidden)
    }

    /// The clients' results, in order; the first failure where there is one.
    async fn put(&self, puts: &[&Put]) -> Result<Vec<Raw>, ToolError> {
        self.check(puts)?;
        let waiting: Vec<_> = puts
            .iter()
            .map(|put| match self.known(put) {
                Some(known) => Err(known),
                None => Ok(self.send(put, None)),
            })
            .collect();
        if waiting.iter().any(Result::is_ok) {
            self.wait_for_round().await;
        }
        let mut answers = Vec::with_capacity(waiting.len());
        for one in waiting {
            answers.push(match one {
                Err(known) => Ok(known),
                Ok(receiver) => receiver.await.unwrap_or(Err(Failure::Cancelled)),
            });
        }
        answers.into_iter().collect::<Result<_, _>>().map_err(ToolError::of)
    }

    /// Asks those questions again whose results are none of the types asked for, and puts the new results in their place.
    async fn put_again(
        &self,
        puts: &[&Put],
        misfits: Misfits,
        results: &mut [Raw],
    ) -> Result<(), ToolError> {
        let ask = |(at, problem): (usize, String)| (at, self.send(puts[at], Some(problem)));
        let waiting: Vec<_> = misfits.into_iter().map(ask).collect();
        self.wait_for_round().await;
        for (at, receiver) in waiting {
            let answer = receiver.await.unwrap_or(Err(Failure::Cancelled));
            results[at] = answer.map_err(ToolError::of)?;
        }
        Ok(())
    }

    /// Of several questions none is asked where one can't be.
    fn check(&self, puts: &[&Put]) -> Result<(), ToolError> {
        if puts.len() == 1 {
            return Ok(());
        }
        let open = puts.iter().filter(|it| self.known(it).is_none());
        let open: Vec<_> = open.map(|it| self.question(it)).collect();
        let checked = self.context().may_ask(&open);
        checked.map_err(|fault| ToolError::of(Failure::from(fault)))
    }

    fn question(&self, put: &Put) -> Asked {
        let key = self.key(put).to_owned();
        Asked { key, method: put.method, params: put.params.clone() }
    }

    /// `problem`: what is wrong with the answer that came before.
    fn send(&self, put: &Put, problem: Option<String>) -> oneshot::Receiver<Result<Raw, Failure>> {
        let (sender, receiver) = oneshot::channel();
        let ask = {
            let mut asking = self.asking();
            if asking.is_over {
                if !self.is_cancelled() {
                    // The receiver is here.
                    let _ = sender.send(Err(too_late().into()));
                }
                return receiver;
            }
            let ask = AskId(asking.next);
            asking.next += 1;
            asking.waiting.insert(ask, sender);
            ask
        };
        let question = self.question(put);
        // Asking starts no handlers: all that can come of it at once is a refusal, or what was answered before.
        let (connection, call) = (&self.call.connection, self.call.id);
        let Work { answers, .. } = match problem {
            None => connection.ask(call, ask, question),
            Some(problem) => connection.ask_again(call, ask, question, problem),
        };
        for (_, ask, outcome) in answers {
            self.answered(ask, outcome);
        }
        self.call.connection.flush();
        receiver
    }

    /// Lets others that run for the same call ask in the same round; then what was asked goes out.
    async fn wait_for_round(&self) {
        tokio::task::yield_now().await;
        let work = self.call.connection.waits(self.call.id, false);
        if let Some(runner) = self.call.runner.upgrade() {
            runner.perform(work);
            runner.settle();
        }
    }

    pub(in crate::server) fn answered(&self, ask: AskId, outcome: Result<Raw, Fault>) {
        let waiting = self.asking().waiting.remove(&ask);
        if let Some(sender) = waiting {
            // It may have given up in between.
            let _ = sender.send(outcome.map_err(Failure::from));
        }
    }

    /// The call is over: nobody answers any more.
    pub(in crate::server) fn end(&self) {
        let mut asking = self.asking();
        asking.is_over = true;
        asking.waiting.clear();
    }

    fn asking(&self) -> MutexGuard<'_, Asking> {
        self.call.asking.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
