//! The authorization request, which the user's browser carries, and its response.

use super::{failure, shown};
use crate::{
    auth::{
        Secret,
        fetch::{decode_form, encode_form},
        is_equal,
        metadata::ServerMetadata,
        pkce::Verifier,
        scopes::{self, Scopes},
    },
    error::Error,
};

/// The scope by which a client asks for a refresh token.
const OFFLINE_ACCESS: &str = "offline_access";

/// An authorization request that was not answered yet.
#[derive(Debug)]
pub(super) struct Authorization {
    pub(super) client_id: String,
    pub(super) redirect_uri: String,
    pub(super) requested: Scopes,
    pub(super) verifier: Verifier,
    /// The value that ties the response to this request.
    pub(super) state: Secret,
    /// The issuer whose metadata were used, which the response must name.
    issuer: String,
    must_name_issuer: bool,
}

impl Authorization {
    /// Errors unless the authorization server has the endpoints, and supports PKCE with S256 (spec: "Authorization Code
    /// Protection").
    pub(super) fn check(server: &ServerMetadata) -> Result<(), Error> {
        let issuer = &server.issuer;
        if server.authorization_endpoint.is_none() || server.token_endpoint.is_none() {
            return Err(failure(format!(
                "the authorization server {issuer} has no authorization_endpoint or no token_endpoint"
            )));
        }
        let methods = server.code_challenge_methods_supported.as_deref().unwrap_or_default();
        if !methods.iter().any(|method| method == "S256") {
            return Err(failure(format!(
                "the authorization server {issuer} does not support PKCE with S256, without which signing in is not safe"
            ))
            .with_hint("its metadata must list S256 in code_challenge_methods_supported"));
        }
        Ok(())
    }

    pub(super) fn new(
        server: &ServerMetadata,
        client_id: String,
        redirect_uri: String,
        requested: Scopes,
        verifier: Verifier,
        state: String,
    ) -> Self {
        Self {
            client_id,
            redirect_uri,
            requested,
            verifier,
            state: state.into(),
            issuer: server.issuer.clone(),
            must_name_issuer: server.authorization_response_iss_parameter_supported,
        }
    }

    /// Returns the URL to open.
    pub(super) fn url(&self, server: &ServerMetadata, resource: &str) -> String {
        let endpoint = server.authorization_endpoint.as_deref().unwrap_or_default();
        let (scope, challenge) = (scopes::join(&self.requested), self.verifier.challenge());
        let mut fields = vec![
            ("response_type", "code"),
            ("client_id", &self.client_id),
            ("redirect_uri", &self.redirect_uri),
            ("state", self.state.expose()),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
            ("resource", resource),
        ];
        if !scope.is_empty() {
            fields.push(("scope", &scope));
        }
        if self.requested.contains(OFFLINE_ACCESS) {
            // OpenID Connect Core, section 11: otherwise the scope is ignored.
            fields.push(("prompt", "consent"));
        }
        let separator = if endpoint.contains('?') { '&' } else { '?' };
        format!("{endpoint}{separator}{}", encode_form(&fields))
    }

