//! The records of a store: the authorization server of an MCP server, and the credentials that it gave.
//!
//! Credentials are kept by issuer, resource and client, because those of one authorization server must not reach another (spec:
//! "Authorization Server Binding").

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::{failure, settings::SignInSettings};
use crate::{
    auth::{Secret, metadata::ServerMetadata, scopes::Scopes, url::WebUrl},
    error::Error,
    protocol::json,
};

/// The version of the records' format.
const VERSION: u32 = 1;

/// The authorization server of an MCP server.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct ServerRecord {
    /// The resource as the server names it, which requests repeat byte by byte.
    pub(super) resource: String,
    pub(super) metadata: ServerMetadata,
    /// True if the server has no metadata of the resource (2025-03-26).
    pub(super) is_legacy: bool,
    /// The locations at which no metadata were found, with the reasons, if the endpoints are the standard's defaults.
    #[serde(skip)]
    pub(super) problems: Vec<String>,
    /// The scopes that the server's metadata name.
    pub(super) scopes_supported: Option<Vec<String>>,
    pub(super) wants_dpop: bool,
}

/// The credentials of one authorization server for one resource.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct CredentialsRecord {
    pub(super) client: Option<ClientRecord>,
    pub(super) tokens: Option<Tokens>,
    /// The private key of `DPoP` proofs: PKCS#8 in base64.
    pub(super) dpop_key: Option<Secret>,
}

/// The client as the authorization server registered it.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct ClientRecord {
    pub(super) id: String,
    pub(super) secret: Option<Secret>,
    /// The seconds since 1970 at which the secret expires.
    pub(super) secret_expires_at: Option<u64>,
    /// The method by which the client authenticates at the token endpoint.
    pub(super) method: Option<String>,
    pub(super) redirect_uri: String,
}

impl ClientRecord {
    /// Returns the port of the redirect URL, if that is on this machine.
    pub(super) fn redirect_port(&self) -> Option<u16> {
        let url = WebUrl::parse(&self.redirect_uri).ok()?;
        (url.scheme() == "http" && url.is_loopback()).then(|| url.port())
    }
}

/// An access token and what renews it.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Tokens {
    pub(super) access: Secret,
    pub(super) is_dpop: bool,
    /// The seconds since 1970 at which the access token expires.
    pub(super) expires_at: Option<u64>,
    /// The seconds since 1970 from which the access token is renewed before it is used.
    pub(super) renew_at: Option<u64>,
    pub(super) refresh: Option<Secret>,
    /// The scopes that were requested with the token.
    pub(super) requested: Scopes,
    /// The scopes that the authorization server granted.
    pub(super) granted: Scopes,
}

/// Returns the key of the record of an MCP server. `client` is the id that the program gave: other programs with the same
/// store must not change the authorization server that gets this program's credentials.
pub(super) fn server_key(target: &str, client: Option<&str>) -> String {
    let client = client.map(|id| format!(" {id}")).unwrap_or_default();
    format!("server {target}{client}")
}

/// Returns the key of the credentials for a server. `client` is the id of a client that did not register itself.
pub(super) fn credentials_key(server: &ServerRecord, client: Option<&str>) -> String {
    let client = client.map(|id| format!(" {id}")).unwrap_or_default();
    format!("credentials {} {}{client}", server.metadata.issuer, server.resource)
}

pub(super) fn write<T: Serialize>(content: &T) -> Vec<u8> {
    let mut record = serde_json::to_value(content).unwrap_or_default();
    // Serde's code for a flattened structure would be 30 KB.
    if let Value::Object(members) = &mut record {
        members.insert("version".into(), VERSION.into());
    }
    record.to_string().into_bytes()
}

/// Reads a record. The error names the store and the record, and says how to go on.
pub(super) fn read<T: DeserializeOwned>(
    settings: &SignInSettings,
    key: &str,
    bytes: &[u8],
) -> Result<T, Error> {
    read_from(&settings.store, key, bytes)
}

/// Like [`read`], for the store with this name.
pub(super) fn read_from<T: DeserializeOwned>(
    store: &str,
    key: &str,
    bytes: &[u8],
) -> Result<T, Error> {
    #[derive(Deserialize)]
    struct Version {
        version: u32,
    }
    let unusable = |reason: &str| {
        failure(format!("the token store ({store}): the record {key:?} {reason}"))
            .with_hint("delete the record, then sign in again")
    };
    // The text of serde's error may quote a token.
    let invalid = |error: serde_json::Error| {
        unusable(&format!("is not valid (line {}, column {})", error.line(), error.column()))
    };
    let found: Version = json::from_bytes(bytes).map_err(invalid)?;
    if found.version != VERSION {
        let version = found.version;
        return Err(unusable(&format!(
            "has the version {version}; this program reads version {VERSION}"
        )));
    }
    json::from_bytes(bytes).map_err(invalid)
}
