//! Known providers, as data: where they are, and what differs from the standards.

use std::collections::BTreeMap;

use crate::{
    auth::{
        Secret,
        authorization_server::proxy::{Endpoints, ProviderPlace, ProviderSettings},
    },
    error::{Error, option_name},
};

/// The options of a provider, as a program gives them. Their names are compared without case and underscores.
pub(super) type Options = BTreeMap<String, String>;

/// A provider. Texts in braces stand for options.
struct Known {
    name: &'static str,
    /// The options beside the credentials of the client.
    options: &'static [&'static str],
    /// Options that may be left out, with their values then; an empty one leaves the parameter out.
    defaults: &'static [(&'static str, &'static str)],
    place: ProviderPlaceTemplate,
    scopes: &'static [&'static str],
    /// Further parameters of the authorization request.
    params: &'static [(&'static str, &'static str)],
    subject: &'static str,
    /// Names of scopes in answers, and those by which they are asked for.
    scope_names: &'static [(&'static str, &'static str)],
    /// `false` if the revocation of one token ends the user's other sign-ins as well.
    may_revoke: bool,
    accepts: Accepts,
}

enum ProviderPlaceTemplate {
    Issuer(&'static str),
    Fixed {
        authorize: &'static str,
        token: &'static str,
        user: &'static str,
        /// The `iss` of authorization responses.
        issuer: &'static str,
    },
}

/// The ways in which MCP clients can use a provider.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Accepts {
    /// They can't register there, or its tokens name no audience.
    Proxy,
    /// They can register there, if the provider is set up for it; tokens name this audience, or this server if it is empty.
    Both(&'static str),
    /// They register there.
    Direct(&'static str),
}

const OPENID: &[&str] = &["openid", "profile", "email"];
const OFFLINE: &[&str] = &["openid", "profile", "email", "offline_access"];

const STANDARD: Known = Known {
    name: "",
    options: &["domain"],
    defaults: &[],
    place: ProviderPlaceTemplate::Issuer("https://{domain}"),
    scopes: OFFLINE,
    params: &[],
    subject: "sub",
    scope_names: &[],
    may_revoke: true,
    accepts: Accepts::Proxy,
};

const KNOWN: [Known; 13] = [
    Known {
        name: "auth0",
        defaults: &[("audience", "")],
        // The issuer has a slash at its end.
        place: ProviderPlaceTemplate::Issuer("https://{domain}/"),
        params: &[("audience", "{audience}")],
        accepts: Accepts::Both("{audience}"),
        ..STANDARD
    },
    Known { name: "clerk", accepts: Accepts::Both(""), ..STANDARD },
    Known {
        name: "cognito",
        options: &["user_pool_id"],
        place: ProviderPlaceTemplate::Issuer(
            "https://cognito-idp.{region}.amazonaws.com/{user_pool_id}",
        ),
        scopes: OPENID,
        ..STANDARD
    },
    Known {
        name: "descope",
        options: &["project_id", "mcp_server_id"],
        defaults: &[("base_url", "https://api.descope.com"), ("audience", "")],
        place: ProviderPlaceTemplate::Issuer(
            "{base_url}/v1/apps/agentic/{project_id}/{mcp_server_id}",
        ),
        accepts: Accepts::Direct("{audience}"),
        ..STANDARD
    },
    Known {
        name: "discord",
        options: &[],
        place: ProviderPlaceTemplate::Fixed {
            authorize: "https://discord.com/oauth2/authorize",
            token: "https://discord.com/api/oauth2/token",
            user: "https://discord.com/api/users/@me",
            issuer: "https://discord.com",
        },
        scopes: &["identify", "email"],
        subject: "id",
        may_revoke: false,
        ..STANDARD
    },
    Known {
        name: "entra",
        options: &["tenant_id"],
        place: ProviderPlaceTemplate::Issuer("https://login.microsoftonline.com/{tenant_id}/v2.0"),
        ..STANDARD
    },
    Known {
        name: "github",
        options: &[],
        place: ProviderPlaceTemplate::Fixed {
            authorize: "https://github.com/login/oauth/authorize",
            token: "https://github.com/login/oauth/access_token",
            user: "https://api.github.com/user",
            issuer: "https://github.com/login/oauth",
        },
        scopes: &["read:user"],
        subject: "id",
        may_revoke: false,
        ..STANDARD
    },
    Known {
        name: "google",
        options: &[],
        place: ProviderPlaceTemplate::Issuer("https://accounts.google.com"),
        scopes: OPENID,
        // Otherwise there is a refresh token at the first consent only.
        params: &[("access_type", "offline"), ("prompt", "consent")],
        scope_names: &[
            ("https://www.googleapis.com/auth/userinfo.email", "email"),
            ("https://www.googleapis.com/auth/userinfo.profile", "profile"),
        ],
        may_revoke: false,
        ..STANDARD
    },
    Known {
        name: "keycloak",
        options: &["realm_url"],
        defaults: &[("audience", "")],
        place: ProviderPlaceTemplate::Issuer("{realm_url}"),
        scopes: OPENID,
        accepts: Accepts::Both("{audience}"),
        ..STANDARD
    },
    Known {
        name: "okta",
        defaults: &[("authorization_server_id", "default")],
        place: ProviderPlaceTemplate::Issuer("https://{domain}/oauth2/{authorization_server_id}"),
        ..STANDARD
    },
    Known {
        name: "scalekit",
        options: &["environment_url", "resource_id"],
        place: ProviderPlaceTemplate::Issuer("{environment_url}/resources/{resource_id}"),
        accepts: Accepts::Direct("{resource_id}"),
        ..STANDARD
    },
    Known {
        name: "supabase",
        options: &["project_ref"],
        place: ProviderPlaceTemplate::Issuer("https://{project_ref}.supabase.co/auth/v1"),
        ..STANDARD
    },
    Known { name: "workos", accepts: Accepts::Both(""), ..STANDARD },
];

/// The way in which a server uses a provider.
#[derive(Debug)]
pub(super) enum Chosen {
    /// The tokens of this issuer, for these audiences.
    Direct {
        issuer: String,
        audiences: Option<Vec<String>>,
    },
    Proxy(Box<ProviderSettings>),
}

/// The credentials of the proxy at its provider, and the scopes that a program asks for.
#[derive(Default)]
pub(super) struct ClientOptions {
    pub(super) id: Option<String>,
    pub(super) secret: Option<Secret>,
    pub(super) scopes: Option<Vec<String>>,
}

impl ClientOptions {
    /// Copies the options of a method.
    pub(super) fn new(
        id: Option<&String>,
        secret: Option<&Secret>,
        scopes: Option<&Vec<String>>,
    ) -> Self {
        Self { id: id.cloned(), secret: secret.cloned(), scopes: scopes.cloned() }
    }
}

/// Chooses the way to use a provider: with the id of a client there, as a client on behalf of MCP clients; otherwise these
/// register there themselves. Errors, with the fix, if that does not work.
pub(super) fn choose(
    name: &str,
    options: &Options,
    client: ClientOptions,
) -> Result<Chosen, Error> {
    let name = if name == "azure" { "entra" } else { name };
    let Some(known) = KNOWN.iter().find(|provider| provider.name == name) else {
        let names: Vec<_> = KNOWN.iter().map(|provider| provider.name).collect();
        return Err(Error::misuse(format!(
            "auth: there is no provider {name:?}; choose one of {}, or give the URL of an issuer to an OAuth proxy",
            names.join(", ")
        )));
    };
    let options = known.read(options)?;
    let filled = |template: &str| fill(template, &options);
    match (known.accepts, client.id) {
        (Accepts::Direct(_), Some(_)) => Err(Error::misuse(format!(
            "auth: MCP clients register at {name} themselves; leave out {}",
            option_name("client_id")
        ))),
        (Accepts::Direct(audience) | Accepts::Both(audience), None) => {
            let ProviderPlaceTemplate::Issuer(issuer) = known.place else {
                return Err(Error::misuse(format!("auth: {name} has no metadata")));
            };
            let audience = filled(audience);
            let audiences = (!audience.is_empty()).then(|| vec![audience]);
            Ok(Chosen::Direct { issuer: filled(issuer), audiences })
        }
        (Accepts::Proxy, None) => Err(Error::misuse(format!(
            "auth: {name} needs {} and {} of an OAuth app that you register there, with the redirect URL \
             of this server: its URL and /oauth/callback",
            option_name("client_id"),
            option_name("client_secret")
        ))),
        (Accepts::Both(_) | Accepts::Proxy, Some(id)) => {
            Ok(Chosen::Proxy(Box::new(ProviderSettings {
                place: match known.place {
                    ProviderPlaceTemplate::Issuer(issuer) => ProviderPlace::Issuer(filled(issuer)),
                    ProviderPlaceTemplate::Fixed { authorize, token, user, issuer } => {
                        ProviderPlace::Fixed(Endpoints {
                            authorization_endpoint: authorize.into(),
                            token_endpoint: token.into(),
                            userinfo_endpoint: Some(user.into()),
                            issuer: Some(issuer.into()),
                            ..Endpoints::default()
                        })
                    }
                },
                client_id: id,
                client_secret: client.secret,
                scopes: client.scopes.filter(|scopes| !scopes.is_empty()).unwrap_or_else(|| {
                    known.scopes.iter().map(|scope| (*scope).to_owned()).collect()
                }),
                params: known
                    .params
                    .iter()
                    .map(|(name, value)| ((*name).to_owned(), filled(value)))
                    .filter(|(_, value)| !value.is_empty())
                    .collect(),
                subject: known.subject.into(),
                scope_names: known
                    .scope_names
                    .iter()
                    .map(|(theirs, own)| ((*theirs).to_owned(), (*own).to_owned()))
                    .collect(),
                may_revoke: known.may_revoke,
            })))
        }
    }
}

/// Returns the settings for an issuer that is not in the table.
pub(super) fn issuer(issuer: &str, client: ClientOptions) -> Result<ProviderSettings, Error> {
    let missing = || {
        let name = option_name("client_id");
        Error::misuse(format!("auth: an OAuth proxy needs {name}, its id at the provider"))
    };
    Ok(ProviderSettings {
        place: ProviderPlace::Issuer(issuer.to_owned()),
        client_id: client.id.ok_or_else(missing)?,
        client_secret: client.secret,
        scopes: client
            .scopes
            .filter(|scopes| !scopes.is_empty())
            .unwrap_or_else(|| OPENID.iter().map(|scope| (*scope).to_owned()).collect()),
        params: Vec::new(),
        subject: "sub".into(),
        scope_names: Vec::new(),
        may_revoke: true,
    })
}

impl Known {
    /// Returns the options by their names here. Errors for one that is missing or unknown.
    fn read(&self, given: &Options) -> Result<Options, Error> {
        let mut options: Options =
            self.defaults.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        let names = || self.options.iter().chain(self.defaults.iter().map(|(name, _)| name));
        for (given, value) in given {
            let Some(name) = names().find(|name| plain(name) == plain(given)) else {
                let all: Vec<_> = names().map(|name| option_name(name)).collect();
                return Err(Error::misuse(format!(
                    "auth: {} has no option {given}; it has {} beside the credentials",
                    self.name,
                    if all.is_empty() { "none".to_owned() } else { all.join(", ") }
                )));
            };
            let value = value.trim_end_matches('/');
            let is_url = name.ends_with("url");
            if value.is_empty()
                || value.contains(['?', '#', '@'])
                || (!is_url && value.contains('/'))
            {
                let what = if is_url { "a URL" } else { "a name without / and https://" };
                return Err(Error::misuse(format!(
                    "auth: {}: {} must be {what}, not {value:?}",
                    self.name,
                    option_name(name)
                )));
            }
            options.insert((*name).to_owned(), value.to_owned());
        }
        if let Some(missing) = self.options.iter().find(|name| !options.contains_key(**name)) {
            return Err(Error::misuse(format!(
                "auth: {} needs {}",
                self.name,
                option_name(missing)
            )));
        }
        // The id of a user pool begins with its region.
        if let Some((region, _)) = options.get("user_pool_id").and_then(|id| id.split_once('_')) {
            let region = region.to_owned();
            options.insert("region".into(), region);
        }
        Ok(options)
    }
}

/// Returns a name without case and underscores.
fn plain(name: &str) -> String {
    name.replace('_', "").to_ascii_lowercase()
}

/// Puts options into a template.
fn fill(template: &str, options: &Options) -> String {
    options.iter().fold(template.to_owned(), |text, (name, value)| {
        text.replace(&format!("{{{name}}}"), value)
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that fails here says where")]

    use super::*;

    fn options(given: &[(&str, &str)]) -> Options {
        given.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
    }

    fn client() -> ClientOptions {
        ClientOptions { id: Some("me".into()), ..ClientOptions::default() }
    }

    #[test]
    fn every_provider_is_found_with_its_options() {
        for (name, given, expected) in [
            ("auth0", &[("domain", "a.auth0.com")][..], "https://a.auth0.com/"),
            ("azure", &[("tenantId", "t")], "https://login.microsoftonline.com/t/v2.0"),
            ("clerk", &[("domain", "clerk.example.com")], "https://clerk.example.com"),
            (
                "cognito",
                &[("user_pool_id", "eu-central-1_Ab")],
                "https://cognito-idp.eu-central-1.amazonaws.com/eu-central-1_Ab",
            ),
            ("discord", &[], "https://discord.com/oauth2/authorize"),
            ("entra", &[("tenant_id", "t")], "https://login.microsoftonline.com/t/v2.0"),
            ("github", &[], "https://github.com/login/oauth/authorize"),
            ("google", &[], "https://accounts.google.com"),
            (
                "keycloak",
                &[("realm_url", "https://id.example.com/realms/a/")],
                "https://id.example.com/realms/a",
            ),
            ("okta", &[("domain", "a.okta.com")], "https://a.okta.com/oauth2/default"),
            ("supabase", &[("projectRef", "abc")], "https://abc.supabase.co/auth/v1"),
            ("workos", &[("domain", "a.authkit.app")], "https://a.authkit.app"),
        ] {
            let chosen = choose(name, &options(given), client());
            let Ok(Chosen::Proxy(settings)) = chosen else { panic!("{name}: {chosen:?}") };
            let place = match settings.place {
                ProviderPlace::Issuer(issuer) => issuer,
                ProviderPlace::Fixed(endpoints) => endpoints.authorization_endpoint,
            };
            assert_eq!(place, expected, "{name}");
        }
    }

    #[test]
    fn clients_register_where_they_can() {
        for (name, given, expected, audience) in [
            ("auth0", &[("domain", "a.auth0.com")][..], "https://a.auth0.com/", None),
            (
                "auth0",
                &[("domain", "a.auth0.com"), ("audience", "api")],
                "https://a.auth0.com/",
                Some("api"),
            ),
            ("clerk", &[("domain", "c.example")], "https://c.example", None),
            (
                "descope",
                &[("project_id", "P"), ("mcp_server_id", "M")],
                "https://api.descope.com/v1/apps/agentic/P/M",
                None,
            ),
            (
                "scalekit",
                &[("environment_url", "https://a.scalekit.dev"), ("resource_id", "res_1")],
                "https://a.scalekit.dev/resources/res_1",
                Some("res_1"),
            ),
        ] {
            let chosen = choose(name, &options(given), ClientOptions::default());
            let Ok(Chosen::Direct { issuer, audiences }) = chosen else { panic!("{chosen:?}") };
            assert_eq!(issuer, expected);
            assert_eq!(audiences, audience.map(|audience| vec![audience.to_owned()]), "{name}");
        }
    }

    #[test]
    fn a_mistake_is_named_with_its_fix() {
        for (name, given, has_client, reason) in [
            ("gogle", &[][..], true, "choose one of auth0"),
            ("google", &[], false, "client_id"),
            ("google", &[("tenant", "x")], true, "has none"),
            ("okta", &[], true, "okta needs domain"),
            ("okta", &[("domain", "https://a.okta.com")], true, "without /"),
            ("okta", &[("domain", "")], true, "must be"),
            ("okta", &[("domain", "a.okta.com"), ("more", "x")], true, "authorization_server_id"),
        ] {
            let client = if has_client { client() } else { ClientOptions::default() };
            let error = choose(name, &options(given), client).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}, not {reason}");
        }
    }
}
