//! Handlers: the forms of async functions and closures that users write, and their common type-erased form.

use std::{collections::BTreeMap, fmt, pin::Pin, sync::Arc};

use schemars::JsonSchema;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use super::{
    Answer, Context,
    kind::{CompletionKind, MethodKind, NotificationKind, PromptKind, ResourceKind, ToolKind},
    middleware::{Mounted, Stack},
    pace::Pace,
    schema,
    visible::Predicate,
};
use crate::{
    router::{self, Failure, Reply},
    schema::{Checked, Schema, Subject},
};

/// 2⁵³; below it, floats represent every integer exactly.
const EXACT: f64 = 9_007_199_254_740_992.0;

pub(super) type Outcome = Result<Reply, Failure>;
pub(super) type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// An async function or closure that takes `()`, `(arguments)`, `(Context)` or `(arguments, Context)` and returns an
/// [`Answer`]. The arguments are a type that implements [`serde::Deserialize`] and [`schemars::JsonSchema`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a handler",
    note = "write `async fn(arguments, Context) -> Result<T, ToolError>`; both parameters are optional",
    note = "arguments must implement `serde::Deserialize` and `schemars::JsonSchema`"
)]
pub trait Handler<Kind, Form>: Send + Sync + 'static {
    /// Returns the JSON Schema of the arguments.
    #[doc(hidden)]
    fn arguments() -> Option<Value>;

    /// Returns the JSON Schema of the result.
    #[doc(hidden)]
    fn output() -> Option<Value>;

    #[doc(hidden)]
    fn erase(self) -> Erased;
}

/// The arguments of a handler: a user-defined type for tools, resources, prompts and methods; a `String` (the text
/// typed so far) or a [`CompletionInput`] for completions.
pub trait Arguments<Kind>: Sized + Send {
    #[doc(hidden)]
    fn schema() -> Option<Value>;

    #[doc(hidden)]
    fn read(input: &str) -> Result<Self, Failure>;
}

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

/// Marker types that distinguish the forms of handlers.
pub(super) mod form {
    use std::marker::PhantomData;

    /// A handler without parameters.
    #[derive(Debug)]
    pub enum Nothing {}
    /// A handler that takes a `Context`.
    #[derive(Debug)]
    pub enum OnlyContext {}
    /// A handler that takes arguments.
    #[derive(Debug)]
    pub struct OnlyArguments<A>(PhantomData<A>);
    /// A handler that takes arguments and a `Context`.
    #[derive(Debug)]
    pub struct Both<A>(PhantomData<A>);
}

/// A server's components, with handlers of this host.
pub(super) type Components = router::Components<Arc<Erased>>;

/// A type-erased handler.
pub struct Erased {
    run: Box<dyn Fn(String, Context) -> BoxFuture<Outcome> + Send + Sync>,
    /// A schema by which arguments that arrive as strings, such as those of prompts, are converted.
    decoder: Option<Schema>,
    pub(super) pace: Pace,
    /// The predicate that decides who sees the handler's component.
    pub(super) visible: Option<Arc<Predicate>>,
    /// The middleware to run around the handler.
    pub(super) stack: Option<Arc<Stack>>,
    /// The middleware of the servers between this one and the one that the handler is mounted into, outermost first.
    pub(super) mounted: Vec<Mounted>,
}

impl Erased {
    pub(super) fn new(
        run: impl Fn(String, Context) -> BoxFuture<Outcome> + Send + Sync + 'static,
    ) -> Self {
        Self {
            run: Box::new(run),
            decoder: None,
            pace: Pace::default(),
            visible: None,
            stack: None,
            mounted: Vec::new(),
        }
    }

    pub(super) fn decode_with(&mut self, schema: Schema) {
        self.decoder = Some(schema);
    }

