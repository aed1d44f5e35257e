//! The paths of the proxy, all of them at or below the path of the MCP endpoint, so that a host that mounts the endpoint serves
//! them as well.

/// A resource of the proxy.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum OAuthEndpoint {
    Metadata,
    /// The keys of identity tokens, which the proxy does not issue.
    Keys,
    Authorize,
    /// The user's decision.
    Consent,
    /// The place to which the provider sends the browser back.
    Callback,
    Token,
    Register,
    Revoke,
}

const ENDPOINTS: [(&str, OAuthEndpoint); 7] = [
    ("/oauth/jwks", OAuthEndpoint::Keys),
    ("/oauth/authorize", OAuthEndpoint::Authorize),
    ("/oauth/consent", OAuthEndpoint::Consent),
    ("/oauth/callback", OAuthEndpoint::Callback),
    ("/oauth/token", OAuthEndpoint::Token),
    ("/oauth/register", OAuthEndpoint::Register),
    ("/oauth/revoke", OAuthEndpoint::Revoke),
];
const METADATA: [&str; 2] =
    ["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"];

impl OAuthEndpoint {
    /// Returns the resource at a path, and the path of the MCP endpoint that it belongs to.
    pub fn at(path: &str) -> Option<(Self, String)> {
        let path = path.strip_suffix('/').unwrap_or(path);
        for (suffix, endpoint) in ENDPOINTS {
            if let Some(base) = path.strip_suffix(suffix) {
                return Some((endpoint, base.to_owned()));
            }
        }
        METADATA.iter().find_map(|well_known| {
            let (before, behind) = path.split_once(well_known)?;
            let is_whole = behind.is_empty() || behind.starts_with('/');
            is_whole.then(|| (Self::Metadata, format!("{before}{behind}")))
        })
    }

    /// Returns the paths of all resources for the MCP endpoint at this path, which has no slash at its end.
    pub fn paths(endpoint: &str) -> impl Iterator<Item = String> {
        let metadata = METADATA.iter().map(move |well_known| format!("{well_known}{endpoint}"));
        metadata.chain(ENDPOINTS.iter().map(move |(suffix, _)| format!("{endpoint}{suffix}")))
    }

    /// Returns the URL of the resource; the issuer is the URL of the MCP endpoint.
    pub(super) fn url(self, issuer: &str) -> String {
        let suffix = ENDPOINTS
            .iter()
            .find(|(_, endpoint)| *endpoint == self)
            .map_or("", |(suffix, _)| suffix);
        format!("{issuer}{suffix}")
    }

    /// Returns whether pages of other origins may call it: they send no cookies to it.
    pub fn is_for_programs(self) -> bool {
        matches!(self, Self::Metadata | Self::Keys | Self::Token | Self::Register | Self::Revoke)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_a_resource_and_its_endpoint() {
        for (path, expected) in [
            ("/mcp/oauth/token", Some((OAuthEndpoint::Token, "/mcp"))),
            ("/oauth/authorize", Some((OAuthEndpoint::Authorize, ""))),
            ("/a/b/oauth/callback/", Some((OAuthEndpoint::Callback, "/a/b"))),
            (
                "/.well-known/oauth-authorization-server/mcp",
                Some((OAuthEndpoint::Metadata, "/mcp")),
            ),
            ("/mcp/.well-known/openid-configuration", Some((OAuthEndpoint::Metadata, "/mcp"))),
            ("/.well-known/openid-configuration", Some((OAuthEndpoint::Metadata, ""))),
            ("/.well-known/openid-configurations", None),
            ("/mcp", None),
            ("/mcp/oauth/other", None),
            ("/mcp/xoauth/token", None),
        ] {
            let found = OAuthEndpoint::at(path);
            let found = found.as_ref().map(|(endpoint, base)| (*endpoint, base.as_str()));
            assert_eq!(found, expected, "{path}");
        }
        for path in OAuthEndpoint::paths("/mcp") {
            assert!(OAuthEndpoint::at(&path).is_some_and(|(_, base)| base == "/mcp"), "{path}");
        }
        let url = OAuthEndpoint::Token.url("https://mcp.example.com/mcp");
        assert_eq!(url, "https://mcp.example.com/mcp/oauth/token");
    }
}
