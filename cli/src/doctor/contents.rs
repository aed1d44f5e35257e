//! Checks of the results of resources, prompts and completions, and of log levels.

use gudgeon::Revision;
use serde_json::{Value, json};

use super::{
    check::{Check, Section, Severity},
    components::Listed,
    report::{Report, shown},
    session::Session,
    shape,
};

pub const CHECKS: &[&Check] = &[
    &READS,
    &CONTENTS,
    &UNKNOWN_OLD,
    &UNKNOWN_NEW,
    &EMPTY,
    &READ_CACHE,
    &SUBSCRIBE,
    &PROMPT_RESULT,
    &PROMPT_CONTENT,
    &UNKNOWN_PROMPT,
    &MISSING_ARGUMENT,
    &COMPLETION,
    &UNKNOWN_REFERENCE,
    &SET_LEVEL,
    &BAD_LEVEL,
    &BAD_META_LEVEL,
];

static READS: Check = Check {
    id: "resources.reads",
    title: "reads the resources that it lists",
    severity: Severity::Warning,
    section: Section::new("server/resources#reading-resources"),
    fix: "list only what can be read, or answer with an error that says why it can't be read now",
    ..Check::ANY
};
static CONTENTS: Check = Check {
    id: "resources.contents",
    title: "returns contents of resources as the schema defines them",
    section: Section::new("server/resources#resource-contents"),
    fix: "contents have \"uri\", and \"text\" or a \"blob\" in base64",
    ..Check::ANY
};
static UNKNOWN_OLD: Check = Check {
    id: "resources.not-found",
    title: "answers the read of an unknown resource with error -32002",
    severity: Severity::Warning,
    section: Section::new("server/resources#error-handling"),
    fix: "return -32002 in sessions of 2025-11-25 and earlier",
    ..Check::LEGACY
};
static UNKNOWN_NEW: Check = Check {
    id: "resources.not-found-code",
    title: "answers the read of an unknown resource with error -32602",
    section: Section::new("server/resources#error-handling"),
    fix: "return -32602; 2026-07-28 does not have -32002 any more",
    ..Check::MODERN
};
static EMPTY: Check = Check {
    id: "resources.empty",
    title: "returns no empty contents for an unknown resource",
    section: Section::new("server/resources#error-handling"),
    fix: "return an error if the resource does not exist",
    ..Check::MODERN
};
static READ_CACHE: Check = Check {
    id: "resources.cache",
    title: "says how long what was read may be cached",
    section: Section::new("server/utilities/caching#cacheable-results"),
    fix: "add \"ttlMs\" (0 or more) and \"cacheScope\" (\"public\" or \"private\")",
    ..Check::MODERN
};
static SUBSCRIBE: Check = Check {
    id: "resources.subscribe",
    title: "accepts subscriptions if it declares them",
    section: Section::new("server/resources#subscriptions"),
    fix: "implement resources/subscribe and resources/unsubscribe, or leave out \"subscribe\" of the capability",
    ..Check::LEGACY
};
static PROMPT_RESULT: Check = Check {
    id: "prompts.result",
    title: "returns prompts as the schema defines them",
    section: Section::new("server/prompts#getting-a-prompt"),
    fix: "return \"messages\", each with \"role\" and \"content\"",
    ..Check::ANY
};
static PROMPT_CONTENT: Check = Check {
    id: "prompts.content",
    title: "returns messages of types that the revision defines",
    section: Section::new("server/prompts#promptmessage"),
    fix: "return types that the negotiated revision has, and binary data as base64",
    ..Check::ANY
};
static UNKNOWN_PROMPT: Check = Check {
    id: "prompts.unknown",
    title: "answers an unknown prompt with error -32602",
    severity: Severity::Warning,
    section: Section::new("server/prompts#error-handling"),
    fix: "return -32602 (Invalid params)",
    ..Check::ANY
};
static MISSING_ARGUMENT: Check = Check {
    id: "prompts.missing-argument",
    title: "answers a prompt without its required arguments with error -32602",
    severity: Severity::Warning,
    section: Section::new("server/prompts#error-handling"),
    fix: "return -32602 (Invalid params)",
    ..Check::ANY
};
static COMPLETION: Check = Check {
    id: "completion.result",
    title: "completes arguments with at most 100 strings",
    section: Section::new("server/utilities/completion#completion-results"),
    fix: "return {\"completion\": {\"values\": […]}} with at most 100 values",
    ..Check::ANY
};
static UNKNOWN_REFERENCE: Check = Check {
    id: "completion.unknown",
    title: "answers a completion of an unknown prompt with error -32602",
    severity: Severity::Warning,
    section: Section::new("server/utilities/completion#error-handling"),
    fix: "return -32602 (Invalid params)",
    since: Revision::V2025_03_26,
    ..Check::ANY
};
static SET_LEVEL: Check = Check {
    id: "logging.set-level",
    title: "accepts a log level if it declares `logging`",
    section: Section::new("server/utilities/logging#setting-log-level"),
    fix: "answer logging/setLevel with {}, or leave out the capability",
    ..Check::LEGACY
};
static BAD_LEVEL: Check = Check {
    id: "logging.bad-level",
    title: "rejects an unknown log level with error -32602",
    severity: Severity::Warning,
    section: Section::new("server/utilities/logging#error-handling"),
    fix: "return -32602 (Invalid params)",
    ..Check::LEGACY
};
static BAD_META_LEVEL: Check = Check {
    id: "logging.bad-meta-level",
    title: "rejects an unknown log level in `_meta` with error -32602",
    severity: Severity::Warning,
    section: Section::new("server/utilities/logging#error-handling"),
    fix: "return -32602 (Invalid params)",
    ..Check::MODERN
};

