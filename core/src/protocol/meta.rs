//! `_meta`: the metadata of requests, notifications and results.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;

pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
pub const PROGRESS_TOKEN: &str = "progressToken";
pub const TRACEPARENT: &str = "traceparent";
/// A key of this library: the key of a server's question, used in tests.
pub const QUESTION_KEY: &str = "gudgeon/key";
/// A key of this library: true if the text of a tool's result is the JSON of structured content that the revision can't
/// carry.
pub const JSON_TEXT: &str = "gudgeon/jsonText";
/// A key of this library: true in the data of an error that stands for a tool's result, because the revision has an error for
/// invalid arguments.
pub const INVALID_ARGUMENTS: &str = "gudgeon/invalidArguments";

/// The members of `_meta` that the protocol defines; any others belong to the user.
#[derive(Clone, Copy, Debug, Default)]
pub struct Meta<'a> {
    /// The whole object.
    pub raw: Option<&'a RawValue>,
    pub progress_token: Option<&'a RawValue>,
    pub traceparent: Option<&'a RawValue>,
    pub protocol_version: Option<&'a RawValue>,
    pub client_info: Option<&'a RawValue>,
    pub client_capabilities: Option<&'a RawValue>,
    pub log_level: Option<&'a RawValue>,
    pub server_info: Option<&'a RawValue>,
    pub subscription_id: Option<&'a RawValue>,
    pub question_key: Option<&'a RawValue>,
}

impl<'a> Meta<'a> {
    /// Parses `_meta`; returns `None` if it is not an object.
    pub fn parse(raw: &'a RawValue) -> Option<Self> {
        let mut meta: Self = serde_json::from_str(raw.get()).ok()?;
        meta.raw = Some(raw);
        Some(meta)
    }

    /// Returns whether any key of the modern envelope is present; legacy requests carry none of them.
    pub fn has_envelope(&self) -> bool {
        self.protocol_version.is_some()
            || self.client_capabilities.is_some()
            || self.client_info.is_some()
    }
}

impl<'de> Deserialize<'de> for Meta<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MetaVisitor;
        impl<'de> Visitor<'de> for MetaVisitor {
            type Value = Meta<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut meta = Meta::default();
                while let Some(key) = map.next_key::<Key<'de>>()? {
                    let value = Some(map.next_value()?);
                    match &*key.0 {
                        PROGRESS_TOKEN => meta.progress_token = value,
                        TRACEPARENT => meta.traceparent = value,
                        PROTOCOL_VERSION => meta.protocol_version = value,
                        CLIENT_INFO => meta.client_info = value,
                        CLIENT_CAPABILITIES => meta.client_capabilities = value,
                        LOG_LEVEL => meta.log_level = value,
                        SERVER_INFO => meta.server_info = value,
                        SUBSCRIPTION_ID => meta.subscription_id = value,
                        QUESTION_KEY => meta.question_key = value,
                        _ => (),
                    }
                }
                Ok(meta)
            }
        }
        deserializer.deserialize_map(MetaVisitor)
    }
}

#[derive(Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);
