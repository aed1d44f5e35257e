//! The server's questions to this client and the callbacks that answer them, in both eras.

use std::{
    fmt,
    sync::{Arc, PoisonError, RwLock},
};

use serde_json::Value;
use tokio::task::JoinSet;

use super::connection::{BoxFuture, Question};
use crate::{
    driver::boxed,
    error::{Error, ErrorKind},
    protocol::{
        ClientCapabilities, ElicitationCapability, ErrorObject, ListRootsResult, Method, Raw, Root,
        RootsCapability, SamplingCapability, code, file_uri::is_file_uri, json,
    },
    session::asking,
    transport::off_thread::{LARGE, off_thread},
};

/// A callback that answers one kind of question with a result as raw JSON.
pub type Answerer = Arc<dyn Fn(Question) -> BoxFuture<Result<Raw, Error>> + Send + Sync>;

/// The maximum number of questions of a round that are answered concurrently.
const MAX_AT_ONCE: usize = 64;

/// The registered callbacks.
#[derive(Default)]
pub(super) struct Questions {
    pub(super) elicit: Option<Answerer>,
    pub(super) sample: Option<Answerer>,
    pub(super) roots: RwLock<Option<Roots>>,
    /// The schemes of URLs that a user may be asked to visit.
    pub(super) url_schemes: Vec<String>,
    /// The declared modes of elicitation.
    modes: Vec<&'static str>,
    /// True if tools in sampling were declared.
    may_use_tools: bool,
}

/// The source of the roots.
#[derive(Clone)]
pub(super) enum Roots {
    List(Vec<Root>),
    Callback(Answerer),
}

impl Questions {
    /// Returns the capabilities with those of the registered callbacks, but for roots.
    pub(super) fn declare(&mut self, mut capabilities: ClientCapabilities) -> ClientCapabilities {
        let empty = || Some(json::raw("{}".into()));
        if self.elicit.is_some() && capabilities.elicitation.is_none() {
            capabilities.elicitation = Some(ElicitationCapability { form: empty(), url: empty() });
        }
        if self.sample.is_some() && capabilities.sampling.is_none() {
            let tools = empty();
            capabilities.sampling = Some(SamplingCapability { tools, context: None });
        }
        self.modes = match &capabilities.elicitation {
            Some(ElicitationCapability { url: None, .. }) => vec!["form"],
            Some(ElicitationCapability { form: None, .. }) => vec!["url"],
            Some(_) => vec!["form", "url"],
            None => Vec::new(),
        };
        self.may_use_tools =
            capabilities.sampling.as_ref().is_some_and(|sampling| sampling.tools.is_some());
        capabilities
    }

    /// Returns the capabilities with that for roots, if there are any now.
    pub(super) fn with_roots(&self, mut capabilities: ClientCapabilities) -> ClientCapabilities {
        if self.roots().is_some() && capabilities.roots.is_none() {
            capabilities.roots = Some(RootsCapability { list_changed: Some(true) });
        }
        capabilities
    }

    /// Rejects tools that were not declared, and misplaced tool results with -32602 (Sampling, "Capabilities" and
    /// "Error Handling").
    fn check_sampling(&self, params: &Raw) -> Result<(), Error> {
        let message = if !self.may_use_tools && asking::wants_tools(params.get()) {
            "this client did not declare sampling.tools".to_owned()
        } else if let Some(disorder) = asking::order_violation(params.get()) {
            disorder.as_str().to_owned()
        } else {
            return Ok(());
        };
        Err(invalid(message))
    }

    /// Rejects an undeclared mode, and a URL that must not be opened, with -32602 (Elicitation, "Error Handling" and
    /// "Safe URL Handling").
    fn check_elicitation(&self, params: &Raw) -> Result<(), Error> {
        let params: Value = serde_json::from_str(params.get()).unwrap_or_default();
        let mode = params.get("mode").map_or("form", |mode| mode.as_str().unwrap_or_default());
        if !self.modes.contains(&mode) {
            return Err(invalid(format!(
                "this client did not declare elicitation with mode {mode:?}"
            )));
        }
        if mode != "url" {
            return Ok(());
        }
        let url = params.get("url").and_then(Value::as_str).unwrap_or_default();
        check_url(url, &self.url_schemes).map_err(|problem| {
            tracing::warn!("refused a URL that the server asks the user to visit: {problem}");
            invalid(problem)
        })
    }

    pub(super) fn set_roots(&self, roots: Vec<Root>) -> Result<(), Error> {
        check_roots(&roots)?;
        *self.roots.write().unwrap_or_else(PoisonError::into_inner) = Some(Roots::List(roots));
        Ok(())
    }

    /// Answers all questions of a round, in their order. The first failure cancels the others.
    pub(super) async fn answer_all(
        self: &Arc<Self>,
        questions: Vec<Question>,
    ) -> Result<Vec<Raw>, Error> {
        let mut answers = vec![None; questions.len()];
        let mut waiting = questions.into_iter().enumerate();
        let mut open = JoinSet::new();
        loop {
            while open.len() < MAX_AT_ONCE
                && let Some((at, question)) = waiting.next()
            {
                let questions = Arc::clone(self);
                open.spawn(boxed(async move { (at, questions.answer(question).await) }));
            }
            match open.join_next().await {
                None => return Ok(answers.into_iter().flatten().collect()),
                Some(Ok((at, answer))) => answers[at] = Some(answer?),
                Some(Err(_)) => return Err(unanswerable()),
            }
        }
    }

