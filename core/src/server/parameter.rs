//! The parameters of handlers.

use std::{any::TypeId, collections::BTreeMap};

use schemars::JsonSchema;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use super::{
    Context,
    kind::{CompletionKind, MethodKind, NotificationKind, PromptKind, ResourceKind, ToolKind},
    schema,
    state::States,
};
use crate::router::Failure;

/// 2⁵³; below it, floats represent every integer exactly.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// A parameter of a handler: its arguments, the [`Context`], or a [`State`](super::State). Parameters may come in any order.
///
/// The arguments of tools, resources, prompts and vendor methods are a type that implements [`serde::Deserialize`] and
/// [`schemars::JsonSchema`], those of notifications one that implements [`serde::Deserialize`]. Those of completions are a
/// `String` (the text typed so far) or a [`CompletionInput`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be a parameter of this handler",
    note = "the arguments of a handler are a type that implements `serde::Deserialize` and `schemars::JsonSchema`",
    note = "the argument of a completion is a `String` or a `CompletionInput`",
    note = "a `Context` and a `State<S>` are taken by value: `ctx: Context`"
)]
pub trait Parameter<Kind>: Sized + Send {
    #[doc(hidden)]
    type Role;

    /// Returns the JSON Schema of the arguments.
    #[doc(hidden)]
    fn schema() -> Option<Value> {
        None
    }

    /// Returns the type of the state that the parameter is, and its name.
    #[doc(hidden)]
    fn state() -> Option<(TypeId, &'static str)> {
        None
    }

    #[doc(hidden)]
    fn read(input: &str, context: &Context, states: &States) -> Result<Self, Failure>;
}

/// The role of arguments.
#[derive(Debug)]
pub enum OfCaller {}

/// The role of parameters that do not come from the caller.
#[derive(Debug)]
pub enum OfServer {}

/// The roles of a handler's parameters, of which one at most is [`OfCaller`].
#[diagnostic::on_unimplemented(
    message = "a handler takes its arguments as one parameter, but this one has several",
    note = "put the arguments into one struct with a field for each, which derives `serde::Deserialize` and `schemars::JsonSchema`"
)]
pub trait Roles {}

/// The input of a completion handler.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub struct CompletionInput {
    /// The text typed so far.
    pub value: String,
    /// The arguments that are already filled in.
    #[serde(rename = "arguments")]
    pub given: BTreeMap<String, String>,
}

macro_rules! roles {
    ($($roles:ty),* $(,)?) => {$(
        impl Roles for $roles {}
    )*};
}

roles!((), OfCaller, OfServer);
roles!((OfCaller, OfServer), (OfServer, OfCaller), (OfServer, OfServer));
roles!((OfCaller, OfServer, OfServer), (OfServer, OfCaller, OfServer));
roles!((OfServer, OfServer, OfCaller), (OfServer, OfServer, OfServer));
roles!((OfCaller, OfServer, OfServer, OfServer), (OfServer, OfCaller, OfServer, OfServer));
roles!((OfServer, OfServer, OfCaller, OfServer), (OfServer, OfServer, OfServer, OfCaller));
roles!((OfServer, OfServer, OfServer, OfServer));

impl<Kind> Parameter<Kind> for Context {
    type Role = OfServer;

    fn read(_: &str, context: &Context, _: &States) -> Result<Self, Failure> {
        Ok(context.clone())
    }
}

/// Implemented by no kind of handler. With implementations for references the compiler says that a reference to a context
/// or state is the problem; without them, that there are too many arguments.
pub trait TakesReferences {}

impl<Kind: TakesReferences> Parameter<Kind> for &Context {
    type Role = OfServer;

    fn read(_: &str, _: &Context, _: &States) -> Result<Self, Failure> {
        unreachable!("no kind takes references")
    }
}

macro_rules! arguments {
    ($($kind:ty),*) => {$(
        impl<A: DeserializeOwned + JsonSchema + Send> Parameter<$kind> for A {
            type Role = OfCaller;

            fn schema() -> Option<Value> {
                Some(schema::of_arguments::<A>())
            }

            fn read(input: &str, _: &Context, _: &States) -> Result<Self, Failure> {
                from_json(input)
            }
        }
    )*};
}

arguments!(ToolKind, ResourceKind, PromptKind, MethodKind);

impl<A: DeserializeOwned + Send> Parameter<NotificationKind> for A {
    type Role = OfCaller;

    fn read(input: &str, _: &Context, _: &States) -> Result<Self, Failure> {
        from_json(input)
    }
}

impl Parameter<CompletionKind> for CompletionInput {
    type Role = OfCaller;

    fn read(input: &str, _: &Context, _: &States) -> Result<Self, Failure> {
        from_json(input)
    }
}

impl Parameter<CompletionKind> for String {
    type Role = OfCaller;

    fn read(input: &str, _: &Context, _: &States) -> Result<Self, Failure> {
        from_json::<CompletionInput>(input).map(|input| input.value)
    }
}

fn from_json<A: DeserializeOwned>(input: &str) -> Result<A, Failure> {
    serde_json::from_str(input)
        .or_else(|error| respelled(input).ok_or(error))
        .map_err(|error| Failure::Invalid(error.to_string()))
}

/// Deserializes again with `42.0` as `42`: JSON Schema accepts both as integers, serde only the second.
#[cold]
fn respelled<A: DeserializeOwned>(input: &str) -> Option<A> {
    let mut value: Value = serde_json::from_str(input).ok()?;
    spell_integers(&mut value);
    serde_json::from_str(&value.to_string()).ok()
}

fn spell_integers(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(spell_integers),
        Value::Object(members) => members.values_mut().for_each(spell_integers),
        Value::Number(number) if number.is_f64() => {
            // Beyond this bound a float may not represent the intended number.
            let exact = number.as_f64().filter(|float| float.abs() < EXACT && float.fract() == 0.0);
            #[allow(clippy::cast_possible_truncation, reason = "it has no fraction and is small")]
            if let Some(exact) = exact {
                *number = (exact as i64).into();
            }
        }
        _ => (),
    }
}
