//! The tokens of sign-ins: a file of the core's client, which has a record of this program too for each server that the user
//! signed in to. The record says where the tokens are: in the same file, or in the system's keyring.

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use gudgeon::{
    auth::client::stored::{StoredServer, StoredSignIn, server_key},
    bindings::TokenFile,
    client::{
        Target,
        auth::{Auth, OAuth, Store, stored_as},
    },
    error::{Error, ErrorKind},
    protocol::Raw,
    transport::{Url, fetch},
};
use serde::{Deserialize, Serialize};

use crate::failure::{Failure, FailureKind};

#[cfg(feature = "keyring")]
mod keyring;
#[cfg(not(feature = "keyring"))]
#[path = "no_keyring.rs"]
mod keyring;

const VERSION: u32 = 1;
/// The beginning of the keys of this program's records; the URL of the server follows.
const PREFIX: &str = "gudgeon ";

/// The options of a sign-in, which renewals of its token need.
#[derive(Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SignInOptions {
    pub version: u32,
    pub client_id: Option<String>,
    /// With the keyring it is kept there, and missing in the file.
    pub client_secret: Option<String>,
    /// True if the tokens are in the system's keyring.
    #[serde(default)]
    pub keyring: bool,
    pub issuer: Option<String>,
    pub client_metadata_url: Option<String>,
    pub scopes: Vec<String>,
    pub dpop: bool,
}

/// The file of tokens.
pub struct Tokens {
    path: PathBuf,
    file: TokenFile,
}

/// Options of a client that registers itself.
impl Default for SignInOptions {
    fn default() -> Self {
        Self {
            version: VERSION,
            client_id: None,
            client_secret: None,
            keyring: false,
            issuer: None,
            client_metadata_url: None,
            scopes: Vec::new(),
            dpop: false,
        }
    }
}

impl SignInOptions {
    /// Returns the credentials of a client that keeps its tokens in this file, or in the keyring. Errors if this program
    /// can't use keyrings.
    pub fn oauth(&self, file: &Path) -> Result<OAuth, Failure> {
        let store = if self.keyring { keyring::store()? } else { Store::File(file.to_owned()) };
        Ok(OAuth {
            client_id: self.client_id.clone(),
            client_secret: self.client_secret.clone(),
            issuer: self.issuer.clone(),
            client_metadata_url: self.client_metadata_url.clone(),
            scopes: self.scopes.clone(),
            dpop: self.dpop,
            store,
            ..OAuth::default()
        })
    }
}

/// Returns the path of the file of tokens.
pub fn path() -> Result<PathBuf, Failure> {
    let absolute = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let data = absolute("XDG_DATA_HOME")
        .or_else(|| absolute("LOCALAPPDATA"))
        .or_else(|| absolute("HOME").map(|home| home.join(".local/share")));
    data.map(|folder| folder.join("gudgeon/tokens.json")).ok_or_else(|| {
        Failure::new(FailureKind::File, "there is no folder for tokens").with_hint("set HOME")
    })
}

/// Returns the credentials that a sign-in at this target has stored. The file is only looked at for servers over HTTP.
pub fn stored_for(target: &Target) -> Option<Auth> {
    match target {
        Target::Url(url) if is_http(url) => stored_in(&path().ok()?, &stored_as(url)),
        _ => None,
    }
}

/// Returns the credentials in a file for the server with this URL. A file that is broken has none: `gudgeon auth login`
/// reports it once a server asks for credentials.
pub fn stored_in(file: &Path, url: &str) -> Option<Auth> {
    #[derive(Deserialize)]
    struct Content {
        records: BTreeMap<String, Raw>,
    }
    let content: Content = serde_json::from_slice(&fs::read(file).ok()?).ok()?;
    let record = content.records.get(&format!("{PREFIX}{url}"))?;
    let mut options: SignInOptions = serde_json::from_str(record.get()).ok()?;
    if options.keyring
        && options.client_id.is_some()
        && let Ok(secret) = keyring::secret_at_once(url)
    {
        options.client_secret = secret;
    }
    let command = format!("gudgeon auth login {url}");
    let again = move |_| {
        let message = format!("the sign-in has expired or has too few scopes; run `{command}`");
        let refused: gudgeon::client::auth::BoxFuture<String> =
            Box::pin(async move { Err(Error::new(ErrorKind::Auth, message)) });
        refused
    };
    match options.oauth(file) {
        Ok(oauth) => Some(OAuth { on_redirect: Some(Arc::new(again)), ..oauth }.into()),
        // The server may need no token; if it does, the user has to know where it is.
        Err(failure) => {
            let (message, hint) =
                (failure.message().to_owned(), failure.hint().map(ToOwned::to_owned));
            Some(Auth::Source(Arc::new(move || {
                let hint = hint.clone();
                let error = Error::new(ErrorKind::Auth, message.clone());
                let error = error.with(|details| details.hint = hint);
                Box::pin(async move { Err(error) })
            })))
        }
    }
}

/// Returns the URL of a server over HTTP as it is stored.
pub fn stored_url(target: &Target) -> Result<String, Failure> {
    match target {
        Target::Url(url) if is_http(url) => Ok(stored_as(url)),
        other => Err(Failure::usage(format!("{other} is not at an http or https URL"))
            .with_hint("users sign in to servers over HTTP only")),
    }
}

fn is_http(url: &Url) -> bool {
    use gudgeon::transport::Scheme;
    matches!(url.scheme(), Scheme::Http | Scheme::Https)
}

