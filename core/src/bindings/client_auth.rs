//! The credentials of a client, from the JSON of a binding. What only the host can do is asked of its callback `auth`.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{runtime::Handle, sync::oneshot};

use crate::{
    auth::Secret,
    client::{
        Answerer, Question,
        auth::{
            Auth, BoxFuture, ClientCredentials, EnterpriseManaged, OAuth, Store, TokenSource,
            TokenStore, WorkloadIdentity,
        },
    },
    driver::boxed,
    error::{Error, ErrorKind, option_name},
    protocol::{Method, json::to_raw},
    transport::sign_in::{LockCallback, RenewalLock, UrlCallback, lock_keyring},
};

/// The credentials as the host gives them. One struct for all kinds, because serde's code for tagged enums is compiled for each
/// of their fields.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct GivenAuth {
    /// `token`, `source` (a function that returns a token), `oauth`, `clientCredentials`, `enterpriseManaged` or
    /// `workloadIdentity`.
    kind: String,
    token: Option<Secret>,
    client_id: Option<String>,
    client_secret: Option<Secret>,
    private_key: Option<Secret>,
    algorithm: Option<String>,
    issuer: Option<String>,
    idp: Option<String>,
    idp_client_id: Option<String>,
    idp_client_secret: Option<Secret>,
    client_metadata_url: Option<String>,
    #[serde(default)]
    scopes: Vec<String>,
    /// `{"file": path}`; `{"keyring": service}`, an object of the host that uses the system's keyring; `"own"`, another object of
    /// the host, or `"shared"`, one with a lock. A value, because serde's code for enums is larger.
    store: Option<Value>,
    #[serde(default)]
    dpop: bool,
    #[serde(default)]
    redirect_port: u16,
    #[serde(default)]
    opens_url: bool,
    #[serde(default)]
    handles_redirect: bool,
}

impl GivenAuth {
    /// Returns the credentials; `answerer` asks the host. Errors if they can't work.
    pub(super) fn read(&self, answerer: &Answerer) -> Result<Auth, Error> {
        let host = Host(Arc::clone(answerer));
        let given = self.clone();
        let exposed = |secret: Option<Secret>| secret.map(|secret| secret.expose().to_owned());
        let missing = |name: &str| Error::misuse(format!("auth: {} is missing", option_name(name)));
        let (client_id, issuer, scopes) = (given.client_id, given.issuer, given.scopes);
        let client_secret = exposed(given.client_secret);
        let auth = match &*given.kind {
            "token" => Auth::Token(exposed(given.token).ok_or_else(|| missing("token"))?),
            "source" => Auth::Source(host.source()),
            "oauth" => Auth::OAuth(OAuth {
                client_id,
                client_secret,
                issuer,
                client_metadata_url: given.client_metadata_url,
                scopes,
                store: given.store.as_ref().map_or(Ok(Store::Memory), |store| host.store(store))?,
                dpop: given.dpop,
                redirect_port: given.redirect_port,
                open_url: given.opens_url.then(|| host.open_url()),
                on_redirect: given.handles_redirect.then(|| host.on_redirect()),
            }),
            "clientCredentials" => Auth::ClientCredentials(ClientCredentials {
                client_id: client_id.ok_or_else(|| missing("client_id"))?,
                client_secret,
                private_key: exposed(given.private_key),
                algorithm: given.algorithm,
                issuer,
                scopes,
                dpop: given.dpop,
            }),
            "enterpriseManaged" => Auth::EnterpriseManaged(EnterpriseManaged {
                identity_token: Some(host.source()),
                idp: given.idp.ok_or_else(|| missing("idp"))?,
                client_id: client_id.ok_or_else(|| missing("client_id"))?,
                client_secret,
                idp_client_id: given.idp_client_id,
                idp_client_secret: exposed(given.idp_client_secret),
                issuer,
                scopes,
            }),
            "workloadIdentity" => {
                let token = Some(host.source());
                Auth::WorkloadIdentity(WorkloadIdentity { token, client_id, issuer, scopes })
            }
            other => return Err(Error::misuse(format!("auth: there is no kind {other:?}"))),
        };
        auth.check()?;
        Ok(auth)
    }
}

/// The callback of the host.
#[derive(Clone)]
struct Host(Answerer);

impl Host {
    fn ask(&self, params: &Value) -> BoxFuture<Value> {
        let question = Question { key: None, method: Method::Elicit, params: to_raw(params) };
        let answer = (self.0)(question);
        Box::pin(async move {
            let answer = answer.await?;
            // The text of serde's error may quote a token.
            serde_json::from_str(answer.get())
                .map_err(|_| Error::new(ErrorKind::Auth, "the callback returned no JSON"))
        })
    }

