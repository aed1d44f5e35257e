//! The metadata document (RFC 8414; `OpenID` Connect Discovery 1.0).

use serde_json::{Value, json};

use super::{super::server::jwk::Algorithm, clients::METHODS};
use crate::auth::registered_names::{ID_JAG_PROFILE, JWT_BEARER, TOKEN_EXCHANGE};

pub(super) const AUTHORIZE: &str = "/authorize";
pub(super) const TOKEN: &str = "/token";
pub(super) const REGISTER: &str = "/register";
pub(super) const KEYS: &str = "/jwks";
pub(super) const INTROSPECT: &str = "/introspect";
pub(super) const REVOKE: &str = "/revoke";

/// The parts of the metadata that differ between servers.
pub(super) struct Offered<'a> {
    pub(super) issuer: &'a str,
    pub(super) scopes: Option<&'a [String]>,
    pub(super) has_registration: bool,
    pub(super) has_documents: bool,
}

/// Returns the document of a server whose endpoints are below its issuer.
pub(super) fn document(offered: &Offered<'_>) -> Value {
    let at = |path: &str| format!("{}{path}", offered.issuer);
    let algorithms: Vec<_> = Algorithm::all().into_iter().map(Algorithm::name).collect();
    let methods: Vec<_> = METHODS.iter().map(|(name, _)| *name).collect();
    let with_credentials: Vec<_> = methods.iter().filter(|method| **method != "none").collect();
    let mut document = json!({
        "issuer": offered.issuer,
        "authorization_endpoint": at(AUTHORIZE),
        "token_endpoint": at(TOKEN),
        "jwks_uri": at(KEYS),
        "introspection_endpoint": at(INTROSPECT),
        "revocation_endpoint": at(REVOKE),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported":
            ["authorization_code", "refresh_token", "client_credentials", JWT_BEARER, TOKEN_EXCHANGE],
        "authorization_grant_profiles_supported": [ID_JAG_PROFILE],
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": methods,
        "token_endpoint_auth_signing_alg_values_supported": algorithms,
        "introspection_endpoint_auth_methods_supported": with_credentials,
        "revocation_endpoint_auth_methods_supported": methods,
        "dpop_signing_alg_values_supported": algorithms,
        "authorization_response_iss_parameter_supported": true,
        "client_id_metadata_document_supported": offered.has_documents,
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["ES256"],
    });
    if let Some(scopes) = offered.scopes {
        document["scopes_supported"] = json!(scopes);
    }
    if offered.has_registration {
        document["registration_endpoint"] = at(REGISTER).into();
    }
    document
}
