//! The `WWW-Authenticate` header of a request that is refused (RFC 6750, section 3).

use http::HeaderValue;

use super::Refused;

/// The algorithms of proofs, for clients that have to make one (RFC 9449, section 7.1).
const ALGORITHMS: &str = "ES256 ES384 EdDSA PS256 RS256";

/// The demands of a server, beside the reason of a refusal.
#[derive(Clone, Debug, Default)]
pub(super) struct Demands {
    /// The URL of the document about this resource (RFC 9728, section 5.1).
    pub(super) metadata: Option<String>,
    /// The scopes that every request needs.
    pub(super) scopes: Vec<String>,
    /// `true` if tokens have to be bound to a key.
    pub(super) needs_dpop: bool,
}

/// Returns the challenge of a refusal. For a request without credentials it names no error, as the RFC requires.
pub(super) fn for_refusal(
    refused: &Refused,
    has_credentials: bool,
    demands: &Demands,
) -> Option<HeaderValue> {
    let mut scheme = if demands.needs_dpop { "DPoP" } else { "Bearer" };
    let metadata = demands.metadata.as_deref().map_or_else(String::new, |url| quotable(url, false));
    let error = |name: &str| ("error", name.to_owned());
    let description = |text: &str| ("error_description", quotable(text, true));
    let (metadata, scope) = (("resource_metadata", metadata), ("scope", list(&demands.scopes)));
    let mut parameters = match refused {
        Refused::NoCredentials => vec![metadata, scope],
        Refused::InvalidToken(_) if !has_credentials => vec![metadata, scope],
        Refused::InvalidToken(text) => {
            vec![error("invalid_token"), description(text), metadata, scope]
        }
        Refused::InvalidRequest(text) => {
            vec![error("invalid_request"), description(text), metadata]
        }
        Refused::InvalidProof(text) => {
            scheme = "DPoP";
            vec![error("invalid_dpop_proof"), description(text), metadata]
        }
        Refused::NeedsNonce(_) => {
            scheme = "DPoP";
            let text = "the DPoP proof needs the nonce of the header DPoP-Nonce";
            vec![error("use_dpop_nonce"), description(text), metadata]
        }
        Refused::InsufficientScope { scopes, message } => {
            vec![
                error("insufficient_scope"),
                ("scope", list(scopes)),
                metadata,
                description(message),
            ]
        }
        _ => return None,
    };
    if scheme == "DPoP" {
        parameters.push(("algs", ALGORITHMS.to_owned()));
    }
    let parameters = parameters.into_iter().filter(|(_, value)| !value.is_empty());
    let parameters: Vec<_> =
        parameters.map(|(name, value)| format!("{name}=\"{value}\"")).collect();
    HeaderValue::try_from(format!("{scheme} {}", parameters.join(", ")).trim_end()).ok()
}

/// Writes scopes with spaces between them.
fn list(scopes: &[String]) -> String {
    let scopes: Vec<_> = scopes.iter().map(|scope| quotable(scope, false)).collect();
    scopes.join(" ")
}

/// Removes the characters that a quoted value of the header may not contain.
fn quotable(text: &str, spaces: bool) -> String {
    let is_allowed = |character: &char| match character {
        ' ' => spaces,
        '"' | '\\' => false,
        _ => character.is_ascii_graphic(),
    };
    text.chars().filter(is_allowed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn description(refused: &Refused, has_credentials: bool) -> String {
        header(refused, has_credentials, &Demands::default())
    }

    fn header(refused: &Refused, has_credentials: bool, demands: &Demands) -> String {
        let header = for_refusal(refused, has_credentials, demands);
        header.map_or_else(String::new, |value| value.to_str().unwrap().to_owned())
    }

    /// 2026-07-28, "Scope Selection Strategy", "Runtime Insufficient Scope Errors"; RFC 9449, section 7.1.
    #[test]
    fn a_challenge_says_where_to_get_credentials() {
        let metadata = "https://mcp.example.com/.well-known/oauth-protected-resource/mcp";
        let place = format!("resource_metadata=\"{metadata}\"");
        let demands = Demands {
            metadata: Some(metadata.into()),
            scopes: vec!["a".into(), "b".into()],
            needs_dpop: false,
        };
        let bearer = |refused: Refused| header(&refused, true, &demands);
        assert_eq!(bearer(Refused::NoCredentials), format!("Bearer {place}, scope=\"a b\""));
        assert_eq!(
            bearer(Refused::InvalidToken("it expired".into())),
            format!(
                "Bearer error=\"invalid_token\", error_description=\"it expired\", {place}, scope=\"a b\""
            )
        );
        assert_eq!(
            bearer(Refused::InvalidRequest("twice".into())),
            format!("Bearer error=\"invalid_request\", error_description=\"twice\", {place}")
        );
        assert_eq!(
            bearer(Refused::InsufficientScope { scopes: vec!["w".into()], message: "no".into() }),
            format!(
                "Bearer error=\"insufficient_scope\", scope=\"w\", {place}, error_description=\"no\""
            )
        );
        let algorithms = format!("algs=\"{ALGORITHMS}\"");
        assert_eq!(
            bearer(Refused::InvalidProof("old".into())),
            format!(
                "DPoP error=\"invalid_dpop_proof\", error_description=\"old\", {place}, {algorithms}"
            )
        );
        assert!(
            bearer(Refused::NeedsNonce("n".into())).starts_with("DPoP error=\"use_dpop_nonce\"")
        );
        assert_eq!(bearer(Refused::AuthUnavailable), "");
        let demands = Demands { needs_dpop: true, ..demands };
        let expected = format!("DPoP {place}, scope=\"a b\", {algorithms}");
        assert_eq!(header(&Refused::NoCredentials, false, &demands), expected);
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
