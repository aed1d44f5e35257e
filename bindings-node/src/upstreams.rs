//! The upstream servers of a JavaScript server: how they are served, and what their clients ask the program.

use std::{
    fmt,
    os::{
        fd::{IntoRawFd, OwnedFd},
        unix::net::UnixStream,
    },
    sync::{Arc, Weak},
};

use gudgeon::{
    bindings::{
        client_settings::ClientSettings,
        upstreams::{AskProgram, SignInQuestion, outcome_json},
    },
    client::ClientBuilder,
    driver::{Host, Work, boxed},
    engine::RunId,
    error::Error,
    router::{Handler, Visibility, find_resource},
    server::native_subject,
};
use napi::{
    Env, JsDeferred, Status,
    bindgen_prelude::{Function, Object},
    threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode},
};
use napi_derive::napi;

use crate::{
    client::{no_runtime, runtime},
    error::misuse,
    shared::{Shared, lock},
    work_queue::{NativeWorkQueue, integer},
};

/// The value that a promise is settled with, on the event loop.
type Settle<T> = Box<dyn FnOnce(Env) -> napi::Result<T> + Send>;

/// Calls JavaScript; it does not keep the process alive.
type Ask = ThreadsafeFunction<NativeSignInQuestion, (), NativeSignInQuestion, Status, false, true>;

type Connect = ThreadsafeFunction<NativeConnection, (), NativeConnection, Status, false, true>;

/// A question of the client of an upstream server to the program, which helps it to sign in.
#[napi]
pub struct NativeSignInQuestion {
    /// `None` once it was answered.
    question: Option<SignInQuestion>,
}

#[napi]
impl NativeSignInQuestion {
    /// Returns the operation that the client needs, JSON.
    #[napi(catch_unwind)]
    pub fn params(&self) -> String {
        self.question.as_ref().map_or_else(String::new, |question| question.params().to_owned())
    }

    /// Answers with JSON. Returns the reason if the value is not an answer.
    #[napi(catch_unwind)]
    pub fn answer(&mut self, given: String) -> Option<String> {
        self.question.take()?.answer(given.as_bytes())
    }

    /// Refuses; the reason is `{"kind", "message", "code"?, "data"?}` or `{"name"}`.
    #[napi(catch_unwind)]
    pub fn refuse(&mut self, reason: String) {
        if let Some(question) = self.question.take() {
            question.refuse(reason.as_bytes());
        }
    }
}

/// A connection of a client that the program serves: a file descriptor that it owns, and the origin of the URLs.
#[napi(object, object_from_js = false)]
#[derive(Debug)]
pub struct NativeConnection {
    pub fd: i32,
    pub origin: String,
}

#[napi]
impl NativeWorkQueue {
    /// Reaches the upstream servers, and runs the handlers of what they offer. Resolves once they were tried, or after a while;
    /// null if there are none.
    #[napi(catch_unwind, ts_return_type = "Promise<void> | null")]
    pub fn reach_upstreams<'env>(&self, env: &'env Env) -> napi::Result<Option<Object<'env>>> {
        let components = self.shared().components.clone();
        let Some(io) = self.shared().io() else { return Ok(None) };
        if components.upstreams().mounted().is_empty() {
            return Ok(None);
        }
        let runtime = runtime().map_err(no_runtime)?;
        let host = Arc::new(UpstreamHost(Arc::downgrade(self.shared())));
        let serving = components.upstreams().serve(io.endpoint(), host, runtime.handle());
        *lock(&self.shared().upstream_serving) = serving;
        let (deferred, promise): (JsDeferred<(), Settle<()>>, _) = env.create_deferred()?;
        runtime.spawn(boxed(async move {
            components.upstreams().reach(&components.registrar()).await;
            io.upstreams_were_tried();
            deferred.resolve(Box::new(|_| Ok(())));
        }));
        Ok(Some(promise))
    }

    /// Returns the registration of the native handler that the middleware of a call runs around: its kind, its key in the server
    /// that it belongs to (of a template empty), and the argument of a completion; null if there is none.
    #[napi(catch_unwind)]
    pub fn native_subject(&self, slot: f64) -> Option<Vec<String>> {
        let batches = lock(&self.shared().batches);
        let subject = native_subject(batches.native_handler(integer(slot))?)?;
        Some(vec![subject.kind.to_owned(), subject.key.clone(), subject.argument.clone()])
    }

    /// Passes a call on to the native handler that its middleware runs around, with this input, JSON. Resolves with the result
    /// and the failure, JSON, one of which is null.
    #[napi(catch_unwind, ts_return_type = "Promise<[string | null, string | null]>")]
    pub fn pass_on<'env>(
        &self,
        env: &'env Env,
        slot: f64,
        input: String,
    ) -> napi::Result<Object<'env>> {
        let handler = lock(&self.shared().batches).native_handler(integer(slot)).cloned();
        self.run_natively(env, integer(slot), handler.as_ref(), input)
    }

    /// Reads a resource of an upstream server within a call. Resolves as `passOn`; null if none has this URI.
    #[napi(catch_unwind, ts_return_type = "Promise<[string | null, string | null]> | null")]
    pub fn read_upstream<'env>(
        &self,
        env: &'env Env,
        slot: f64,
        uri: String,
    ) -> napi::Result<Option<Object<'env>>> {
        let components = self.shared().components.components();
        let found = find_resource(&components, uri, &Visibility::everything()).ok();
        match found.filter(|job| native_subject(&job.handler).is_some()) {
            None => Ok(None),
            Some(job) => {
                self.run_natively(env, integer(slot), Some(&job.handler), job.input).map(Some)
            }
        }
    }
}

