//! The clients of an authorization server: registered by its operator, by themselves, or by a document at their id.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{super::server::jwk::Jwks, bounded::Bounded, message::OAuthError};
use crate::{
    auth::{Secret, fetch::check_url, url::WebUrl},
    protocol::json,
};

/// The maximum number of clients that registered themselves.
pub(super) const MAX_REGISTERED: usize = 1_000;
/// The maximum number of documents that are kept.
const MAX_DOCUMENTS: usize = 1_000;
const MAX_REDIRECT_URIS: usize = 16;
const MAX_URI: usize = 2_048;
/// The schemes of clients that are not the domain names in reverse that RFC 8252, section 7.1 requires.
const CLIENT_SCHEMES: [&str; 17] = [
    "antigravity",
    "claude",
    "code-oss",
    "cursor",
    "cursor-nightly",
    "goose",
    "jetbrains",
    "kiro",
    "lmstudio",
    "positron",
    "raycast",
    "trae",
    "vscode",
    "vscode-insiders",
    "vscodium",
    "windsurf",
    "zed",
];

/// The top-level domains of schemes that are domain names in reverse, beside those of countries.
const TOP_LEVEL_DOMAINS: [&str; 18] = [
    "app", "biz", "cloud", "com", "dev", "edu", "gov", "info", "net", "online", "org", "page",
    "site", "software", "systems", "tech", "tools", "xyz",
];
/// Schemes that look like domain names in reverse, and start programs of the system or what listens to its messages.
const SYSTEM_SCHEMES: [&str; 5] = ["ms.", "net.msmq", "net.p2p", "net.pipe", "net.tcp"];

/// A client.
#[derive(Clone, Debug)]
pub(super) struct Client {
    pub(super) id: String,
    pub(super) name: Option<String>,
    pub(super) secret: Option<Secret>,
    /// `None`: any that the client has the credentials for.
    pub(super) method: Option<ClientMethod>,
    pub(super) redirect_uris: Vec<String>,
    /// `None`: every grant.
    pub(super) grant_types: Option<Vec<String>>,
    pub(super) keys: Option<Jwks>,
}

/// The method by which a client authenticates (RFC 7591, section 2).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum ClientMethod {
    None,
    Basic,
    Post,
    PrivateKey,
}

/// The metadata of a client (RFC 7591, section 2).
#[derive(Clone, Default, Deserialize, Serialize)]
#[serde(default)]
pub(super) struct ClientMetadata {
    pub(super) redirect_uris: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) token_endpoint_auth_method: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) grant_types: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) client_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) jwks: Option<Value>,
}

/// All clients.
#[derive(Debug)]
pub(super) struct Clients {
    given: HashMap<String, Client>,
    registered: Bounded<String, Client>,
    documents: Bounded<String, Client>,
}

pub(super) const METHODS: [(&str, ClientMethod); 4] = [
    ("none", ClientMethod::None),
    ("client_secret_basic", ClientMethod::Basic),
    ("client_secret_post", ClientMethod::Post),
    ("private_key_jwt", ClientMethod::PrivateKey),
];

impl ClientMethod {
    pub(super) fn named(name: &str) -> Option<Self> {
        METHODS.iter().find(|(known, _)| *known == name).map(|(_, method)| *method)
    }

    pub(super) fn name(self) -> &'static str {
        METHODS.iter().find(|(_, method)| *method == self).map_or("", |(name, _)| name)
    }

    pub(super) fn needs_secret(self) -> bool {
        matches!(self, Self::Basic | Self::Post)
    }
}

