//! The provider behind the proxy: an authorization server that knows the users, and at which the proxy itself is a client.

use http::{HeaderValue, header};
use serde_json::{Map, Value};

use crate::auth::{
    Secret,
    fetch::{FetchError, FetchRequest, FetchResponse, MAX_DOCUMENT, encode_form},
    metadata::{ServerMetadata, is_same_issuer, issuer_locations},
    scopes::{self, Scopes},
    server::jwt,
    url::WebUrl,
};
use crate::protocol::json;

/// The seconds for which the metadata of a provider are used.
const METADATA_LIFE: u64 = 3600;
/// The seconds after which metadata that could not be fetched are asked for again.
const RETRY: u64 = 10;
/// The claims of an identity token that say something about the token, and not about the user.
const TOKEN_CLAIMS: [&str; 13] = [
    "aud",
    "azp",
    "exp",
    "iat",
    "nbf",
    "jti",
    "nonce",
    "at_hash",
    "c_hash",
    "s_hash",
    "auth_time",
    "sid",
    "sub",
];
/// The claims that are kept if all together are too long.
const SHORT_CLAIMS: [&str; 6] =
    ["iss", "name", "preferred_username", "email", "email_verified", "login"];
/// The maximum length of the kept claims, in bytes of JSON.
const MAX_CLAIMS: usize = 2_048;

/// The settings of a provider.
#[derive(Clone, Debug)]
pub struct ProviderSettings {
    pub place: ProviderPlace,
    pub client_id: String,
    pub client_secret: Option<Secret>,
    /// The scopes that each sign-in asks for.
    pub scopes: Vec<String>,
    /// Further parameters of the authorization request.
    pub params: Vec<(String, String)>,
    /// The claim that identifies the user.
    pub subject: String,
    /// Names by which the provider calls scopes in its answers, and the names by which they are asked for.
    pub scope_names: Vec<(String, String)>,
    /// `false` if the revocation of a token ends the user's other sign-ins as well, so that the proxy revokes its own only.
    pub may_revoke: bool,
}

/// The place of a provider.
#[derive(Clone, Debug)]
pub enum ProviderPlace {
    /// The URL of an issuer, whose metadata have the rest.
    Issuer(String),
    /// Fixed endpoints, of a provider without metadata.
    Fixed(Endpoints),
}

/// The endpoints of a provider.
#[derive(Clone, Debug, Default)]
pub struct Endpoints {
    pub authorization_endpoint: String,
    pub token_endpoint: String,
    pub userinfo_endpoint: Option<String>,
    pub revocation_endpoint: Option<String>,
    /// `true` if the provider expects the credentials of its clients in the `Authorization` header.
    pub uses_basic: bool,
    /// The issuer that authorization responses name in `iss` (RFC 9207).
    pub issuer: Option<String>,
    /// `true` if every response names it.
    pub names_issuer: bool,
}

/// A provider.
#[derive(Debug)]
pub(super) struct Provider {
    pub(super) settings: ProviderSettings,
    endpoints: Option<Endpoints>,
    /// The seconds since 1970 at which the metadata are fetched again.
    refresh: u64,
}

/// The tokens of a provider.
pub(super) struct ProviderTokens {
    pub(super) access_token: Secret,
    pub(super) refresh_token: Option<Secret>,
    /// The lifetime of the access token in seconds.
    pub(super) lifetime: Option<u64>,
    scope: Option<String>,
    id_token: Option<Secret>,
}

/// The user that a provider has signed in.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct User {
    pub(super) subject: String,
    pub(super) claims: Map<String, Value>,
}

/// The reason why a provider did not do what the proxy asked for.
#[derive(Debug, PartialEq)]
pub(super) enum ProviderError {
    /// The provider refuses for good; the code and the reason are the provider's.
    Refused(String),
    /// The provider does not answer, or its answer is not usable.
    Failed(String),
}

impl ProviderSettings {
    /// Returns a name of the provider and of the proxy's client there.
    pub(super) fn name(&self) -> String {
        let place = match &self.place {
            ProviderPlace::Issuer(issuer) => issuer,
            ProviderPlace::Fixed(endpoints) => &endpoints.token_endpoint,
        };
        format!("{place} {}", self.client_id)
    }
}

