//! Handlers: the async functions and closures that users write, and their common type-erased form.

use std::{fmt, pin::Pin, sync::Arc};

use serde_json::Value;

use super::{
    Answer, Context,
    middleware::{Mounted, Stack},
    pace::Pace,
    parameter::{Parameter, Roles},
    state::{StateType, States},
    visible::Predicate,
};
use crate::{
    router::{self, Failure, Reply},
    schema::{Checked, Schema, Subject},
};

pub(super) type Outcome = Result<Reply, Failure>;
pub(super) type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// An async function or closure: a handler takes parameters, each of which is a [`Parameter`], and returns an [`Answer`].
///
/// It takes no more than one type of arguments. `Form` is its signature as a function pointer, such as `fn(A, Context) -> R`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a handler",
    label = "not an `async` function with at most four parameters",
    note = "a handler is an `async fn`, or a closure that returns an `async` block; pass the function itself, without calling it",
    note = "it takes its arguments as one type, a `Context`, states (`State<S>`), or nothing; a method of a state is `State::method(S::name)`"
)]
pub trait Handler<Form: Signature>: Send + Sync + 'static {
    #[doc(hidden)]
    fn call(&self, parameters: Form::Parameters) -> Form::Returned;
}

/// The signature of a function.
pub trait Signature {
    #[doc(hidden)]
    type Parameters;
    #[doc(hidden)]
    type Returned;
}

/// The signature of a handler of this kind: [`Parameter`]s, and a future with an [`Answer`].
///
/// It is apart from [`Handler`], so that the compiler names the parameter or the type that does not fit.
pub trait HandlerOf<Kind>: Signature {
    /// Returns the JSON Schema of the arguments.
    #[doc(hidden)]
    fn arguments() -> Option<Value>;

    /// Returns the JSON Schema of the result.
    #[doc(hidden)]
    fn output() -> Option<Value>;

    #[doc(hidden)]
    fn erase(handler: impl Handler<Self>) -> Erased
    where
        Self: Sized;
}

/// The immediate return value of a handler: a future.
#[diagnostic::on_unimplemented(
    message = "this handler is not `async`: it returns `{Self}`, which is not a future",
    note = "write `async fn`, or put the body of the closure into `async move {{ … }}`"
)]
pub trait Async {
    #[doc(hidden)]
    type Answer;
    #[doc(hidden)]
    type Future: Future<Output = Self::Answer>;

    #[doc(hidden)]
    fn future(self) -> Self::Future;
}

#[diagnostic::do_not_recommend]
impl<F: Future> Async for F {
    type Answer = F::Output;
    type Future = F;

    fn future(self) -> F {
        self
    }
}

/// A server's components, with handlers of this host.
pub(super) type Components = router::Components;

/// A type-erased handler.
pub struct Erased {
    run: Box<Run>,
    /// The states that the handler takes.
    takes: Vec<StateType>,
    /// The states of the server that the handler was added to.
    states: Arc<States>,
    /// A schema by which arguments that arrive as strings, such as those of prompts, are converted.
    decoder: Option<Schema>,
    pub(super) pace: Pace,
    /// The predicate that decides who sees the handler's component.
    pub(super) visible: Option<Arc<Predicate>>,
    /// The middleware to run around the handler.
    pub(super) stack: Option<Arc<Stack>>,
    /// The middleware of the servers between this one and the one that the handler is mounted into, outermost first.
    pub(super) mounted: Vec<Mounted>,
    /// The registration of a native handler.
    pub(super) native: Option<Box<NativeSubject>>,
    /// Called with the URI of a resource that a client has subscribed to.
    pub(super) on_subscribed: Option<Arc<OnSubscribed>>,
}

pub(crate) type OnSubscribed = dyn Fn(String) + Send + Sync;

type Run = dyn Fn(String, Context, &Arc<States>) -> BoxFuture<Outcome> + Send + Sync;

impl Erased {
    pub(super) fn new(
        takes: Vec<StateType>,
        run: impl Fn(String, Context, &Arc<States>) -> BoxFuture<Outcome> + Send + Sync + 'static,
    ) -> Self {
        Self {
            run: Box::new(run),
            takes,
            states: Arc::default(),
            decoder: None,
            pace: Pace::default(),
            visible: None,
            stack: None,
            mounted: Vec::new(),
            native: None,
            on_subscribed: None,
        }
    }

    /// Returns the handler as the core keeps it.
    pub(super) fn kept(self) -> router::Handler {
        Arc::new(self)
    }

    /// Returns a handler that the core has kept.
    ///
    /// # Panics
    /// Panics if it belongs to another host, which a server of Rust never has.
    pub(super) fn from_kept(kept: &router::Handler) -> Arc<Self> {
        Arc::downcast(Arc::clone(kept))
            .expect("the handlers of a server are those that it has added")
    }

