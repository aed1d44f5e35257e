//! Stores of a JavaScript program. They run on the event loop.

use std::fmt;

use gudgeon::{
    bindings::store,
    replier::Replier,
    store::{StoreEngine, StoreOperation, StoreReply},
};
use napi::{
    Status,
    bindgen_prelude::Function,
    threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode},
};
use napi_derive::napi;

/// Calls JavaScript; it does not keep the process alive.
type Call = ThreadsafeFunction<NativeStoreCall, (), NativeStoreCall, Status, false, true>;

/// Passes operations to JavaScript.
pub(crate) struct NodeStore(Call);

impl NodeStore {
    pub(crate) fn new(call: &Function<'_, NativeStoreCall, ()>) -> napi::Result<Self> {
        call.build_threadsafe_function().weak::<true>().build().map(Self)
    }
}

impl StoreEngine for NodeStore {
    fn run(&self, operation: StoreOperation, reply: Replier<StoreReply>) {
        let call = NativeStoreCall { operation, reply: Some(reply) };
        self.0.call(call, ThreadsafeFunctionCallMode::NonBlocking);
    }
}

impl fmt::Debug for NodeStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NodeStore")
    }
}

/// An operation on the program's store.
#[napi]
#[derive(Debug)]
pub struct NativeStoreCall {
    operation: StoreOperation,
    /// `None` once it was sent.
    reply: Option<Replier<StoreReply>>,
}

#[napi]
impl NativeStoreCall {
    /// Returns the operation as JSON.
    #[napi(catch_unwind)]
    pub fn operation(&self) -> String {
        store::operation(&self.operation)
    }

    /// Sends what the method returned, as JSON.
    #[napi(catch_unwind)]
    pub fn reply(&mut self, reply: String) {
        if let Some(sender) = self.reply.take() {
            sender.send(store::reply(self.operation.name(), reply.as_bytes()));
        }
    }
}
