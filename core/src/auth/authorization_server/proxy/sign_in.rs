//! The way of a user's browser: request, consent, the provider, and back to the client.

use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde::{Deserialize, Serialize};

use super::{
    super::{
        authorization_request::{AuthorizationRequest, Redirect},
        clients::{Client, without_port},
        message::{Form, OAuthError, Response, escape},
    },
    Interruption, OAuthProxy, Outcome, ProxyRequest, Waits,
    clients::short_id,
    location::OAuthEndpoint,
    provider::{Provider, ProviderError, ProviderTokens, User, printable},
    sealed::Use,
    tokens::{Code, Credential, ProxyGrant},
};
use crate::auth::{
    fetch::{FetchError, FetchResponse},
    is_equal,
    moment::Moment,
    pkce, scopes,
    url::WebUrl,
};
use crate::log_text::is_invisible;

/// The time for a sign-in, in seconds.
const LIFE: u64 = 600;
/// The maximum length of a cookie's value. Browsers keep at most 4,096 bytes with its name and attributes.
const MAX_COOKIE: usize = 3_800;
/// The maximum length of a code: it is part of a URL.
const MAX_CODE: usize = 6 * 1024;
/// The maximum number of characters of a client's name that are shown.
const MAX_NAME: usize = 100;
/// The errors of a provider that clients may see as they are (RFC 6749, section 4.1.2.1).
const KNOWN_ERRORS: [&str; 4] =
    ["access_denied", "invalid_scope", "temporarily_unavailable", "server_error"];

/// A sign-in. The page with the question carries it, and then a cookie.
#[derive(Deserialize, Serialize)]
pub(super) struct SignIn {
    /// A random name, which is the `state` of the request to the provider.
    #[serde(rename = "i")]
    id: String,
    #[serde(rename = "r")]
    request: AuthorizationRequest,
    /// The PKCE verifier for the provider.
    #[serde(rename = "v")]
    verifier: String,
    #[serde(rename = "n")]
    nonce: String,
    #[serde(rename = "e")]
    expires: u64,
}

impl OAuthProxy {
    /// Asks the user whether the client may act for them. Errors about the client or its redirect URL are shown, because they
    /// may not be sent to that URL (RFC 6749, section 4.1.2.1); others are sent there only if this can't be misused.
    pub(super) fn authorize(&mut self, at: &Moment, request: &ProxyRequest) -> Outcome {
        let issuer = &*request.issuer;
        let form = Form::of_query(&request.request)?;
        let id = form.require("client_id").map_err(shown)?;
        let client = self.client(id, request, at.unix).map_err(|error| match error {
            Interruption::Refused(error) => shown(error),
            other => other,
        })?;
        let redirect = Redirect::read(&form, &client).map_err(shown)?;
        self.check_redirect(&redirect)?;
        let asked = match read_request(&form, &client, redirect.clone(), issuer) {
            Ok(asked) => asked,
            Err(error) => return Ok(self.end_without_consent(&redirect, issuer, &error)),
        };
        let sign_in = SignIn {
            id: at.id("sign-in"),
            verifier: pkce::Verifier::new(at.bytes("verifier")).expose().to_owned(),
            nonce: at.id("nonce"),
            expires: at.unix + LIFE,
            request: asked,
        };
        let sealed = self.sealer.seal(Use::SignIn, issuer, &sign_in, at).unwrap_or_default();
        if sealed.is_empty() || sealed.len() > MAX_COOKIE {
            let reason = "state, scope and redirect_uri are too long: they may have about 2,000 bytes together";
            let error = OAuthError::new("invalid_request", reason);
            return Ok(self.end_without_consent(&redirect, issuer, &error));
        }
        let mut page = self.consent_page(&sign_in, id, &sealed, issuer);
        set_cookie(&mut page.headers, issuer, &sign_in.id, &sign_in.id, LIFE);
        Ok(page)
    }

