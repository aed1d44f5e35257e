//! The methods that middleware runs around.

use std::collections::HashSet;

/// A set of methods, which may be all.
#[derive(Clone, Debug)]
pub(crate) struct MethodFilter(
    /// `None`: all.
    Option<HashSet<Box<str>>>,
);

impl MethodFilter {
    /// `methods` are method names such as `tools/list`, or `*` for all.
    pub(crate) fn new<N: Into<Box<str>>>(methods: impl IntoIterator<Item = N>) -> Self {
        let methods: HashSet<Box<str>> = methods.into_iter().map(Into::into).collect();
        Self(Some(methods).filter(|methods| !methods.contains("*")))
    }

    pub(crate) fn contains(&self, method: &str) -> bool {
        self.0.as_ref().is_none_or(|methods| methods.contains(method))
    }

    /// Returns the names that make the same filter, in any order.
    #[cfg(feature = "server")]
    pub(crate) fn names(&self) -> Vec<&str> {
        match &self.0 {
            None => vec!["*"],
            Some(methods) => methods.iter().map(|name| &**name).collect(),
        }
    }
}