    /// Reads the URL to which the browser was redirected, and returns the authorization code.
    ///
    /// Nothing in a response without the right `state` and `iss` is shown (spec: "Authorization Response Validation").
    pub(super) fn read(&self, redirect: &str) -> Result<Secret, Error> {
        let query = redirect.split_once('?').map_or(redirect, |(_, query)| query);
        let fields = decode_form(query.split('#').next().unwrap_or_default());
        let get = |name: &str| {
            let mut found =
                fields.iter().filter(|(key, _)| key == name).map(|(_, value)| value.as_str());
            match (found.next(), found.next()) {
                (value, None) => Ok(value),
                _ => Err(failure(format!("the authorization response has {name} twice"))),
            }
        };
        if !get("state")?
            .is_some_and(|state| is_equal(state.as_bytes(), self.state.expose().as_bytes()))
        {
            return Err(failure("the authorization response belongs to another sign-in")
                .with_hint("sign in again, in the window that was opened last"));
        }
        match get("iss")? {
            // A plain comparison (RFC 9207, section 2.4).
            Some(issuer) if issuer != self.issuer => {
                return Err(failure(format!(
                    "the authorization response is from another authorization server than {}, so it was not used",
                    self.issuer
                )));
            }
            None if self.must_name_issuer => {
                return Err(failure(format!(
                    "the authorization response does not name its issuer, which {} announced to do, so it was not used",
                    self.issuer
                )));
            }
            _ => (),
        }
        if let Some(error) = get("error")? {
            let description = get("error_description")?.map(shown).unwrap_or_default();
            let words = match description.is_empty() {
                true => shown(error),
                false => format!("{}: {description}", shown(error)),
            };
            return Err(failure(match error {
                "access_denied" => format!("the sign-in was declined ({words})"),
                _ => format!("the authorization server {} refused ({words})", self.issuer),
            }));
        }
        match get("code")? {
            Some(code) if !code.is_empty() => Ok(code.into()),
            _ => Err(failure("the authorization response has no code")),
        }
    }
}