    /// Takes the user's decision, and sends the browser to the provider.
    pub(super) fn consent(&self, at: &Moment, request: &ProxyRequest) -> Outcome {
        let issuer = &*request.issuer;
        let form = Form::of_body(&request.request).map_err(shown)?;
        let sealed = form.require("request").map_err(shown)?;
        let sign_in = self.open_sign_in(sealed, issuer, at.unix)?;
        // The page may be older than the list of redirect URLs.
        self.check_redirect(&sign_in.request.redirect)?;
        let headers = &request.request.headers;
        // Only the page that this browser got may decide, not one of another site. A button that is pressed twice decides twice.
        let is_own_cookie = cookie(headers, issuer, &sign_in.id).is_some_and(|cookie| {
            is_equal(cookie.as_bytes(), sign_in.id.as_bytes())
                || self
                    .open_approved(cookie, issuer)
                    .is_some_and(|approved| approved.id == sign_in.id)
        });
        let is_own_origin = headers.get(header::ORIGIN).is_some_and(|value| {
            let origin = value.to_str().ok().and_then(|text| WebUrl::parse(text).ok());
            origin.is_some_and(|origin| {
                WebUrl::parse(issuer).is_ok_and(|own| own.has_origin_of(&origin))
            })
        });
        if !is_own_cookie || !is_own_origin {
            return Err(shown(OAuthError::new(
                "invalid_request",
                "the decision does not come from the page of this server; allow cookies, and sign in again",
            )));
        }
        if form.get("decision").map_err(shown)? != Some("allow") {
            let error = OAuthError::new("access_denied", "the user declined");
            let mut response = self.end_without_consent(&sign_in.request.redirect, issuer, &error);
            set_cookie(&mut response.headers, issuer, &sign_in.id, "", 0);
            return Ok(response);
        }
        let endpoints = self.endpoints(at.unix)?;
        let callback = OAuthEndpoint::Callback.url(issuer);
        let challenge = pkce::challenge(&sign_in.verifier);
        let own = (&*sign_in.id, &*challenge, &*sign_in.nonce);
        let asked = &sign_in.request.scopes;
        let url = self.provider.authorization_url(endpoints, asked, &callback, own);
        let mut response = Response::redirect(&url);
        // The browser sends a POST on with the same method otherwise.
        response.status = StatusCode::SEE_OTHER;
        let approved = self.sealer.seal(Use::ApprovedSignIn, issuer, &sign_in, at);
        set_cookie(&mut response.headers, issuer, &sign_in.id, &approved.unwrap_or_default(), LIFE);
        Ok(response)
    }

    /// Takes the browser back from the provider, with a code for the provider's tokens.
    pub(super) fn callback(&self, at: &Moment, request: &ProxyRequest) -> Outcome {
        let issuer = &*request.issuer;
        let form = Form::of_query(&request.request).map_err(shown)?;
        let state = form.require("state").map_err(shown)?;
        let sign_in = cookie(&request.request.headers, issuer, state)
            .and_then(|cookie| self.open_approved(cookie, issuer))
            .filter(|sign_in| at.unix < sign_in.expires);
        let sign_in = sign_in.ok_or_else(|| {
            let reason = "this sign-in is not known to the browser, or took longer than 10 minutes; start again in the program";
            shown(OAuthError::new("invalid_request", reason))
        })?;
        if !is_equal(sign_in.id.as_bytes(), state.as_bytes()) {
            return Err(shown(OAuthError::new("invalid_request", "state is of another sign-in")));
        }
        self.check_redirect(&sign_in.request.redirect)?;
        let endpoints = self.endpoints(at.unix)?;
        let named = form.get("iss").map_err(shown)?;
        // RFC 9207, section 2.4.
        let is_of_provider = match named {
            Some(named) => endpoints.issuer.as_deref().is_none_or(|own| own == named),
            None => !endpoints.names_issuer,
        };
        if !is_of_provider {
            let reason = "the response is not of the provider (iss)";
            let error = OAuthError::new("access_denied", reason);
            return Ok(sign_in.end(issuer, Err(&error)));
        }
        if let Some(code) = form.get("error").map_err(shown)? {
            let known =
                KNOWN_ERRORS.into_iter().find(|known| *known == code).unwrap_or("access_denied");
            let text = form.get("error_description").map_err(shown)?.unwrap_or(code);
            let text = format!("the provider answered: {}", printable(text));
            return Ok(sign_in.end(issuer, Err(&OAuthError::new(known, text))));
        }
        let code = form.require("code").map_err(shown)?;
        let fields = [
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", &*OAuthEndpoint::Callback.url(issuer)),
            ("code_verifier", &*sign_in.verifier),
        ];
        let fetch = self.provider.token_request(endpoints, &fields);
        let fetch = fetch.map_err(|error| server_error(error.to_string()))?;
        let flow = Waits::Tokens(issuer.to_owned(), Box::new(sign_in));
        Err(Interruption::Fetch(Box::new(fetch), flow))
    }

