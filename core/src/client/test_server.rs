//! A client for users' tests: connected in memory, with prepared answers to the server's questions.

use std::{collections::BTreeMap, fmt, sync::Arc};

use http::HeaderMap;
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    Client, ClientBuilder, Target,
    connection::{BoxFuture, Question},
    questions::Answerer,
};
use crate::{
    engine,
    error::{Error, ErrorKind},
    protocol::{Method, Principal, Raw, Revision, json as raw_json},
    server::Server,
    session::{client::LogMessage, server::HttpFacts},
    transport::memory,
};

/// A client of a server in this process, not connected yet.
///
/// ```
/// use gudgeon::{Context, Revision, Server, ToolError, client::TestServer};
///
/// async fn remove(ctx: Context) -> Result<&'static str, ToolError> {
///     Ok(if ctx.elicit::<bool>("Delete it?").await? { "gone" } else { "kept" })
/// }
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), gudgeon::error::Error> {
/// let server = Server::new("shelf").tool("remove", remove);
/// for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
///     let client = TestServer::of(&server).revision(revision).answer("Delete it?", false).replay().connect().await?;
///     assert_eq!(client.call_tool("remove", ()).await?.text(), "kept");
/// }
/// # Ok(())
/// # }
/// ```
#[must_use = "a test client does nothing until it is connected"]
pub struct TestServer<'a> {
    server: &'a Server,
    revision: Option<Revision>,
    facts: Option<HttpFacts>,
    on_log: Option<OnLog>,
    replays: bool,
    answers: BTreeMap<String, Reaction>,
}

type OnLog = Box<dyn Fn(LogMessage) + Send + Sync>;

/// The user's reaction to a question.
enum Reaction {
    Answers(Value),
    Declines,
    Cancels,
}

impl<'a> TestServer<'a> {
    /// Creates a test client of this server, without answers.
    pub fn of(server: &'a Server) -> Self {
        Self {
            server,
            revision: None,
            facts: None,
            on_log: None,
            replays: false,
            answers: BTreeMap::new(),
        }
    }

    /// Sets the revision to speak. Default: the newest one that the server speaks.
    #[doc(alias = "era")]
    pub fn revision(mut self, revision: Revision) -> Self {
        self.revision = Some(revision);
        self
    }

    /// Sets the principal of every call, as [`Context::principal`](crate::Context::principal) returns it. Default: none.
    pub fn principal(mut self, principal: Principal) -> Self {
        self.facts.get_or_insert_default().principal = Some(Arc::new(principal));
        self
    }

    /// Sets the HTTP headers of every call, as [`Context::headers`](crate::Context::headers) returns them. Default: none.
    pub fn headers(mut self, headers: HeaderMap) -> Self {
        self.facts.get_or_insert_default().headers = headers;
        self
    }

    /// Registers a callback for the server's log messages. It must not block.
    pub fn on_log(mut self, hook: impl Fn(LogMessage) + Send + Sync + 'static) -> Self {
        self.on_log = Some(Box::new(hook));
        self
    }

    /// Sets the answer to a question, given by its key or message: the form's fields as an object, the bare value if
    /// the form has a single field, a string for the model, or a list of URIs for the roots (whose question is
    /// `roots`). A question whose answer does not fit is asked three times, then fails with the reason.
    ///
    /// # Panics
    /// Panics if the answer can't be serialized as JSON.
    pub fn answer(mut self, question: impl Into<String>, answer: impl Serialize) -> Self {
        let answer = serde_json::to_value(answer).expect("the answer can't be serialized as JSON");
        self.answers.insert(question.into(), Reaction::Answers(answer));
        self
    }

    /// Declines this question.
    pub fn decline(mut self, question: impl Into<String>) -> Self {
        self.answers.insert(question.into(), Reaction::Declines);
        self
    }

    /// Cancels this question.
    pub fn cancel(mut self, question: impl Into<String>) -> Self {
        self.answers.insert(question.into(), Reaction::Cancels);
        self
    }

    /// Discards suspended handlers between rounds, so that each is replayed from the start with all answers. Before
    /// 2026-07-28 questions are separate requests, and nothing is replayed.
    pub fn replay(mut self) -> Self {
        self.replays = true;
        self
    }

