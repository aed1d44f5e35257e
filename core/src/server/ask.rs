//! Questions to the client as values, to ask several at once or to return them from a handler.
//!
//! The answer to a question is identified by its key: the one set by [`Question::key`], or else `<kind>-<n>` in the
//! order of the questions.

use std::{fmt, sync::OnceLock};

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{Context, ToolError, forms};
use crate::{
    protocol::{
        CreateMessageRequestParams, CreateMessageResult, ListRootsResult, Method, Raw, Root,
        json::to_raw,
    },
    router::Failure,
    session::asking::check_form,
};

/// A question that is not asked yet. [`Context::ask`](super::Context::ask) asks it and waits. A handler that returns
/// it as an error (`Err(question.into())`) is run again once it is answered, and
/// [`Context::answer`](super::Context::answer) then returns the answer.
///
/// ```
/// # use gudgeon::{Context, Server, ToolError, ask};
/// async fn greet(ctx: Context) -> Result<String, ToolError> {
///     let question = ask::elicit::<String>("What is your name?").key("name");
///     match ctx.answer(&question)? {
///         Some(name) => Ok(format!("Hello, {name}!")),
///         None => Err(question.into()),
///     }
/// }
///
/// let server = Server::new("greeter").tool("greet", greet);
/// ```
#[must_use = "a question is asked only if it is passed to the context or returned"]
pub struct Question<T> {
    pub(super) request: QuestionRequest,
    read: fn(&Value) -> Result<T, String>,
}

/// The part of a question that is sent to the client.
#[doc(hidden)]
#[derive(Debug)]
pub struct QuestionRequest {
    key: OnceLock<String>,
    pub(super) method: Method,
    pub(super) params: Raw,
    /// The question's text, for errors.
    message: String,
}

/// A question or a tuple of two to four [`Question`]s, with the type of their answers.
pub trait Questions: Send {
    type Answers;
    #[doc(hidden)]
    fn requests(&self) -> Vec<&QuestionRequest>;
    #[doc(hidden)]
    fn into_requests(self) -> Vec<QuestionRequest>;
    #[doc(hidden)]
    fn read(&self, results: &[Raw]) -> Result<Result<Self::Answers, InvalidAnswers>, ToolError>;
}

/// The indexes of answers that do not have the requested type, with the reason.
#[doc(hidden)]
pub type InvalidAnswers = Vec<(usize, String)>;

/// The user's reaction to a form.
#[derive(Clone, Debug, Eq, PartialEq)]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub enum Outcome<T> {
    Accepted(T),
    /// The user declined.
    Declined,
    /// The user closed the form without answering.
    Cancelled,
}

/// Asks the user to fill in a form (Elicitation). A plain type such as `bool` is asked as a form with the single
/// property `value`. A struct is asked by its fields, which must be plain types, choices (enums without fields) or,
/// from 2025-11-25, lists of choices.
///
/// # Panics
/// Panics if no revision has a form for the type, which is a mistake in the program. [`Context::elicit`] returns an
/// error instead.
///
/// ```should_panic
/// # use gudgeon::ask;
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Order {
///     lines: Vec<String>,
/// }
///
/// // the form "What?" can't be asked: its property "lines" is a list, which a form asks as a choice of several: …
/// let question = ask::elicit::<Order>("What?");
/// ```
#[track_caller]
pub fn elicit<T: DeserializeOwned + JsonSchema>(message: impl Into<String>) -> Question<T> {
    match form(message.into()) {
        Ok(question) => question,
        Err(mistake) => panic!("{mistake}"),
    }
}

/// Like [`elicit`], but returns an error instead of panicking.
pub(super) fn form<T: DeserializeOwned + JsonSchema>(
    message: String,
) -> Result<Question<T>, String> {
    let schema = forms::schema::<T>();
    check_form(&message, &schema.to_string())?;
    let params = json!({"mode": "form", "message": message, "requestedSchema": schema});
    let request = QuestionRequest::new(Method::Elicit, &params, message);
    Ok(Question { request, read: |result| accepted(result).and_then(forms::read) })
}

/// Asks the user to visit a URL (Elicitation, "URL Mode"). The answer is the elicitation's id, or "" in revisions
/// without one.
pub fn elicit_url(message: impl Into<String>, url: impl Into<String>) -> Question<String> {
    let message = message.into();
    let params = json!({"mode": "url", "message": message, "url": url.into()});
    let read = |result: &Value| {
        accepted(result)?;
        Ok(result["elicitationId"].as_str().unwrap_or_default().to_owned())
    };
    Question { request: QuestionRequest::new(Method::Elicit, &params, message), read }
}

/// Sends a request to the client's model (Sampling).
#[expect(
    clippy::needless_pass_by_value,
    reason = "the other questions take their input by value as well"
)]
pub fn sample(request: CreateMessageRequestParams) -> Question<CreateMessageResult> {
    let request = QuestionRequest::new(Method::CreateMessage, &request, "sampling".into());
    Question { request, read: typed }
}