impl Client {
    /// Creates a client from its metadata. `secret`: the one that it has.
    pub(super) fn new(
        id: String,
        secret: Option<Secret>,
        metadata: ClientMetadata,
    ) -> Result<Self, OAuthError> {
        let invalid = |reason: &str| OAuthError::new("invalid_client_metadata", reason);
        let method = match metadata.token_endpoint_auth_method.as_deref() {
            None => None,
            Some(name) => Some(
                ClientMethod::named(name)
                    .ok_or_else(|| invalid("token_endpoint_auth_method is not supported"))?,
            ),
        };
        if metadata.redirect_uris.len() > MAX_REDIRECT_URIS {
            return Err(invalid("there are more than 16 redirect_uris"));
        }
        for uri in &metadata.redirect_uris {
            check_redirect_uri(uri)?;
        }
        let keys = match &metadata.jwks {
            None => None,
            Some(set) => {
                Some(Jwks::read(set.to_string().as_bytes()).map_err(|error| invalid(&error))?)
            }
        };
        if method == Some(ClientMethod::PrivateKey) && keys.as_ref().is_none_or(Jwks::is_empty) {
            return Err(invalid("private_key_jwt needs jwks with a public key for signatures"));
        }
        Ok(Self {
            id,
            name: metadata.client_name,
            secret,
            method,
            redirect_uris: metadata.redirect_uris,
            grant_types: metadata.grant_types,
            keys,
        })
    }

    /// Creates the client that a document describes, which has to be at the client's id (Client ID Metadata Documents).
    pub(super) fn of_document(url: &str, document: &Value) -> Result<Self, OAuthError> {
        let invalid = |reason: &str| OAuthError::new("invalid_client", reason);
        if document.get("client_id").and_then(Value::as_str) != Some(url) {
            return Err(invalid("the client_id in the client metadata document is not its URL"));
        }
        if document.get("client_secret").is_some() {
            return Err(invalid("a client metadata document may have no client_secret"));
        }
        let mut metadata = json::from_value::<ClientMetadata>(document)
            .map_err(|_| invalid("the client metadata document is malformed"))?;
        let method = metadata.token_endpoint_auth_method.get_or_insert_with(|| "none".into());
        if !matches!(method.as_str(), "none" | "private_key_jwt") {
            return Err(invalid("the client metadata document names a method with a secret"));
        }
        Client::new(url.to_owned(), None, metadata)
    }

    /// Returns whether the client has credentials, so that nobody else can act as it.
    pub(super) fn is_confidential(&self) -> bool {
        self.secret.is_some() || self.keys.is_some()
    }

    pub(super) fn may_use(&self, grant_type: &str) -> bool {
        self.grant_types.as_ref().is_none_or(|types| types.iter().any(|known| known == grant_type))
    }

    /// Returns whether the client registered this URL. It is checked like one that is registered.
    pub(super) fn has_redirect_uri(&self, uri: &str) -> bool {
        check_redirect_uri(uri).is_ok()
            && self.redirect_uris.iter().any(|own| is_same_redirect(own, uri))
    }
}

impl Clients {
    pub(super) fn new(given: impl IntoIterator<Item = Client>) -> Self {
        Self {
            given: given.into_iter().map(|client| (client.id.clone(), client)).collect(),
            registered: Bounded::new(MAX_REGISTERED),
            documents: Bounded::new(MAX_DOCUMENTS),
        }
    }

    pub(super) fn get(&self, id: &str) -> Option<&Client> {
        let id = id.to_owned();
        self.given.get(&id).or_else(|| self.registered.get(&id)).or_else(|| self.documents.get(&id))
    }

    /// Adds a client that registered itself. Above the maximum, the oldest one is forgotten.
    pub(super) fn register(&mut self, client: Client) {
        self.registered.insert(client.id.clone(), client);
    }

    /// Adds a client that a document describes.
    pub(super) fn add_document(&mut self, url: &str, document: &Value) -> Result<(), OAuthError> {
        let client = Client::of_document(url, document)?;
        self.documents.remove(&url.to_owned());
        self.documents.insert(url.to_owned(), client);
        Ok(())
    }
}

/// Checks the document of a client at a URL by the rules of this authorization server. Errors with the problem.
#[cfg(feature = "bindings")]
pub fn check_document(url: &str, document: &Value) -> Result<(), String> {
    Client::of_document(url, document).map(drop).map_err(|error| error.description)
}

/// Checks a redirect URL by the rules of this authorization server. Errors with the problem.
#[cfg(feature = "bindings")]
pub fn check_redirect(uri: &str) -> Result<(), String> {
    check_redirect_uri(uri).map_err(|error| error.description)
}

