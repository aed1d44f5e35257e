//! Entries as they may be shown: without the values that may be secret.

use gudgeon::transport::masked::{HIDDEN, is_reference, is_secret};
pub use gudgeon::transport::masked::{arguments, url};
use serde_json::{Map, Value};

use super::Entry;
use crate::escape;

/// Members of an entry whose values are all hidden.
const VALUES: [&str; 3] = ["env", "headers", "http_headers"];
const URLS: [&str; 3] = ["url", "httpUrl", "serverUrl"];
/// Members that name variables and hold no values.
const NAMES: [&str; 2] = ["bearer_token_env_var", "env_http_headers"];

/// Returns the values of a configuration file with the server `own` in `servers` as far as they may be shown. Nothing is
/// shown of other servers, and of the host's other settings.
pub fn document(mut document: Value, servers: &str, own: &str) -> Value {
    for (member, value) in document.as_object_mut().into_iter().flatten() {
        match value {
            Value::Object(entries) if member == servers => {
                for (name, entry) in entries {
                    match entry {
                        Value::Object(entry) if name == own => hide_secrets(entry),
                        other => hide(other),
                    }
                }
            }
            other => hide(other),
        }
    }
    document
}

/// Returns the command or the URL of an entry on one line.
pub fn line(entry: &Entry) -> String {
    match entry {
        Entry::Command { program, arguments: words, .. } => {
            command_line(program, &arguments(words))
        }
        Entry::Url { url: address, .. } => escape::one_line(&url(address)).into_owned(),
    }
}

/// Returns a program and all of these arguments on one line.
pub fn command_line(program: &str, arguments: &[String]) -> String {
    let mut line = quoted(program);
    for word in arguments {
        line.push(' ');
        line.push_str(&quoted(word));
    }
    line
}

/// Hides the values of an entry that may be secret.
fn hide_secrets(entry: &mut Map<String, Value>) {
    for (name, value) in entry {
        match value {
            _ if NAMES.contains(&name.as_str()) => {}
            value if VALUES.contains(&name.as_str()) => hide(value),
            Value::String(address) if URLS.contains(&name.as_str()) => *address = url(address),
            Value::Array(words) if name == "args" => {
                let texts: Option<Vec<_>> =
                    words.iter().map(|word| word.as_str().map(str::to_owned)).collect();
                match texts {
                    Some(texts) => *value = arguments(&texts).into(),
                    None => hide(value),
                }
            }
            Value::Object(inner) => hide_secrets(inner),
            value if is_secret(name) => hide(value),
            _ => {}
        }
    }
}

/// Hides all texts and numbers, except for references to variables.
fn hide(value: &mut Value) {
    match value {
        Value::String(text) if is_reference(text) => {}
        Value::String(_) | Value::Number(_) => *value = HIDDEN.into(),
        Value::Array(items) => items.iter_mut().for_each(hide),
        Value::Object(members) => members.values_mut().for_each(hide),
        Value::Null | Value::Bool(_) => {}
    }
}

fn quoted(word: &str) -> String {
    match word.is_empty() || word.contains([' ', '"', '\'', '\n', '\t']) {
        true => escape::one_line(&format!("{word:?}")).into_owned(),
        false => escape::one_line(word).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_reaches_the_terminal_that_controls_it() {
        let entry = |program: &str, words: &[&str]| Entry::command(program, words.iter().copied());
        assert_eq!(line(&entry("a\u{1b}[31mb\u{202e}", &["\u{7}"])), r"a\u{1b}[31mb\u{202e} \u{7}");
        assert_eq!(line(&entry("a b\u{1b}", &["c\nd", ""])), r#""a b\u{1b}" "c\nd" """#);
        let url = Entry::Url { url: "https://a\u{1b}/\u{202e}".into(), headers: Vec::new() };
        assert_eq!(line(&url), r"https://a\u{1b}/\u{202e}");
    }
}