    /// Takes the provider's tokens.
    pub(super) fn take_tokens(
        &mut self,
        at: &Moment,
        (issuer, sign_in): (String, Box<SignIn>),
        answer: &Result<FetchResponse, FetchError>,
    ) -> Outcome {
        let tokens = match ProviderTokens::read(answer) {
            Ok(tokens) => tokens,
            Err(error) => return Ok(self.fail(&issuer, &sign_in, &error, at.unix)),
        };
        match self.provider.user_of_token(&tokens, Some(&sign_in.nonce), at.unix) {
            Some(Ok(user)) => Ok(self.end_sign_in(at, &issuer, &sign_in, &tokens, user)),
            Some(Err(error)) => Ok(self.fail(&issuer, &sign_in, &error, at.unix)),
            None => {
                let endpoints = self.provider.last_endpoints();
                let asked = endpoints
                    .and_then(|endpoints| Provider::user_request(endpoints, &tokens.access_token));
                let Some(fetch) = asked else {
                    let reason = "the provider issued no identity token; add the scope openid";
                    return Ok(self.fail(
                        &issuer,
                        &sign_in,
                        &ProviderError::Failed(reason.into()),
                        at.unix,
                    ));
                };
                let flow = Waits::User(issuer, sign_in, Box::new(tokens));
                Err(Interruption::Fetch(Box::new(fetch), flow))
            }
        }
    }

    /// Takes the user from the userinfo endpoint.
    pub(super) fn take_user(
        &mut self,
        at: &Moment,
        (issuer, sign_in, tokens): (&str, &SignIn, &ProviderTokens),
        answer: &Result<FetchResponse, FetchError>,
    ) -> Response {
        match self.provider.user_of_answer(answer) {
            Ok(user) => self.end_sign_in(at, issuer, sign_in, tokens, user),
            Err(error) => self.fail(issuer, sign_in, &error, at.unix),
        }
    }

    /// Sends the browser back to the client, with a code.
    fn end_sign_in(
        &mut self,
        at: &Moment,
        issuer: &str,
        sign_in: &SignIn,
        tokens: &ProviderTokens,
        user: User,
    ) -> Response {
        let request = &sign_in.request;
        let granted = self.provider.granted(tokens, &request.scopes);
        let grant = ProxyGrant::new(request.client_id.clone(), user, granted, at);
        let bound = (request.redirect.uri.clone(), request.challenge.clone());
        let credential = Credential::from_tokens(tokens);
        let code = Code::new(bound, grant, (Some(credential), tokens.lifetime), at.unix);
        let sealed = self.sealer.seal(Use::Code, issuer, &code, at).unwrap_or_default();
        if sealed.is_empty() || sealed.len() > MAX_CODE {
            let reason = "the tokens of the provider are too long";
            return self.fail(issuer, sign_in, &ProviderError::Failed(reason.into()), at.unix);
        }
        sign_in.end(issuer, Ok(&sealed))
    }