fn check_redirect_uri(uri: &str) -> Result<(), OAuthError> {
    let invalid = |reason: &str| OAuthError::new("invalid_redirect_uri", reason);
    let (scheme, rest) = uri.split_once(':').ok_or_else(|| invalid("it is not an absolute URL"))?;
    let scheme = &*scheme.to_ascii_lowercase();
    if uri.len() > MAX_URI || uri.contains('#') || !uri.bytes().all(|byte| byte.is_ascii_graphic())
    {
        return Err(invalid("it is too long, or has a fragment or an invalid character"));
    }
    match scheme {
        "http" | "https" => check_url(uri).map(drop).map_err(|error| invalid(&error.to_string())),
        // A browser would open these itself. Schemes of native apps should be domain names in reverse (RFC 8252, section 7.1),
        // and some of well-known apps are not.
        "about" | "blob" | "data" | "file" | "filesystem" | "ftp" | "javascript" | "vbscript"
        | "view-source" | "ws" | "wss" => {
            Err(invalid("the scheme must be https, http on loopback, or one of an app"))
        }
        app if !rest.is_empty() && is_scheme(app) => Ok(()),
        _ => Err(invalid("the scheme must be https, http on loopback, or one of an app")),
    }
}

/// Returns whether a redirect URL leads to a client, and does not start another program, as those of `ms-msdt` and `smb` do.
pub(super) fn is_of_client(uri: &str) -> bool {
    let scheme = uri.split(':').next().unwrap_or_default().to_ascii_lowercase();
    matches!(&*scheme, "https" | "http")
        // Links of these programs that install or clone something say what in their query.
        || (CLIENT_SCHEMES.contains(&&*scheme) && !uri.contains('?'))
        || is_reversed_domain(&scheme)
}

/// Returns whether a scheme in lower case is a domain name in reverse, which begins with a top-level domain.
fn is_reversed_domain(scheme: &str) -> bool {
    let is_label = |label: &str| {
        !label.is_empty()
            && !label.starts_with('-')
            && !label.ends_with('-')
            && !label.contains('+')
    };
    let is_of_system =
        |name: &&str| scheme == *name || name.ends_with('.') && scheme.starts_with(name);
    scheme.split('.').all(is_label)
        && scheme.split_once('.').is_some_and(|(top, _)| is_top_level_domain(top))
        && !SYSTEM_SCHEMES.iter().any(is_of_system)
}

fn is_top_level_domain(label: &str) -> bool {
    let is_country = label.len() == 2 && label.bytes().all(|byte| byte.is_ascii_lowercase());
    is_country || TOP_LEVEL_DOMAINS.contains(&label)
}

/// Returns whether two redirect URLs are the same. Ports of loopback addresses may differ (RFC 8252, section 7.3).
pub(super) fn is_same_redirect(one: &str, other: &str) -> bool {
    one == other || without_port(one).is_some_and(|uri| Some(uri) == without_port(other))
}

/// Returns a redirect URL at a loopback address without its port.
pub(super) fn without_port(uri: &str) -> Option<String> {
    let url = WebUrl::parse(uri).ok().filter(|url| url.scheme() == "http" && url.is_loopback())?;
    Some(format!("http://{}{}", url.host(), url.path()))
}

