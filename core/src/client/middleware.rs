//! Middleware of a client: functions that run around its requests.

use std::{
    fmt,
    sync::{Arc, Mutex},
};

use serde_json::Value;

use super::{
    CallOptions, Client, Operation, OperationReply, connected::lock, connection::BoxFuture,
    params::with_meta,
};
use crate::{
    error::{Error, ErrorKind},
    peer::Round,
    protocol::{Method, Raw, json},
    router::MethodFilter,
};

/// A request of a client, as its middleware sees it.
#[derive(Clone, Debug)]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub struct Request {
    /// The method, such as `tools/call`.
    pub method: String,
    /// The params as an object, in the newest revision's form.
    pub params: Value,
}

/// The remaining middleware and the request itself. Clones allow to send the request again.
#[derive(Clone)]
pub struct Next {
    chain: Arc<Chain>,
    at: usize,
}

type Layer = dyn Fn(Request, Next) -> BoxFuture<Result<Value, Error>> + Send + Sync;

/// The middleware of a client in order of registration, outermost first.
#[derive(Clone, Default)]
pub(super) struct Stack(Vec<(MethodFilter, Arc<Layer>)>);

/// An operation on its way through middleware.
struct Chain {
    layers: Vec<Arc<Layer>>,
    client: Client,
    operation: Operation,
    options: CallOptions,
    /// The request that was sent last, and its result.
    sent: Mutex<Option<Sent>>,
}

struct Sent {
    operation: Operation,
    result: Raw,
    /// The result as middleware received it.
    given: Value,
}

impl Next {
    /// Runs the remaining middleware and sends the request. Returns the complete result as JSON, in the newest revision's
    /// form: a list has the entries of all pages, and a failed tool call is a result with `isError`.
    ///
    /// # Errors
    /// Returns the errors of the request, and [`ErrorKind::Misuse`] if the changed params are not valid for the method.
    pub async fn run(self, request: Request) -> Result<Value, Error> {
        let Self { chain, at } = self;
        match chain.layers.get(at) {
            Some(layer) => {
                let layer = Arc::clone(layer);
                layer(request, Self { chain, at: at + 1 }).await
            }
            None => chain.send(&request).await,
        }
    }
}

impl Stack {
    pub(super) fn push<F, Answering>(&mut self, methods: Vec<String>, middleware: F)
    where
        F: Fn(Request, Next) -> Answering + Send + Sync + 'static,
        Answering: Future<Output = Result<Value, Error>> + Send + 'static,
    {
        let layer = move |request, next| -> BoxFuture<_> { Box::pin(middleware(request, next)) };
        self.0.push((MethodFilter::new(methods), Arc::new(layer)));
    }

    /// Returns whether middleware runs around requests of this method.
    pub(super) fn applies(&self, method: &str) -> bool {
        self.0.iter().any(|(methods, _)| methods.contains(method))
    }

    fn layers(&self, method: &str) -> Vec<Arc<Layer>> {
        let wanted = self.0.iter().filter(|(methods, _)| methods.contains(method));
        wanted.map(|(_, layer)| Arc::clone(layer)).collect()
    }
}

impl Chain {
    async fn send(&self, request: &Request) -> Result<Value, Error> {
        let params = json::to_raw(&request.params);
        let (operation, meta) = self.operation.with_params(&params)?;
        let options = CallOptions { meta, ..self.options.clone() };
        let result = self.client.send(&operation, options).await?;
        let given: Value = crate::peer::read(operation.method(), &result)?;
        *lock(&self.sent) = Some(Sent { operation, result, given: given.clone() });
        Ok(given)
    }
}

impl Client {
    /// Performs an operation inside the middleware.
    pub(super) async fn call_through(
        &self,
        operation: Operation,
        options: CallOptions,
    ) -> Result<OperationReply, Error> {
        let method = operation.method().to_owned();
        let params = with_meta(&operation.params()?, options.meta.as_ref());
        let params =
            serde_json::from_str(&params).map_err(|error| Error::misuse(error.to_string()))?;
        let layers = self.middleware.layers(&method);
        let (client, sent) = (self.clone(), Mutex::default());
        let chain = Arc::new(Chain { layers, client, operation, options, sent });
        let next = Next { chain: Arc::clone(&chain), at: 0 };
        let result = next.run(Request { method, params }).await?;
        let (operation, result) = match lock(&chain.sent).take() {
            // The text of a result that was not changed has its numbers as the server sent them.
            Some(sent) if sent.given == result => (sent.operation, sent.result),
            Some(sent) => (sent.operation, json::to_raw(&result)),
            None => (chain.operation.clone(), json::to_raw(&result)),
        };
        self.receive(&operation, &result, chain.options.raise_on_error)
    }

    /// Performs an operation without middleware. Returns the result of the protocol, which may be one with `isError`.
    async fn send(&self, operation: &Operation, options: CallOptions) -> Result<Raw, Error> {
        let options = CallOptions { raise_on_error: false, ..options };
        let reply = self.reconnecting.perform(operation.clone(), options).await?;
        Ok(operation.to_result(&reply.result))
    }

    /// Reads the result that middleware returned for an operation.
    fn receive(
        &self,
        operation: &Operation,
        result: &Raw,
        raises_on_error: bool,
    ) -> Result<OperationReply, Error> {
        let connected = self.connected();
        let name = |error| connected.name(error);
        let result = operation.of_result(result).map_err(name)?;
        let (Operation::CallTool { name: tool, .. } | Operation::CallToolRound { name: tool, .. }) =
            operation
        else {
            return Ok(result.into());
        };
        let is_round = matches!(operation, Operation::CallToolRound { .. });
        let method = Method::CallTool.as_str();
        if is_round && Round::read(method, &result).map_err(name)?.is_some() {
            return Ok(OperationReply { is_input_required: true, ..result.into() });
        }
        let read = connected.with_tools(|tools| tools.read_result(tool, &result)).map_err(name)?;
        if let Some(message) = read.failure.filter(|_| raises_on_error) {
            let error = Error::new(ErrorKind::Tool, message);
            return Err(name(error.with(|details| details.data = Some(result))));
        }
        Ok(OperationReply { result, data: read.data, is_input_required: false })
    }
}

impl fmt::Debug for Next {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Next").field("at", &self.at).finish_non_exhaustive()
    }
}

impl fmt::Debug for Stack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stack").field("layers", &self.0.len()).finish()
    }
}
