//! Messages of a client in each revision: requests with their envelope, `initialize`, and answers.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::{Wire, components};
use crate::protocol::{
    ClientCapabilities, ElicitationCapability, ErrorObject, Id, Implementation, LoggingLevel,
    Method, Params, Raw, SamplingCapability,
    json::{self, ObjectWriter},
    meta,
    valid_json::contains,
};

/// The members that a client adds to the `_meta` of its requests.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stamp<'a> {
    /// From 2026-07-28.
    pub envelope: Option<&'a ClientEnvelope>,
    /// The capabilities in `_meta` take the place of those in the envelope: the request is another client's.
    pub keeps_capabilities: bool,
    pub log_level: Option<LoggingLevel>,
    pub progress_token: Option<u64>,
}

/// The `_meta` members of every modern request.
#[derive(Debug)]
pub struct ClientEnvelope {
    /// Revision and client, as JSON without the braces.
    members: String,
    /// JSON.
    capabilities: Raw,
}

impl ClientEnvelope {
    pub fn new(wire: &Wire, info: &Implementation, capabilities: &ClientCapabilities) -> Self {
        let mut members = String::from("{");
        for (key, value) in [
            (meta::PROTOCOL_VERSION, json::to_raw(wire.revision.as_str())),
            (meta::CLIENT_INFO, json::to_raw(&components::implementation(wire, info))),
        ] {
            push_member(&mut members, key, value.get());
        }
        members.remove(0);
        let capabilities = json::to_raw(&client_capabilities(wire, capabilities));
        Self { members, capabilities }
    }
}

/// Returns the params of `initialize`.
pub fn initialize_params(
    wire: &Wire,
    info: &Implementation,
    capabilities: &ClientCapabilities,
) -> String {
    let mut params = ObjectWriter::with_capacity(160);
    params
        .member("protocolVersion", wire.revision.as_str())
        .member("capabilities", &client_capabilities(wire, capabilities))
        .member("clientInfo", &components::implementation(wire, info));
    params.finish()
}

/// Writes a request. `params` is a JSON object; the stamp is merged into its `_meta`, and the stamp's keys take
/// precedence.
///
/// Errors if `params` or its `_meta` is not an object.
pub fn request_frame(
    id: u64,
    method: &str,
    params: &str,
    stamp: Stamp<'_>,
) -> Result<Vec<u8>, &'static str> {
    let params = stamped(params, stamp)?;
    let mut frame = ObjectWriter::with_capacity(64 + method.len() + params.len());
    frame.raw("jsonrpc", r#""2.0""#).member("id", &id).member("method", method);
    if &*params != "{}" {
        frame.raw("params", &params);
    }
    Ok(frame.finish().into_bytes())
}

/// Writes the answer to a request of the server.
pub fn answer_frame(id: &Id, answer: Result<&RawValue, &ErrorObject>) -> Vec<u8> {
    let mut frame = ObjectWriter::with_capacity(64);
    frame.raw("jsonrpc", r#""2.0""#).raw("id", id.as_json());
    match answer {
        Ok(result) => frame.raw("result", result.get()),
        Err(error) => frame.member("error", error),
    };
    frame.finish().into_bytes()
}

/// Returns params with the stamp merged into their `_meta`.
pub fn stamped<'a>(params: &'a str, stamp: Stamp<'_>) -> Result<Cow<'a, str>, &'static str> {
    let params = params.trim();
    if !params.starts_with('{') {
        return Err("params must be an object");
    }
    let is_bare = stamp.envelope.is_none() && stamp.progress_token.is_none();
    // A key may be written with escapes; the members must be parsed to be sure.
    let may_have_meta = contains(params.as_bytes(), "_meta") || contains(params.as_bytes(), "\\");
    if is_bare && !may_have_meta {
        return Ok(Cow::Borrowed(params));
    }
    if !may_have_meta {
        let mut out = ObjectWriter::with_capacity(params.len() + 256);
        out.splice(params).raw("_meta", &merged_meta("{}", stamp)?);
        return Ok(Cow::Owned(out.finish()));
    }
    let members: Params<'_> =
        serde_json::from_str(params).map_err(|_| "params must be an object")?;
    let own = members.get("_meta").map_or("{}", RawValue::get);
    let merged = merged_meta(own, stamp)?;
    let mut out = ObjectWriter::with_capacity(params.len() + 256);
    out.splice(members.without_meta().get());
    if merged != "{}" {
        out.raw("_meta", &merged);
    }
    Ok(Cow::Owned(out.finish()))
}