    fn text(&self, params: &Value) -> BoxFuture<String> {
        let asked = self.ask(params);
        Box::pin(async move {
            match asked.await? {
                Value::String(text) => Ok(text),
                _ => Err(Error::new(ErrorKind::Auth, "the callback must return a string")),
            }
        })
    }

    fn store(&self, given: &Value) -> Result<Store, Error> {
        let text = |name: &str| given.get(name).and_then(Value::as_str);
        let own = Arc::new(self.clone());
        match (text("file"), text("keyring"), given.as_str()) {
            (Some(path), ..) => Ok(Store::File(path.into())),
            (_, Some(service), _) => {
                let service: Arc<str> = service.into();
                let lock: LockCallback = Arc::new(move |key| {
                    let service = Arc::clone(&service);
                    Box::pin(async move { lock_keyring(&service, &key).await })
                });
                Ok(Store::Shared(own, lock))
            }
            (.., Some("own")) => Ok(Store::Own(own)),
            (.., Some("shared")) => Ok(Store::Shared(own, self.lock())),
            _ => Err(Error::misuse("auth: there is no such store")),
        }
    }

    /// Returns the function that takes the lock of the host's store.
    fn lock(&self) -> LockCallback {
        let host = self.clone();
        Arc::new(move |key| {
            let (host, asked) = (host.clone(), host.ask(&json!({ "call": "lock", "key": key })));
            let (sender, taken) = oneshot::channel();
            // A task of its own, which releases the lock if nothing waits for it any more.
            let runtime = Handle::current();
            let locked = boxed(async move {
                let lock = asked.await.map(|number| HeldLock { host, number, runtime });
                drop(sender.send(lock));
            });
            Handle::current().spawn(locked);
            Box::pin(async move {
                let gone = |_| Error::new(ErrorKind::Auth, "the store's lock could not be taken");
                let lock = taken.await.map_err(gone)??;
                Ok(Box::new(lock) as RenewalLock)
            })
        })
    }

    fn source(&self) -> TokenSource {
        let host = self.clone();
        Arc::new(move || host.text(&json!({ "call": "token" })))
    }

    fn open_url(&self) -> UrlCallback<()> {
        let host = self.clone();
        Arc::new(move |url| {
            let asked = host.ask(&json!({ "call": "openUrl", "url": url }));
            Box::pin(async move { asked.await.map(drop) })
        })
    }

    fn on_redirect(&self) -> UrlCallback<String> {
        let host = self.clone();
        Arc::new(move |url| host.text(&json!({ "call": "redirect", "url": url })))
    }
}

impl TokenStore for Host {
    fn get(&self, key: String) -> BoxFuture<Option<Vec<u8>>> {
        let asked = self.ask(&json!({ "call": "load", "key": key }));
        Box::pin(async move {
            match asked.await? {
                Value::Null => Ok(None),
                Value::String(text) => Ok(Some(text.into_bytes())),
                _ => Err(Error::new(ErrorKind::Auth, "the store must return bytes or nothing")),
            }
        })
    }

    fn set(&self, key: String, value: Vec<u8>) -> BoxFuture<()> {
        let value = String::from_utf8_lossy(&value);
        let asked = self.ask(&json!({ "call": "save", "key": key, "value": value }));
        Box::pin(async move { asked.await.map(drop) })
    }

    fn delete(&self, key: String) -> BoxFuture<()> {
        let asked = self.ask(&json!({ "call": "delete", "key": key }));
        Box::pin(async move { asked.await.map(drop) })
    }
}

/// A lock of the host's store, released when dropped.
struct HeldLock {
    host: Host,
    number: Value,
    runtime: Handle,
}

