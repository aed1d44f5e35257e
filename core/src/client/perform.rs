//! Performs operations over an open connection: the requests, pages, rounds of questions and checks that one needs.

use super::{
    CallOptions, Operation, OperationReply,
    connected::Connected,
    connection::Question,
    params::{tool_params, with_meta},
    running_call::RunningCall,
};
use crate::{
    error::{Error, ErrorKind},
    peer::{self, KnownTools, Round, ToolData},
    protocol::{Method, MethodName, Raw, code, json},
    session::client::{Change, ListKind as ChangedList},
    transport::off_thread::{LARGE, off_thread, off_thread_if_large},
};

/// The maximum size of a value in bytes that is checked against a quick schema on the thread of all connections. Moving it to
/// another thread takes as long as the check of a string of this size.
const MAX_CHECKED_HERE: usize = 2 * LARGE;

/// A request whose result can contain questions.
#[derive(Clone, Copy)]
enum Asked<'a> {
    Tool(&'a str),
    Other(Method),
}

impl Asked<'_> {
    fn method(self) -> Method {
        match self {
            Self::Tool(_) => Method::CallTool,
            Self::Other(method) => method,
        }
    }
}

impl Connected {
    /// Performs an operation once.
    pub(super) async fn perform(
        &self,
        operation: &Operation,
        options: CallOptions,
    ) -> Result<OperationReply, Error> {
        let outcome = self.run(operation, &RunningCall::begin(options)).await;
        outcome.map_err(|error| {
            if error.code == Some(code::INVALID_PARAMS) {
                self.known.forget_results(operation.lists());
            }
            self.name_subject(error, operation)
        })
    }

    async fn run(
        &self,
        operation: &Operation,
        call: &RunningCall,
    ) -> Result<OperationReply, Error> {
        match operation {
            Operation::List(kind) => {
                let (items, bytes) = self.list_all(*kind, call).await?;
                Ok(off_thread_if_large(bytes, move || json::to_raw(&items)).await.into())
            }
            Operation::ListPage(kind, cursor) => self.fetch_page(*kind, cursor.clone(), call).await,
            Operation::CallTool { name, arguments } => {
                self.run_tool(name, arguments.as_ref(), call).await
            }
            Operation::CallToolRound { name, .. } => {
                let result = self.send_call(name, &operation.params()?, call).await?;
                if Round::read(Method::CallTool.as_str(), &result)?.is_some() {
                    return Ok(OperationReply { is_input_required: true, ..result.into() });
                }
                call.restart();
                self.read_result(name, result, call).await
            }
            Operation::ReadResource { .. } => {
                self.read_resource(&operation.params()?, call).await.map(Into::into)
            }
            Operation::GetPrompt { .. } => {
                let what = Asked::Other(Method::GetPrompt);
                self.rounds(what, &operation.params()?, call).await.map(Into::into)
            }
            Operation::Complete { .. } => {
                let result = self.send(Method::Complete, &operation.params()?, call).await?;
                operation.of_result(&result).map(Into::into).map_err(|error| self.name(error))
            }
            Operation::SetLogLevel(_) | Operation::Ping | Operation::Request { .. } => {
                let method = MethodName::parse(operation.method());
                self.send(method, &operation.params()?, call).await.map(Into::into)
            }
        }
    }

    async fn run_tool(
        &self,
        name: &str,
        arguments: Option<&Raw>,
        call: &RunningCall,
    ) -> Result<OperationReply, Error> {
        if self.validate {
            self.list_tools_once(name, call).await;
            let given = arguments.map_or("{}", |arguments| arguments.get());
            self.check_arguments(name, given, call).await.map_err(|error| self.name(error))?;
        }
        let params = tool_params(name, arguments);
        let result = self.rounds(Asked::Tool(name), &params, call).await?;
        if call.is_passed_on() {
            return Ok(result.into());
        }
        call.restart();
        self.read_result(name, result, call).await
    }