    /// Gives the handler the states of its server.
    pub(super) fn join(&mut self, states: &Arc<States>) {
        states.take(&self.takes);
        self.states = Arc::clone(states);
    }

    pub(super) fn decode_with(&mut self, schema: Schema) {
        self.decoder = Some(schema);
    }

    pub(super) fn call(self: &Arc<Self>, input: String, context: Context) -> BoxFuture<Outcome> {
        match &self.decoder {
            None => (self.run)(input, context, &self.states),
            Some(schema) => match schema.check_arguments(&input) {
                Ok(Checked::AsGiven) => (self.run)(input, context, &self.states),
                Ok(Checked::Decoded(input)) => (self.run)(input, context, &self.states),
                Err(violation) => {
                    let message = violation.with_subject(Subject::Parameter).to_string();
                    Box::pin(std::future::ready(Err(Failure::Invalid(message))))
                }
            },
        }
    }
}

/// The registration that a native handler is for.
#[derive(Clone, Debug)]
pub struct NativeSubject {
    /// The prefix of the part that the handler belongs to.
    pub part: String,
    /// The kind, as the bindings name it, such as `tools`.
    pub kind: &'static str,
    /// The name there, without the prefix, or the URI; of a template empty: the URI comes with the call.
    pub key: String,
    /// The argument of a completion.
    pub argument: String,
}

/// Returns a handler of this crate, such as one that passes calls on, in place of a function of the program. `run` gets the input
/// as JSON; `on_subscribed` the URIs of resources of a template that clients subscribe to.
pub(crate) fn native_handler(
    subject: NativeSubject,
    on_subscribed: Option<Arc<OnSubscribed>>,
    run: impl Fn(String, Context) -> BoxFuture<Outcome> + Send + Sync + 'static,
) -> router::Handler {
    let mut handler = Erased::new(Vec::new(), move |input, context, _| run(input, context));
    handler.native = Some(Box::new(subject));
    handler.on_subscribed = on_subscribed;
    handler.kept()
}

/// Returns the handler with the middleware of its original server, where its tool or prompt has this name.
pub(super) fn mounted(
    handler: &router::Handler,
    stack: &Arc<Stack>,
    name: Option<&str>,
) -> router::Handler {
    let inner = Erased::from_kept(handler);
    let mut mounted = vec![Mounted { stack: Arc::clone(stack), name: name.map(ToOwned::to_owned) }];
    mounted.extend(inner.mounted.iter().cloned());
    let (visible, on_subscribed) = (inner.visible.clone(), inner.on_subscribed.clone());
    let mut outer = Erased::new(Vec::new(), move |input, context, _| inner.call(input, context));
    outer.mounted = mounted;
    outer.visible = visible;
    outer.on_subscribed = on_subscribed;
    outer.kept()
}

impl fmt::Debug for Erased {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Erased").field("pace", &self.pace).finish_non_exhaustive()
    }
}

macro_rules! forms {
    ($(($($parameter:ident),*): $roles:ty;)*) => {$(
        impl<Returned, $($parameter),*> Signature for fn($($parameter),*) -> Returned {
            type Parameters = ($($parameter,)*);
            type Returned = Returned;
        }

        impl<F, Returned, $($parameter),*> Handler<fn($($parameter),*) -> Returned> for F
        where
            F: Fn($($parameter),*) -> Returned + Send + Sync + 'static,
        {
            #[allow(non_snake_case, reason = "the names of the types")]
            fn call(&self, ($($parameter,)*): ($($parameter,)*)) -> Returned {
                self($($parameter),*)
            }
        }

        impl<Kind, Returned, $($parameter),*> HandlerOf<Kind> for fn($($parameter),*) -> Returned
        where
            $($parameter: Parameter<Kind> + 'static,)*
            $roles: Roles,
            Returned: Async<Answer: Answer<Kind>, Future: Send> + 'static,
        {
            fn arguments() -> Option<Value> {
                None$(.or_else($parameter::schema))*
            }

            fn output() -> Option<Value> {
                Returned::Answer::schema()
            }

            fn erase(handler: impl Handler<Self>) -> Erased {
                let handler = Arc::new(handler);
                let takes: &[Option<StateType>] = &[$($parameter::state()),*];
                let takes = takes.iter().flatten().copied().collect();
                Erased::new(takes, move |input, context, states| {
                    let (handler, states) = (Arc::clone(&handler), Arc::clone(states));
                    Box::pin(async move {
                        // A handler without parameters reads nothing.
                        let _ = (&input, &states);
                        let parameters = ($($parameter::read(&input, &context, &states)?,)*);
                        handler.call(parameters).future().await.into_reply(&context)
                    })
                })
            }
        }
    )*};
}

forms! {
    (): ();
    (A): A::Role;
    (A, B): (A::Role, B::Role);
    (A, B, C): (A::Role, B::Role, C::Role);
    (A, B, C, D): (A::Role, B::Role, C::Role, D::Role);
}
