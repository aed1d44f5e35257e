//! Entries as they may be shown: without the values that may be secret.

use super::{Entry, variables::is_reference};
use crate::escape;

pub const HIDDEN: &str = "…";

/// Parts of the names of arguments whose value may be secret.
const SECRET: [&str; 9] =
    ["auth", "bearer", "credential", "header", "key", "passw", "pat", "secret", "token"];

/// Returns the command or the URL of an entry on one line.
pub fn line(entry: &Entry) -> String {
    match entry {
        Entry::Command { program, arguments: words, .. } => {
            let mut line = quoted(program);
            for word in arguments(words) {
                line.push(' ');
                line.push_str(&quoted(&word));
            }
            line
        }
        Entry::Url { url: address, .. } => escape::one_line(&url(address)).into_owned(),
    }
}

/// Returns the arguments of a command, without the values of those that are named like secrets.
pub fn arguments(words: &[String]) -> Vec<String> {
    let mut shown = Vec::with_capacity(words.len());
    let mut hides_next = false;
    for word in words {
        let hides = std::mem::take(&mut hides_next);
        let is_option = word.starts_with('-');
        shown.push(match word.split_once(['=', ':']) {
            _ if word.contains("://") => url(word),
            Some((name, value)) if is_secret(name) && !is_reference(value) => {
                format!("{}{HIDDEN}", &word[..=name.len()])
            }
            None if is_option && is_secret(word) => {
                hides_next = true;
                word.clone()
            }
            _ if hides && !is_option && !is_reference(word) => HIDDEN.to_owned(),
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

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET.iter().any(|it| name.contains(it))
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
        let entry = |program: &str, words: &[&str]| Entry::Command {
            program: program.to_owned(),
            arguments: words.iter().map(|it| (*it).to_owned()).collect(),
            environment: Vec::new(),
            env_file: None,
            folder: None,
        };
        assert_eq!(line(&entry("a\u{1b}[31mb\u{202e}", &["\u{7}"])), r"a\u{1b}[31mb\u{202e} \u{7}");
        assert_eq!(line(&entry("a b\u{1b}", &["c\nd", ""])), r#""a b\u{1b}" "c\nd" """#);
        let url = Entry::Url { url: "https://a\u{1b}/\u{202e}".into(), headers: Vec::new() };
        assert_eq!(line(&url), r"https://a\u{1b}/\u{202e}");
    }
}