    /// Processes a tool's final result.
    async fn read_result(
        &self,
        name: &str,
        result: Raw,
        call: &RunningCall,
    ) -> Result<OperationReply, Error> {
        let read = |tools: &mut KnownTools| tools.read_result(name, &result);
        let mut verdict = self.with_tools(read).map_err(|error| self.name(error))?;
        if verdict.needs_schema {
            self.list_tools_once(name, call).await;
            verdict = self.with_tools(read).map_err(|error| self.name(error))?;
        }
        if let Some(message) = verdict.failure.filter(|_| call.raises_on_error()) {
            let error = Error::new(ErrorKind::Tool, message);
            return Err(self.name(error.with(|details| details.data = Some(result))));
        }
        let size = match &verdict.data {
            Some(ToolData::Structured { range, .. }) => range.len(),
            Some(ToolData::Text(_)) | None => 0,
        };
        match self.check_result(name, &result, size, call).await {
            Ok(()) => (),
            Err(error) if error.kind == ErrorKind::Timeout => return Err(self.name(error)),
            Err(_) => {
                // The tool may have changed since it was listed.
                self.known.changed(&Change::List(ChangedList::Tools));
                self.list_tools_once(name, call).await;
                if let Err(error) = self.check_result(name, &result, size, call).await {
                    if call.raises_on_error() || error.kind == ErrorKind::Timeout {
                        return Err(self.name(error));
                    }
                    tracing::warn!(%error, "a result is returned although it does not fit");
                }
            }
        }
        Ok(OperationReply { result, data: verdict.data, is_input_required: false })
    }

    /// Checks a tool's result, whose data has this size in bytes.
    async fn check_result(
        &self,
        name: &str,
        result: &Raw,
        size: usize,
        call: &RunningCall,
    ) -> Result<(), Error> {
        let Some(schema) = self.with_tools(|tools| tools.output_schema(name)) else {
            return Ok(());
        };
        let may_be_text = !self.connection.describe().spoken().has_structured_content();
        if schema.is_quick() && size <= MAX_CHECKED_HERE {
            return peer::check_result(name, &schema, result, may_be_text);
        }
        let (name, result) = (name.to_owned(), result.clone());
        let check = off_thread(move || peer::check_result(&name, &schema, &result, may_be_text));
        in_time(check, call).await
    }

    async fn check_arguments(
        &self,
        name: &str,
        given: &str,
        call: &RunningCall,
    ) -> Result<(), Error> {
        let Some(schema) = self.with_tools(|tools| tools.input_schema(name)) else { return Ok(()) };
        if schema.is_quick() && given.len() <= MAX_CHECKED_HERE {
            return peer::check_arguments(name, &schema, given);
        }
        let (name, given) = (name.to_owned(), given.to_owned());
        let check = off_thread(move || peer::check_arguments(&name, &schema, &given));
        in_time(check, call).await
    }

    /// Sends `tools/call`, with the headers that repeat its arguments if the transport uses them.
    async fn send_call(&self, name: &str, params: &str, call: &RunningCall) -> Result<Raw, Error> {
        if !self.connection.mirrors() {
            return self.send(Method::CallTool, params, call).await;
        }
        self.list_tools_once(name, call).await;
        self.with_tools(|tools| tools.check_mirrored(name, params))
            .map_err(|error| self.name(error))?;
        match self.send(Method::CallTool, params, call).await {
            // Streamable HTTP, "Client Behavior": the tool may have changed since it was listed.
            Err(error) if error.code == Some(code::HEADER_MISMATCH) => {
                self.known.changed(&Change::List(ChangedList::Tools));
                self.list_tools_once(name, call).await;
                self.send(Method::CallTool, params, call).await
            }
            outcome => outcome,
        }
    }

    async fn send_round(
        &self,
        what: Asked<'_>,
        params: &str,
        call: &RunningCall,
    ) -> Result<Raw, Error> {
        match what {
            Asked::Tool(name) => self.send_call(name, params, call).await,
            Asked::Other(method) => self.send(method, params, call).await,
        }
    }

    /// Reads a resource. The result of a read in which the server asked questions is not cached.
    async fn read_resource(&self, params: &str, call: &RunningCall) -> Result<Raw, Error> {
        let what = Asked::Other(Method::ReadResource);
        let (result, _) = self.send_or_reuse(Method::ReadResource, params, call).await?;
        self.answer_rounds(what, params, result, call).await
    }

