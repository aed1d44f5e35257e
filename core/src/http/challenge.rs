//! The `WWW-Authenticate` header of a request that is refused (RFC 6750, section 3).

use http::HeaderValue;

use super::Refused;

/// Returns the challenge of a refusal. For a request without credentials it names no error, as the RFC requires.
pub(super) fn of(refused: &Refused, has_credentials: bool) -> Option<HeaderValue> {
    let parameters = match refused {
        Refused::InvalidToken(_) if !has_credentials => {
            return Some(HeaderValue::from_static("Bearer"));
        }
        Refused::InvalidToken(message) => vec![
            ("error", "invalid_token".to_owned()),
            ("error_description", quotable(message, true)),
        ],
        Refused::InsufficientScope { scopes, message } => {
            let scopes: Vec<_> = scopes.iter().map(|it| quotable(it, false)).collect();
            vec![
                ("error", "insufficient_scope".to_owned()),
                ("scope", scopes.join(" ")),
                ("error_description", quotable(message, true)),
            ]
        }
        _ => return None,
    };
    let parameters = parameters.into_iter().filter(|(_, value)| !value.is_empty());
    let parameters: Vec<_> =
        parameters.map(|(name, value)| format!("{name}=\"{value}\"")).collect();
    HeaderValue::try_from(format!("Bearer {}", parameters.join(", "))).ok()
}

/// Removes the characters that a quoted value of the header may not contain.
fn quotable(text: &str, spaces: bool) -> String {
    let is_allowed = |it: &char| match it {
        ' ' => spaces,
        '"' | '\\' => false,
        _ => it.is_ascii_graphic(),
    };
    text.chars().filter(is_allowed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn description(refused: &Refused, has_credentials: bool) -> String {
        of(refused, has_credentials).map_or_else(String::new, |it| it.to_str().unwrap().to_owned())
    }

    #[test]
    fn a_challenge_says_what_is_wrong_with_the_credentials() {
        let expired = Refused::InvalidToken("the \"token\"\r\nexpired".into());
        assert_eq!(
            description(&expired, true),
            r#"Bearer error="invalid_token", error_description="the tokenexpired""#
        );
        assert_eq!(description(&expired, false), "Bearer");
        let lacking = Refused::InsufficientScope {
            scopes: vec!["books:read".into(), "books write\"".into()],
            message: String::new(),
        };
        assert_eq!(
            description(&lacking, true),
            r#"Bearer error="insufficient_scope", scope="books:read bookswrite""#
        );
        assert_eq!(description(&Refused::Unidentified, true), "");
    }
}