impl NativeWorkQueue {
    /// Runs a native handler within the run of a call. Resolves with its result and its failure, JSON, one of which is null.
    fn run_natively<'env>(
        &self,
        env: &'env Env,
        slot: u64,
        handler: Option<&Handler>,
        input: String,
    ) -> napi::Result<Object<'env>> {
        let context = lock(&self.shared().batches).context(slot).cloned();
        let serving = lock(&self.shared().upstream_serving);
        let (Some(context), Some(handler), Some(serving)) = (context, handler, &*serving) else {
            return Err(misuse(Error::misuse("nothing is passed on after the call has ended")));
        };
        let (deferred, promise) =
            env.create_deferred::<Vec<Option<String>>, Settle<Vec<Option<String>>>>()?;
        let done = Box::new(move |outcome| {
            let (result, failure) = outcome_json(outcome);
            deferred.resolve(Box::new(|_| Ok(vec![result, failure])));
        });
        serving.native().pass_on(RunId(slot), context, handler, input, done);
        Ok(promise)
    }
}

/// Returns the function that passes questions to JavaScript.
pub(crate) fn asking(ask: &Function<'_, NativeSignInQuestion, ()>) -> napi::Result<AskProgram> {
    let ask: Ask = ask.build_threadsafe_function().weak::<true>().build()?;
    Ok(Arc::new(move |question| {
        let question = NativeSignInQuestion { question: Some(question) };
        ask.call(question, ThreadsafeFunctionCallMode::NonBlocking);
    }))
}

/// Returns the change of a client by which the program serves its connections, where the settings say so.
pub(crate) fn connecting(
    settings: &ClientSettings,
    connect: &Function<'_, NativeConnection, ()>,
) -> napi::Result<impl Fn(ClientBuilder) -> ClientBuilder + Send + Sync + 'static> {
    let connect = match settings.has("fetch") {
        true => {
            let connect: Connect = connect.build_threadsafe_function().weak::<true>().build()?;
            Some(Arc::new(connect))
        }
        false => None,
    };
    Ok(move |builder: ClientBuilder| {
        let Some(connect) = connect.clone() else { return builder };
        builder.connected_by(move |url| {
            let (ours, theirs) = UnixStream::pair()?;
            let connection =
                NativeConnection { fd: OwnedFd::from(theirs).into_raw_fd(), origin: url.origin() };
            connect.call(connection, ThreadsafeFunctionCallMode::NonBlocking);
            Ok(ours)
        })
    })
}

/// Does the work that comes of native handlers.
struct UpstreamHost(Weak<Shared>);

impl Host for UpstreamHost {
    fn perform(&self, work: Work) {
        let Some(shared) = self.0.upgrade() else { return };
        shared.push(work);
        if let Some(io) = shared.io() {
            io.flush();
        }
    }
}

impl fmt::Debug for NativeSignInQuestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NativeSignInQuestion").finish_non_exhaustive()
    }
}
