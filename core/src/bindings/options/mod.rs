//! The options of servers, components, clients, calls and endpoints: one table for both languages.

mod hints_python;
mod hints_typescript;
mod kind;
mod table;

use std::str::FromStr;

pub use kind::{Kind, Least};
pub use table::Row;

use super::unknown_name::unknown_name;
pub use crate::error::given::{Given, Problem, Value};
use crate::error::{Error, Language};

/// Names of other SDKs, each with the option here or the fix.
type Hints = &'static [(&'static str, &'static str)];

/// The function that takes options.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Taker {
    Server,
    Tool,
    Resource,
    Prompt,
    Client,
    Call,
    /// One round of a call.
    CallRound,
    ReadResource,
    Complete,
    /// A request without options of its own, such as that of a list.
    Request,
    /// Changes to subscribe to.
    Subscribe,
    /// The limits for repeating requests.
    Retry,
    /// An endpoint, or an address to listen at.
    Http,
}

/// Checks one option. Absent values are allowed for every option that exists. `place` begins the error.
pub fn check(
    language: Language,
    taker: Taker,
    place: &str,
    name: &str,
    value: &impl Given,
) -> Result<&'static Row, Problem> {
    let Some(row) = Row::find(language, taker, name) else {
        let known: Vec<_> = Row::all(language, taker).map(|row| row.name_in(language)).collect();
        let known: Vec<_> = known.iter().map(String::as_str).collect();
        let hint = hint(language, taker, name);
        let message = format!("{place}: {}", unknown_name("option", name, &known, hint));
        return Err(Problem { message, is_range: false, shows_value: false });
    };
    if value.value() == Value::Absent || row.kind.allows(language, value) {
        return Ok(row);
    }
    let equals = if language == Language::TypeScript { "" } else { "=" };
    let message = format!("{place}: {name}{equals} {}", row.kind.wanted(language));
    let shows_value = row.kind.may_be_shown();
    Err(Problem { message, is_range: row.kind.is_range(), shows_value })
}

impl Problem {
    /// Returns the whole message; `value` shows the refused value.
    pub fn text(&self, value: impl FnOnce() -> String) -> String {
        if self.shows_value {
            format!("{}, not {}", self.message, value())
        } else {
            self.message.clone()
        }
    }
}

impl FromStr for Taker {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        Ok(match name {
            "server" => Self::Server,
            "tool" => Self::Tool,
            "resource" => Self::Resource,
            "prompt" => Self::Prompt,
            "client" => Self::Client,
            "call" => Self::Call,
            "callRound" => Self::CallRound,
            "readResource" => Self::ReadResource,
            "complete" => Self::Complete,
            "request" => Self::Request,
            "subscribe" => Self::Subscribe,
            "retry" => Self::Retry,
            "http" => Self::Http,
            _ => return Err(Error::misuse(format!("nothing named {name:?} takes options"))),
        })
    }
}

/// Returns the advice for an option of another SDK.
fn hint(language: Language, taker: Taker, name: &str) -> Option<&'static str> {
    let hints = match language {
        Language::TypeScript => hints_typescript::for_taker(taker),
        _ => hints_python::for_taker(taker),
    };
    hints
        .iter()
        .flat_map(|list| list.iter())
        .find(|(known, _)| *known == name)
        .map(|(_, hint)| *hint)
}

#[cfg(test)]
mod tests;
