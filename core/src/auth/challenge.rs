//! The `WWW-Authenticate` header as clients read it (RFC 9110, section 11.6.1).

/// The maximum length of the headers together, in bytes. What is beyond is not read.
const MAX_LENGTH: usize = 16 * 1024;
const MAX_CHALLENGES: usize = 16;
const MAX_PARAMETERS: usize = 64;

/// One challenge: a scheme with its parameters.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Challenge {
    /// The scheme as it was sent; [`Challenge::is`] compares it.
    pub scheme: String,
    /// The value of a scheme that has one value instead of parameters.
    pub token68: Option<String>,
    /// The parameters, with names in lower case. The first of several with one name counts.
    pub parameters: Vec<(String, String)>,
}

impl Challenge {
    /// Returns whether the scheme has this name, in any case.
    pub fn is(&self, scheme: &str) -> bool {
        self.scheme.eq_ignore_ascii_case(scheme)
    }

    /// Returns the value of a parameter, whose name is given in lower case.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// Reads all challenges of an answer. Reading ends, without an error, at the first text that is not a challenge.
pub fn parse<'a>(values: impl IntoIterator<Item = &'a str>) -> Vec<Challenge> {
    let mut challenges = Vec::new();
    let mut room = MAX_LENGTH;
    for value in values {
        if value.len() > room {
            break;
        }
        room -= value.len();
        Parser { rest: value }.challenges(&mut challenges);
    }
    challenges
}

/// Returns the challenge that an OAuth client answers: the first with the scheme `DPoP` if there is one and the client has
/// a key, else the first with `Bearer`.
pub fn for_oauth(challenges: &[Challenge], has_key: bool) -> Option<&Challenge> {
    let with = |scheme: &str| challenges.iter().find(|challenge| challenge.is(scheme));
    match has_key {
        true => with("DPoP").or_else(|| with("Bearer")),
        false => with("Bearer").or_else(|| with("DPoP")),
    }
}

struct Parser<'a> {
    rest: &'a str,
}

impl<'a> Parser<'a> {
    fn challenges(&mut self, found: &mut Vec<Challenge>) {
        let first = found.len();
        loop {
            self.rest = self.rest.trim_start_matches([' ', '\t', ',']);
            let Some(name) = self.token() else { return };
            let before = self.rest;
            self.skip_spaces();
            if self.rest.starts_with('=') {
                // A parameter needs a challenge in the same header.
                let Some(challenge) = found.get_mut(first..).and_then(<[_]>::last_mut) else {
                    return;
                };
                self.rest = self.rest[1..].trim_start_matches([' ', '\t']);
                let Some(value) = self.value() else { return };
                let name = name.to_ascii_lowercase();
                if challenge.get(&name).is_none() && challenge.parameters.len() < MAX_PARAMETERS {
                    challenge.parameters.push((name, value));
                }
                continue;
            }
            if found.len() == MAX_CHALLENGES {
                return;
            }
            let has_space = before.len() != self.rest.len();
            let token68 = if has_space { self.token68() } else { None };
            let (scheme, parameters) = (name.to_owned(), Vec::new());
            found.push(Challenge { scheme, token68, parameters });
        }
    }

    fn skip_spaces(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t']);
    }