/// The most resources that are read, and prompts that are got.
const MAX_READS: usize = 10;

pub async fn run(session: &mut Session, listed: &Listed, report: &mut Report) {
    resources(session, &listed.resources, report).await;
    prompts(session, &listed.prompts, report).await;
    completion(session, &listed.prompts, report).await;
    logging(session, report).await;
}

async fn resources(session: &mut Session, resources: &[Value], report: &mut Report) {
    let revision = session.revision;
    if session.capability("resources").is_none() {
        return;
    }
    for resource in resources.iter().take(MAX_READS) {
        let uri = resource["uri"].as_str().unwrap_or_default();
        let place = |observed: String| format!("{}: {observed}", shown(uri));
        let (exchange, reply) = session.request("resources/read", json!({"uri": uri})).await;
        let Some(result) = reply.result() else {
            report.record(&READS, revision, Err(place(exchange.observed())));
            continue;
        };
        report.record(&READS, revision, Ok(()));
        if result["resultType"] == "input_required" {
            continue;
        }
        let mut outcome = shape::check("ReadResourceResult", result);
        for contents in result["contents"].as_array().into_iter().flatten() {
            outcome = outcome.and_then(|()| shape::check_contents(contents));
        }
        report.record(&CONTENTS, revision, outcome.map_err(place));
        report.record(&READ_CACHE, revision, shape::check("Cacheable", result).map_err(place));
    }
    let params = json!({"uri": "gudgeon-doctor:///unknown"});
    let (exchange, reply) = session.request("resources/read", params).await;
    let outcome =
        |code: i64| if reply.code() == Some(code) { Ok(()) } else { Err(exchange.observed()) };
    report.record(&UNKNOWN_OLD, revision, outcome(-32002));
    report.record(&UNKNOWN_NEW, revision, outcome(-32602));
    let is_empty = reply
        .result()
        .is_some_and(|result| result["contents"].as_array().is_some_and(Vec::is_empty));
    report.record(&EMPTY, revision, if is_empty { Err(exchange.observed()) } else { Ok(()) });

    let subscribes =
        session.capability("resources").is_some_and(|capability| capability["subscribe"] == true);
    if subscribes
        && !session.is_modern()
        && let Some(uri) = resources.first().map(|resource| resource["uri"].clone())
    {
        for method in ["resources/subscribe", "resources/unsubscribe"] {
            let outcome = session.result(method, json!({"uri": uri})).await;
            report.record(&SUBSCRIBE, revision, outcome.map(|_| ()));
        }
    }
}