impl Provider {
    pub(super) fn new(settings: ProviderSettings) -> Self {
        let endpoints = match &settings.place {
            ProviderPlace::Issuer(_) => None,
            ProviderPlace::Fixed(endpoints) => Some(endpoints.clone()),
        };
        Self { settings, endpoints, refresh: 0 }
    }

    /// Returns the endpoints; `None`: the metadata have to be fetched, with [`Self::metadata_request`].
    pub(super) fn endpoints(&self, unix: u64) -> Option<&Endpoints> {
        let is_fixed = matches!(self.settings.place, ProviderPlace::Fixed(_));
        self.endpoints.as_ref().filter(|_| is_fixed || unix < self.refresh)
    }

    /// Returns the endpoints that were used last, even if the metadata are old.
    pub(super) fn last_endpoints(&self) -> Option<&Endpoints> {
        self.endpoints.as_ref()
    }

    /// Returns the request for the metadata at this place in the list of URLs at which they may be.
    pub(super) fn metadata_request(&self, place: usize) -> Option<FetchRequest> {
        let ProviderPlace::Issuer(issuer) = &self.settings.place else { return None };
        FetchRequest::get(&issuer_locations(issuer).into_iter().nth(place)?, MAX_DOCUMENT).ok()
    }

    /// Takes the metadata.
    pub(super) fn take(
        &mut self,
        answer: &Result<FetchResponse, FetchError>,
        unix: u64,
    ) -> Result<(), String> {
        let ProviderPlace::Issuer(issuer) = &self.settings.place else { return Ok(()) };
        let read = |answer: &FetchResponse| -> Result<Endpoints, FetchError> {
            let metadata = ServerMetadata::read(answer, issuer)?;
            let missing = |name: &str| FetchError::Url(format!("its metadata have no {name}"));
            let methods = metadata.token_endpoint_auth_methods_supported;
            // The default of RFC 8414, section 2.
            let uses_basic = methods.is_none_or(|methods| {
                let has = |name: &str| methods.iter().any(|method| method == name);
                has("client_secret_basic") && !has("client_secret_post")
            });
            Ok(Endpoints {
                authorization_endpoint: metadata
                    .authorization_endpoint
                    .ok_or_else(|| missing("authorization_endpoint"))?,
                token_endpoint: metadata.token_endpoint.ok_or_else(|| missing("token_endpoint"))?,
                userinfo_endpoint: metadata.userinfo_endpoint,
                revocation_endpoint: metadata.revocation_endpoint,
                uses_basic,
                issuer: Some(issuer.clone()),
                names_issuer: metadata.authorization_response_iss_parameter_supported,
            })
        };
        let endpoints = answer.as_ref().map_err(Clone::clone).and_then(read);
        let failed = |error: FetchError| format!("the provider {issuer} can't be used: {error}");
        self.endpoints = Some(endpoints.map_err(failed)?);
        self.refresh = unix + METADATA_LIFE;
        Ok(())
    }

    /// Keeps old metadata for a while, because new ones can't be fetched. Returns false if there are none.
    pub(super) fn keep_metadata(&mut self, unix: u64) -> bool {
        self.refresh = unix + RETRY;
        self.endpoints.is_some()
    }

    /// Returns the host where the user signs in, for pages.
    pub(super) fn host(&self) -> String {
        let url = match &self.settings.place {
            ProviderPlace::Issuer(issuer) => issuer,
            ProviderPlace::Fixed(endpoints) => &endpoints.authorization_endpoint,
        };
        WebUrl::parse(url).map_or_else(|_| String::new(), |url| url.authority())
    }

    /// Returns the URL at which the user signs in.
    pub(super) fn authorization_url(
        &self,
        endpoints: &Endpoints,
        asked: &Scopes,
        callback: &str,
        (state, challenge, nonce): (&str, &str, &str),
    ) -> String {
        let scopes = self.settings.scopes.iter().cloned().collect();
        let scope = scopes::join(&scopes::union(&scopes, asked));
        let mut fields = vec![
            ("response_type", "code"),
            ("client_id", &*self.settings.client_id),
            ("redirect_uri", callback),
            ("scope", &*scope),
            ("state", state),
            ("code_challenge", challenge),
            ("code_challenge_method", "S256"),
        ];
        if scope.split(' ').any(|name| name == "openid") {
            fields.push(("nonce", nonce));
        }
        fields.extend(self.settings.params.iter().map(|(name, value)| (&**name, &**value)));
        let url = &endpoints.authorization_endpoint;
        let separator = if url.contains('?') { '&' } else { '?' };
        format!("{url}{separator}{}", encode_form(&fields))
    }

