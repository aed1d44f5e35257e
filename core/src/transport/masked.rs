//! Commands and URLs as they may be shown: without the values that may be secret.

pub const HIDDEN: &str = "…";

/// Parts of the names of arguments whose value may be secret.
const SECRET: [&str; 11] = [
    "auth",
    "bearer",
    "cookie",
    "credential",
    "header",
    "key",
    "pass",
    "pat",
    "pwd",
    "secret",
    "token",
];

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
    let mut before = "";
    for word in words {
        let hides = std::mem::take(&mut hides_next);
        let option = std::mem::replace(&mut before, word);
        let is_option = word.starts_with('-');
        shown.push(match word.split_once(['=', ':']) {
            _ if is_reference(word) => word.clone(),
            _ if word.contains("://") => url(word),
            _ if is_glued_password(word) => format!("{}{HIDDEN}", &word[..2]),
            Some((user, password)) if takes_user(option) && !is_number(password) => {
                format!("{}{HIDDEN}", &word[..=user.len()])
            }
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

/// Returns whether a word is the option `-p`, as of mysql and sshpass, or `-u`, as of curl, with its value. `-p8080` is a port. What
/// has lower-case letters only, such as `-port`, is taken for the name of an option.
fn is_glued_password(word: &str) -> bool {
    let value = word.strip_prefix("-p").or_else(|| word.strip_prefix("-u"));
    let is_word = |value: &str| value.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
    value.is_some_and(|value| {
        let name = value.split('=').next().unwrap_or_default();
        !is_word(name) && !is_number(value) && !is_reference(value)
    })
}

/// Returns whether the value of an option is the name of a user, perhaps with a password.
fn takes_user(option: &str) -> bool {
    matches!(option, "-u" | "--user")
}

fn is_number(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns a URL without its user information, its query and its fragment.
pub fn url(url: &str) -> String {
    let (start, rest) = url.split_once("://").unwrap_or(("", url));
    // Clients look for the host before all of these.
    let end = rest.find(['/', '\\', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let (user, host) = match authority.rsplit_once('@') {
        Some((_, host)) => ("…@", host),
        None => ("", authority),
    };
    let path = match path.find(['?', '#']) {
        Some(hidden) => format!("{}{HIDDEN}", &path[..=hidden]),
        None => path.to_owned(),
    };
    let separator = if url.len() > rest.len() { "://" } else { "" };
    format!("{start}{separator}{user}{host}{path}")
}

/// Returns whether a name is that of a secret.
pub fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.trim_start_matches('-') == "pw" || SECRET.iter().any(|part| name.contains(part))
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

/// Returns whether a string consists of one reference to a variable and so holds no secret itself.
pub fn is_reference(text: &str) -> bool {
    let name = text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
    name.is_some_and(|name| !name.contains(['}', '$']) && !name.contains(":-"))
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
            ("--pass s3cret --pwd=s3cret --pw s3cret", "--pass … --pwd=… --pw …"),
            ("ghp_abcdefghijkl run sk-abcdefghijkl", "… run …"),
            ("--with=ghp_abcdefghijkl x", "--with=… x"),
            (
                "aB3aB3aB3aB3aB3aB3aB3 @scope/Server-2025-of-a-long-name",
                "… @scope/Server-2025-of-a-long-name",
            ),
            ("-p 8080 -p package", "-p 8080 -p package"),
            ("-pS3cret -p8080 -port 80 -prefix=/a", "-p… -p8080 -port 80 -prefix=/a"),
            ("-u me:s3cret -ume:s3cret --user me:s3cret", "-u me:… -u… --user me:…"),
            ("-u 1000:1000 -u me -unbuffered", "-u 1000:1000 -u me -unbuffered"),
            ("-p${PASSWORD}", "-p${PASSWORD}"),
            ("--token ${env:TOKEN}", "--token ${env:TOKEN}"),
            ("--verbose /tmp a=b", "--verbose /tmp a=b"),
            ("postgres://me:s3cret@db/x?password=s3cret", "postgres://…@db/x?…"),
        ] {
            assert_eq!(arguments(&words(given)), words(shown), "{given}");
        }
        for (given, shown) in [
            ("https://a.b/c@d?key=s3cret", "https://a.b/c@d?…"),
            ("https://evil.example#@trusted.example/", "https://evil.example#…"),
            ("https://evil.example?@trusted.example/", "https://evil.example?…"),
            ("https://evil.example\\@trusted.example/", "https://evil.example\\@trusted.example/"),
            ("https://a@b@c/", "https://…@c/"),
            ("a?b#c", "a?…"),
        ] {
            assert_eq!(url(given), shown);
        }
    }

    #[test]
    fn a_reference_holds_no_secret_itself() {
        assert!(is_reference("${env:TOKEN}") && is_reference("${TOKEN}"));
        assert!(!is_reference("${TOKEN:-secret}") && !is_reference("x${TOKEN}"));
        assert!(!is_reference("${A}secret${B}"));
    }
}
