//! Rounds of questions by hand: answers may come from another process, days later.

use serde::Serialize;

use super::{Client, Operation, ToolResult, object};
use crate::{error::Error, peer, protocol::InputRequiredResult};

/// What came of one round.
#[derive(Clone, Debug)]
pub enum ToolRound {
    /// The tool has answered.
    Done(ToolResult),
    /// The server wants answers first: give them, by the keys of its questions, to the next round, with this state.
    InputRequired(InputRequiredResult),
}

impl Client {
    /// Calls a tool for one round; the server's questions are handed out instead of answered.
    ///
    /// `answers` are results as on the wire by question key, `state` is that of the round before; `()` and `None` in the
    /// first. Spec: Base Protocol › Patterns › Multi Round-Trip Requests (2026-07-28).
    ///
    /// ```
    /// use gudgeon::{Client, Context, Server, ToolError, ask, client::ToolRound};
    /// use serde_json::json;
    ///
    /// async fn greet(ctx: Context) -> Result<String, ToolError> {
    ///     let name = ctx.elicit::<String>("Who are you?").await?;
    ///     Ok(format!("Hello, {name}!"))
    /// }
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), gudgeon::error::Error> {
    /// let mut capabilities = gudgeon::protocol::ClientCapabilities::default();
    /// capabilities.elicitation = Some(Default::default());
    /// let server = Server::new("greeter").tool("greet", greet);
    /// let client = Client::builder(&server).capabilities(capabilities).connect().await?;
    /// let first = client.call_tool_round("greet", (), (), None).await?;
    /// let ToolRound::InputRequired(asked) = first else { panic!("it asks first") };
    /// let answers = json!({"elicit-1": {"action": "accept", "content": {"value": "Eve"}}});
    /// let state = asked.request_state.as_deref();
    /// let last = client.call_tool_round("greet", (), answers, state).await?;
    /// let ToolRound::Done(result) = last else { panic!("it has its answer") };
    /// assert_eq!(result.text(), "Hello, Eve!");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Client::call_tool`]; a state that the server does not accept is one of kind
    /// [`Protocol`](crate::error::ErrorKind::Protocol).
    pub async fn call_tool_round(
        &self,
        name: &str,
        arguments: impl Serialize,
        answers: impl Serialize,
        state: Option<&str>,
    ) -> Result<ToolRound, Error> {
        let operation = Operation::CallToolRound {
            name: name.to_owned(),
            arguments: object("arguments", &arguments)?,
            answers: object("answers", &answers)?,
            state: state.map(ToOwned::to_owned),
        };
        let reply = self.call(operation, self.options()).await?;
        if reply.is_input_required {
            return peer::read("tools/call", &reply.result).map(ToolRound::InputRequired);
        }
        let result = peer::read("tools/call", &reply.result)?;
        Ok(ToolRound::Done(ToolResult { result, data: reply.data }))
    }
}
