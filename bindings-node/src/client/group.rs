//! Groups of clients.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use gudgeon::{
    bindings::{
        client_group::{errors, find_now, perform, subscribe},
        client_middleware::with_ticket,
        group_targets::{self, Targets},
        subscriptions::OpenSubscriptions,
    },
    client::{ClientGroup, Member, describe},
    driver::{Boxed, boxed},
    error::{Error, Language},
};
use napi::{
    Env,
    bindgen_prelude::{Buffer, Either, Object, Unknown},
};
use napi_derive::napi;

use super::{
    NativeClient, no_runtime, refused_value, runtime, subscriptions::to_json, thrown::error_json,
};
use crate::{error::misuse, options::Js};

/// The clients of a group, each of which was connected or tried to.
#[napi]
#[derive(Debug)]
pub struct NativeGroup {
    group: ClientGroup,
    subscriptions: Arc<OpenSubscriptions>,
}

/// The numbers of subscriptions of groups.
static NEXT: AtomicU32 = AtomicU32::new(1);

/// A server that could not be started: its name in the group, and the reason.
#[napi(object)]
#[derive(Debug)]
pub struct FailedServer {
    pub name: String,
    pub reason: String,
}

/// Targets by name, and the JSON of those that replace others of the same names.
#[napi(object, object_from_js = false)]
pub struct NamedTargets<'a> {
    pub targets: Unknown<'a>,
    pub read: String,
}

#[napi]
impl NativeGroup {
    #[napi(constructor, catch_unwind)]
    pub fn new(clients: Vec<&NativeClient>, failed: Vec<FailedServer>) -> napi::Result<Self> {
        let members = clients.iter().filter_map(|client| client.member());
        let failed = failed.into_iter().map(|server| Member::failed(server.name, &server.reason));
        let group = ClientGroup::from_members(members.chain(failed).collect()).map_err(misuse)?;
        Ok(Self { group, subscriptions: Arc::default() })
    }

    /// Performs an operation: its name and its params. Middleware of the clients gets the ticket. Resolves to
    /// `[result]`, or to `[null, error]`, as JSON.
    #[napi(catch_unwind, ts_return_type = "Promise<string>")]
    pub fn call<'env>(
        &self,
        env: &'env Env,
        what: String,
        params: String,
        ticket: i64,
    ) -> napi::Result<Object<'env>> {
        let group = self.group.clone();
        let work = boxed(async move {
            let performing = perform(group, &what, params.as_bytes());
            let performed = with_ticket(ticket.unsigned_abs(), performing).await;
            performed.map(|reply| reply.result.get().to_owned())
        });
        promise(env, work)
    }

    /// Subscribes to `{"filter", "server"?}`. Resolves to `[number]`, or to `[null, error]`, as JSON; the number identifies
    /// the subscription from then on.
    #[napi(catch_unwind, ts_return_type = "Promise<string>")]
    pub fn subscribe<'env>(&self, env: &'env Env, params: String) -> napi::Result<Object<'env>> {
        let (group, subscriptions) = (self.group.clone(), Arc::clone(&self.subscriptions));
        let work = boxed(async move {
            let subscription = subscribe(group, params.as_bytes()).await?;
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            subscriptions.keep(number.into(), subscription.into());
            Ok(number.to_string())
        });
        promise(env, work)
    }

    /// Resolves when there is an event of the subscription to take.
    #[napi(catch_unwind, ts_return_type = "Promise<string>")]
    pub fn await_change<'env>(
        &self,
        env: &'env Env,
        subscription: u32,
    ) -> napi::Result<Object<'env>> {
        let ready = self.subscriptions.ready(subscription.into());
        let work = boxed(async move {
            ready.await;
            Ok("null".to_owned())
        });
        promise(env, work)
    }

    /// Returns `{"change": …}`, or `{}` at the end; null if there is no event yet.
    #[napi(catch_unwind)]
    pub fn take_change(&self, subscription: u32) -> Option<String> {
        self.subscriptions.take(subscription.into()).map(to_json)
    }

    #[napi(catch_unwind)]
    pub fn unsubscribe(&self, subscription: u32) {
        self.subscriptions.leave(subscription.into());
    }

    /// Returns `[server, name]`: the server that the name of a tool or prompt belongs to and the name there, if it is connected and
    /// certain without lists.
    #[napi(catch_unwind)]
    pub fn find_now(&self, name: String) -> Option<Vec<String>> {
        find_now(&self.group, &name).map(|(server, own_name)| vec![server, own_name])
    }

    /// Returns the errors of the servers, by name, as JSON.
    #[napi(catch_unwind)]
    pub fn errors(&self) -> String {
        errors(&self.group, |error| describe(error, &error.message))
    }

    /// Returns the targets by name in what a group was given, or the path of the file that holds them.
    #[napi(catch_unwind)]
    pub fn targets(given: Unknown<'_>) -> napi::Result<Either<String, NamedTargets<'_>>> {
        match group_targets::read(Language::TypeScript, Js(given)) {
            Ok(Targets::File(path)) => Ok(Either::A(path)),
            Ok(Targets::Named { targets, read }) => {
                Ok(Either::B(NamedTargets { targets: targets.0, read }))
            }
            Err(problem) => Err(refused_value(problem)),
        }
    }

    /// Returns the targets by name in the text of a JSON file, as JSON.
    #[napi(catch_unwind)]
    pub fn file_targets(path: String, text: Buffer) -> napi::Result<String> {
        group_targets::read_file(Language::TypeScript, &path, &text).map_err(refused_value)
    }
}

// Without an event loop, for example after a worker thread has ended, there is no receiver.
impl Drop for NativeGroup {
    fn drop(&mut self) {
        self.subscriptions.leave_all();
    }
}

/// Returns a promise that resolves to `[result]`, or to `[null, error]`, as JSON.
fn promise(env: &Env, work: Boxed<Result<String, Error>>) -> napi::Result<Object<'_>> {
    let (deferred, promise) = env.create_deferred()?;
    runtime().map_err(no_runtime)?.spawn(boxed(async move {
        let outcome = match work.await {
            Ok(result) => format!("[{result}]"),
            Err(error) => format!("[null,{}]", error_json(&error)),
        };
        deferred.resolve(move |_| Ok(outcome));
    }));
    Ok(promise)
}