    /// Sends a request, answers its questions and repeats it until the result is final.
    async fn rounds(
        &self,
        what: Asked<'_>,
        params: &str,
        call: &RunningCall,
    ) -> Result<Raw, Error> {
        let result = self.send_round(what, params, call).await?;
        self.answer_rounds(what, params, result, call).await
    }

    /// Answers the questions in the result of a request, and repeats the request until the result is final.
    async fn answer_rounds(
        &self,
        what: Asked<'_>,
        params: &str,
        mut result: Raw,
        call: &RunningCall,
    ) -> Result<Raw, Error> {
        let method = what.method();
        for _ in 0..self.max_rounds {
            let round = Round::read(method.as_str(), &result).map_err(|error| self.name(error))?;
            let Some(round) = round else { return Ok(result) };
            let questions: Vec<_> = round.questions.iter().map(Question::from).collect();
            let asked = async {
                match call.questioner() {
                    None => self.questions.answer_all(questions).await,
                    Some(answer) => answer(questions).await,
                }
            };
            let answers = tokio::select! {
                answers = asked => answers,
                // With the connection gone no answers can be sent, so the request's own error is the outcome.
                () = self.connection.disconnected() => return self.send(method, params, call).await,
                error = call.expired(method) => return Err(self.name(error)),
            };
            call.restart();
            let params = round.params(params, &answers.map_err(|error| self.name(error))?);
            result = self.send_round(what, &params, call).await?;
        }
        if Round::read(method.as_str(), &result).map_err(|error| self.name(error))?.is_none() {
            return Ok(result);
        }
        let limit = self.max_rounds;
        let message =
            format!("{}: the server still asks questions after {limit} rounds", method.as_str());
        let error = Error::new(ErrorKind::Protocol, message);
        Err(self.name(error.limited_by("max_rounds")))
    }

    /// Sends a request, unless a cached result is still fresh; returns the result, and whether it was cached.
    pub(super) async fn send_or_reuse(
        &self,
        method: Method,
        params: &str,
        call: &RunningCall,
    ) -> Result<(Raw, bool), Error> {
        let send = self.send(method, params, call);
        // The server may take `_meta` into account.
        match self.connection.describe().spoken().is_stateless && call.meta().is_none() {
            true => self.known.fresh_or(method, params, send).await,
            false => Ok((send.await?, false)),
        }
    }

    async fn send(
        &self,
        method: impl Into<MethodName>,
        params: &str,
        call: &RunningCall,
    ) -> Result<Raw, Error> {
        let (method, params): (MethodName, _) = (method.into(), with_meta(params, call.meta()));
        let standard = match &method {
            MethodName::Standard(method) => Some(*method),
            MethodName::Vendor(_) => None,
        };
        let result = self.connection.request(method, params, call.settings()).await?;
        match standard {
            Some(method) if result.get().len() > LARGE => self.check_objects(method, result).await,
            _ => Ok(result),
        }
    }

    /// Names the tool, resource or prompt in the error of an expired time limit; the session knows only the method.
    fn name_subject(&self, mut error: Error, operation: &Operation) -> Error {
        let target = self.connection.target();
        if error.kind == ErrorKind::Timeout
            && let beginning = format!("{target}: {}", operation.method())
            && let Some(rest) = error.message.strip_prefix(&beginning)
        {
            error.message = format!("{target}: {}{rest}", operation.subject());
        }
        error
    }

    /// Adds the target's name to an error.
    pub(super) fn name(&self, mut error: Error) -> Error {
        let target = self.connection.target();
        if error.kind == ErrorKind::Timeout {
            error.message = format!("{target}: {}", error.message);
        }
        error.target.get_or_insert_with(|| target.to_string());
        error.in_phase("call")
    }
}

/// Waits for a check within the time limits of the call. A check that takes longer ends on its own thread; its outcome is dropped.
async fn in_time(
    check: impl Future<Output = Result<(), Error>>,
    call: &RunningCall,
) -> Result<(), Error> {
    tokio::select! {
        biased;
        checked = check => checked,
        error = call.timed_out(Method::CallTool) => Err(error),
    }
}
