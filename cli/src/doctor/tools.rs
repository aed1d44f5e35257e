//! Calls of tools: unknown ones, ones with wrong arguments, and ones that change nothing.

use gudgeon::{Revision, schema::Schema};
use serde_json::{Map, Value, json};

use super::{
    check::{Check, Section, Severity},
    report::{Report, shown},
    session::{RpcReply, Session},
    shape,
    wire::End,
};

pub const CHECKS: &[&Check] =
    &[&UNKNOWN, &RESULT, &CONTENT, &STRUCTURED, &MIRROR, &VALIDATES, &ANSWERS, &CANCELLED];

static UNKNOWN: Check = Check {
    id: "tools.unknown",
    title: "answers a call of an unknown tool with error -32602",
    severity: Severity::Warning,
    section: Section::new("server/tools#error-handling"),
    fix: "return a JSON-RPC error with code -32602, not a result",
    ..Check::ANY
};
static ANSWERS: Check = Check {
    id: "tools.answers",
    title: "answers calls of its tools with results",
    severity: Severity::Warning,
    section: Section::new("server/tools#error-handling"),
    fix: "report what went wrong in a result with \"isError\": true, so that the model sees it",
    ..Check::ANY
};
static RESULT: Check = Check {
    id: "tools.result",
    title: "returns results of tools as the schema defines them",
    section: Section::new("server/tools#tool-result"),
    fix: "a result has \"content\", an array of content blocks",
    ..Check::ANY
};
static CONTENT: Check = Check {
    id: "tools.content",
    title: "returns content that the revision defines",
    section: Section::new("server/tools#tool-result"),
    fix: "return types that the negotiated revision has, and binary data as base64",
    ..Check::ANY
};
static STRUCTURED: Check = Check {
    id: "tools.structured",
    title: "returns structured content that conforms to the output schema",
    section: Section::new("server/tools#output-schema"),
    fix: "return \"structuredContent\" that the tool's outputSchema accepts",
    since: Revision::V2025_06_18,
    ..Check::ANY
};
static MIRROR: Check = Check {
    id: "tools.text-mirror",
    title: "returns structured content as text too",
    severity: Severity::Warning,
    section: Section::new("server/tools#structured-content"),
    fix: "add a text block with the JSON of \"structuredContent\" for clients that don't read it",
    since: Revision::V2025_06_18,
    ..Check::ANY
};
static VALIDATES: Check = Check {
    id: "tools.validates",
    title: "rejects calls without required arguments",
    section: Section::new("server/tools#security-considerations"),
    fix: "check the arguments against the inputSchema before the tool runs",
    ..Check::ANY
};

static CANCELLED: Check = Check {
    id: "cancellation.request",
    title: "sends no response to a request that was cancelled",
    severity: Severity::Warning,
    section: Section::moved(
        "basic/patterns/cancellation#behavior-requirements",
        "basic/utilities/cancellation#behavior-requirements",
    ),
    fix: "stop the handler, and leave out the response",
    ..Check::ANY
};

/// The most tools that are called.
const MAX_CALLS: usize = 20;

/// Calls an unknown tool, and the tools that change nothing or, with `all`, every tool.
pub async fn run(session: &mut Session, tools: &[Value], all: bool, report: &mut Report) {
    let revision = session.revision;
    if session.capability("tools").is_none() {
        return;
    }
    let params = json!({"name": "gudgeon_doctor_unknown", "arguments": {}});
    let (exchange, reply) = session.request("tools/call", params).await;
    report.record(
        &UNKNOWN,
        revision,
        if reply.code() == Some(-32602) { Ok(()) } else { Err(exchange.observed()) },
    );

    let is_harmless = |tool: &&Value| all || tool["annotations"]["readOnlyHint"] == true;
    let (called, left): (Vec<_>, Vec<_>) = tools.iter().partition(|tool| is_harmless(tool));
    // 2024-11-05 has no annotations.
    if !left.is_empty() && revision > Revision::V2024_11_05 {
        report.remark(format!(
            "{} of {} tools are not marked with readOnlyHint and were not called; --call-tools calls them too",
            left.len(), tools.len()
        ));
    }
    for tool in called.into_iter().take(MAX_CALLS) {
        call(session, tool, report).await;
    }
}