    /// Sends the browser back to the client because the provider is of no use.
    fn fail(
        &mut self,
        issuer: &str,
        sign_in: &SignIn,
        error: &ProviderError,
        unix: u64,
    ) -> Response {
        let (ProviderError::Refused(reason) | ProviderError::Failed(reason)) = error;
        if let Some(left_out) = self.log.due(unix) {
            tracing::warn!("a user could not sign in: {reason}{left_out}");
        }
        sign_in.end(issuer, Err(&OAuthError::new("server_error", reason.as_str())))
    }

    /// Errors if the operator does not allow the redirect URL.
    fn check_redirect(&self, redirect: &Redirect) -> Result<(), Interruption> {
        if self.allows_redirect(&redirect.uri) {
            return Ok(());
        }
        let reason = "this server does not allow the client's redirect URL";
        Err(shown(OAuthError::new("invalid_request", reason)))
    }

    /// Ends a sign-in that the user did not allow. Everyone can register a URL, so a link to this server would send browsers
    /// anywhere: only a program on the user's machine and URLs that the operator listed are gone to at once (RFC 9700, section
    /// 4.11.2). For others, a page has a link.
    fn end_without_consent(
        &self,
        redirect: &Redirect,
        issuer: &str,
        error: &OAuthError,
    ) -> Response {
        if self.lists_redirects() || without_port(&redirect.uri).is_some() {
            return redirect.response(issuer, Err(error));
        }
        let place = match host_of(&redirect.uri) {
            Some(host) => escape(&host),
            None => "the program".to_owned(),
        };
        let content = format!(
            "<p>{}.</p><p><a href=\"{}\">Return to <b>{place}</b></a>, if you started this there.</p>",
            escape(&error.description),
            escape(&redirect.url(issuer, Err(error))),
        );
        Response::page(StatusCode::BAD_REQUEST, "You are not signed in", &content)
    }

    fn open_approved(&self, sealed: &str, issuer: &str) -> Option<SignIn> {
        self.sealer.open(Use::ApprovedSignIn, issuer, sealed)
    }

    fn open_sign_in(&self, sealed: &str, issuer: &str, unix: u64) -> Result<SignIn, Interruption> {
        let sign_in = self.sealer.open(Use::SignIn, issuer, sealed);
        sign_in.filter(|sign_in: &SignIn| unix < sign_in.expires).ok_or_else(|| {
            let reason = "the sign-in took longer than 10 minutes, or was changed; start again in the program";
            shown(OAuthError::new("invalid_request", reason))
        })
    }

    fn consent_page(
        &self,
        sign_in: &SignIn,
        client_id: &str,
        sealed: &str,
        issuer: &str,
    ) -> Response {
        let request = &sign_in.request;
        let name = escape(&displayed(request.client_name.as_deref().unwrap_or_default()));
        let who = match client_id.starts_with("https://") {
            true => format!(
                "It is described at <b>{}</b>.",
                escape(&host_of(client_id).unwrap_or_default())
            ),
            false => "It chose its name itself.".to_owned(),
        };
        let back = match host_of(&request.redirect.uri) {
            Some(host) => format!("Your browser then returns to <b>{}</b>.", escape(&host)),
            None => format!(
                "Your browser then opens a program on this device, with a link that begins with <b>{}</b>.",
                escape(request.redirect.uri.split('?').next().unwrap_or_default())
            ),
        };
        let scopes = match request.scopes.is_empty() {
            true => String::new(),
            false => format!(" It asks for: {}.", escape(&scopes::join(&request.scopes))),
        };
        let content = format!(
            "<p><b>{name}</b> wants to use <b>{}</b> for you. {who}{scopes}</p>\
             <p>If you allow it, you sign in at <b>{}</b>. {back} \
             Allow it only if you have just started this yourself.</p>\
             <form method=post action=\"{}\"><input type=hidden name=request value=\"{sealed}\">\
             <button name=decision value=allow>Allow</button> \
             <button name=decision value=deny>Deny</button></form>",
            escape(issuer),
            escape(&self.provider.host()),
            escape(&OAuthEndpoint::Consent.url(issuer)),
        );
        Response::page(StatusCode::OK, "Allow access?", &content)
    }
}

