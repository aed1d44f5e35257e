//! Conversion of the neutral model into frames.

use std::{borrow::Cow, sync::Arc};

use serde_json::value::RawValue;

use super::{StructuredContent, Wire, components, dialect_0_7, json_text};
use crate::protocol::{
    CacheHint, Dialect, ErrorObject, Id, Listing, Method, Question, Raw, Response, Revision,
    ServerDescription, ToolOutcome,
    json::{self, ObjectWriter},
    meta,
    unknown::{Entry, push_entry},
};

/// Returns the response frame: the result, or an error if the revision can't express it. `server_info` is the server's
/// `Implementation` as JSON.
pub fn result_frame(wire: &Wire, id: &Id, response: &Response, server_info: &str) -> Vec<u8> {
    let mut frame = String::with_capacity(256 + id.as_json().len() + size(response));
    frame.push_str(r#"{"jsonrpc":"2.0","id":"#);
    frame.push_str(id.as_json());
    frame.push_str(r#","result":"#);
    let mut frame = match wire.dialect {
        Some(Dialect::V0_7) => match dialect_0_7::result(response) {
            Ok(result) => frame + &result,
            Err(error) => return error_frame(wire, Some(id), &error),
        },
        _ => result(wire, response, server_info, frame),
    };
    frame.push('}');
    frame.into_bytes()
}

/// Returns about how many bytes the members of a result have that may be large.
fn size(response: &Response) -> usize {
    match response {
        Response::Tool(outcome) => {
            outcome.content.len()
                + outcome.structured.as_ref().map_or(0, |structured| structured.json.len())
        }
        Response::Contents { contents, .. } => contents.len(),
        Response::Raw(raw) => raw.get().len(),
        _ => 0,
    }
}

/// Returns an error response; without an id if the request's id was not readable.
pub fn error_frame(wire: &Wire, id: Option<&Id>, error: &ErrorObject) -> Vec<u8> {
    let mut frame = ObjectWriter::with_capacity(96 + error.message.len());
    frame.raw("jsonrpc", r#""2.0""#);
    match id {
        Some(id) => {
            frame.raw("id", id.as_json());
        }
        None if wire.vocabulary.absent_error_id => (),
        None => {
            frame.raw("id", "null");
        }
    }
    frame.member("error", error);
    frame.finish().into_bytes()
}

/// Returns a notification frame; `params` is JSON text.
pub fn notification_frame(method: &str, params: Option<&str>) -> Vec<u8> {
    let mut frame = ObjectWriter::with_capacity(64 + params.map_or(0, str::len));
    frame.raw("jsonrpc", r#""2.0""#).member("method", method);
    if let Some(params) = params {
        frame.raw("params", params);
    }
    frame.finish().into_bytes()
}

/// Returns a result in the vocabulary of the newest revision, without the members that are added to every result.
pub fn plain_result(response: &Response) -> String {
    let mut result = ObjectWriter::with_capacity(160);
    if let Some(own) = write(Wire::for_revision(Revision::LATEST), response, "{}", &mut result) {
        result.raw("_meta", own.get());
    }
    result.finish()
}

/// Appends a result to the beginning of a frame.
fn result(wire: &Wire, response: &Response, server_info: &str, frame: String) -> String {
    let mut result = ObjectWriter::behind(frame);
    if matches!(response, Response::InputRequired { .. }) {
        result.raw("resultType", r#""input_required""#);
    } else if wire.vocabulary.stamped_results {
        result.raw("resultType", r#""complete""#);
    }
    let own_meta = write(wire, response, server_info, &mut result);
    stamp(wire, own_meta.as_deref(), server_info, &mut result);
    result.finish()
}

/// Writes the members of a result. Returns the result's own `_meta`.
fn write<'a>(
    wire: &Wire,
    response: &'a Response,
    server_info: &str,
    result: &mut ObjectWriter,
) -> Option<Cow<'a, RawValue>> {
    match response {
        Response::Empty | Response::Ended { .. } => (),
        // Only a dialect lists resources and templates together, in its own form; this form is for middleware.
        Response::AllResources { resources, templates } => {
            result.raw(
                "resources",
                &array(resources, |resource| components::resource(wire, resource)),
            );
            result.raw(
                "resourceTemplates",
                &array(templates, |template| components::template(wire, template)),
            );
        }
        Response::Description(description) => describe(wire, description, server_info, result),
        Response::Tools(list) => {
            listing(wire, "tools", list, |tool| components::tool(wire, tool), result);
        }
        Response::Resources(list) => {
            listing(
                wire,
                "resources",
                list,
                |resource| components::resource(wire, resource),
                result,
            );
        }
        Response::ResourceTemplates(list) => {
            listing(
                wire,
                "resourceTemplates",
                list,
                |template| components::template(wire, template),
                result,
            );
        }
        Response::Prompts(list) => {
            listing(wire, "prompts", list, |prompt| components::prompt(wire, prompt), result);
        }
        Response::Tool(outcome) => return tool(wire, outcome, result),
        Response::Contents { contents, cache: hint, .. } => {
            result.raw("contents", contents);
            cache(wire, *hint, result);
        }
        Response::Messages { messages, description, .. } => {
            if let Some(description) = description {
                result.member("description", description);
            }
            result.raw("messages", &components::content(wire, messages));
        }
        Response::Completion { values, total, has_more, .. } => {
            let mut completion = ObjectWriter::with_capacity(64);
            completion.member("values", values);
            if let Some(total) = total {
                completion.member("total", total);
            }
            if *has_more {
                completion.raw("hasMore", "true");
            }
            result.raw("completion", &completion.finish());
        }
        Response::InputRequired { requests, state } => {
            result.raw("inputRequests", &input_requests(requests));
            if let Some(state) = state {
                result.member("requestState", state);
            }
        }
        Response::Raw(raw) => {
            let (members, meta) = apart(raw, "_meta");
            result.splice(&members);
            return meta.map(Cow::Owned);
        }
    }
    response.meta()
}

/// Returns an object without one member, and that member. Other values are returned unchanged.
pub(super) fn apart<'a>(object: &'a RawValue, name: &str) -> (Cow<'a, str>, Option<Raw>) {
    json::apart(object.get(), name).unwrap_or_else(|_| (object.get().into(), None))
}

/// Writes a tool's result. Returns its own `_meta`, which says if its text stands for structured content that is left out.
fn tool<'a>(
    wire: &Wire,
    outcome: &'a ToolOutcome,
    result: &mut ObjectWriter,
) -> Option<Cow<'a, RawValue>> {
    let mut left_out = None;
    result.raw("content", &components::content(wire, &outcome.content));
    if let Some(structured) = &outcome.structured {
        let is_object = structured.json.starts_with('{');
        match (wire.vocabulary.structured_content, structured.schema_is_object) {
            (StructuredContent::Any, _) => {
                result.raw("structuredContent", &structured.json);
            }
            (StructuredContent::Object, Some(false)) => {
                result.wrapped("structuredContent", "result", &structured.json);
            }
            (StructuredContent::Object, _) if is_object => {
                result.raw("structuredContent", &structured.json);
            }
            (StructuredContent::Object | StructuredContent::Absent, _) => {
                left_out = Some(&structured.json);
            }
        }
    }
    if outcome.is_error {
        result.raw("isError", "true");
    }
    let own = outcome.meta.as_deref();
    match left_out.filter(|json| json_text::is_json_of(&outcome.content, json)) {
        Some(_) => Some(Cow::Owned(json_text::marked(own))),
        None => own.map(Cow::Borrowed),
    }
}

/// Writes each question under its key, in the form of a request.
fn input_requests(requests: &[Question]) -> String {
    let mut all = String::from("{");
    for Question { key, method, params } in requests {
        if all.len() > 1 {
            all.push(',');
        }
        json::push_string(&mut all, key);
        let mut request = ObjectWriter::with_capacity(params.get().len() + 48);
        request.member("method", method.as_str());
        if params.get() != "{}" {
            request.raw("params", params.get());
        }
        all.push(':');
        all.push_str(&request.finish());
    }
    all.push('}');
    all
}

fn describe(
    wire: &Wire,
    description: &ServerDescription,
    server_info: &str,
    result: &mut ObjectWriter,
) {
    let capabilities = components::capabilities(wire, &description.capabilities);
    if wire.client_requests.contains(&Method::Initialize) {
        result.member("protocolVersion", wire.revision.as_str());
        result.member("capabilities", &capabilities);
        match wire.vocabulary.icons {
            true => {
                result.raw("serverInfo", server_info);
            }
            false => {
                result.member("serverInfo", &components::implementation(wire, &description.info));
            }
        }
    } else {
        let versions: Vec<_> =
            description.revisions.iter().map(|revision| revision.as_str()).collect();
        result.member("supportedVersions", &versions).member("capabilities", &capabilities);
        cache(wire, description.cache, result);
    }
    if let Some(instructions) = &description.instructions {
        result.member("instructions", instructions);
    }
}

fn listing<T: Entry, L: serde::Serialize>(
    wire: &Wire,
    name: &str,
    list: &Listing<T>,
    lower: impl Fn(&T) -> L,
    result: &mut ObjectWriter,
) {
    let spell = || array(&list.items, lower);
    match wire.dialect {
        None => result.raw(name, list.spellings.get_or_make(wire.revision, spell)),
        Some(_) => result.raw(name, &spell()),
    };
    if let Some(cursor) = &list.next_cursor {
        result.member("nextCursor", cursor);
    }
    cache(wire, list.cache, result);
}

fn array<T: Entry, L: serde::Serialize>(items: &[Arc<T>], lower: impl Fn(&T) -> L) -> String {
    let mut array = String::from("[");
    for item in items {
        if array.len() > 1 {
            array.push(',');
        }
        push_entry(&mut array, &lower(item), item.unknown());
    }
    array.push(']');
    array
}

fn cache(wire: &Wire, hint: CacheHint, result: &mut ObjectWriter) {
    if wire.vocabulary.stamped_results {
        let scope = if hint.private { "private" } else { "public" };
        result.member("ttlMs", &hint.ttl_ms).member("cacheScope", scope);
    }
}

/// Writes `_meta`: the result's own, and the server's name where the revision stamps results.
fn stamp(wire: &Wire, own: Option<&RawValue>, server_info: &str, result: &mut ObjectWriter) {
    if !wire.vocabulary.stamped_results {
        if let Some(own) = own {
            result.raw("_meta", own.get());
        }
        return;
    }
    let mut stamped = ObjectWriter::with_capacity(server_info.len() + 48);
    stamped.raw(meta::SERVER_INFO, server_info);
    if let Some(own) = own {
        stamped.splice(&apart(own, meta::SERVER_INFO).0);
    }
    result.raw("_meta", &stamped.finish());
}
