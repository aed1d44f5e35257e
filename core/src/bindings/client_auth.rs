//! The credentials of a client, from the JSON of a binding. What only the host can do is asked of its callback `auth`.

use std::{path::PathBuf, sync::Arc};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    client::{
        Answerer, Question,
        auth::{
            Auth, Boxed, ClientKey, Grant, RegisteredClient, Secret, SignInOptions, Store,
            TokenSource, TokenStore,
        },
    },
    error::{Error, ErrorKind},
    protocol::{Method, json::to_raw},
};

/// The credentials as the host gives them.
#[derive(Clone, Debug, Deserialize)]
#[serde(
    tag = "kind",
    rename_all = "camelCase",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
pub(super) enum GivenAuth {
    Token {
        token: Secret,
    },
    /// A function that returns a token.
    Source,
    Oauth {
        client_id: Option<String>,
        client_secret: Option<Secret>,
        issuer: Option<String>,
        client_metadata_url: Option<String>,
        #[serde(default)]
        scopes: Vec<String>,
        store: Option<GivenStore>,
        #[serde(default)]
        dpop: bool,
        #[serde(default)]
        redirect_port: u16,
        #[serde(default)]
        opens_url: bool,
        #[serde(default)]
        handles_redirect: bool,
    },
    ClientCredentials {
        client_id: String,
        client_secret: Option<Secret>,
        private_key: Option<Secret>,
        algorithm: Option<String>,
        issuer: Option<String>,
        #[serde(default)]
        scopes: Vec<String>,
        #[serde(default)]
        dpop: bool,
    },
    EnterpriseManaged {
        idp: String,
        client_id: String,
        client_secret: Option<Secret>,
        idp_client_id: Option<String>,
        idp_client_secret: Option<Secret>,
        issuer: Option<String>,
        #[serde(default)]
        scopes: Vec<String>,
    },
    WorkloadIdentity {
        client_id: Option<String>,
        issuer: Option<String>,
        #[serde(default)]
        scopes: Vec<String>,
    },
}

/// The store of tokens: a file, or an object of the host.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum GivenStore {
    File(PathBuf),
    Own,
}

impl GivenAuth {
    /// Returns the credentials; `answerer` asks the host.
    pub(super) fn read(&self, answerer: &Answerer) -> Result<Auth, Error> {
        let host = Host(Arc::clone(answerer));
        let (grant, given_scopes, is_bound) = match self.clone() {
            Self::Token { token } => return Ok(Auth::Token(token)),
            Self::Source => return Ok(Auth::Source(host.source())),
            Self::Oauth {
                client_id,
                client_secret,
                issuer,
                client_metadata_url,
                scopes,
                dpop,
                redirect_port,
                ..
            } => {
                if client_id.is_none() && client_secret.is_some() {
                    return Err(Error::misuse(
                        "auth: a client_secret needs the client_id to which it belongs",
                    ));
                }
                if client_id.is_none() && issuer.is_some() {
                    return Err(Error::misuse(
                        "auth: an issuer needs the client_id that it gave to the program",
                    ));
                }
                let client = client_id.map(|id| registered(id, client_secret, issuer));
                let (metadata_url, port) = (client_metadata_url, redirect_port);
                (Grant::AuthorizationCode { client, metadata_url, port }, scopes, dpop)
            }
            Self::ClientCredentials {
                client_id,
                client_secret,
                private_key,
                algorithm,
                issuer,
                scopes,
                dpop,
            } => {
                if client_secret.is_some() == private_key.is_some() {
                    return Err(Error::misuse(
                        "auth: client credentials are either a client_secret or a private_key",
                    ));
                }
                let algorithm = algorithm.as_deref().unwrap_or("ES256");
                let key = private_key.map(|it| ClientKey::from_pem(it.expose(), algorithm));
                let client = RegisteredClient {
                    key: key.transpose()?,
                    ..registered(client_id, client_secret, issuer)
                };
                (Grant::ClientCredentials(client), scopes, dpop)
            }
            Self::EnterpriseManaged {
                idp,
                client_id,
                client_secret,
                idp_client_id,
                idp_client_secret,
                issuer,
                scopes,
            } => {
                let idp_client = match idp_client_id {
                    Some(id) => registered(id, idp_client_secret, None),
                    None => registered(client_id.clone(), client_secret.clone(), None),
                };
                let client = registered(client_id, client_secret, issuer);
                (Grant::EnterpriseManaged { client, idp, idp_client }, scopes, false)
            }
            Self::WorkloadIdentity { client_id, issuer, scopes } => {
                (Grant::WorkloadIdentity { client_id, issuer }, scopes, false)
            }
        };
        let mut options = SignInOptions::new(grant);
        options.scopes = given_scopes;
        options.dpop = is_bound;
        if let Self::Oauth { store, opens_url, handles_redirect, .. } = self {
            match store {
                Some(GivenStore::File(path)) => options.store = Store::File(path.clone()),
                Some(GivenStore::Own) => options.store = Store::Own(Arc::new(host.clone())),
                None => (),
            }
            if *opens_url {
                let host = host.clone();
                options.open_url = Some(Arc::new(move |url| {
                    let asked = host.ask(&json!({ "call": "openUrl", "url": url }));
                    Box::pin(async move { asked.await.map(drop) })
                }));
            }
            if *handles_redirect {
                let host = host.clone();
                options.on_redirect = Some(Arc::new(move |url| {
                    host.text(&json!({ "call": "redirect", "url": url }))
                }));
            }
        }
        options.identity = Some(host.source());
        Ok(Auth::SignIn(Box::new(options)))
    }
}

