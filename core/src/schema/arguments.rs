//! Validation of tool arguments: as sent, and a second time with values decoded that a model quoted by mistake.

use super::{Instance, Schema, Violation};
use crate::protocol::json::problem;

/// The outcome of a successful validation.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Checked {
    AsGiven,
    /// Accepted after decoding; use these arguments instead, as JSON without raw newlines.
    Decoded(String),
}

impl Schema {
    /// Validates a call's arguments. If they are invalid as sent, each string given where the schema accepts none
    /// (`{"limit": "5"}`), at most 16 levels deep, is decoded as JSON once; if they are still invalid, the returned violation
    /// describes the original arguments.
    pub fn check_arguments(&self, raw: &str) -> Result<Checked, Violation> {
        let arguments = read(raw)?;
        if self.fits(&arguments)? {
            return Ok(Checked::AsGiven);
        }
        match self.decode(raw) {
            Some(decoded) => Ok(Checked::Decoded(decoded)),
            None => Err(self.violation(&arguments)),
        }
    }

    /// Validates a call's arguments without decoding any.
    pub fn check_arguments_as_given(&self, raw: &str) -> Result<(), Violation> {
        self.check_instance(&read(raw)?)
    }

    /// Returns the arguments with wrongly quoted values decoded, if they are valid then.
    #[cold]
    fn decode(&self, raw: &str) -> Option<String> {
        let decoded = self.unquoted(raw)?;
        let value = serde_json::from_str(&decoded).ok()?;
        self.fits(&value).unwrap_or(false).then_some(decoded)
    }
}

fn read(raw: &str) -> Result<Instance<'_>, Violation> {
    serde_json::from_str(raw).map_err(|error| {
        Violation::new(format!("the arguments can't be read: {}", problem(&error)))
    })
}

#[cfg(test)]
mod tests;
