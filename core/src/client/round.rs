//! Rounds of questions driven by the caller, whose answers may come later and from another process.

use serde::Serialize;

use super::{Client, Operation, ToolResult, object};
use crate::{error::Error, peer, protocol::InputRequiredResult};

/// The outcome of a round.
#[derive(Clone, Debug)]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub enum ToolRound {
    /// The final result.
    Done(ToolResult),
    /// Questions to answer in the next round, by key, together with the returned state.
    InputRequired(InputRequiredResult),
}

impl Client {
    /// Calls a tool for a single round and returns the server's questions instead of answering them.
    ///
    /// `answers` maps question keys to results as on the wire, `state` is the one of the previous round; pass `()`
    /// and `None` in the first round. Spec: Base Protocol › Patterns › Multi Round-Trip Requests (2026-07-28).
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
    /// let client =
    ///     Client::builder(&server).options(|options| options.capabilities = capabilities).connect().await?;
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
    /// Errors as [`Client::call_tool`] does; a state that the server rejects is an error of kind
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
        let reply = self.call(operation, self.options.clone()).await?;
        if reply.is_input_required {
            return peer::read("tools/call", &reply.result).map(ToolRound::InputRequired);
        }
        ToolResult::read(&reply).map(ToolRound::Done)
    }
}