fn merged_meta(own: &str, stamp: Stamp<'_>) -> Result<String, &'static str> {
    let Ok(Params::Object(members)) = serde_json::from_str(own) else {
        return Err("_meta must be an object");
    };
    let ours: &[&str] = match stamp.envelope {
        Some(_) => &[meta::PROTOCOL_VERSION, meta::CLIENT_INFO, meta::CLIENT_CAPABILITIES],
        None => &[],
    };
    let kept = members.iter().find(|(key, _)| key == meta::CLIENT_CAPABILITIES);
    let kept = kept.filter(|_| stamp.keeps_capabilities).map(|(_, value)| value.get());
    let mut has_level = false;
    let mut out = String::from("{");
    for (key, value) in &members {
        let is_token = stamp.progress_token.is_some() && key == meta::PROGRESS_TOKEN;
        if !is_token && !ours.contains(&&**key) {
            has_level |= key == meta::LOG_LEVEL;
            push_member(&mut out, key, value.get());
        }
    }
    if let Some(envelope) = stamp.envelope {
        if out.len() > 1 {
            out.push(',');
        }
        out.push_str(&envelope.members);
        let capabilities = kept.unwrap_or(envelope.capabilities.get());
        push_member(&mut out, meta::CLIENT_CAPABILITIES, capabilities);
    }
    if let Some(level) = stamp.log_level.filter(|_| !has_level) {
        push_member(&mut out, meta::LOG_LEVEL, &format!("{:?}", level.as_str()));
    }
    if let Some(token) = stamp.progress_token {
        push_member(&mut out, meta::PROGRESS_TOKEN, &token.to_string());
    }
    out.push('}');
    Ok(out)
}

fn push_member(object: &mut String, key: &str, value: &str) {
    if object.len() > 1 {
        object.push(',');
    }
    json::push_string(object, key);
    object.push(':');
    object.push_str(value);
}

/// Returns the capabilities that a revision defines.
fn client_capabilities(wire: &Wire, capabilities: &ClientCapabilities) -> ClientCapabilities {
    let asks =
        |method| wire.server_requests.contains(&method) || wire.input_requests.contains(&method);
    let mut lowered = capabilities.clone();
    if !asks(Method::Elicit) {
        lowered.elicitation = None;
    }
    if !wire.has_pages_and_tools() {
        lowered.elicitation = lowered.elicitation.map(|_| ElicitationCapability::default());
        lowered.sampling = lowered.sampling.map(|_| SamplingCapability::default());
    }
    if !asks(Method::GetTask) {
        lowered.tasks = None;
    }
    if let Some(roots) = &mut lowered.roots
        && !wire.client_notifications.contains(&Method::RootsListChanged)
    {
        roots.list_changed = None;
    }
    lowered
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Revision;

    fn text(frame: Result<Vec<u8>, &'static str>) -> String {
        String::from_utf8(frame.expect("well-formed")).expect("JSON is UTF-8")
    }

    #[test]
    fn params_without_members_are_left_out() {
        assert_eq!(
            text(request_frame(1, "ping", "{}", Stamp::default())),
            r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#
        );
    }

    #[test]
    fn the_users_meta_is_kept_and_ours_wins() {
        let stamp = Stamp { progress_token: Some(7), ..Stamp::default() };
        let params = r#"{"a":{"_meta":1},"_meta":{"mine":[1],"progressToken":"theirs"}}"#;
        assert_eq!(
            text(request_frame(7, "acme/x", params, stamp)),
            r#"{"jsonrpc":"2.0","id":7,"method":"acme/x","params":{"a":{"_meta":1},"_meta":{"mine":[1],"progressToken":7}}}"#
        );
    }

    #[test]
    fn a_modern_stamp_is_complete_and_the_level_of_the_user_wins() {
        let wire = Wire::for_revision(Revision::V2026_07_28);
        let envelope = ClientEnvelope::new(
            wire,
            &Implementation::new("probe", "1"),
            &ClientCapabilities::default(),
        );
        let stamp = Stamp {
            envelope: Some(&envelope),
            log_level: Some(LoggingLevel::Error),
            ..Stamp::default()
        };
        let params = r#"{"_m\u0065ta":{"io.modelcontextprotocol/logLevel":"debug"}}"#;
        assert_eq!(
            text(request_frame(2, "tools/list", params, stamp)),
            concat!(
                r#"{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"_meta":{"#,
                r#""io.modelcontextprotocol/logLevel":"debug","#,
                r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
                r#""io.modelcontextprotocol/clientInfo":{"name":"probe","version":"1"},"#,
                r#""io.modelcontextprotocol/clientCapabilities":{}}}}"#
            )
        );
    }

    #[test]
    fn capabilities_of_another_client_are_kept_where_a_request_is_passed_on() {
        let (info, own) = (Implementation::new("probe", "1"), ClientCapabilities::default());
        let envelope = ClientEnvelope::new(Wire::for_revision(Revision::V2026_07_28), &info, &own);
        let params =
            r#"{"_meta":{"io.modelcontextprotocol/clientCapabilities":{"sampling":{}},"a":1}}"#;
        for keeps_capabilities in [false, true] {
            let stamp = Stamp { envelope: Some(&envelope), keeps_capabilities, ..Stamp::default() };
            let frame = text(request_frame(2, "tools/call", params, stamp));
            assert_eq!(frame.matches("clientCapabilities").count(), 1, "{frame}");
            assert_eq!(frame.contains(r#"Capabilities":{"sampling":{}}"#), keeps_capabilities);
            assert!(frame.contains(r#""a":1"#), "{frame}");
        }
    }

    #[test]
    fn params_and_meta_must_be_objects() {
        assert!(request_frame(1, "a/b", "[1]", Stamp::default()).is_err());
        assert!(request_frame(1, "a/b", r#"{"_meta":3}"#, Stamp::default()).is_err());
    }
}
