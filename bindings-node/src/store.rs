//! Stores of a JavaScript program. They run on the event loop.

use std::{fmt, sync::Arc};

use gudgeon::{
    bindings::{
        host_store::HostStore,
        store,
        store_object::{MessageFeed, StoreObject},
    },
    replier::Replier,
    store::{StoreOperation, StoreReply},
    testing,
};
use napi::{
    Env, Status,
    bindgen_prelude::{Function, Object, Uint8Array},
    threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode},
};
use napi_derive::napi;

use crate::client::promise;

/// Calls JavaScript; it does not keep the process alive.
type Call = ThreadsafeFunction<NativeStoreCall, (), NativeStoreCall, Status, false, true>;

/// Passes operations and subscriptions to JavaScript.
pub(crate) struct NodeStore(Call);

impl NodeStore {
    pub(crate) fn new(call: &Function<'_, NativeStoreCall, ()>) -> napi::Result<Self> {
        call.build_threadsafe_function().weak::<true>().build().map(Self)
    }

    fn call(&self, operation: String, place: Place) {
        let call = NativeStoreCall { operation, place };
        self.0.call(call, ThreadsafeFunctionCallMode::NonBlocking);
    }
}

impl StoreObject for NodeStore {
    fn run(&self, operation: StoreOperation, reply: Replier<StoreReply>) {
        let place = Place::Reply(operation.name(), reply);
        self.call(store::operation(&operation), place);
    }

    fn subscribe(&self, number: u64, topics: Vec<String>, feed: MessageFeed) {
        self.call(store::subscribe(number, &topics), Place::Messages(feed));
    }

    fn unsubscribe(&self, number: u64) {
        self.call(store::unsubscribe(number), Place::Nothing);
    }
}

impl fmt::Debug for NodeStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NodeStore")
    }
}

/// An operation on the program's store, or the beginning or end of a subscription.
#[napi]
#[derive(Debug)]
pub struct NativeStoreCall {
    operation: String,
    place: Place,
}

/// The place for what the store's method returns.
#[derive(Debug)]
enum Place {
    Reply(&'static str, Replier<StoreReply>),
    Messages(MessageFeed),
    Nothing,
}

#[napi]
impl NativeStoreCall {
    /// Returns the operation as JSON.
    #[napi(catch_unwind)]
    pub fn operation(&self) -> String {
        self.operation.clone()
    }

    /// Sends what the method returned, as JSON.
    #[napi(catch_unwind)]
    pub fn reply(&mut self, reply: String) {
        if let Place::Reply(name, sender) = std::mem::replace(&mut self.place, Place::Nothing) {
            sender.send(store::reply(name, reply.as_bytes()));
        }
    }

    /// Says that all messages from now on come.
    #[napi(catch_unwind)]
    pub fn connected(&self) {
        if let Place::Messages(feed) = &self.place {
            feed.connected();
        }
    }

    /// Passes a message on.
    #[napi(catch_unwind)]
    pub fn message(&self, topic: String, message: Uint8Array) {
        if let Place::Messages(feed) = &self.place {
            feed.message(topic, message.to_vec());
        }
    }

    /// Says that no more messages come. Returns `true` if that is to be reported.
    #[napi(catch_unwind)]
    pub fn close(&mut self) -> bool {
        match std::mem::replace(&mut self.place, Place::Nothing) {
            Place::Messages(feed) => feed.is_first_failure(),
            _ => false,
        }
    }
}

/// Checks a store, an object with these methods. Returns a promise, which is rejected with the first rule that it does not keep.
#[napi(
    catch_unwind,
    ts_args_type = "call: (call: NativeStoreCall) => void, methods: Array<string>",
    ts_return_type = "Promise<void>"
)]
#[cfg_attr(test, allow(dead_code, reason = "only JavaScript calls it"))]
pub(crate) fn check_store<'env>(
    env: &'env Env,
    call: Function<'_, NativeStoreCall, ()>,
    methods: Vec<String>,
) -> napi::Result<Object<'env>> {
    let store = HostStore::from_object(Arc::new(NodeStore::new(&call)?), methods);
    promise(env, Box::pin(async move { testing::check_engine(store.engine(), "checkStore").await }))
}