    /// Connects.
    ///
    /// # Errors
    /// Errors if the server does not support the revision.
    pub async fn connect(self) -> Result<Client, Error> {
        self.into_builder().connect().await
    }

    /// Returns the client's builder, for further options.
    pub fn into_builder(self) -> ClientBuilder {
        let (ours, theirs) = memory::pair();
        let (input, output) = theirs.into_halves();
        let test_mode = engine::TestMode { replays: self.replays, state_key: None };
        let serving = self.server.serve_test((test_mode, self.facts), input, output);
        let mut builder = Client::builder(Target::Served(ours, Box::pin(serving)));
        if let Some(revision) = self.revision {
            builder = builder.revision(revision);
        }
        if let Some(on_log) = self.on_log {
            builder = builder.on_log(on_log);
        }
        if self.answers.is_empty() {
            return builder;
        }
        let answers = Arc::new(self.answers);
        let answerer: Answerer = Arc::new(move |question| -> BoxFuture<Result<Raw, Error>> {
            let answers = Arc::clone(&answers);
            Box::pin(async move { answer(&answers, &question) })
        });
        builder.on_question(answerer)
    }
}

impl fmt::Debug for TestServer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestServer").field("revision", &self.revision).finish_non_exhaustive()
    }
}

fn answer(answers: &BTreeMap<String, Reaction>, question: &Question) -> Result<Raw, Error> {
    let params: Value = serde_json::from_str(question.params.get()).unwrap_or_default();
    let messages = messages(question.method, &params);
    let mut names = question.key.as_deref().into_iter().chain(messages.iter().copied());
    let Some(reaction) = names.find_map(|it| answers.get(it)) else {
        let known: Vec<_> = answers.keys().map(|it| format!("{it:?}")).collect();
        let asked = question.key.as_ref().map(|it| format!(" (key {it:?})")).unwrap_or_default();
        let problem = format!(
            "there is no answer for {:?}{asked}; there are answers for {}",
            messages.first().copied().unwrap_or_default(),
            known.join(", ")
        );
        return Err(Error::new(ErrorKind::Misuse, problem));
    };
    let answer = match reaction {
        Reaction::Answers(answer) => answer,
        Reaction::Declines => return Err(Error::new(ErrorKind::Declined, "the user declined")),
        Reaction::Cancels => return Err(Error::new(ErrorKind::Cancelled, "the user cancelled")),
    };
    let result = match question.method {
        Method::Elicit => elicited(&params, answer),
        Method::CreateMessage => sampled(answer),
        _ => rooted(answer),
    };
    Ok(raw_json::to_raw(&result))
}

/// Returns the texts, other than its key, that identify a question.
fn messages(method: Method, params: &Value) -> Vec<&str> {
    match method {
        Method::Elicit => params["message"].as_str().into_iter().collect(),
        Method::CreateMessage => {
            let said = params["messages"].as_array().into_iter().flatten().rev();
            said.filter_map(|it| it["content"]["text"].as_str()).collect()
        }
        _ => vec!["roots"],
    }
}

fn elicited(params: &Value, answer: &Value) -> Value {
    if params["mode"] == "url" {
        let action = if *answer == Value::Bool(false) { "decline" } else { "accept" };
        return json!({ "action": action });
    }
    let fields = params["requestedSchema"]["properties"].as_object();
    let mut names = fields.into_iter().flat_map(|it| it.keys());
    match (answer.is_object(), names.next(), names.next()) {
        // Such a form has no fields: it asks only for consent.
        (false, None, None) if *answer == Value::Bool(true) => json!({"action": "accept"}),
        (false, None, None) if *answer == Value::Bool(false) => json!({"action": "decline"}),
        (false, Some(only), None) => json!({"action": "accept", "content": {only: answer}}),
        _ => json!({"action": "accept", "content": answer}),
    }
}

fn sampled(answer: &Value) -> Value {
    match answer {
        Value::String(text) => json!({
            "role": "assistant", "model": "unknown", "stopReason": "endTurn",
            "content": {"type": "text", "text": text},
        }),
        whole => whole.clone(),
    }
}

fn rooted(answer: &Value) -> Value {
    let roots = answer.as_array().into_iter().flatten().map(|it| match it {
        Value::String(uri) => json!({ "uri": uri }),
        root => root.clone(),
    });
    json!({ "roots": roots.collect::<Vec<_>>() })
}