    fn token(&mut self) -> Option<&'a str> {
        let is_token =
            |letter: char| letter.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(letter);
        let end = self.rest.find(|letter| !is_token(letter)).unwrap_or(self.rest.len());
        let (token, rest) = self.rest.split_at(end);
        self.rest = rest;
        (!token.is_empty()).then_some(token)
    }

    /// Reads a value of a challenge that has no parameters. It ends at a comma or at the end of the header.
    fn token68(&mut self) -> Option<String> {
        let is_part = |letter: char| letter.is_ascii_alphanumeric() || "-._~+/".contains(letter);
        let end = self.rest.find(|letter| !is_part(letter)).unwrap_or(self.rest.len());
        let padding = self.rest[end..].len() - self.rest[end..].trim_start_matches('=').len();
        let (value, rest) = self.rest.split_at(end + padding);
        let follows = rest.trim_start_matches([' ', '\t']);
        if end == 0 || !(follows.is_empty() || follows.starts_with(',')) {
            return None;
        }
        self.rest = follows;
        Some(value.to_owned())
    }

    fn value(&mut self) -> Option<String> {
        let Some(quoted) = self.rest.strip_prefix('"') else {
            return self.token().map(ToOwned::to_owned);
        };
        let mut value = String::new();
        let mut characters = quoted.char_indices();
        while let Some((place, it)) = characters.next() {
            match it {
                '"' => {
                    self.rest = &quoted[place + 1..];
                    return Some(value);
                }
                '\\' => value.push(characters.next()?.1),
                it => value.push(it),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_challenges_of_the_specification_are_read() {
        let header = "Bearer error=\"insufficient_scope\",\n  scope=\"files:write\",\n \
                      resource_metadata=\"https://mcp.example.com/.well-known/oauth-protected-resource\""
            .replace('\n', "");
        let found = parse([header.as_str()]);
        assert_eq!(found.len(), 1);
        assert!(found[0].is("bearer"));
        assert_eq!(found[0].get("scope"), Some("files:write"));
        assert_eq!(found[0].get("error"), Some("insufficient_scope"));
        let place = "https://mcp.example.com/.well-known/oauth-protected-resource";
        assert_eq!(found[0].get("resource_metadata"), Some(place));
    }

    #[test]
    fn several_challenges_stand_in_one_header_or_in_several() {
        let found = parse([
            r#"Negotiate, Basic realm="a, b=\"c\"" , , charset=UTF-8, DPoP algs="ES256 PS256""#,
            r#"NTLM abc/+==, Bearer Scope = "x" , scope="y""#,
        ]);
        let schemes: Vec<_> = found.iter().map(|challenge| challenge.scheme.as_str()).collect();
        assert_eq!(schemes, ["Negotiate", "Basic", "DPoP", "NTLM", "Bearer"]);
        assert_eq!(found[1].get("realm"), Some(r#"a, b="c""#));
        assert_eq!(found[1].get("charset"), Some("UTF-8"));
        assert_eq!(found[3].token68.as_deref(), Some("abc/+=="));
        assert_eq!(found[4].get("scope"), Some("x"));
        assert_eq!(for_oauth(&found, true).unwrap().scheme, "DPoP");
        assert_eq!(for_oauth(&found, false).unwrap().scheme, "Bearer");
    }

    #[test]
    fn what_is_no_challenge_ends_the_reading() {
        for header in ["", ",", "=", "scope=\"x\"", "\"x\""] {
            assert!(parse([header]).is_empty(), "{header}");
        }
        let cut = parse([r#"Bearer scope="x", error="never ends"#]);
        assert_eq!(cut[0].parameters, [("scope".to_owned(), "x".to_owned())]);
        let long = format!("Bearer scope=\"{}\"", "x".repeat(MAX_LENGTH));
        assert!(parse([long.as_str()]).is_empty());
        assert_eq!(parse(["a, ".repeat(1_000).as_str()]).len(), MAX_CHALLENGES);
    }

    proptest! {
        #[test]
        fn written_values_are_read_back(value in "[ -~é]{0,40}", other in "[a-z]{1,9}") {
            let quoted = value.replace('\\', "\\\\").replace('"', "\\\"");
            let header = format!("Bearer a=\"{quoted}\", b={other},DPoP");
            let found = parse([header.as_str()]);
            prop_assert_eq!(found.len(), 2);
            prop_assert_eq!(found[0].get("a"), Some(value.as_str()));
            prop_assert_eq!(found[0].get("b"), Some(other.as_str()));
        }

        #[test]
        fn any_text_is_read_without_a_panic(text in "[\\PC\\s]{0,80}") {
            parse([text.as_str()]);
        }
    }
}
