//! Values that the handlers of a server share.

use std::{
    any::{Any, TypeId, type_name},
    fmt,
    marker::PhantomData,
    ops::Deref,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use super::{
    Context, Server,
    handler::{BoxFuture, Handler},
    parameter::{OfServer, Parameter, TakesReferences},
};
use crate::{error::Error, router::Failure};

/// A value that the handlers of a server share, as their parameter: it was given to [`Server::with_state`], or returned by a
/// hook of [`Server::on_start`]. Clones refer to the same value.
///
/// ```
/// # use gudgeon::{Server, State};
/// # use std::sync::Mutex;
/// #[derive(Default)]
/// struct Shelf {
///     titles: Mutex<Vec<String>>,
/// }
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Book {
///     title: String,
/// }
///
/// async fn add(Book { title }: Book, shelf: State<Shelf>) -> usize {
///     let mut titles = shelf.titles.lock().unwrap();
///     titles.push(title);
///     titles.len()
/// }
///
/// let server = Server::new("shelf").with_state(Shelf::default()).tool("add", add);
/// ```
pub struct State<S>(Arc<S>);

/// A method of a state as a handler, made by [`State::method`].
pub struct Method<F, S, Parameters> {
    function: Arc<F>,
    form: PhantomData<fn(S, Parameters)>,
}

/// An `async` function that takes a reference to a state and these parameters.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an `async` method of a state",
    note = "write `async fn name(&self, …)`, with the parameters of a handler, three at most, behind `&self`"
)]
pub trait MethodOf<'s, S, Parameters>: Send + Sync + 'static {
    #[doc(hidden)]
    type Answer;
    #[doc(hidden)]
    type Future: Future<Output = Self::Answer> + Send + 's;

    #[doc(hidden)]
    fn call(&self, state: &'s S, parameters: Parameters) -> Self::Future;
}

/// The type of a state, and its name for errors.
pub(super) type StateType = (TypeId, &'static str);

/// The states of a server, and the types that its handlers take.
#[derive(Default)]
pub struct States(RwLock<Table>);

#[derive(Default)]
struct Table {
    values: Vec<Value>,
    /// The types of states that handlers take, with their names.
    taken: Vec<StateType>,
}

struct Value {
    shared: Arc<dyn Any + Send + Sync>,
    of: TypeId,
    /// `true` if a hook at start returned it: then it is dropped at shutdown.
    is_started: bool,
}

impl Server {
    /// Adds a state, which handlers take as [`State<S>`](State) or as `&self` of a [`State::method`]. A server has one state of a
    /// type. [`Server::on_start`] adds one that is made at start.
    ///
    /// ```
    /// # use gudgeon::{Server, State};
    /// struct Shelf {
    ///     titles: Vec<String>,
    /// }
    ///
    /// impl Shelf {
    ///     async fn count(&self) -> usize {
    ///         self.titles.len()
    ///     }
    /// }
    ///
    /// let shelf = Shelf { titles: vec!["Dune".into()] };
    /// let server = Server::new("shelf").with_state(shelf).tool("count", State::method(Shelf::count));
    /// ```
    ///
    /// # Panics
    /// Panics if the server has a state of this type.
    #[track_caller]
    pub fn with_state<S: Send + Sync + 'static>(self, state: S) -> Self {
        let added = self.hub.states().add(state);
        self.registered(added)
    }
}

impl<S: Send + Sync + 'static> State<S> {
    /// Makes a handler of a method of the state: an `async fn` that takes `&self`, and parameters as other handlers do.
    ///
    /// ```
    /// # use gudgeon::{Context, Prompt, Server, State, Tool, ToolError};
    /// # #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// # struct Book { title: String }
    /// struct Shelf;
    ///
    /// impl Shelf {
    ///     async fn find(&self, book: Book, ctx: Context) -> Result<String, ToolError> {
    ///         ctx.progress(1.0, None, format!("looking for {}", book.title));
    ///         Ok(book.title)
    ///     }
    /// }
    ///
    /// let server = Server::new("shelf")
    ///     .with_state(Shelf)
    ///     .add(Tool::new("find", State::method(Shelf::find)).description("Find a book."));
    /// ```
    pub fn method<F, Parameters>(function: F) -> Method<F, S, Parameters>
    where
        F: for<'s> MethodOf<'s, S, Parameters>,
    {
        Method { function: Arc::new(function), form: PhantomData }
    }
}

impl<S> Deref for State<S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.0
    }
}

impl<S> Clone for State<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S: fmt::Debug> fmt::Debug for State<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("State").field(&self.0).finish()
    }
}

impl<F, S, Parameters> fmt::Debug for Method<F, S, Parameters> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Method").finish_non_exhaustive()
    }
}