    pub(super) async fn answer(self: &Arc<Self>, question: Question) -> Result<Raw, Error> {
        let (method, params) = (question.method, question.params.clone());
        let answerer = match method {
            Method::ListRoots => match self.roots() {
                Some(Roots::List(roots)) => {
                    let result = ListRootsResult { roots, ..ListRootsResult::default() };
                    return Ok(json::to_raw(&result));
                }
                Some(Roots::Callback(callback)) => Some(callback),
                None => None,
            },
            Method::CreateMessage => self.sample.clone(),
            Method::Elicit => self.elicit.clone(),
            _ => None,
        };
        let Some(answerer) = answerer else {
            let message = format!(
                "the server asks {}, which this client did not declare that it can answer",
                method.as_str()
            );
            return Err(Error::new(ErrorKind::Protocol, message));
        };
        if params.get().len() <= LARGE {
            self.check(method, &params)?;
        } else {
            let (questions, params) = (Arc::clone(self), params.clone());
            off_thread(move || questions.check(method, &params)).await?;
        }
        let answer = answerer(question).await;
        if method == Method::ListRoots
            && let Ok(answer) = &answer
            && let Ok(listed) = serde_json::from_str::<ListRootsResult>(answer.get())
        {
            check_roots(&listed.roots)?;
        }
        if method != Method::Elicit {
            return answer;
        }
        match answer {
            // Even a small form may have patterns and defaults that take long.
            Ok(answer) => off_thread(move || fill(&params, &answer)).await,
            // In a form, declining and cancelling are results.
            Err(error) => match error.kind {
                ErrorKind::Declined => Ok(json::raw(r#"{"action":"decline"}"#.into())),
                ErrorKind::Cancelled => Ok(json::raw(r#"{"action":"cancel"}"#.into())),
                _ => Err(error),
            },
        }
    }

    fn check(&self, method: Method, params: &Raw) -> Result<(), Error> {
        match method {
            Method::Elicit => self.check_elicitation(params),
            Method::CreateMessage => self.check_sampling(params),
            _ => Ok(()),
        }
    }

    fn roots(&self) -> Option<Roots> {
        self.roots.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Fills in and checks the answer to a form.
fn fill(params: &Raw, answer: &Raw) -> Result<Raw, Error> {
    asking::fill(params.get(), answer).map_err(|problem| {
        let message = format!("the answer to {} does not fit: {problem}", asked(params));
        Error::new(ErrorKind::Protocol, message)
    })
}

/// Errors unless all roots are `file://` URIs (Roots, "Data Types").
fn check_roots(roots: &[Root]) -> Result<(), Error> {
    match roots.iter().find(|root| !is_file_uri(&root.uri)) {
        None => Ok(()),
        Some(Root { uri, .. }) => Err(Error::misuse(format!(
            "a root must be a file:// URI such as \"file:///srv/shelf\", got {uri:?}"
        ))),
    }
}

/// Errors unless a URL has one of these schemes, and no character that a program might take for the end of the URL.
fn check_url(url: &str, schemes: &[String]) -> Result<(), String> {
    if let Some(odd) =
        url.chars().find(|character| character.is_whitespace() || character.is_control())
    {
        return Err(format!("the URL {url:?} contains {odd:?}"));
    }
    let (scheme, rest) = url.split_once(':').unwrap_or_default();
    if !schemes.iter().any(|allowed| allowed.eq_ignore_ascii_case(scheme)) {
        let allowed = schemes.join(", ");
        return Err(format!(
            "this client does not open the URL {url:?}; allowed schemes: {allowed}"
        ));
    }
    let is_web = ["http", "https"].iter().any(|known| known.eq_ignore_ascii_case(scheme));
    if is_web && !rest.starts_with("//") {
        return Err(format!("the URL {url:?} has no host; write {scheme}://host/path"));
    }
    Ok(())
}

fn invalid(message: String) -> Error {
    Error::new(ErrorKind::Protocol, message)
        .with(|details| details.code = Some(code::INVALID_PARAMS))
}

/// Returns the error that the server gets for a question that failed.
pub(super) fn error_object(error: &Error) -> ErrorObject {
    let code = error.code.unwrap_or(match error.kind {
        ErrorKind::Declined => code::USER_REJECTED,
        _ => code::INTERNAL_ERROR,
    });
    ErrorObject { code, message: error.message.clone(), data: error.data.clone() }
}

/// Returns the error of a callback that ended without an answer.
pub(super) fn unanswerable() -> Error {
    Error::new(ErrorKind::Cancelled, "the question could not be answered")
}

/// Returns the message of a question, for errors.
fn asked(params: &Raw) -> String {
    #[derive(serde::Deserialize)]
    struct Form {
        message: String,
    }
    match serde_json::from_str::<Form>(params.get()) {
        Ok(form) => format!("{:?}", form.message),
        Err(_) => "the form".to_owned(),
    }
}

impl fmt::Debug for Questions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Questions")
            .field("elicit", &self.elicit.is_some())
            .field("sample", &self.sample.is_some())
            .finish_non_exhaustive()
    }
}