/// Returns the scopes to request (spec: "Scope Selection Strategy" and "Step-Up Authorization Flow"): those of the challenge,
/// or else those of the metadata; with them the user's, and those that were requested or granted before.
pub(super) fn select_scopes(
    own: &[String],
    challenged: Option<&Scopes>,
    supported: Option<&[String]>,
    before: &Scopes,
    server: &ServerMetadata,
    is_interactive: bool,
) -> Scopes {
    let own: Scopes = own.iter().cloned().collect();
    let mut selected = match challenged {
        Some(scopes) => scopes.clone(),
        None if own.is_empty() => supported.unwrap_or_default().iter().cloned().collect(),
        None => Scopes::new(),
    };
    selected.extend(before.iter().cloned());
    let listed = server.scopes_supported.as_deref().unwrap_or_default();
    match is_interactive && listed.iter().any(|scope| scope == OFFLINE_ACCESS) {
        // Alone it would replace the scopes that the authorization server grants by default.
        true if !selected.is_empty() || !own.is_empty() => {
            selected.insert(OFFLINE_ACCESS.to_owned());
        }
        true => (),
        false => {
            selected.remove(OFFLINE_ACCESS);
        }
    }
    scopes::union(&selected, &own)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(must_name_issuer: bool) -> ServerMetadata {
        ServerMetadata {
            issuer: "https://as.example.com".into(),
            authorization_endpoint: Some("https://as.example.com/authorize?tenant=1".into()),
            token_endpoint: Some("https://as.example.com/token".into()),
            code_challenge_methods_supported: Some(vec!["plain".into(), "S256".into()]),
            authorization_response_iss_parameter_supported: must_name_issuer,
            ..ServerMetadata::default()
        }
    }

    fn request(must_name_issuer: bool) -> Authorization {
        let scopes = scopes::parse("a b");
        let redirect = "http://127.0.0.1:7/callback".to_owned();
        let verifier = Verifier::new([1; 32]);
        let server = server(must_name_issuer);
        Authorization::new(&server, "me".into(), redirect, scopes, verifier, "s3cret".into())
    }

    #[test]
    fn the_url_has_the_fields_of_the_specification() {
        let request = request(true);
        let url = request.url(&server(true), "https://mcp.example.com");
        let challenge = request.verifier.challenge();
        assert_eq!(
            url,
            format!(
                "https://as.example.com/authorize?tenant=1&response_type=code&client_id=me\
                 &redirect_uri=http%3A%2F%2F127.0.0.1%3A7%2Fcallback&state=s3cret&code_challenge={challenge}\
                 &code_challenge_method=S256&resource=https%3A%2F%2Fmcp.example.com&scope=a%20b"
            )
        );
        assert!(!format!("{request:?}").contains("s3cret"));
    }

    /// 2026-07-28, "Authorization Code Protection": clients MUST refuse to proceed.
    #[test]
    fn an_authorization_server_without_pkce_is_refused() {
        Authorization::check(&server(true)).unwrap();
        for methods in [None, Some(vec![]), Some(vec!["plain".to_owned()])] {
            let server =
                ServerMetadata { code_challenge_methods_supported: methods, ..server(true) };
            assert!(Authorization::check(&server).unwrap_err().to_string().contains("PKCE"));
        }
    }

    /// 2026-07-28, "Authorization Response Validation": the table, and RFC 9207, section 2.4.
    #[test]
    fn the_issuer_of_a_response_is_compared_as_a_plain_string() {
        let read = |must: bool, query: &str| {
            let url = format!("http://127.0.0.1:7/callback?{query}");
            request(must)
                .read(&url)
                .map(|code| code.expose().to_owned())
                .map_err(|error| error.to_string())
        };
        let good = "state=s3cret&code=c%2Bd&iss=https%3A%2F%2Fas.example.com";
        assert_eq!(read(true, good), Ok("c+d".into()));
        assert_eq!(read(false, good), Ok("c+d".into()));
        assert_eq!(read(false, "state=s3cret&code=c"), Ok("c".into()));
        assert!(
            read(true, "state=s3cret&code=c").unwrap_err().contains("does not name its issuer")
        );
        for issuer in
            ["https://as.example.com/", "https://AS.example.com", "https://evil.example", ""]
        {
            for must in [true, false] {
                for rest in ["code=c", "error=access_denied&error_description=call+evil"] {
                    let error = read(must, &format!("state=s3cret&iss={issuer}&{rest}"));
                    let error = error.unwrap_err();
                    assert!(error.contains("another authorization server"), "{error}");
                    assert!(!error.contains("evil") && !error.contains("denied"), "{error}");
                }
            }
        }
    }

    #[test]
    fn a_response_to_another_request_is_not_used() {
        let read = |query: &str| request(false).read(query).unwrap_err().to_string();
        for query in ["?code=c", "?code=c&state=", "?code=c&state=s3cre", "?error=evil&state=x", ""]
        {
            let error = read(query);
            assert!(error.contains("another sign-in") && !error.contains("evil"), "{error}");
        }
        assert!(read("?state=s3cret&state=s3cret&code=c").contains("twice"));
        assert!(read("?state=s3cret&code=c&code=d").contains("twice"));
        assert!(read("?state=s3cret").contains("no code"));
        let denied = read("?state=s3cret&error=access_denied&error_description=no%0Athanks%9");
        assert!(denied.contains("declined (access_denied: nothanks%9)"), "{denied}");
        assert!(read("?state=s3cret&error=server_error").contains("refused (server_error)"));
    }

    /// 2026-07-28, "Scope Selection Strategy", "Step-Up Authorization Flow", "Refresh Tokens".
    #[test]
    fn scopes_are_those_of_the_challenge_or_of_the_metadata() {
        let select =
            |own: &str, challenged: Option<&str>, supported: &str, before: &str, listed| {
                let list =
                    |text: &str| text.split_whitespace().map(ToOwned::to_owned).collect::<Vec<_>>();
                let server = ServerMetadata {
                    scopes_supported: Some(list(listed)),
                    ..ServerMetadata::default()
                };
                let supported = list(supported);
                let selected = select_scopes(
                    &list(own),
                    challenged.map(scopes::parse).as_ref(),
                    (!supported.is_empty()).then_some(&*supported),
                    &scopes::parse(before),
                    &server,
                    true,
                );
                scopes::join(&selected)
            };
        assert_eq!(select("", Some("a"), "b c", "", ""), "a");
        assert_eq!(select("", None, "b c", "", ""), "b c");
        assert_eq!(select("", None, "", "", ""), "");
        assert_eq!(select("own", None, "b", "", ""), "own");
        assert_eq!(select("own", Some("a"), "b", "", ""), "a own");
        assert_eq!(select("", Some("write"), "profile", "basic", ""), "basic write");
        assert_eq!(select("", Some("a"), "", "", "a offline_access"), "a offline_access");
        assert_eq!(select("", None, "", "", "offline_access"), "");
        assert_eq!(select("", Some("a offline_access"), "", "", "a"), "a");
    }
}