/// Asks for the directories that the client lets a server work in (Roots).
pub fn roots() -> Question<Vec<Root>> {
    let request = QuestionRequest::new(Method::ListRoots, &json!({}), "roots".into());
    Question { request, read: |result| typed::<ListRootsResult>(result).map(|result| result.roots) }
}

impl<T> Question<T> {
    /// Sets the key that identifies the answer.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.request.key = OnceLock::from(key.into());
        self
    }

    /// Converts a result to the answer's type, or returns the reason why that fails. Errors if the user declined or
    /// cancelled.
    pub(super) fn decode(&self, result: &Raw) -> Result<Result<T, String>, ToolError> {
        let result: Value = serde_json::from_str(result.get()).unwrap_or_default();
        match result["action"].as_str().filter(|_| self.request.method == Method::Elicit) {
            None | Some("accept") => Ok((self.read)(&result)),
            Some("cancel") => {
                Err(ToolError::from_failure(Failure::Dismissed(self.request.message.clone())))
            }
            Some(_) => {
                Err(ToolError::from_failure(Failure::Declined(self.request.message.clone())))
            }
        }
    }

    pub(super) fn outcome(&self, result: &Raw) -> Result<Result<Outcome<T>, String>, ToolError> {
        let action: Value = serde_json::from_str(result.get()).unwrap_or_default();
        match action["action"].as_str() {
            Some("decline") => Ok(Ok(Outcome::Declined)),
            Some("cancel") => Ok(Ok(Outcome::Cancelled)),
            _ => Ok(self.decode(result)?.map(Outcome::Accepted)),
        }
    }
}

impl<T> fmt::Debug for Question<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Question").field(&self.request).finish()
    }
}

impl<T> From<Question<T>> for ToolError {
    fn from(question: Question<T>) -> Self {
        Self::ask(question)
    }
}

impl QuestionRequest {
    fn new(method: Method, params: &impl serde::Serialize, message: String) -> Self {
        let params = to_raw(params);
        Self { key: OnceLock::new(), method, params, message }
    }

    /// A question whose answer is used as it came.
    pub(super) fn raw(method: Method, params: Raw) -> Self {
        Self { key: OnceLock::new(), method, params, message: String::new() }
    }

    /// Returns the question's key; `next` creates one for a question without a key.
    pub(super) fn key(&self, next: impl FnOnce(Method) -> String) -> &str {
        self.key.get_or_init(|| next(self.method))
    }
}

/// Serializes questions for the core.
pub(super) fn as_json(requests: &[QuestionRequest], call: &Context) -> String {
    let question = |request: &QuestionRequest| json!({"key": call.key(request), "method": request.method.as_str(), "params": request.params});
    Value::Array(requests.iter().map(question).collect()).to_string()
}

impl<T> Questions for Question<T> {
    type Answers = T;

    fn requests(&self) -> Vec<&QuestionRequest> {
        vec![&self.request]
    }

    fn into_requests(self) -> Vec<QuestionRequest> {
        vec![self.request]
    }

    fn read(&self, results: &[Raw]) -> Result<Result<T, InvalidAnswers>, ToolError> {
        Ok(self.decode(&results[0])?.map_err(|problem| vec![(0, problem)]))
    }
}

macro_rules! tuples {
    ($($(($question:ident, $at:tt)),+;)*) => {$(
        impl<$($question),+> Questions for ($(Question<$question>,)+) {
            type Answers = ($($question,)+);

            fn requests(&self) -> Vec<&QuestionRequest> {
                vec![$(&self.$at.request),+]
            }

            fn into_requests(self) -> Vec<QuestionRequest> {
                vec![$(self.$at.request),+]
            }

            #[allow(non_snake_case, reason = "each answer is called as its type is")]
            fn read(&self, results: &[Raw]) -> Result<Result<Self::Answers, InvalidAnswers>, ToolError> {
                let mut invalid = InvalidAnswers::new();
                let mut sort = |at, problem| invalid.push((at, problem));
                $(let $question = self.$at.decode(&results[$at])?.map_err(|problem| sort($at, problem));)+
                match ($($question,)+) {
                    ($(Ok($question),)+) => Ok(Ok(($($question,)+))),
                    _ => Ok(Err(invalid)),
                }
            }
        }
    )*};
}

tuples! {
    (A, 0), (B, 1);
    (A, 0), (B, 1), (C, 2);
    (A, 0), (B, 1), (C, 2), (D, 3);
}

fn accepted(result: &Value) -> Result<&Value, String> {
    match result["action"].as_str() {
        Some("accept") => Ok(&result["content"]),
        _ => Err("the form was not accepted".into()),
    }
}

fn typed<T: DeserializeOwned>(result: &Value) -> Result<T, String> {
    serde_json::from_str(&result.to_string()).map_err(|error| error.to_string())
}
