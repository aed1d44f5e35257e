//! The errors that a server shows to its clients: from the program, or from its environment.

use std::env;

/// The environment variable that shows clients the errors of handlers, if it is `1`. `gudgeon dev` sets it.
const DEBUG: &str = "GUDGEON_DEBUG";

/// Returns the value of [`ServerFacts::debug`](crate::router::ServerFacts): that of the program, or true if the variable is `1`.
pub fn shows_errors(given: bool) -> bool {
    given || env::var_os(DEBUG).is_some_and(|value| value == "1")
}
