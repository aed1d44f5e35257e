//! Entries as they may be shown: without the values that may be secret.

use gudgeon::client::configuration::is_reference;
use serde_json::{Map, Value};

use super::Entry;
use crate::escape;

pub const HIDDEN: &str = "…";

/// Parts of the names of arguments whose value may be secret.
const SECRET: [&str; 10] =
    ["auth", "bearer", "credential", "header", "key", "pass", "pat", "pwd", "secret", "token"];

/// The starts of secrets that are known by them, such as those of GitHub, GitLab, Slack, AWS, and JSON Web Tokens.
const SECRET_STARTS: [&str; 13] = [
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "xox",
    "sk-",
    "sk_",
    "AKIA",
    "ASIA",
    "eyJ",
];

/// The length from which a word of mixed letters and digits is taken for a secret.
const SECRET_LENGTH: usize = 20;

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

/// Returns the arguments of a command, without what is named like a secret or looks like one.
pub fn arguments(words: &[String]) -> Vec<String> {
    let without_secret = |word: String| match word.split_once('=') {
        _ if is_reference(&word) => word,
        _ if looks_secret(&word) => HIDDEN.to_owned(),
        Some((name, value)) if looks_secret(value) => format!("{name}={HIDDEN}"),
        _ => word,
    };
    without_named(words).into_iter().map(without_secret).collect()
}

/// Returns the arguments of a command, without the values of those that are named like secrets.
pub fn without_named(words: &[String]) -> Vec<String> {
    let mut shown = Vec::with_capacity(words.len());
    let mut hides_next = false;
    for word in words {
        let hides = std::mem::take(&mut hides_next);
        let is_option = word.starts_with('-');
        shown.push(match word.split_once(['=', ':']) {
            _ if is_reference(word) => word.clone(),
            _ if word.contains("://") => url(word),
            // Also `Server=a;Password=b`.
            Some((name, value)) if is_secret(word) && !is_reference(value) => {
                format!("{}{HIDDEN}", &word[..=name.len()])
            }
            None if is_option && is_secret(word) => {
                hides_next = true;
                word.clone()
            }
            _ if hides && !is_option => HIDDEN.to_owned(),
            _ => word.clone(),
        });
    }
    shown
}

/// Returns a URL without its user information and its query.
pub fn url(url: &str) -> String {
    let (address, query) = url.split_once('?').map_or((url, ""), |it| (it.0, "?…"));
    let Some((scheme, rest)) = address.split_once("://") else {
        return format!("{address}{query}");
    };
    let authority = rest.find('/').unwrap_or(rest.len());
    let (user, at) = match rest[..authority].rfind('@') {
        Some(end) => ("…@", end + 1),
        None => ("", 0),
    };
    format!("{scheme}://{user}{}{query}", &rest[at..])
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

pub fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET.iter().any(|it| name.contains(it))
}

/// Returns whether a word is a secret by its form.
fn looks_secret(word: &str) -> bool {
    let has = |is: fn(&u8) -> bool| word.bytes().any(|byte| is(&byte));
    let is_plain =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'+' | b'=');
    SECRET_STARTS.iter().any(|start| word.starts_with(start) && word.len() > start.len() + 8)
        || word.len() >= SECRET_LENGTH
            && word.bytes().all(is_plain)
            && has(u8::is_ascii_lowercase)
            && has(u8::is_ascii_uppercase)
            && has(u8::is_ascii_digit)
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
    fn secrets_in_arguments_and_urls_are_hidden() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        for (given, shown) in [
            ("--api-key s3cret run", "--api-key … run"),
            ("--api-key=s3cret run", "--api-key=… run"),
            ("--header Authorization:s3cret", "--header Authorization:…"),
            ("TOKEN=s3cret x", "TOKEN=… x"),
            ("Server=a;Password=s3cret x", "Server=… x"),
            ("--pass s3cret --pwd=s3cret", "--pass … --pwd=…"),
            ("ghp_abcdefghijkl run sk-abcdefghijkl", "… run …"),
            ("--with=ghp_abcdefghijkl x", "--with=… x"),
            (
                "aB3aB3aB3aB3aB3aB3aB3 @scope/Server-2025-of-a-long-name",
                "… @scope/Server-2025-of-a-long-name",
            ),
            ("-p 8080 -p package", "-p 8080 -p package"),
            ("--token ${env:TOKEN}", "--token ${env:TOKEN}"),
            ("--verbose /tmp a=b", "--verbose /tmp a=b"),
            ("postgres://me:s3cret@db/x?password=s3cret", "postgres://…@db/x?…"),
        ] {
            assert_eq!(arguments(&words(given)), words(shown), "{given}");
        }
        assert_eq!(url("https://a.b/c@d?key=s3cret"), "https://a.b/c@d?…");
    }

    #[test]
    fn nothing_reaches_the_terminal_that_controls_it() {
        let entry = |program: &str, words: &[&str]| Entry::command(program, words.iter().copied());
        assert_eq!(line(&entry("a\u{1b}[31mb\u{202e}", &["\u{7}"])), r"a\u{1b}[31mb\u{202e} \u{7}");
        assert_eq!(line(&entry("a b\u{1b}", &["c\nd", ""])), r#""a b\u{1b}" "c\nd" """#);
        let url = Entry::Url { url: "https://a\u{1b}/\u{202e}".into(), headers: Vec::new() };
        assert_eq!(line(&url), r"https://a\u{1b}/\u{202e}");
    }
}