    /// Returns a request to the token endpoint, as the client that the proxy is.
    pub(super) fn token_request(
        &self,
        endpoints: &Endpoints,
        fields: &[(&str, &str)],
    ) -> Result<FetchRequest, FetchError> {
        self.request(&endpoints.token_endpoint, endpoints.uses_basic, fields)
    }

    /// Returns the request that revokes a token (RFC 7009), if the provider takes one.
    pub(super) fn revocation(&self, endpoints: &Endpoints, token: &str) -> Option<FetchRequest> {
        let url = endpoints.revocation_endpoint.as_ref().filter(|_| self.settings.may_revoke)?;
        let fields = [("token", token), ("token_type_hint", "refresh_token")];
        self.request(url, endpoints.uses_basic, &fields).ok()
    }

    fn request(
        &self,
        url: &str,
        uses_basic: bool,
        fields: &[(&str, &str)],
    ) -> Result<FetchRequest, FetchError> {
        let id = &*self.settings.client_id;
        let mut fields = fields.to_vec();
        match (&self.settings.client_secret, uses_basic) {
            (Some(secret), true) => {
                Ok(FetchRequest::post_form(url, &fields)?.with_basic(id, secret.expose()))
            }
            (Some(secret), false) => {
                fields.extend([("client_id", id), ("client_secret", secret.expose())]);
                FetchRequest::post_form(url, &fields)
            }
            (None, _) => {
                fields.push(("client_id", id));
                FetchRequest::post_form(url, &fields)
            }
        }
    }

    /// Returns the request for the user that an access token stands for.
    pub(super) fn user_request(endpoints: &Endpoints, token: &Secret) -> Option<FetchRequest> {
        let mut request =
            FetchRequest::get(endpoints.userinfo_endpoint.as_ref()?, MAX_DOCUMENT).ok()?;
        let mut value = HeaderValue::try_from(format!("Bearer {}", token.expose())).ok()?;
        value.set_sensitive(true);
        request.headers.insert(header::AUTHORIZATION, value);
        // GitHub refuses requests without one.
        request.headers.insert(header::USER_AGENT, HeaderValue::from_static("gudgeon"));
        Some(request)
    }

    /// Reads the user from the identity token, which came from the provider itself, so that its signature says nothing more
    /// (`OpenID` Connect Core 1.0, section 3.1.3.7). Returns `None` without an identity token.
    pub(super) fn user_of_token(
        &self,
        tokens: &ProviderTokens,
        nonce: Option<&str>,
        unix: u64,
    ) -> Option<Result<User, ProviderError>> {
        let token = tokens.id_token.as_ref()?;
        let failed = |reason: &str| {
            Some(Err(ProviderError::Failed(format!("the identity token of the provider {reason}"))))
        };
        let Ok(parts) = jwt::split(token.expose()) else { return failed("is malformed") };
        let Ok(claims) = json::from_bytes::<Map<String, Value>>(&parts.claims) else {
            return failed("is malformed");
        };
        let text = |name: &str| claims.get(name).and_then(Value::as_str);
        let is_issuer = match &self.settings.place {
            ProviderPlace::Issuer(issuer) => {
                text("iss").is_some_and(|named| is_same_issuer(named, issuer))
            }
            ProviderPlace::Fixed(_) => true,
        };
        let own = &*self.settings.client_id;
        let is_audience = match claims.get("aud") {
            Some(Value::Array(all)) => all.iter().any(|audience| audience.as_str() == Some(own)),
            one => one.and_then(Value::as_str) == Some(own),
        };
        if !is_issuer {
            return failed("is of another issuer");
        }
        if !is_audience {
            return failed("is for another client");
        }
        if claims
            .get("exp")
            .and_then(Value::as_u64)
            .is_none_or(|expires| expires.saturating_add(jwt::LEEWAY) < unix)
        {
            return failed("has expired");
        }
        if nonce.is_some_and(|nonce| text("nonce") != Some(nonce)) {
            return failed("is of another sign-in");
        }
        Some(self.user(claims))
    }

