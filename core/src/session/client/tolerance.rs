//! Mistakes of servers whose meaning is certain, so that what they send is read.

use std::collections::HashSet;

use crate::protocol::Id;

/// The mistakes that a server has made, each of which is reported once.
#[derive(Debug, Default)]
pub(super) struct Tolerance(HashSet<&'static str>);

impl Tolerance {
    /// Reports a mistake, a noun phrase.
    pub(super) fn note(&mut self, mistake: &'static str) {
        if self.0.insert(mistake) {
            tracing::warn!("the server sends {mistake}; it is read as it was meant");
        }
    }
}

/// Parses an id that this client made, which some servers return as a string.
pub(super) fn number(id: &Id) -> Option<u64> {
    number_of(id.as_json())
}

/// Parses the JSON of an id or a progress token that this client made.
pub(crate) fn number_of(json: &str) -> Option<u64> {
    let digits = json.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(json);
    digits.parse().ok().filter(|number: &u64| number.to_string() == digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_may_be_written_as_a_string_and_in_no_other_way() {
        for json in ["7", "\"7\""] {
            assert_eq!(number_of(json), Some(7));
        }
        for json in
            ["\"07\"", "\"+7\"", "\" 7\"", "\"\"7\"\"", "\"7", "-7", "7.0", "null", "\"\\u0037\""]
        {
            assert_eq!(number_of(json), None, "{json}");
        }
    }
}
