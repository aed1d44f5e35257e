//! A tool call's arguments: checked as given, and once more with what a model wrote as a string by mistake decoded.

use serde_json::{Value, value::RawValue};

use super::{Schema, Violation};
use crate::protocol::Members;

/// Which arguments fit.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Checked {
    AsGiven,
    /// The arguments to use instead, as JSON without raw newlines.
    Decoded(String),
}

impl Schema {
    /// Checks a call's arguments. Only when they fail as given, each string for a property that takes none
    /// (`{"limit": "5"}`) is decoded as JSON, once; if they fail still, the violation is that of what was given.
    pub fn check_arguments(&self, raw: &str) -> Result<Checked, Violation> {
        let arguments: Value = serde_json::from_str(raw)
            .map_err(|error| Violation::new(format!("the arguments can't be read: {error}")))?;
        if self.fits(&arguments) {
            return Ok(Checked::AsGiven);
        }
        match self.decode(raw, &arguments) {
            Some(decoded) => Ok(Checked::Decoded(decoded)),
            None => Err(self.violation(&arguments)),
        }
    }

    /// The arguments with their wrongly quoted members decoded, if that makes them fit.
    #[cold]
    fn decode(&self, raw: &str, arguments: &Value) -> Option<String> {
        let decodable = |name: &str| {
            let text = arguments
                .get(name)?
                .as_str()
                .filter(|_| self.textless.iter().any(|it| it == name))?;
            let value: &RawValue = serde_json::from_str(text).ok()?;
            // Within JSON a raw newline can only be insignificant white space.
            Some(value.get().replace(['\n', '\r'], " "))
        };
        let mut any = false;
        let mut out = String::with_capacity(raw.len());
        // In order, and untouched: numbers keep their digits.
        for (name, value) in serde_json::from_str::<Members<&RawValue>>(raw).ok()?.iter() {
            out.push(if out.is_empty() { '{' } else { ',' });
            out.push_str(&serde_json::to_string(name).ok()?);
            out.push(':');
            if let Some(decoded) = decodable(name) {
                any = true;
                out.push_str(&decoded);
            } else {
                out.push_str(value.get());
            }
        }
        out.push('}');
        let fits = any && serde_json::from_str(&out).is_ok_and(|decoded| self.fits(&decoded));
        fits.then_some(out)
    }
}
