//! The return types of handlers and the results that they become.

use std::{
    any::{Any, TypeId},
    collections::{BTreeMap, HashMap},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::{
    Audio, Context, File, Image, Json, ToolError,
    error::to_json,
    kind::{CompletionKind, MethodKind, NotificationKind, PromptKind, ResourceKind, ToolKind},
    schema,
};
use crate::{
    protocol::{
        CallToolResult, Completion, ContentBlock, EmbeddedResource, GetPromptResult, PromptMessage,
        ReadResourceResult, Resource, ResourceContents, json,
    },
    router::{Failure, Reply},
};

/// A type that handlers of this kind can return inside a `Result`.
///
/// - Tools: a type that implements [`Serialize`] and [`JsonSchema`] becomes structured content with an output schema
///   (a `String` also becomes text); [`Image`], [`Audio`], [`File`], [`EmbeddedResource`], a resource link
///   ([`Resource`]), [`ContentBlock`], `Vec<ContentBlock>` and [`CallToolResult`] become content without an output
///   schema; `()` becomes empty content.
/// - Resources: strings, bytes (`Vec<u8>`), [`Json`], [`ResourceContents`] or [`ReadResourceResult`].
/// - Prompts: a string (a user message), [`PromptMessage`], a list of them, or [`GetPromptResult`].
/// - Completions: `Vec<String>` or [`Completion`].
/// - Vendor methods: a type that serializes as an object, or `()`.
#[diagnostic::on_unimplemented(
    message = "this handler can't return `{Self}`",
    note = "a tool returns a type that implements `serde::Serialize` and `schemars::JsonSchema`, or content",
    note = "a resource returns a string, bytes, `Json(value)` or `ResourceContents`",
    note = "a prompt returns a string, a `PromptMessage`, or a list of them",
    note = "a completion returns a list of strings, or a `Completion`"
)]
pub trait Output<Kind>: Send + 'static {
    #[doc(hidden)]
    fn schema() -> Option<Value> {
        None
    }

    #[doc(hidden)]
    fn reply(self) -> Result<Reply, Failure>;
}

/// The return type of a handler: `Result<T, ToolError>`, or one of the plain types of [`Output`].
#[diagnostic::on_unimplemented(
    message = "this handler can't return `{Self}`",
    note = "return `Result<T, ToolError>`; a tool that can't fail returns `Json(value)`, a string, a number, or content",
    note = "a resource that can't fail returns a string, bytes, `Json(value)` or `ResourceContents`",
    note = "a prompt that can't fail returns a string, a `PromptMessage`, or a list of them",
    note = "a completion that can't fail returns a list of strings, or a `Completion`",
    note = "a vendor's method that can't fail returns `Json(value)` or `()`, and a notification `()`"
)]
pub trait Answer<Kind>: Send + 'static {
    #[doc(hidden)]
    fn schema() -> Option<Value>;

    #[doc(hidden)]
    fn into_reply(self, call: &Context) -> Result<Reply, Failure>;
}

/// The error type of a handler's result: [`ToolError`].
///
/// With one implementation for one type the compiler infers the error of a bare `Ok(…)`, and names any other.
#[diagnostic::on_unimplemented(
    message = "the error of this handler is `{E}`, but handlers return `Result<T, ToolError>`",
    note = "`?` converts every `std::error::Error` to a `ToolError`; `ToolError::new(message)` has a message that callers see, \
            `ToolError::hidden(error)` one that is only logged"
)]
pub trait Fails<E> {
    #[doc(hidden)]
    fn error(error: E) -> ToolError;
}

impl Fails<ToolError> for () {
    fn error(error: ToolError) -> ToolError {
        error
    }
}

impl<Kind, T: Output<Kind>, E: Send + 'static> Answer<Kind> for Result<T, E>
where
    (): Fails<E>,
{
    fn schema() -> Option<Value> {
        T::schema()
    }

    fn into_reply(self, call: &Context) -> Result<Reply, Failure> {
        self.map_or_else(|error| <()>::error(error).into_reply(call), Output::reply)
    }
}

/// The types are listed because a blanket implementation would leave the error type of a bare `Ok(…)` ambiguous.
macro_rules! plain {
    ($kind:ty: $($({$($generics:tt)*})? $output:ty),* $(,)?) => {$(
        impl $(<$($generics)*>)? Answer<$kind> for $output
        where
            Self: Output<$kind>,
        {
            fn schema() -> Option<Value> {
                <Self as Output<$kind>>::schema()
            }

            fn into_reply(self, _: &Context) -> Result<Reply, Failure> {
                Output::<$kind>::reply(self)
            }
        }
    )*};
}