async fn prompts(session: &mut Session, prompts: &[Value], report: &mut Report) {
    let revision = session.revision;
    if session.capability("prompts").is_none() {
        return;
    }
    let (exchange, reply) =
        session.request("prompts/get", json!({"name": "gudgeon-doctor-unknown"})).await;
    report.record(
        &UNKNOWN_PROMPT,
        revision,
        if reply.code() == Some(-32602) { Ok(()) } else { Err(exchange.observed()) },
    );
    for prompt in prompts.iter().take(MAX_READS) {
        let name = prompt["name"].as_str().unwrap_or_default();
        let place = |observed: String| format!("{}: {observed}", shown(name));
        let arguments = prompt["arguments"].as_array();
        let needs = arguments
            .is_some_and(|arguments| arguments.iter().any(|argument| argument["required"] == true));
        let (exchange, reply) = session.request("prompts/get", json!({"name": name})).await;
        if needs {
            let is_right = reply.code() == Some(-32602);
            report.record(
                &MISSING_ARGUMENT,
                revision,
                if is_right { Ok(()) } else { Err(place(exchange.observed())) },
            );
            continue;
        }
        let Some(result) = reply.result() else { continue };
        if result["resultType"] == "input_required" {
            continue;
        }
        report.record(
            &PROMPT_RESULT,
            revision,
            shape::check("GetPromptResult", result).map_err(place),
        );
        for message in result["messages"].as_array().into_iter().flatten() {
            let outcome = shape::check_content(&message["content"], revision);
            report.record(&PROMPT_CONTENT, revision, outcome.map_err(place));
        }
    }
}

async fn completion(session: &mut Session, prompts: &[Value], report: &mut Report) {
    let revision = session.revision;
    // 2024-11-05 has no capability of that name.
    if session.capability("completions").is_none() {
        return;
    }
    let with_argument = prompts.iter().find_map(|prompt| {
        Some((prompt["name"].as_str()?, prompt["arguments"].get(0)?["name"].as_str()?))
    });
    if let Some((prompt, argument)) = with_argument {
        let params = json!({
            "ref": {"type": "ref/prompt", "name": prompt}, "argument": {"name": argument, "value": ""},
        });
        let (exchange, reply) = session.request("completion/complete", params).await;
        let outcome = match reply.result() {
            Some(result) => shape::check("CompleteResult", result),
            None => Err(exchange.observed()),
        };
        report.record(&COMPLETION, revision, outcome);
    }
    let params = json!({
        "ref": {"type": "ref/prompt", "name": "gudgeon-doctor-unknown"}, "argument": {"name": "x", "value": ""},
    });
    let (exchange, reply) = session.request("completion/complete", params).await;
    report.record(
        &UNKNOWN_REFERENCE,
        revision,
        if reply.code() == Some(-32602) { Ok(()) } else { Err(exchange.observed()) },
    );
}

async fn logging(session: &mut Session, report: &mut Report) {
    let revision = session.revision;
    if session.capability("logging").is_none() {
        return;
    }
    if session.is_modern() {
        let meta = json!({"_meta": {"io.modelcontextprotocol/logLevel": "loud"}});
        let (exchange, reply) = session.request("server/discover", meta).await;
        report.record(
            &BAD_META_LEVEL,
            revision,
            if reply.code() == Some(-32602) { Ok(()) } else { Err(exchange.observed()) },
        );
        return;
    }
    let outcome = session.result("logging/setLevel", json!({"level": "warning"})).await;
    let is_accepted = outcome.is_ok();
    report.record(&SET_LEVEL, revision, outcome.map(|_| ()));
    if !is_accepted {
        return;
    }
    let (exchange, reply) = session.request("logging/setLevel", json!({"level": "loud"})).await;
    report.record(
        &BAD_LEVEL,
        revision,
        if reply.code() == Some(-32602) { Ok(()) } else { Err(exchange.observed()) },
    );
}
