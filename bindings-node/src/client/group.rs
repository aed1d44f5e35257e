//! Groups of clients.

use gudgeon::{
    bindings::{
        client_group::{errors, find_now, perform},
        group_targets::{self, Targets},
    },
    client::{ClientGroup, Member, describe},
    error::Language,
};
use napi::{
    Env,
    bindgen_prelude::{Either, Object, Unknown},
};
use napi_derive::napi;

use super::{NativeClient, no_runtime, refused_value, runtime};
use crate::{error::misuse, options::Js};

/// The clients of a group, each of which was connected or tried to.
#[napi]
#[derive(Debug)]
pub struct NativeGroup(ClientGroup);

/// A server that could not be started: its name in the group, and the reason.
#[napi(object)]
#[derive(Debug)]
pub struct FailedServer {
    pub name: String,
    pub reason: String,
}

#[napi]
impl NativeGroup {
    #[napi(constructor, catch_unwind)]
    pub fn new(clients: Vec<&NativeClient>, failed: Vec<FailedServer>) -> napi::Result<Self> {
        let members = clients.iter().filter_map(|it| it.member());
        let failed = failed.into_iter().map(|it| Member::failed(it.name, &it.reason));
        ClientGroup::of(members.chain(failed).collect()).map(Self).map_err(misuse)
    }

    /// Performs an operation: its name and its params. Resolves to `[result]`, or to `[null, error]`, as JSON.
    #[napi(catch_unwind, ts_return_type = "Promise<string>")]
    pub fn call<'env>(
        &self,
        env: &'env Env,
        what: String,
        params: String,
    ) -> napi::Result<Object<'env>> {
        let (deferred, promise) = env.create_deferred()?;
        let group = self.0.clone();
        runtime().map_err(no_runtime)?.spawn(async move {
            let outcome = match perform(group, &what, params.as_bytes()).await {
                Ok(reply) => format!("[{}]", reply.result.get()),
                Err(error) => format!("[null,{}]", describe(&error, &error.message)),
            };
            deferred.resolve(move |_| Ok(outcome));
        });
        Ok(promise)
    }

    /// Returns `[server, name]`: the server that the name of a tool or prompt belongs to and the name there, if it is connected and
    /// certain without lists.
    #[napi(catch_unwind)]
    pub fn find_now(&self, name: String) -> Option<Vec<String>> {
        find_now(&self.0, &name).map(|(server, own_name)| vec![server, own_name])
    }

    /// Returns the errors of the servers, by name, as JSON.
    #[napi(catch_unwind)]
    pub fn errors(&self) -> String {
        errors(&self.0, |it| describe(it, &it.message))
    }

    /// Returns the targets by name in what a group was given, or the path of the file that holds them.
    #[napi(catch_unwind)]
    pub fn targets(given: Unknown<'_>) -> napi::Result<Either<String, Unknown<'_>>> {
        match group_targets::read(Language::TypeScript, Js(given)) {
            Ok(Targets::File(path)) => Ok(Either::A(path)),
            Ok(Targets::Named(targets)) => Ok(Either::B(targets.0)),
            Err(problem) => Err(refused_value(problem)),
        }
    }

    /// Returns the targets by name in the text of a JSON file, as JSON.
    #[napi(catch_unwind)]
    pub fn file_targets(path: String, text: String) -> napi::Result<String> {
        group_targets::read_file(Language::TypeScript, &path, text.as_bytes())
            .map_err(refused_value)
    }
}