plain!(ToolKind: (), String, &'static str, bool, char, u8, u16, u32, u64, usize, i8, i16, i32, i64, isize, f32, f64);
plain!(ToolKind: Value, {T} Json<T>, {T} Vec<T>, {T} Option<T>, {T} BTreeMap<String, T>, {T} HashMap<String, T>);
plain!(ToolKind: Image, Audio, File, EmbeddedResource, Resource, ContentBlock, CallToolResult);
plain!(ResourceKind: (), String, &'static str, Vec<u8>, Value, {T} Json<T>);
plain!(ResourceKind: ResourceContents, Vec<ResourceContents>, ReadResourceResult);
plain!(PromptKind: String, &'static str, PromptMessage, Vec<PromptMessage>, GetPromptResult);
plain!(CompletionKind: Vec<String>, Vec<&'static str>, Completion);
plain!(MethodKind: (), Value, {T} Json<T>);
plain!(NotificationKind: ());

impl<T: Serialize + JsonSchema + Send + 'static> Output<ToolKind> for T {
    fn schema() -> Option<Value> {
        if is_content::<T>() {
            return None;
        }
        let schema = schema::of_output::<T>();
        // A schema that accepts anything, or only null, is not published.
        let says_nothing = schema == Value::Bool(true)
            || schema.as_object().is_some_and(serde_json::Map::is_empty)
            || schema["type"] == "null";
        (!says_nothing).then_some(schema)
    }

    fn reply(mut self) -> Result<Reply, Failure> {
        if let Some(text) = (&mut self as &mut dyn Any).downcast_mut::<String>() {
            return Ok(Reply::Text(std::mem::take(text)));
        }
        let value = to_json(&self)?;
        if is_content::<T>() {
            return Ok(Reply::Parts(match value.starts_with('[') {
                true => value,
                false => format!("[{value}]"),
            }));
        }
        Ok(match value.as_bytes().first() {
            Some(b'"') => match serde_json::from_str(&value) {
                Ok(text) => Reply::Text(text),
                Err(_) => Reply::Json(value),
            },
            Some(b'n') if (&self as &dyn Any).is::<()>() => Reply::Nothing,
            _ => Reply::Json(value),
        })
    }
}

impl<T: Serialize + JsonSchema + Send + 'static> Output<ToolKind> for Json<T> {
    fn schema() -> Option<Value> {
        <T as Output<ToolKind>>::schema()
    }

    fn reply(self) -> Result<Reply, Failure> {
        Output::<ToolKind>::reply(self.0)
    }
}

macro_rules! content {
    ($($output:ty),*) => {$(
        impl Output<ToolKind> for $output {
            fn reply(self) -> Result<Reply, Failure> {
                Output::<ToolKind>::reply(vec![ContentBlock::from(self)])
            }
        }
    )*};
}

content!(Image, Audio, File, EmbeddedResource, Resource);

/// Returns whether the items of a `Vec` are content. A trait can't tell, because `Vec` is a foreign type.
fn is_content<T: 'static>() -> bool {
    let this = TypeId::of::<T>();
    this == TypeId::of::<ContentBlock>() || this == TypeId::of::<Vec<ContentBlock>>()
}

impl Output<ToolKind> for CallToolResult {
    fn reply(self) -> Result<Reply, Failure> {
        to_json(&self).map(Reply::Result)
    }
}

macro_rules! outputs {
    ($kind:ty: $($({$($generics:tt)*})? $output:ty => |$value:ident| $reply:expr),* $(,)?) => {$(
        impl $(<$($generics)*>)? Output<$kind> for $output {
            fn reply(self) -> Result<Reply, Failure> {
                let $value = self;
                $reply
            }
        }
    )*};
}

outputs!(ResourceKind:
    () => |_nothing| Ok(Reply::Nothing),
    String => |text| Ok(Reply::Text(text)),
    &'static str => |text| Ok(Reply::Text(text.into())),
    Vec<u8> => |bytes| Ok(Reply::Blob(STANDARD.encode(bytes))),
    Value => |value| Ok(Reply::Json(value.to_string())),
    {T: Serialize + Send + 'static} Json<T> => |value| to_json(&value.0).map(Reply::Json),
    ResourceContents => |contents| Ok(Reply::Parts(json::to_raw(&[contents]).get().into())),
    Vec<ResourceContents> => |contents| to_json(&contents).map(Reply::Parts),
    ReadResourceResult => |result| to_json(&result).map(Reply::Result),
);

outputs!(PromptKind:
    String => |text| Ok(Reply::Text(text)),
    &'static str => |text| Ok(Reply::Text(text.into())),
    PromptMessage => |message| to_json(&[message]).map(Reply::Parts),
    Vec<PromptMessage> => |messages| to_json(&messages).map(Reply::Parts),
    GetPromptResult => |result| to_json(&result).map(Reply::Result),
);

outputs!(CompletionKind:
    Vec<String> => |values| to_json(&values).map(Reply::Json),
    Vec<&'static str> => |values| to_json(&values).map(Reply::Json),
    Completion => |completion| {
        to_json(&serde_json::json!({ "completion": completion })).map(Reply::Result)
    },
);

outputs!(MethodKind:
    {T: Serialize + Send + 'static} T => |value| to_json(&value).map(|value| match &*value {
        "null" => Reply::Nothing,
        _ => Reply::Json(value),
    }),
    {T: Serialize + Send + 'static} Json<T> => |value| Output::<MethodKind>::reply(value.0),
);

outputs!(NotificationKind: () => |_nothing| Ok(Reply::Nothing));
