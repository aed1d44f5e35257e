//! Validation of tool arguments: as sent, and a second time with values decoded that a model quoted by mistake.

use serde_json::value::RawValue;

use super::{Schema, Violation, instance::Instance};
use crate::protocol::Members;

/// The outcome of a successful validation.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Checked {
    AsGiven,
    /// Accepted after decoding; use these arguments instead, as JSON without raw newlines.
    Decoded(String),
}

impl Schema {
    /// Validates a call's arguments. If they are invalid as sent, each string given for a property that accepts none
    /// (`{"limit": "5"}`) is decoded as JSON once; if they are still invalid, the returned violation describes the
    /// original arguments.
    pub fn check_arguments(&self, raw: &str) -> Result<Checked, Violation> {
        let arguments = serde_json::from_str(raw)
            .map_err(|error| Violation::new(format!("the arguments can't be read: {error}")))?;
        if self.fits(&arguments)? {
            return Ok(Checked::AsGiven);
        }
        match self.decode(raw, &arguments) {
            Some(decoded) => Ok(Checked::Decoded(decoded)),
            None => Err(self.violation(&arguments)),
        }
    }

    /// Returns the arguments with wrongly quoted members decoded, if they are valid then.
    #[cold]
    fn decode(&self, raw: &str, arguments: &Instance<'_>) -> Option<String> {
        let Instance::Object(arguments) = arguments else { return None };
        let decodable = |name: &str| {
            let Some(Instance::String(text)) = arguments.member(name) else { return None };
            if !self.textless.iter().any(|textless| textless == name) {
                return None;
            }
            let value: &RawValue = serde_json::from_str(text).ok()?;
            // In JSON a raw newline can only be insignificant whitespace.
            Some(value.get().replace(['\n', '\r'], " "))
        };
        let mut any = false;
        let mut out = String::with_capacity(raw.len());
        // Keeps the order and the digits of numbers.
        for (name, value) in &serde_json::from_str::<Members<&RawValue>>(raw).ok()? {
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
        let fits = any
            && serde_json::from_str(&out).is_ok_and(|decoded| self.fits(&decoded).unwrap_or(false));
        fits.then_some(out)
    }
}