impl Tokens {
    pub fn open() -> Result<Self, Failure> {
        let path = path()?;
        Ok(Self { file: TokenFile::new(path.clone()), path })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the URLs of all servers that the user signed in to.
    pub async fn urls(&self) -> Result<Vec<String>, Failure> {
        let keys = self.file.keys().await.map_err(|error| of_file(&error))?;
        let urls = keys.iter().filter_map(|key| key.strip_prefix(PREFIX));
        Ok(urls.map(ToOwned::to_owned).collect())
    }

    /// Returns the options of a sign-in.
    pub async fn options(&self, url: &str) -> Result<Option<SignInOptions>, Failure> {
        let record =
            self.file.get(&format!("{PREFIX}{url}")).await.map_err(|error| of_file(&error))?;
        let Some(record) = record else { return Ok(None) };
        let invalid = |_| {
            let message = format!("{}: the record of {url} is not valid", self.path.display());
            Failure::new(FailureKind::File, message)
                .with_hint(format!("run `gudgeon auth login {url}`"))
        };
        let mut options: SignInOptions = serde_json::from_slice(&record).map_err(invalid)?;
        if options.keyring && options.client_id.is_some() {
            options.client_secret = keyring::secret(url).await?;
        }
        Ok(Some(options))
    }

    /// Errors if the file, or the keyring where tokens are to be kept there, can't be written.
    pub async fn check_writable(&self, options: &SignInOptions) -> Result<(), Failure> {
        // No record has this key, so that the file is written as it is.
        self.records(options)?.delete(PREFIX).await?;
        self.file.delete(PREFIX).await.map_err(|error| of_file(&error))
    }

    /// Stores the options of a sign-in.
    pub async fn set_options(&self, url: &str, mut options: SignInOptions) -> Result<(), Failure> {
        if options.keyring {
            keyring::set_secret(url, options.client_secret.take()).await?;
        }
        let record = serde_json::to_vec(&options).map_err(std::io::Error::other)?;
        self.file.set(&format!("{PREFIX}{url}"), &record).await.map_err(|error| of_file(&error))
    }

    /// Returns the sign-in with these options.
    pub async fn sign_in(
        &self,
        url: &str,
        options: &SignInOptions,
    ) -> Result<Option<StoredSignIn>, Failure> {
        let Some((server, key, bytes)) = self.credentials(url, options).await? else {
            return Ok(None);
        };
        let found = server.sign_in(&self.name(options), &key, &bytes)?;
        Ok(Some(found).filter(|found| found.access_token.is_some()))
    }

    /// Revokes the tokens of a sign-in and removes its records. Returns whether the authorization server revoked them.
    pub async fn remove(&self, url: &str) -> Result<bool, Failure> {
        let options = self.options(url).await?.unwrap_or_default();
        let id = options.client_id.as_deref();
        let mut is_revoked = false;
        if let Some((server, key, bytes)) = self.credentials(url, &options).await? {
            let document = options.client_metadata_url.as_deref().map(|url| (url, None));
            let given = id.map(|id| (id, options.client_secret.as_deref())).or(document);
            let request = server.revocation(&self.name(&options), &key, &bytes, given)?;
            // The tokens are removed here even if the authorization server can't be reached.
            if let Some(request) = request {
                is_revoked =
                    fetch::send(request).await.is_ok_and(|reply| reply.status.is_success());
            }
            self.records(&options)?.delete(&key).await?;
        }
        self.records(&options)?.delete(&server_key(url, id)).await?;
        if options.keyring {
            keyring::set_secret(url, None).await?;
        }
        self.file.delete(&format!("{PREFIX}{url}")).await.map_err(|error| of_file(&error))?;
        Ok(is_revoked)
    }

    async fn credentials(
        &self,
        url: &str,
        options: &SignInOptions,
    ) -> Result<Option<(StoredServer, String, Vec<u8>)>, Failure> {
        let records = self.records(options)?;
        let id = options.client_id.as_deref();
        let key = server_key(url, id);
        let Some(bytes) = records.get(&key).await? else { return Ok(None) };
        let server = StoredServer::read(&self.name(options), &key, &bytes)?;
        for key in server.credentials_keys(id, options.client_metadata_url.as_deref()) {
            if let Some(bytes) = records.get(&key).await? {
                return Ok(Some((server, key, bytes)));
            }
        }
        Ok(None)
    }

    /// Returns the place of the tokens of a sign-in.
    fn records(&self, options: &SignInOptions) -> Result<Records<'_>, Failure> {
        match options.keyring {
            true => Ok(Records::Keyring(keyring::Keyring::open()?)),
            false => Ok(Records::File(&self.file)),
        }
    }

    fn name(&self, options: &SignInOptions) -> String {
        match options.keyring {
            true => "the system's keyring".to_owned(),
            false => self.path.display().to_string(),
        }
    }
}

/// The place of the tokens of a sign-in.
enum Records<'a> {
    File(&'a TokenFile),
    Keyring(keyring::Keyring),
}

impl Records<'_> {
    async fn get(&self, key: &str) -> Result<Option<Vec<u8>>, Failure> {
        match self {
            Self::File(file) => file.get(key).await.map_err(|error| of_file(&error)),
            Self::Keyring(keyring) => keyring.get(key).await,
        }
    }

    async fn delete(&self, key: &str) -> Result<(), Failure> {
        match self {
            Self::File(file) => file.delete(key).await.map_err(|error| of_file(&error)),
            Self::Keyring(keyring) => keyring.delete(key).await,
        }
    }
}

/// Returns the failure of a file that can't be read or written.
fn of_file(error: &Error) -> Failure {
    Failure::new(FailureKind::File, error.to_string())
}
