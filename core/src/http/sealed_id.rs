//! Ids that contain what their session consists of, sealed: each process with the same keys can go on with the session.

use std::{sync::Arc, time::Instant};

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use crate::{
    engine::Engine,
    protocol::{Dialect, Principal, Raw, Revision, json},
    session::server::ClientIdentity,
    wire::Wire,
};

/// The maximum length of an id, in bytes.
const MAX_ID: usize = 1024;
/// The maximum size of the sealed text, in bytes: as base64, with a nonce of 24 bytes and a tag of 16, it is an id.
const MAX_TEXT: usize = MAX_ID / 4 * 3 - 24 - 16;
/// The maximum size of a trimmed `clientInfo`, and of trimmed capabilities, in bytes.
const MAX_TRIMMED: usize = 250;
/// The time after which a session is over, in seconds.
pub(super) const LIFETIME: u64 = 30 * 24 * 60 * 60;
/// The purpose of the sealed bytes, with the number of their format.
const PURPOSE: &str = "gudgeon session 1";
/// The capabilities that decide what a client can be asked.
const ASKABLE: [&str; 3] = ["elicitation", "sampling", "roots"];

/// A number that no other session has.
pub(super) type SessionKey = [u8; 16];

/// The id of a new session.
pub(super) struct SessionId {
    pub(super) text: Arc<str>,
    /// `true` if the session can be restored from it without loss.
    pub(super) is_whole: bool,
}

/// A session as its id describes it.
pub(super) struct SealedSession {
    pub(super) key: SessionKey,
    /// The time of `initialize`, in seconds since 1970.
    pub(super) created: u64,
    /// `true` if this process opened the session.
    pub(super) is_own: bool,
    pub(super) wire: &'static Wire,
    pub(super) client: ClientIdentity,
}

#[derive(Deserialize, Serialize)]
struct Contents {
    #[serde(rename = "t")]
    created: u64,
    #[serde(rename = "p")]
    process: u64,
    #[serde(rename = "o", default, skip_serializing_if = "Option::is_none")]
    owner: Option<String>,
    #[serde(rename = "r")]
    revision: String,
    #[serde(rename = "d", default, skip_serializing_if = "Option::is_none")]
    dialect: Option<String>,
    #[serde(rename = "i", default, skip_serializing_if = "Option::is_none")]
    info: Option<Raw>,
    #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
    capabilities: Option<Raw>,
}

impl SessionId {
    /// Creates the id of a session that `owner` opens now. What does not fit of what the client says about itself is left out.
    pub(super) fn seal(
        engine: &mut Engine,
        now: Instant,
        owner: Option<&Principal>,
        wire: &'static Wire,
        client: &ClientIdentity,
    ) -> Option<Self> {
        let mut contents = Contents {
            created: engine.unix(now),
            process: engine.process(),
            owner: owner.map(digest),
            revision: wire.revision.as_str().to_owned(),
            dialect: wire.dialect.map(|dialect| dialect.as_str().to_owned()),
            info: client.info.clone(),
            capabilities: client.capabilities.clone(),
        };
        let mut text = json::to_raw(&contents);
        let is_whole = text.get().len() <= MAX_TEXT;
        if !is_whole {
            contents.info =
                client.info.as_ref().and_then(|info| trimmed(info, &["name", "version"]));
            contents.capabilities =
                client.capabilities.as_ref().and_then(|declared| trimmed(declared, &ASKABLE));
            text = json::to_raw(&contents);
        }
        let sealed = engine.seal(PURPOSE, text.get().as_bytes())?;
        Some(Self { text: BASE64_URL_SAFE_NO_PAD.encode(sealed).into(), is_whole })
    }

    /// Creates the id of a session that no other process can go on with.
    pub(super) fn random(secret: [u8; 32]) -> Self {
        Self { text: BASE64_URL_SAFE_NO_PAD.encode(secret).into(), is_whole: false }
    }
}

impl SealedSession {
    /// Opens an id. Returns `None` if no key of this server opens it, another principal opened the session, or it is over.
    pub(super) fn open(
        engine: &Engine,
        now: Instant,
        id: &str,
        owner: Option<&Principal>,
    ) -> Option<Self> {
        if id.len() > MAX_ID {
            return None;
        }
        let sealed = BASE64_URL_SAFE_NO_PAD.decode(id).ok()?;
        let key = *sealed.first_chunk()?;
        let contents: Contents = json::from_bytes(&engine.unseal(PURPOSE, &sealed)?).ok()?;
        // The clocks of replicas differ, so that a session may seem to begin later than now.
        let is_over = engine.unix(now).saturating_sub(contents.created) > LIFETIME;
        if is_over || contents.owner != owner.map(digest) {
            return None;
        }
        let dialect = match contents.dialect {
            Some(name) => Some(name.parse::<Dialect>().ok()?),
            None => None,
        };
        Some(Self {
            key,
            created: contents.created,
            is_own: contents.process == engine.process(),
            wire: Wire::spelled(Revision::parse(&contents.revision)?, dialect),
            client: ClientIdentity::new(contents.info, contents.capabilities),
        })
    }
}

/// Returns the number in the id of a session.
pub(super) fn key(id: &str) -> Option<SessionKey> {
    if id.len() > MAX_ID {
        return None;
    }
    BASE64_URL_SAFE_NO_PAD.decode(id).ok()?.first_chunk().copied()
}

/// Returns a short name of a principal, the same in each process.
fn digest(owner: &Principal) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(&Sha256::digest(owner.identity())[..16])
}

/// Returns these members of an object, as far as there is room for them.
fn trimmed(object: &Raw, names: &[&str]) -> Option<Raw> {
    let mut members: Map<String, Value> = serde_json::from_str(object.get()).ok()?;
    let mut kept = Map::new();
    let mut room = MAX_TRIMMED;
    for name in names {
        let Some(value) = members.remove(*name) else { continue };
        let size = name.len() + 4 + value.to_string().len();
        if size <= room {
            room -= size;
            kept.insert((*name).to_owned(), value);
        }
    }
    Some(json::to_raw(&Value::Object(kept)))
}
