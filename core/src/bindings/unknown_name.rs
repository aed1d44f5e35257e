//! Errors for names that do not exist, with the name that was probably meant.

use crate::schema::nearest;

/// Returns the problem and its fix: `unknown option 'timout'; did you mean 'timeout'?`
///
/// `kind` is the sort of name, such as "option", and `known` all names that exist. `hint` is the advice for a name of
/// another SDK: one of the known names, or a sentence.
pub fn unknown_name(kind: &str, name: &str, known: &[&str], hint: Option<&str>) -> String {
    let fix = match hint {
        Some(hint) if !known.contains(&hint) => hint.to_owned(),
        _ => match hint.or_else(|| closest(name, known)) {
            Some(meant) => format!("did you mean '{meant}'?"),
            None => format!("it takes {}", known.join(", ")),
        },
    };
    format!("unknown {kind} '{name}'; {fix}")
}

/// Returns the nearest known name, with or without the `Ms` of durations, or the longest one of which at least half is a
/// beginning of the other.
fn closest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let stems = known.iter().map(|candidate| candidate.strip_suffix("Ms").unwrap_or(candidate));
    if let Some(near) = nearest(name, known.iter().copied().chain(stems)) {
        return known.iter().copied().find(|candidate| {
            candidate.strip_suffix("Ms").unwrap_or(candidate) == near || *candidate == near
        });
    }
    let begins = |candidate: &&str| {
        let (given, known) = (plain(name), plain(candidate));
        let (short, long) = if given.len() < known.len() { (given, known) } else { (known, given) };
        long.starts_with(&short) && short.len() * 2 >= long.len()
    };
    known.iter().copied().filter(begins).max_by_key(|candidate| candidate.len())
}

fn plain(name: &str) -> String {
    name.replace(['_', '-'], "").to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fix_is_a_known_name_a_hint_or_all_names() {
        let known = ["timeoutMs", "on_elicit", "on"];
        for (name, hint, fix) in [
            ("timout", None, "did you mean 'timeoutMs'?"),
            ("timeout_ms", None, "did you mean 'timeoutMs'?"),
            ("onElicitation", None, "did you mean 'on_elicit'?"),
            ("only", None, "did you mean 'on'?"),
            ("sampling", Some("on_elicit"), "did you mean 'on_elicit'?"),
            ("auth", Some("write headers="), "write headers="),
            ("colour", None, "it takes timeoutMs, on_elicit, on"),
            ("", None, "it takes timeoutMs, on_elicit, on"),
        ] {
            let expected = format!("unknown option '{name}'; {fix}");
            assert_eq!(unknown_name("option", name, &known, hint), expected);
        }
    }
}