impl Drop for HeldLock {
    fn drop(&mut self) {
        // Asked at once, so that a client without an event loop, which still waits for its call, gets the question.
        let asked = self.host.ask(&json!({ "call": "unlock", "lock": self.number }));
        self.runtime.spawn(boxed(async move {
            if let Err(error) = asked.await {
                tracing::error!("auth: the lock of the store could not be released: {error}");
            }
        }));
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;

    use super::*;
    use crate::protocol::Raw;

    fn read(given: &str) -> Result<Auth, String> {
        let given: GivenAuth = serde_json::from_str(given).map_err(|error| error.to_string())?;
        let answerer: Answerer = Arc::new(|question| Box::pin(async move { Ok(question.params) }));
        given.read(&answerer).map_err(|error| error.to_string())
    }

    #[test]
    fn credentials_are_of_one_kind() {
        for given in [
            r#"{"kind":"token","token":"t"}"#,
            r#"{"kind":"source"}"#,
            r#"{"kind":"oauth"}"#,
            r#"{"kind":"oauth","clientId":"a","scopes":["b"],"store":{"file":"/x"},"redirectPort":1,"opensUrl":true}"#,
            r#"{"kind":"oauth","store":"own","handlesRedirect":true}"#,
            r#"{"kind":"oauth","store":{"keyring":"shelf"}}"#,
            r#"{"kind":"oauth","store":"shared"}"#,
            r#"{"kind":"clientCredentials","clientId":"a","clientSecret":"b"}"#,
            r#"{"kind":"enterpriseManaged","idp":"https://idp.example","clientId":"a"}"#,
            r#"{"kind":"workloadIdentity"}"#,
        ] {
            read(given).unwrap_or_else(|error| panic!("{given}: {error}"));
        }
        for (given, problem) in [
            (r#"{"kind":"oauth","clientSecret":"s3cret"}"#, "client_id"),
            (r#"{"kind":"oauth","issuer":"https://as.example"}"#, "client_id"),
            (r#"{"kind":"clientCredentials","clientId":"a"}"#, "exactly one"),
            (
                r#"{"kind":"enterpriseManaged","idp":"https://idp.example","clientId":"a","idpClientSecret":"s3cret"}"#,
                "without idp_client_id",
            ),
            (
                r#"{"kind":"clientCredentials","clientId":"a","privateKey":"s3cret"}"#,
                "BEGIN PRIVATE KEY",
            ),
            (r#"{"kind":"token","token":"t","more":1}"#, "more"),
            (r#"{"kind":"odd"}"#, "odd"),
            (r#"{"kind":"oauth","store":"other"}"#, "no such store"),
        ] {
            let error = read(given).unwrap_err();
            assert!(error.contains(problem) && !error.contains("s3cret"), "{error}");
        }
    }

    /// Returns the function that takes the lock of a store, and the requests that the host receives.
    fn shared() -> (LockCallback, mpsc::UnboundedReceiver<(Value, oneshot::Sender<Raw>)>) {
        let (requests, received) = mpsc::unbounded_channel();
        let ask: Answerer = Arc::new(move |question| {
            let (sender, answer) = oneshot::channel();
            let request = serde_json::from_str(question.params.get()).unwrap();
            requests.send((request, sender)).unwrap();
            Box::pin(async move { Ok(answer.await.unwrap()) })
        });
        match Host(ask).store(&json!("shared")).unwrap() {
            Store::Shared(_, lock) => (lock, received),
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn a_lock_is_released_when_it_is_dropped() {
        let (lock, mut received) = shared();
        let taken = lock("k".into());
        let (request, answer) = received.recv().await.unwrap();
        assert_eq!(request, json!({ "call": "lock", "key": "k" }));
        answer.send(to_raw(&7)).unwrap();
        let held = taken.await.unwrap();
        assert!(received.try_recv().is_err());
        drop(held);
        let (request, _answer) = received.try_recv().unwrap();
        assert_eq!(request, json!({ "call": "unlock", "lock": 7 }));
    }

    #[tokio::test]
    async fn a_lock_that_nothing_waits_for_any_more_is_released() {
        let (lock, mut received) = shared();
        drop(lock("k".into()));
        let (_, answer) = received.recv().await.unwrap();
        answer.send(to_raw(&7)).unwrap();
        let (request, _answer) = received.recv().await.unwrap();
        assert_eq!(request, json!({ "call": "unlock", "lock": 7 }));
    }

    #[test]
    fn credentials_are_for_the_issuer_that_the_program_names() {
        for given in [
            r#"{"kind":"oauth","clientId":"a","issuer":"https://as.example"}"#,
            r#"{"kind":"clientCredentials","clientId":"a","clientSecret":"b","issuer":"https://as.example"}"#,
            r#"{"kind":"enterpriseManaged","idp":"https://idp.example","clientId":"a","issuer":"https://as.example"}"#,
            r#"{"kind":"workloadIdentity","issuer":"https://as.example"}"#,
        ] {
            let issuer = match read(given).unwrap() {
                Auth::OAuth(OAuth { issuer, .. })
                | Auth::ClientCredentials(ClientCredentials { issuer, .. })
                | Auth::EnterpriseManaged(EnterpriseManaged { issuer, .. })
                | Auth::WorkloadIdentity(WorkloadIdentity { issuer, .. }) => issuer,
                other => panic!("{other:?}"),
            };
            assert_eq!(issuer.as_deref(), Some("https://as.example"), "{given}");
        }
    }
}