/// Returns whether a string is a scheme (RFC 3986, section 3.1), in lower case.
fn is_scheme(text: &str) -> bool {
    text.starts_with(|letter: char| letter.is_ascii_lowercase())
        && text.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'+' | b'-' | b'.'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn client(metadata: &Value) -> Result<Client, String> {
        let metadata = json::from_value(metadata).unwrap();
        Client::new("me".into(), None, metadata).map_err(|error| error.description)
    }

    #[test]
    fn redirects_are_compared_exactly_but_for_the_port_on_loopback() {
        let uris = ["https://app.example.com/back", "http://127.0.0.1/callback", "http://[::1]:7/"];
        let client = client(&json!({ "redirect_uris": uris })).unwrap();
        for known in [uris[0], "http://127.0.0.1:4711/callback", "http://[::1]:9/"] {
            assert!(client.has_redirect_uri(known), "{known}");
        }
        for unknown in [
            "https://app.example.com/back/",
            "https://app.example.com:8443/back",
            "http://127.0.0.1:4711/other",
            "http://localhost:4711/callback",
            "http://127.0.0.1.example.com/callback",
            "http://127.0.0.1:1@evil.example/callback",
            "http://127.0.0.1:4711\\@evil.example/callback",
            "http://127.0.0.1:x/callback",
            "http://127.0.0.1:99999/callback",
            "http://127.0.0.1:4711\t/callback",
            "http://127.0.0.1:4711\r\n/callback",
            "http://127.0.0.1:4711/callback#x",
            "",
        ] {
            assert!(!client.has_redirect_uri(unknown), "{unknown}");
        }
    }

    #[test]
    fn only_schemes_of_clients_are_allowed_without_a_list() {
        for uri in [
            "https://app.example.com/back",
            "http://127.0.0.1:1/back",
            "com.example.app:/back",
            "Cursor://anysphere.cursor-mcp/oauth/callback",
        ] {
            assert!(is_of_client(uri), "{uri}");
        }
        for uri in [
            "ms-msdt:/id",
            "search-ms:query=x",
            "smb://evil.example/share",
            "mailto:a@b.example",
            "shell:x",
            "ssh://evil.example",
            "x-apple.systempreferences:x",
            "microsoft.windows.camera:x",
            "a+b.c:x",
            "com..x:y",
            "com.:y",
            ".com:y",
            "com.-x:y",
            "c.example:y",
            "soap.beep:y",
            "z39.50:y",
            "jar.file:y",
            "javascript.x:y",
            "windows.immersivecontrolpanel:y",
            "net.tcp:y",
            "NET.pipe:y",
            "ms.settings:y",
            "cursor://anysphere.cursor-deeplink/mcp/install?name=x&config=y",
            "vscode:mcp/install?%7B%22name%22%3A%22x%22%7D",
            "VSCode://vscode.git/clone?url=https://evil.example",
        ] {
            assert!(!is_of_client(uri), "{uri}");
        }
    }

    #[test]
    fn metadata_that_are_not_safe_are_refused() {
        for app in ["com.example.app:/back", "cursor://anysphere.cursor-mcp/oauth/callback"] {
            assert!(client(&json!({ "redirect_uris": [app] })).is_ok(), "{app}");
        }
        for (metadata, reason) in [
            (json!({ "redirect_uris": ["http://app.example.com/"] }), "use https"),
            (json!({ "redirect_uris": ["https://app.example.com/#x"] }), "fragment"),
            (json!({ "redirect_uris": ["javascript:alert(1)"] }), "scheme"),
            (json!({ "redirect_uris": ["JavaScript:alert(1)"] }), "scheme"),
            (json!({ "redirect_uris": ["data:text/html,x"] }), "scheme"),
            (json!({ "redirect_uris": ["a b:x"] }), "invalid character"),
            (json!({ "redirect_uris": ["1a:x"] }), "scheme"),
            (json!({ "redirect_uris": ["/back"] }), "absolute"),
            (json!({ "redirect_uris": vec!["https://a.example"; 17] }), "more than 16"),
            (json!({ "token_endpoint_auth_method": "magic" }), "not supported"),
            (json!({ "token_endpoint_auth_method": "private_key_jwt" }), "needs jwks"),
        ] {
            let error = client(&metadata).unwrap_err();
            assert!(error.contains(reason), "{metadata}: {error}");
        }
    }

    #[test]
    fn a_document_is_about_its_own_url() {
        let mut clients = Clients::new([]);
        let url = "https://app.example.com/client.json";
        let redirects = ["https://app.example.com/back"];
        let document = json!({ "client_id": url, "redirect_uris": redirects });
        clients.add_document(url, &document).unwrap();
        assert_eq!(clients.get(url).unwrap().method, Some(ClientMethod::None));
        for (document, reason) in [
            (json!({ "client_id": "https://evil.example", "redirect_uris": redirects }), "its URL"),
            (json!({ "client_id": url, "client_secret": "s" }), "no client_secret"),
            (
                json!({ "client_id": url, "token_endpoint_auth_method": "client_secret_basic" }),
                "secret",
            ),
            (json!({ "client_id": url, "redirect_uris": "x" }), "malformed"),
        ] {
            let error = clients.add_document(url, &document).unwrap_err();
            assert!(error.description.contains(reason), "{}", error.description);
        }
    }
}