async fn call(session: &mut Session, tool: &Value, report: &mut Report) {
    let revision = session.revision;
    let name = tool["name"].as_str().unwrap_or_default();
    let place = |observed: String| format!("{}: {observed}", shown(name));
    let required =
        tool["inputSchema"]["required"].as_array().is_some_and(|names| !names.is_empty());
    if required {
        let (exchange, reply) =
            session.request("tools/call", json!({"name": name, "arguments": {}})).await;
        let is_accepted = matches!(&reply, RpcReply::Result(it) if it["isError"] != true && it["resultType"] != "input_required");
        report.record(
            &VALIDATES,
            revision,
            if is_accepted { Err(place(exchange.observed())) } else { Ok(()) },
        );
    }
    let arguments = sample(&tool["inputSchema"]);
    let token = format!("doctor-{name}");
    let params = json!({"name": name, "arguments": arguments, "_meta": {"progressToken": token}});
    let id = session.new_id();
    let text = session.request_text(&id, "tools/call", params);
    let (exchange, reply) = session.exchange(&text, &id, session.limits.response).await;
    if exchange.end == End::Silent {
        report
            .remark(format!("{} did not answer in time; its result was not checked", shown(name)));
        cancel(session, &id, report).await;
        return;
    }
    let RpcReply::Result(result) = reply else {
        // Generated arguments may be wrong for reasons that the schema does not express; a server may need the client, too.
        let is_known = reply.code().is_some_and(|code| matches!(code, -32602 | -32021 | -32042));
        report.record(
            &ANSWERS,
            revision,
            if is_known { Ok(()) } else { Err(place(exchange.observed())) },
        );
        return;
    };
    report.record(&ANSWERS, revision, Ok(()));
    if result["resultType"] == "input_required" {
        return;
    }
    report.record(&RESULT, revision, shape::check("CallToolResult", &result).map_err(place));
    for block in result["content"].as_array().into_iter().flatten() {
        report.record(&CONTENT, revision, shape::check_content(block, revision).map_err(place));
    }
    if result["isError"] == true {
        return;
    }
    let structured = result.get("structuredContent");
    if let Some(output) = tool.get("outputSchema")
        && let Ok(schema) = Schema::compile(&output.to_string())
    {
        let outcome = match structured {
            Some(value) => schema.check(value).map_err(|error| shown(&error.to_string())),
            None => Err("there is an outputSchema and no structuredContent".to_owned()),
        };
        report.record(&STRUCTURED, revision, outcome.map_err(place));
    }
    if let Some(value) = structured {
        let mut blocks = result["content"].as_array().into_iter().flatten();
        let is_there = blocks.any(|block| block["text"].is_string());
        let outcome = if is_there { Ok(()) } else { Err(place(shown(&value.to_string()))) };
        report.record(&MIRROR, revision, outcome);
    }
}

/// Cancels a request that is not answered yet.
async fn cancel(session: &mut Session, id: &Value, report: &mut Report) {
    if session.is_modern() && session.server.is_http() {
        // The end of the stream has cancelled it.
        return;
    }
    let text =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
    let exchange = session.provoke_silence(&text.to_string()).await;
    let outcome = exchange.response(id).map_or(Ok(()), |response| Err(shown(&response.raw)));
    report.record(&CANCELLED, session.revision, outcome);
}

/// Returns arguments that a schema accepts, as far as its keywords show: only the required ones.
fn sample(schema: &Value) -> Value {
    for keyword in ["default", "const"] {
        if let Some(value) = schema.get(keyword) {
            return value.clone();
        }
    }
    for keyword in ["examples", "enum"] {
        if let Some(first) = schema.get(keyword).and_then(|values| values.get(0)) {
            return first.clone();
        }
    }
    if let Some(first) = ["anyOf", "oneOf"].iter().find_map(|keyword| schema.get(keyword)?.get(0)) {
        return sample(first);
    }
    let kind = match &schema["type"] {
        Value::Array(kinds) => kinds.first().and_then(Value::as_str),
        kind => kind.as_str(),
    };
    match kind {
        Some("object") => {
            let required = schema["required"].as_array().into_iter().flatten();
            let members = required
                .filter_map(Value::as_str)
                .map(|name| (name.to_owned(), sample(&schema["properties"][name])));
            Value::Object(members.collect::<Map<_, _>>())
        }
        Some("array") => {
            let count = schema["minItems"].as_u64().unwrap_or(0).min(10);
            (0..count).map(|_| sample(&schema["items"])).collect()
        }
        Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or_else(|| json!(1)),
        Some("boolean") => json!(false),
        Some("null") => Value::Null,
        _ => {
            let length = schema["minLength"].as_u64().unwrap_or(0).clamp(4, 1_000);
            json!(
                "test"
                    .chars()
                    .cycle()
                    .take(usize::try_from(length).unwrap_or(4))
                    .collect::<String>()
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_fit_their_schemas() {
        for schema in [
            json!({"type": "object", "properties": {"a": {"type": "string", "minLength": 9}, "b": {}}, "required": ["a"]}),
            json!({"type": "object", "properties": {"a": {"enum": [3, 4]}, "b": {"type": "array", "minItems": 2, "items": {"type": "integer", "minimum": 5}}}, "required": ["a", "b"]}),
            json!({"type": "object", "properties": {"a": {"anyOf": [{"type": "null"}, {"type": "string"}]}, "b": {"type": ["boolean", "null"]}}, "required": ["a", "b"]}),
        ] {
            let compiled = Schema::compile(&schema.to_string()).unwrap();
            compiled.check(&sample(&schema)).unwrap();
        }
    }
}