    /// Reads the user from the answer of the userinfo endpoint.
    pub(super) fn user_of_answer(
        &self,
        answer: &Result<FetchResponse, FetchError>,
    ) -> Result<User, ProviderError> {
        let failed = |error: &FetchError| {
            ProviderError::Failed(format!("the userinfo endpoint of the provider: {error}"))
        };
        let answer = answer.as_ref().map_err(failed)?;
        // Not 403, by which some providers limit the rate of requests.
        if answer.status.as_u16() == 401 {
            return Err(ProviderError::Refused("the provider no longer accepts its token".into()));
        }
        self.user(answer.document().map_err(|error| failed(&error))?)
    }

    fn user(&self, mut claims: Map<String, Value>) -> Result<User, ProviderError> {
        let subject = match claims.get(&self.settings.subject) {
            Some(Value::String(text)) if !text.is_empty() => text.clone(),
            Some(Value::Number(number)) => number.to_string(),
            _ => {
                let name = &self.settings.subject;
                return Err(ProviderError::Failed(format!("the provider names no user ({name})")));
            }
        };
        claims.retain(|name, value| !TOKEN_CLAIMS.contains(&&**name) && !value.is_null());
        if Value::Object(claims.clone()).to_string().len() > MAX_CLAIMS {
            claims.retain(|name, value| {
                SHORT_CLAIMS.contains(&&**name)
                    && value.as_str().is_none_or(|text| text.len() < 256)
            });
        }
        if let ProviderPlace::Issuer(issuer) = &self.settings.place {
            claims.entry("iss").or_insert_with(|| issuer.as_str().into());
        } else {
            claims.insert("iss".into(), format!("https://{}", self.host()).into());
        }
        Ok(User { subject, claims })
    }

    /// Returns the scopes that the provider granted.
    pub(super) fn granted(&self, tokens: &ProviderTokens, asked: &Scopes) -> Scopes {
        let Some(text) = &tokens.scope else {
            let own = self.settings.scopes.iter().cloned().collect();
            return scopes::union(&own, asked);
        };
        // GitHub separates scopes by commas.
        let mut granted = scopes::parse(&text.replace(',', " "));
        for (theirs, name) in &self.settings.scope_names {
            if granted.contains(theirs) {
                granted.insert(name.clone());
            }
        }
        granted
    }
}

impl ProviderTokens {
    /// Reads the answer of the token endpoint. Some providers answer errors with status 200.
    pub(super) fn read(answer: &Result<FetchResponse, FetchError>) -> Result<Self, ProviderError> {
        let failed = |error: &FetchError| {
            ProviderError::Failed(format!("the token endpoint of the provider: {error}"))
        };
        let answer = answer.as_ref().map_err(failed)?;
        let body: Value = match answer.json() {
            Ok(body) => body,
            Err(_) if !answer.status.is_success() => {
                return Err(failed(&FetchError::Status(answer.status)));
            }
            Err(error) => return Err(failed(&error)),
        };
        if let Some(code) = body.get("error").and_then(Value::as_str) {
            let known = ["invalid_grant", "bad_verification_code", "bad_refresh_token"];
            let text = format!("the provider refuses: {}", printable(code));
            return Err(match known.contains(&code) {
                true => ProviderError::Refused(text),
                false => ProviderError::Failed(text),
            });
        }
        if !answer.status.is_success() {
            return Err(failed(&FetchError::Status(answer.status)));
        }
        let text = |name: &str| {
            body.get(name)
                .and_then(Value::as_str)
                .filter(|value| !value.is_empty())
                .map(ToOwned::to_owned)
        };
        let Some(access_token) = text("access_token") else {
            return Err(ProviderError::Failed("the provider issued no access token".into()));
        };
        Ok(Self {
            access_token: access_token.into(),
            refresh_token: text("refresh_token").map(Secret::from),
            // Some providers write a string.
            lifetime: match body.get("expires_in") {
                Some(Value::String(text)) => text.parse().ok(),
                value => value.and_then(Value::as_u64),
            },
            scope: text("scope"),
            id_token: text("id_token").map(Secret::from),
        })
    }
}

/// Returns the printable start of a string from the provider.
pub(super) fn printable(text: &str) -> String {
    text.chars().filter(|letter| letter.is_ascii_graphic() || *letter == ' ').take(200).collect()
}