fn registered(id: String, secret: Option<Secret>, issuer: Option<String>) -> RegisteredClient {
    RegisteredClient { id, secret, key: None, issuer }
}

/// The callback of the host.
#[derive(Clone)]
struct Host(Answerer);

impl Host {
    fn ask(&self, params: &Value) -> Boxed<Value> {
        let question = Question { key: None, method: Method::Elicit, params: to_raw(params) };
        let answer = (self.0)(question);
        Box::pin(async move {
            let answer = answer.await?;
            // The text of serde's error may quote a token.
            serde_json::from_str(answer.get())
                .map_err(|_| Error::new(ErrorKind::Auth, "the callback returned no JSON"))
        })
    }

    fn text(&self, params: &Value) -> Boxed<String> {
        let asked = self.ask(params);
        Box::pin(async move {
            match asked.await? {
                Value::String(text) => Ok(text),
                _ => Err(Error::new(ErrorKind::Auth, "the callback must return a string")),
            }
        })
    }

    fn source(&self) -> TokenSource {
        let host = self.clone();
        Arc::new(move || host.text(&json!({ "call": "token" })))
    }
}

impl TokenStore for Host {
    fn get(&self, key: String) -> Boxed<Option<Vec<u8>>> {
        let asked = self.ask(&json!({ "call": "load", "key": key }));
        Box::pin(async move {
            match asked.await? {
                Value::Null => Ok(None),
                Value::String(text) => Ok(Some(text.into_bytes())),
                _ => Err(Error::new(ErrorKind::Auth, "the store must return bytes or nothing")),
            }
        })
    }

    fn set(&self, key: String, value: Vec<u8>) -> Boxed<()> {
        let value = String::from_utf8_lossy(&value);
        let asked = self.ask(&json!({ "call": "save", "key": key, "value": value }));
        Box::pin(async move { asked.await.map(drop) })
    }

    fn delete(&self, key: String) -> Boxed<()> {
        let asked = self.ask(&json!({ "call": "delete", "key": key }));
        Box::pin(async move { asked.await.map(drop) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(given: &str) -> Result<Auth, String> {
        let given: GivenAuth = serde_json::from_str(given).map_err(|it| it.to_string())?;
        let answerer: Answerer = Arc::new(|question| Box::pin(async move { Ok(question.params) }));
        given.read(&answerer).map_err(|it| it.to_string())
    }

    #[test]
    fn credentials_are_of_one_kind() {
        for given in [
            r#"{"kind":"token","token":"t"}"#,
            r#"{"kind":"source"}"#,
            r#"{"kind":"oauth"}"#,
            r#"{"kind":"oauth","clientId":"a","scopes":["b"],"store":{"file":"/x"},"redirectPort":1,"opensUrl":true}"#,
            r#"{"kind":"oauth","store":"own","handlesRedirect":true}"#,
            r#"{"kind":"clientCredentials","clientId":"a","clientSecret":"b"}"#,
            r#"{"kind":"enterpriseManaged","idp":"https://idp.example","clientId":"a"}"#,
            r#"{"kind":"workloadIdentity"}"#,
        ] {
            read(given).unwrap_or_else(|it| panic!("{given}: {it}"));
        }
        for (given, problem) in [
            (r#"{"kind":"oauth","clientSecret":"s3cret"}"#, "client_id"),
            (r#"{"kind":"oauth","issuer":"https://as.example"}"#, "client_id"),
            (r#"{"kind":"clientCredentials","clientId":"a"}"#, "either"),
            (
                r#"{"kind":"clientCredentials","clientId":"a","privateKey":"s3cret"}"#,
                "BEGIN PRIVATE KEY",
            ),
            (r#"{"kind":"token","token":"t","more":1}"#, "more"),
            (r#"{"kind":"odd"}"#, "odd"),
        ] {
            let error = read(given).unwrap_err();
            assert!(error.contains(problem) && !error.contains("s3cret"), "{error}");
        }
    }

    #[test]
    fn credentials_are_for_the_issuer_that_the_program_names() {
        for given in [
            r#"{"kind":"oauth","clientId":"a","issuer":"https://as.example"}"#,
            r#"{"kind":"clientCredentials","clientId":"a","clientSecret":"b","issuer":"https://as.example"}"#,
            r#"{"kind":"enterpriseManaged","idp":"https://idp.example","clientId":"a","issuer":"https://as.example"}"#,
            r#"{"kind":"workloadIdentity","issuer":"https://as.example"}"#,
        ] {
            let Auth::SignIn(options) = read(given).unwrap() else { panic!("{given}") };
            let issuer = match options.grant {
                Grant::AuthorizationCode { client, .. } => client.and_then(|it| it.issuer),
                Grant::ClientCredentials(client) | Grant::EnterpriseManaged { client, .. } => {
                    client.issuer
                }
                Grant::WorkloadIdentity { issuer, .. } => issuer,
            };
            assert_eq!(issuer.as_deref(), Some("https://as.example"), "{given}");
        }
    }
}
