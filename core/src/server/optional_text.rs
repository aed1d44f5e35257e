//! Texts that may be left out.

/// A text that may be left out: a `&str`, a `String`, or `None`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a text, and not `None`",
    note = "give a `&str`, a `String`, an `Option<&str>`, or `format!(…)`"
)]
pub trait OptionalText {
    #[doc(hidden)]
    fn into_text(self) -> Option<String>;
}

impl OptionalText for &str {
    fn into_text(self) -> Option<String> {
        Some(self.to_owned())
    }
}

impl OptionalText for &String {
    fn into_text(self) -> Option<String> {
        Some(self.clone())
    }
}

impl OptionalText for String {
    fn into_text(self) -> Option<String> {
        Some(self)
    }
}

/// There is none for `Option<String>`, so that the type of a plain `None` is inferred.
impl OptionalText for Option<&str> {
    fn into_text(self) -> Option<String> {
        self.map(ToOwned::to_owned)
    }
}