    pub(super) fn call(self: &Arc<Self>, input: String, context: Context) -> BoxFuture<Outcome> {
        match &self.decoder {
            None => (self.run)(input, context),
            Some(schema) => match schema.check_arguments(&input) {
                Ok(Checked::AsGiven) => (self.run)(input, context),
                Ok(Checked::Decoded(input)) => (self.run)(input, context),
                Err(violation) => {
                    let message = violation.of(Subject::Parameter).to_string();
                    Box::pin(std::future::ready(Err(Failure::Invalid(message))))
                }
            },
        }
    }
}

/// Returns the handler with the middleware of its original server, where its tool or prompt has this name.
pub(super) fn mounted(
    handler: &Arc<Erased>,
    stack: &Arc<Stack>,
    name: Option<&str>,
) -> Arc<Erased> {
    let inner = Arc::clone(handler);
    let mut mounted = vec![Mounted { stack: Arc::clone(stack), name: name.map(ToOwned::to_owned) }];
    mounted.extend(inner.mounted.iter().cloned());
    let visible = inner.visible.clone();
    let mut outer = Erased::new(move |input, context| inner.call(input, context));
    outer.mounted = mounted;
    outer.visible = visible;
    Arc::new(outer)
}

impl fmt::Debug for Erased {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Erased").field("pace", &self.pace).finish_non_exhaustive()
    }
}

macro_rules! forms {
    ($($form:ty, [$($argument:ident)?], ($($parameter:ty),*), |$input:ident, $context:ident| ($($value:expr),*);)*) => {$(
        impl<Kind, F, Returned $(, $argument)?> Handler<Kind, $form> for F
        where
            F: Fn($($parameter),*) -> Returned + Send + Sync + 'static,
            Returned: Future<Output: Answer<Kind>> + Send,
            $($argument: Arguments<Kind> + 'static,)?
        {
            fn arguments() -> Option<Value> {
                None$(.or($argument::schema()))?
            }

            fn output() -> Option<Value> {
                Returned::Output::schema()
            }

            fn erase(self) -> Erased {
                let handler = Arc::new(self);
                Erased::new(move |$input, $context| {
                    let handler = Arc::clone(&handler);
                    Box::pin(async move {
                        let _ = &$input;
                        let call = $context.clone();
                        handler($($value),*).await.into_reply(&call)
                    })
                })
            }
        }
    )*};
}

forms! {
    form::Nothing, [], (), |input, context| ();
    form::OnlyContext, [], (Context), |input, context| (context);
    form::OnlyArguments<A>, [A], (A), |input, context| (A::read(&input)?);
    form::Both<A>, [A], (A, Context), |input, context| (A::read(&input)?, context);
}

macro_rules! arguments {
    ($($kind:ty),*) => {$(
        impl<A: DeserializeOwned + JsonSchema + Send> Arguments<$kind> for A {
            fn schema() -> Option<Value> {
                Some(schema::of_arguments::<A>())
            }

            fn read(input: &str) -> Result<Self, Failure> {
                from_json(input)
            }
        }
    )*};
}

arguments!(ToolKind, ResourceKind, PromptKind, MethodKind);

macro_rules! untyped_arguments {
    ($($kind:ty: [$($generics:tt)*] $of:ty),*) => {$(
        impl<$($generics)*> Arguments<$kind> for $of {
            fn schema() -> Option<Value> {
                None
            }

            fn read(input: &str) -> Result<Self, Failure> {
                from_json(input)
            }
        }
    )*};
}

untyped_arguments!(
    NotificationKind: [A: DeserializeOwned + Send] A,
    CompletionKind: [] CompletionInput
);

impl Arguments<CompletionKind> for String {
    fn schema() -> Option<Value> {
        None
    }

    fn read(input: &str) -> Result<Self, Failure> {
        from_json::<CompletionInput>(input).map(|it| it.value)
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
            let exact = number.as_f64().filter(|it| it.abs() < EXACT && it.fract() == 0.0);
            #[allow(clippy::cast_possible_truncation, reason = "it has no fraction and is small")]
            if let Some(exact) = exact {
                *number = (exact as i64).into();
            }
        }
        _ => (),
    }
}
