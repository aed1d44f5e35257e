//! The stateless era: the result of `server/discover`, result types, and replacements for removed methods.

use serde::Deserialize;

use super::{
    ClientSession, ServerIdentity,
    legacy::{lenient, object},
};
use crate::{
    error::{Error, ErrorKind},
    protocol::{
        LoggingLevel, Meta, Method, MethodName, Raw, ResultType, Revision, valid_json::member,
    },
};

/// The result of `server/discover`, before a revision is chosen.
#[derive(Debug)]
pub(super) struct Discovery {
    pub(super) supported: Vec<String>,
    read: DiscoverWire,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct DiscoverWire {
    supported_versions: Vec<String>,
    capabilities: Option<Raw>,
    instructions: Option<Raw>,
    #[serde(rename = "_meta")]
    meta: Option<Raw>,
}

/// The handling of a request in the modern era.
pub(super) enum Counterpart<'a> {
    Send(MethodName, &'a str),
    /// Completed without a message to the server.
    Done,
}

impl Discovery {
    pub(super) fn identity(self, revision: Revision) -> ServerIdentity {
        let info = self
            .read
            .meta
            .as_deref()
            .and_then(Meta::parse)
            .and_then(|meta| meta.server_info.map(ToOwned::to_owned));
        ServerIdentity {
            info: lenient(info.as_ref()),
            revision,
            dialect: None,
            capabilities: object(self.read.capabilities),
            instructions: lenient(self.read.instructions.as_ref()),
        }
    }
}

/// Returns `None` if the result is not one of `server/discover`.
pub(super) fn read_discovery(result: &str) -> Option<Discovery> {
    let mut read: DiscoverWire = serde_json::from_str(result).ok()?;
    Some(Discovery { supported: std::mem::take(&mut read.supported_versions), read })
}

/// Returns the type of a modern result; `None` means complete. Errors if the method can't have this type.
pub(super) fn check_result(method: &MethodName, result: &str) -> Result<(), Error> {
    let protocol = |message: String| Err(Error::new(ErrorKind::Protocol, message));
    let name = method.as_str();
    let given = member(result, "resultType").map(serde_json::from_str);
    match given.unwrap_or_else(|| Ok(ResultType::default())) {
        Err(_) => protocol(format!("{name}: the result's resultType is not a string")),
        Ok(ResultType::Complete) => Ok(()),
        Ok(ResultType::InputRequired) if may_ask(method) => Ok(()),
        Ok(result_type) => protocol(format!(
            "{name}: the server answered with a result of type {:?}, which this client can't read here",
            result_type.as_str()
        )),
    }
}

/// Multi Round-Trip Requests, "Supported Requests"; for vendor methods there is no restriction.
fn may_ask(method: &MethodName) -> bool {
    match method {
        MethodName::Standard(method) => {
            matches!(method, Method::CallTool | Method::GetPrompt | Method::ReadResource)
        }
        MethodName::Vendor(_) => true,
    }
}

impl ClientSession {
    /// Replaces methods without a modern counterpart: `ping` becomes `server/discover`, and the log level is sent with
    /// each request.
    pub(super) fn counterpart<'a>(
        &mut self,
        method: MethodName,
        params: &'a str,
    ) -> Result<Counterpart<'a>, Error> {
        #[derive(Deserialize)]
        struct Level {
            level: LoggingLevel,
        }
        if !self.is_modern() {
            return Ok(Counterpart::Send(method, params));
        }
        match method {
            MethodName::Standard(Method::Ping) => {
                Ok(Counterpart::Send(Method::Discover.into(), params))
            }
            MethodName::Standard(Method::SetLevel) => {
                let read: Level = serde_json::from_str(params)
                    .map_err(|error| Error::misuse(format!("logging/setLevel: {error}")))?;
                self.log_level = Some(read.level);
                Ok(Counterpart::Done)
            }
            method => Ok(Counterpart::Send(method, params)),
        }
    }
}