impl<Kind, S: Send + Sync + 'static> Parameter<Kind> for State<S> {
    type Role = OfServer;

    fn state() -> Option<(TypeId, &'static str)> {
        Some((TypeId::of::<S>(), type_name::<S>()))
    }

    fn read(_: &str, _: &Context, states: &States) -> Result<Self, Failure> {
        states.get().map(Self).ok_or_else(|| Failure::Exception {
            kind: "error".into(),
            message: missing(type_name::<S>()),
            traceback: String::new(),
        })
    }
}

impl<Kind: TakesReferences, S: Send + Sync + 'static> Parameter<Kind> for &State<S> {
    type Role = OfServer;

    fn read(_: &str, _: &Context, _: &States) -> Result<Self, Failure> {
        unreachable!("no kind takes references")
    }
}

macro_rules! methods {
    ($(($($parameter:ident),*);)*) => {$(
        impl<'s, F, S, Returned, $($parameter),*> MethodOf<'s, S, ($($parameter,)*)> for F
        where
            F: Fn(&'s S, $($parameter),*) -> Returned + Send + Sync + 'static,
            S: 's,
            Returned: Future + Send + 's,
        {
            type Answer = Returned::Output;
            type Future = Returned;

            #[allow(non_snake_case, reason = "the names of the types")]
            fn call(&self, state: &'s S, ($($parameter,)*): ($($parameter,)*)) -> Returned {
                self(state, $($parameter),*)
            }
        }

        impl<F, S, Answer, $($parameter),*>
            Handler<fn(State<S>, $($parameter),*) -> BoxFuture<Answer>>
            for Method<F, S, ($($parameter,)*)>
        where
            F: for<'s> MethodOf<'s, S, ($($parameter,)*), Answer = Answer>,
            S: Send + Sync + 'static,
            $($parameter: Send + 'static,)*
        {
            #[allow(non_snake_case, reason = "the names of the types")]
            fn call(
                &self,
                (state, $($parameter),*): (State<S>, $($parameter),*),
            ) -> BoxFuture<Answer> {
                let function = Arc::clone(&self.function);
                Box::pin(async move { function.call(&state, ($($parameter,)*)).await })
            }
        }
    )*};
}

methods! {
    ();
    (A);
    (A, B);
    (A, B, C);
}

impl States {
    /// Adds a state. Errors if there is one of its type.
    fn add<S: Send + Sync + 'static>(&self, state: S) -> Result<(), Error> {
        let mut table = self.write();
        let of = TypeId::of::<S>();
        if table.values.iter().any(|known| known.of == of) {
            let name = type_name::<S>();
            return Err(Error::misuse(format!(
                "the server has a state of type `{name}`; wrap one of them in a struct of its own"
            )));
        }
        table.values.push(Value { shared: Arc::new(state), of, is_started: false });
        Ok(())
    }

    /// Adds the value that a hook at start returned, unless that is `()`.
    pub(super) fn start<S: Send + Sync + 'static>(&self, state: S) -> Result<(), Error> {
        if TypeId::of::<S>() == TypeId::of::<()>() {
            return Ok(());
        }
        self.add(state)?;
        if let Some(value) = self.write().values.last_mut() {
            value.is_started = true;
        }
        Ok(())
    }

    /// Drops the states that hooks at start have added.
    pub(super) fn shut_down(&self) {
        let ended: Vec<_> = self.write().values.extract_if(.., |value| value.is_started).collect();
        // Their destructors run without the lock.
        drop(ended);
    }

    /// Notes the states that a handler takes.
    pub(super) fn take(&self, states: &[StateType]) {
        self.write().taken.extend_from_slice(states);
    }

    /// Errors if a handler takes a state that the server does not have.
    pub(super) fn check(&self) -> Result<(), Error> {
        let table = self.read();
        let has = |of: &TypeId| table.values.iter().any(|value| value.of == *of);
        match table.taken.iter().find(|(of, _)| !has(of)) {
            Some((_, name)) => Err(Error::misuse(missing(name))),
            None => Ok(()),
        }
    }

    fn get<S: Send + Sync + 'static>(&self) -> Option<Arc<S>> {
        let table = self.read();
        let value = table.values.iter().find(|value| value.of == TypeId::of::<S>())?;
        Arc::clone(&value.shared).downcast().ok()
    }

    fn read(&self) -> RwLockReadGuard<'_, Table> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Table> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

fn missing(name: &str) -> String {
    format!(
        "a handler takes `State<{name}>`, but the server has no such state; add it by `Server::with_state`, or return it from a \
         hook of `Server::on_start`"
    )
}

impl fmt::Debug for States {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("States").finish_non_exhaustive()
    }
}