impl SignIn {
    /// Sends the browser back to the client and removes the cookie.
    fn end(&self, issuer: &str, outcome: Result<&str, &OAuthError>) -> Response {
        let mut response = self.request.redirect.response(issuer, outcome);
        set_cookie(&mut response.headers, issuer, &self.id, "", 0);
        response
    }
}

impl Credential {
    pub(super) fn from_tokens(tokens: &ProviderTokens) -> Self {
        match &tokens.refresh_token {
            Some(token) => Self::Refresh(token.clone()),
            None => Self::Access(tokens.access_token.clone()),
        }
    }
}

/// Reads the request. The client learns the error at its redirect URL.
fn read_request(
    form: &Form,
    client: &Client,
    redirect: Redirect,
    issuer: &str,
) -> Result<AuthorizationRequest, OAuthError> {
    let mut asked = AuthorizationRequest::read(form, client, redirect)?;
    let is_own = |resource: &String| resource.trim_end_matches('/') == issuer.trim_end_matches('/');
    if !asked.resource.as_ref().is_none_or(is_own) {
        return Err(OAuthError::new("invalid_target", format!("resource must be {issuer}")));
    }
    asked.client_id = short_id(&client.id);
    asked.resource = None;
    // Refresh tokens are issued whether or not a client asks for them.
    asked.scopes.remove("offline_access");
    Ok(asked)
}

/// Returns the interruption by an error that the user sees.
pub(super) fn shown(error: OAuthError) -> Interruption {
    Interruption::Shown(error)
}

fn server_error(reason: String) -> Interruption {
    Interruption::Shown(OAuthError {
        status: StatusCode::BAD_GATEWAY,
        ..OAuthError::new("server_error", reason)
    })
}

/// Returns the page with an error.
pub(super) fn error_page(error: &OAuthError) -> Response {
    let content = format!("<p>{}.</p>", escape(&error.description));
    let status = match error.status {
        StatusCode::UNAUTHORIZED => StatusCode::BAD_REQUEST,
        status => status,
    };
    Response::page(status, "The sign-in failed", &content)
}

/// Returns the host of a URL, with its port. `None` for the URL of an app.
fn host_of(url: &str) -> Option<String> {
    WebUrl::parse(url).ok().map(|url| url.authority())
}

/// Returns the start of a name, without characters that are invisible or change the direction of text. In place of one that
/// shows nothing it returns words.
fn displayed(name: &str) -> String {
    let shown = name.chars().filter(|letter| !is_invisible(*letter)).take(MAX_NAME);
    let shown = shown.collect::<String>().trim().to_owned();
    if shown.is_empty() { "A program without a name".into() } else { shown }
}

/// Returns the value of the cookie of a sign-in.
fn cookie<'a>(headers: &'a HeaderMap, issuer: &str, id: &str) -> Option<&'a str> {
    let name = cookie_name(issuer, id)?;
    let all = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    all.flat_map(|cookies| cookies.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .find(|(key, _)| *key == name)
        .map(|(_, value)| value)
        .filter(|value| !value.is_empty())
}

/// Returns the name of the cookie of a sign-in, so that several can go on in one browser. With https no other host can set it.
fn cookie_name(issuer: &str, id: &str) -> Option<String> {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let start = id.get(..8).filter(|start| start.bytes().all(is_name))?;
    let prefix = if is_https(issuer) { "__Host-" } else { "" };
    Some(format!("{prefix}gudgeon_sign_in_{start}"))
}

fn is_https(issuer: &str) -> bool {
    issuer.starts_with("https://")
}

/// Sets the cookie of a sign-in; 0 seconds remove it.
fn set_cookie(headers: &mut HeaderMap, issuer: &str, id: &str, value: &str, seconds: u64) {
    let Some(name) = cookie_name(issuer, id) else { return };
    let secure = if is_https(issuer) { "; Secure" } else { "" };
    let text = format!("{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}");
    if let Ok(mut text) = HeaderValue::try_from(text) {
        text.set_sensitive(true);
        headers.append(header::SET_COOKIE, text);
    }
}
