//! Questions of a server that wait for callbacks of the host.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
};

use tokio::sync::oneshot;

use super::{client_answers, client_settings::ClientSettings};
use crate::{
    client::{Answerer, ClientBuilder, Question},
    error::{Error, ErrorKind, Language},
    protocol::{Raw, code, json},
};

/// The numbers of questions differ between clients, because several clients may share a queue of the host.
static NEXT: AtomicU32 = AtomicU32::new(1);

type Answer = Result<Raw, Error>;

/// An event for the host.
#[derive(Clone, Copy, Debug)]
pub enum Asked<'a> {
    /// A question for the callback of this option, to be answered under this number.
    Question(u32, &'a str, &'a Question),
    /// The server withdrew the question.
    Withdrawn(u32),
}

/// The open questions of a client.
#[derive(Debug)]
pub struct Questions {
    language: Language,
    open: Mutex<HashMap<u32, OpenQuestion>>,
}

type OpenQuestion = (Question, Asker, oneshot::Sender<Answer>);

/// The side that asks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Asker {
    Server,
    /// This client, which wants its program to help it to sign in.
    #[cfg(feature = "auth")]
    Client,
}

impl Questions {
    pub fn new(language: Language) -> Arc<Self> {
        Arc::new(Self { language, open: Mutex::default() })
    }

    /// Registers the callbacks that the settings name; questions for them are passed to `report`.
    pub fn register(
        self: &Arc<Self>,
        builder: ClientBuilder,
        settings: &ClientSettings,
        report: impl Fn(Asked<'_>) + Clone + Send + Sync + 'static,
    ) -> ClientBuilder {
        type Register = fn(ClientBuilder, Answerer) -> ClientBuilder;
        let registers: [(&str, Register); 3] = [
            ("on_elicit", ClientBuilder::on_elicit_raw),
            ("on_sample", ClientBuilder::on_sample_raw),
            ("roots", ClientBuilder::on_roots_raw),
        ];
        let named = registers.map(|(option, register)| (self.language.option(option), register));
        let given = named.into_iter().filter(|(option, _)| settings.has(option));
        given.fold(builder, |builder, (option, register)| {
            register(builder, self.answerer(option, Asker::Server, report.clone()))
        })
    }

    /// Sets the credentials of the settings; what only the host can do is asked of the callback `auth` through `report`. Its
    /// answers are JSON as it is. Errors if the credentials are invalid.
    #[cfg(feature = "auth")]
    pub fn authorize(
        self: &Arc<Self>,
        builder: ClientBuilder,
        settings: &ClientSettings,
        report: impl Fn(Asked<'_>) + Clone + Send + Sync + 'static,
    ) -> Result<ClientBuilder, Error> {
        let Some(auth) = &settings.auth else { return Ok(builder) };
        let auth = auth.read(&self.answerer("auth".into(), Asker::Client, report))?;
        Ok(builder.options(|options| options.auth = Some(auth)))
    }

    /// Answers a question by the value that its callback returned, as JSON. Returns the problem of a value that is not
    /// an answer.
    pub fn answer(&self, number: u32, given: &[u8]) -> Option<String> {
        let (question, asker, sender) = self.lock().remove(&number)?;
        let answer = match asker {
            Asker::Server => client_answers::result(self.language, &question, given),
            #[cfg(feature = "auth")]
            Asker::Client => json::from_bytes(given)
                .map_err(|_| Error::new(ErrorKind::Auth, "the callback of auth returned no JSON")),
        };
        let problem = answer.as_ref().err().map(|error| error.message.clone());
        // The question may have been withdrawn in the meantime.
        let _ = sender.send(answer);
        problem
    }

    /// Refuses a question with the reason that [`client_answers::refusal`] reads.
    pub fn refuse(&self, number: u32, reason: &[u8]) {
        if let Some((.., sender)) = self.lock().remove(&number) {
            let _ = sender.send(Err(client_answers::refusal(reason)));
        }
    }

    /// Refuses all open questions, because nothing will answer them.
    pub fn refuse_all(&self) {
        for (_, (.., sender)) in self.lock().drain() {
            let message = "the client can't answer any more";
            let error = Error::new(ErrorKind::Protocol, message);
            let _ =
                sender.send(Err(error.with(|details| details.code = Some(code::INTERNAL_ERROR))));
        }
    }

    fn answerer(
        self: &Arc<Self>,
        option: String,
        asker: Asker,
        report: impl Fn(Asked<'_>) + Clone + Send + Sync + 'static,
    ) -> Answerer {
        let questions = Arc::clone(self);
        Arc::new(move |question| {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let (sender, answer) = oneshot::channel();
            let open = Open { questions: Arc::clone(&questions), number, report: report.clone() };
            questions.lock().insert(number, (question.clone(), asker, sender));
            report(Asked::Question(number, &option, &question));
            Box::pin(async move {
                let answer = answer.await;
                drop(open);
                let gone =
                    |_| Error::new(ErrorKind::Cancelled, "the question could not be answered");
                answer.map_err(gone)?
            })
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u32, OpenQuestion>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A question until it is answered; dropped earlier when the server withdraws it.
struct Open<T: Fn(Asked<'_>)> {
    questions: Arc<Questions>,
    number: u32,
    report: T,
}

impl<T: Fn(Asked<'_>)> Drop for Open<T> {
    fn drop(&mut self) {
        if self.questions.lock().remove(&self.number).is_some() {
            (self.report)(Asked::Withdrawn(self.number));
        }
    }
}
