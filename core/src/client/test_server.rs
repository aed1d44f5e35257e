//! A target for users' tests: a server in memory, with prepared answers to its questions.

use std::{collections::BTreeMap, fmt, sync::Arc};

use http::HeaderMap;
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    Target,
    connection::{BoxFuture, Question},
    questions::Answerer,
    target::ServedTarget,
};
use crate::{
    engine,
    error::{Error, ErrorKind},
    protocol::{Method, Principal, Raw, json as raw_json},
    server::Server,
    session::server::HttpFacts,
};

/// A server in this process with prepared answers to its questions, as the target of a client.
///
/// [`ClientOptions::revisions`](super::ClientOptions) chooses the revision, and
/// [`ClientOptions::headers`](super::ClientOptions) sets the headers that [`Context::headers`](crate::Context::headers)
/// returns.
///
/// ```
/// use gudgeon::{Client, Context, Revision, Server, ToolError, client::TestServer};
///
/// async fn remove(ctx: Context) -> Result<&'static str, ToolError> {
///     Ok(if ctx.elicit::<bool>("Delete it?").await? { "gone" } else { "kept" })
/// }
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), gudgeon::error::Error> {
/// let server = Server::new("shelf").tool("remove", remove);
/// for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
///     let tested = TestServer::from(&server).answer("Delete it?", false).replay();
///     let client = Client::builder(tested).options(|options| options.revisions = vec![revision]).connect().await?;
///     assert_eq!(client.call_tool("remove", ()).await?.text(), "kept");
/// }
/// # Ok(())
/// # }
/// ```
#[must_use = "a test server does nothing until a client connects to it"]
pub struct TestServer<'a> {
    server: &'a Server,
    principal: Option<Arc<Principal>>,
    replays: bool,
    answers: BTreeMap<String, Value>,
}

/// Creates a target for tests of this server, without answers.
impl<'a> From<&'a Server> for TestServer<'a> {
    fn from(server: &'a Server) -> Self {
        Self { server, principal: None, replays: false, answers: BTreeMap::new() }
    }
}

impl TestServer<'_> {
    /// Sets the principal of every call, as [`Context::principal`](crate::Context::principal) returns it. Default: none.
    pub fn principal(mut self, principal: Principal) -> Self {
        self.principal = Some(Arc::new(principal));
        self
    }

    /// Sets the answer to a question, given by its key or message: the form's fields as an object, the bare value if
    /// the form has a single field, a string for the model, or a list of URIs for the roots (whose question is
    /// `roots`). A question whose answer does not fit is asked three times, then fails with the reason.
    ///
    /// An [`ElicitResult`](crate::protocol::ElicitResult) without content declines or cancels any question:
    ///
    /// ```
    /// # use gudgeon::{Server, client::TestServer, protocol::{ElicitAction, ElicitResult}};
    /// # let server = Server::new("shelf");
    /// let tested = TestServer::from(&server).answer("Delete it?", ElicitResult::new(ElicitAction::Decline, None));
    /// ```
    ///
    /// # Panics
    /// Panics if the answer can't be serialized as JSON.
    pub fn answer(mut self, question: impl Into<String>, answer: impl Serialize) -> Self {
        let answer = serde_json::to_value(answer).expect("the answer can't be serialized as JSON");
        self.answers.insert(question.into(), answer);
        self
    }

    /// Discards suspended handlers between rounds, so that each is replayed from the start with all answers. Before
    /// 2026-07-28 questions are separate requests, and nothing is replayed.
    pub fn replay(mut self) -> Self {
        self.replays = true;
        self
    }
}

impl From<TestServer<'_>> for Target {
    fn from(TestServer { server, principal, replays, answers }: TestServer<'_>) -> Self {
        let open = server.in_memory(Some(engine::TestMode { replays, state_key: None }));
        let answers = Arc::new(answers);
        let answerer = (!answers.is_empty()).then(|| -> Answerer {
            Arc::new(move |question| -> BoxFuture<Result<Raw, Error>> {
                let answers = Arc::clone(&answers);
                Box::pin(async move { answer(&answers, &question) })
            })
        });
        let open = |headers: HeaderMap| {
            let has_facts = principal.is_some() || !headers.is_empty();
            open(has_facts.then(|| HttpFacts { headers, principal, ..HttpFacts::default() }))
        };
        Self::Served(ServedTarget { answerer, takes_headers: true, open: Box::new(open) })
    }
}

impl fmt::Debug for TestServer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestServer").field("principal", &self.principal).finish_non_exhaustive()
    }
}

fn answer(answers: &BTreeMap<String, Value>, question: &Question) -> Result<Raw, Error> {
    let params: Value = serde_json::from_str(question.params.get()).unwrap_or_default();
    let messages = messages(question.method, &params);
    let mut names = question.key.as_deref().into_iter().chain(messages.iter().copied());
    let Some(answer) = names.find_map(|name| answers.get(name)) else {
        let known: Vec<_> = answers.keys().map(|name| format!("{name:?}")).collect();
        let asked = question.key.as_ref().map(|key| format!(" (key {key:?})")).unwrap_or_default();
        let problem = format!(
            "there is no answer for {:?}{asked}; there are answers for {}",
            messages.first().copied().unwrap_or_default(),
            known.join(", ")
        );
        return Err(Error::new(ErrorKind::Misuse, problem));
    };
    if *answer == json!({ "action": "decline" }) {
        return Err(Error::new(ErrorKind::Declined, "the user declined"));
    }
    if *answer == json!({ "action": "cancel" }) {
        return Err(Error::new(ErrorKind::Cancelled, "the user cancelled"));
    }
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
            said.filter_map(|message| message["content"]["text"].as_str()).collect()
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
    let mut names = fields.into_iter().flat_map(|fields| fields.keys());
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
    let roots = answer.as_array().into_iter().flatten().map(|value| match value {
        Value::String(uri) => json!({ "uri": uri }),
        root => root.clone(),
    });
    json!({ "roots": roots.collect::<Vec<_>>() })
}
