//! Lists of tools, resources and prompts: capabilities, shapes, pages and names.

use std::collections::BTreeMap;

use gudgeon::{Revision, protocol::Tool, router::lint_tool, schema::Schema, wire::ParamHeader};
use serde_json::{Value, json};

use super::{
    check::{Check, Section, Severity, sections},
    report::{Report, shown},
    session::{List, RpcReply, Session},
    shape,
};

pub const CHECKS: &[&Check] = &[
    &DECLARED,
    &UNDECLARED,
    &TEMPLATES,
    &TOOL_SHAPE,
    &RESOURCE_SHAPE,
    &TEMPLATE_SHAPE,
    &PROMPT_SHAPE,
    &CACHEABLE,
    &SAME_SCOPE,
    &CURSOR,
    &NEXT_CURSOR,
    &BAD_CURSOR,
    &ORDER,
    &TOOL_NAMES,
    &UNIQUE,
    &INPUT_SCHEMA,
    &OUTPUT_SCHEMA,
    &HEADERS,
    &HOST_RULES,
];

static DECLARED: Check = Check {
    id: "capabilities.declared",
    title: "answers the lists of the capabilities that it declares",
    section: Section::moved("server/tools#capabilities", "basic/lifecycle#capability-negotiation"),
    fix: "implement the method, or leave out the capability",
    ..Check::ANY
};
static UNDECLARED: Check = Check {
    id: "capabilities.undeclared",
    title: "declares the capabilities of what it offers",
    section: Section::moved(
        "server/discover#discoverresult",
        "basic/lifecycle#capability-negotiation",
    ),
    fix: "declare the capability; clients do not ask for what is not declared",
    ..Check::ANY
};
static TEMPLATES: Check = Check {
    id: "capabilities.templates",
    title: "answers `resources/templates/list` if it declares `resources`",
    severity: Severity::Note,
    section: Section::new("server/resources#resource-templates"),
    fix: "return an empty list if there are no templates: some clients show the error to their users",
    ..Check::ANY
};
static TOOL_SHAPE: Check = Check {
    id: "tools.shape",
    title: "lists tools as the schema defines them",
    section: Section::new("server/tools#data-types"),
    fix: "each tool has \"name\" and an \"inputSchema\" with \"type\": \"object\"",
    ..Check::ANY
};
static RESOURCE_SHAPE: Check = Check {
    id: "resources.shape",
    title: "lists resources as the schema defines them",
    section: Section::new("server/resources#data-types"),
    fix: "each resource has \"uri\" and \"name\"",
    ..Check::ANY
};
static TEMPLATE_SHAPE: Check = Check {
    id: "resources.template-shape",
    title: "lists resource templates as the schema defines them",
    section: Section::new("server/resources#resource-templates"),
    fix: "each template has \"uriTemplate\" and \"name\"",
    ..Check::ANY
};
static PROMPT_SHAPE: Check = Check {
    id: "prompts.shape",
    title: "lists prompts as the schema defines them",
    section: Section::new("server/prompts#data-types"),
    fix: "each prompt has \"name\", and each of its \"arguments\" too",
    ..Check::ANY
};
static CACHEABLE: Check = Check {
    id: "lists.cache",
    title: "says how long each page may be cached",
    section: Section::new("server/utilities/caching#cacheable-results"),
    fix: "add \"ttlMs\" (0 or more) and \"cacheScope\" (\"public\" or \"private\")",
    ..Check::MODERN
};
static SAME_SCOPE: Check = Check {
    id: "lists.cache-scope",
    title: "gives all pages of a list the same cacheScope",
    section: Section::new("server/utilities/caching#interaction-with-pagination"),
    fix: "return the cacheScope of the first page with every page",
    ..Check::MODERN
};
static CURSOR: Check = Check {
    id: "pagination.ends",
    title: "ends its lists",
    section: Section::new("server/utilities/pagination#response-format"),
    fix: "leave out \"nextCursor\" on the last page, and never return a cursor twice",
    ..Check::ANY
};
static NEXT_CURSOR: Check = Check {
    id: "pagination.next-cursor",
    title: "returns `nextCursor` as a string, or not at all",
    section: Section::new("server/utilities/pagination#response-format"),
    fix: "leave out \"nextCursor\" on the last page instead of null",
    ..Check::ANY
};
static BAD_CURSOR: Check = Check {
    id: "pagination.bad-cursor",
    title: "rejects a cursor that it never returned with error -32602",
    severity: Severity::Warning,
    section: Section::new("server/utilities/pagination#error-handling"),
    fix: "return -32602 for a cursor that can't be read",
    ..Check::ANY
};
static ORDER: Check = Check {
    id: "tools.order",
    title: "lists tools in the same order each time",
    severity: Severity::Warning,
    section: Section::new("server/tools#capabilities"),
    fix: "sort the tools, or keep the order of their registration",
    ..Check::MODERN
};
static TOOL_NAMES: Check = Check {
    id: "tools.names",
    title: "names tools with 1 to 128 of the characters A-Z a-z 0-9 _ - .",
    severity: Severity::Warning,
    section: Section::new("server/tools#tool-names"),
    fix: "rename the tool",
    since: Revision::V2025_11_25,
    ..Check::ANY
};
static UNIQUE: Check = Check {
    id: "tools.unique",
    title: "lists each tool once",
    severity: Severity::Warning,
    section: Section::new("server/tools#tool-names"),
    fix: "give each tool a name of its own",
    since: Revision::V2025_11_25,
    ..Check::ANY
};
static INPUT_SCHEMA: Check = Check {
    id: "tools.input-schema",
    title: "has valid JSON Schemas of arguments",
    section: Section::new("basic#schema-validation"),
    fix: "correct the inputSchema",
    since: Revision::V2025_11_25,
    ..Check::ANY
};
static OUTPUT_SCHEMA: Check = Check {
    id: "tools.output-schema",
    title: "has valid JSON Schemas of results",
    section: Section::new("basic#schema-validation"),
    fix: "correct the outputSchema; before 2026-07-28 its type is \"object\"",
    since: Revision::V2025_11_25,
    ..Check::ANY
};
static HEADERS: Check = Check {
    id: "tools.x-mcp-header",
    title: "marks arguments for headers as clients accept it",
    section: Section::new("server/tools#x-mcp-header"),
    fix: "correct \"x-mcp-header\"; clients leave out tools with a wrong one",
    ..Check::MODERN
};
static HOST_RULES: Check = Check {
    id: "hosts.tools",
    title: "has tools that known hosts and their models accept",
    severity: Severity::Warning,
    section: sections::HOSTS,
    fix: "see the message",
    ..Check::ANY
};

/// The lists of a server.
#[derive(Debug, Default)]
pub struct Listed {
    pub tools: Vec<Value>,
    pub resources: Vec<Value>,
    pub templates: Vec<Value>,
    pub prompts: Vec<Value>,
}

/// A list method: its capability, its member of the result, the shape of its items and the check of that shape.
struct Kind {
    method: &'static str,
    capability: &'static str,
    member: &'static str,
    shape: &'static str,
    check: &'static Check,
}

const KINDS: [Kind; 4] = [
    Kind {
        method: "tools/list",
        capability: "tools",
        member: "tools",
        shape: "Tool",
        check: &TOOL_SHAPE,
    },
    Kind {
        method: "resources/list",
        capability: "resources",
        member: "resources",
        shape: "Resource",
        check: &RESOURCE_SHAPE,
    },
    Kind {
        method: "resources/templates/list",
        capability: "resources",
        member: "resourceTemplates",
        shape: "ResourceTemplate",
        check: &TEMPLATE_SHAPE,
    },
    Kind {
        method: "prompts/list",
        capability: "prompts",
        member: "prompts",
        shape: "Prompt",
        check: &PROMPT_SHAPE,
    },
];

/// Reads all lists of the server and checks them.
pub async fn run(session: &mut Session, report: &mut Report) -> Listed {
    let revision = session.revision;
    let mut listed = Listed::default();
    let mut cursors = Vec::new();
    for kind in &KINDS {
        let is_declared = session.capability(kind.capability).is_some();
        let list = session.list(kind.method, kind.member).await;
        if !is_declared {
            let outcome = match list.items.first() {
                None => Ok(()),
                Some(item) => Err(format!(
                    "{} is not declared, and {} returns {}",
                    kind.capability,
                    kind.method,
                    shown(&item.to_string())
                )),
            };
            report.record(&UNDECLARED, revision, outcome);
            continue;
        }
        let outcome = match &list.failure {
            Some((observed, _)) => Err(format!("{}: {observed}", kind.method)),
            None => Ok(()),
        };
        let is_templates = kind.member == "resourceTemplates";
        report.record(if is_templates { &TEMPLATES } else { &DECLARED }, revision, outcome);
        if list.failure.is_some() && list.pages.is_empty() {
            continue;
        }
        check_pages(kind, &list, revision, report);
        cursors.push(bad_cursor(kind.method, session).await);
        for item in &list.items {
            let place = |problem: String| {
                format!("{}: {problem}", shown(item["name"].as_str().unwrap_or("an item")))
            };
            report.record(kind.check, revision, shape::check(kind.shape, item).map_err(place));
        }
        match kind.member {
            "tools" => listed.tools = list.items,
            "resources" => listed.resources = list.items,
            "prompts" => listed.prompts = list.items,
            _ => listed.templates = list.items,
        }
    }
    if !cursors.is_empty() {
        let wrong: Vec<_> = cursors.into_iter().flatten().collect();
        let outcome = if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; ")) };
        report.record(&BAD_CURSOR, revision, outcome);
    }
    if !listed.tools.is_empty() {
        check_tools(&listed.tools, revision, report);
        if session.is_modern() {
            let again = session.list("tools/list", "tools").await.items;
            let names =
                |tools: &[Value]| tools.iter().map(|tool| tool["name"].clone()).collect::<Vec<_>>();
            let is_same = names(&again) == names(&listed.tools);
            let observed =
                || format!("first {}, then {}", json!(names(&listed.tools)), json!(names(&again)));
            report.record(&ORDER, revision, if is_same { Ok(()) } else { Err(shown(&observed())) });
        }
    }
    listed
}

fn check_pages(kind: &Kind, list: &List, revision: Revision, report: &mut Report) {
    let named = |problem: String| format!("{}: {problem}", kind.method);
    let outcome = match &list.repeats {
        Some(cursor) => Err(named(format!("the cursor {} came twice", shown(cursor)))),
        None => Ok(()),
    };
    report.record(&CURSOR, revision, outcome);
    for page in &list.pages {
        let is_list = page[kind.member].is_array();
        let outcome = match is_list {
            true => shape::check("Page", page),
            false => Err(format!("the result has no array {:?}", kind.member)),
        };
        let check = if is_list { &NEXT_CURSOR } else { kind.check };
        report.record(check, revision, outcome.map_err(named));
        report.record(&CACHEABLE, revision, shape::check("Cacheable", page).map_err(named));
        if list.pages.len() > 1 {
            let is_same = page["cacheScope"] == list.pages[0]["cacheScope"];
            let outcome = if is_same { Ok(()) } else { Err(named(page["cacheScope"].to_string())) };
            report.record(&SAME_SCOPE, revision, outcome);
        }
    }
}

/// Returns what a list method answers to a cursor that it never returned, unless that is the right error.
async fn bad_cursor(method: &str, session: &mut Session) -> Option<String> {
    let (exchange, reply) =
        session.request(method, json!({"cursor": "gudgeon-doctor: no cursor"})).await;
    match reply {
        RpcReply::Error { code: -32602, .. } => None,
        // The page itself tells nothing.
        RpcReply::Result(_) => Some(format!("{method} returns a page")),
        _ => Some(format!("{method}: {}", exchange.observed())),
    }
}

fn check_tools(tools: &[Value], revision: Revision, report: &mut Report) {
    let mut names = Vec::new();
    let mut problems: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for tool in tools {
        let name = tool["name"].as_str().unwrap_or_default();
        let is_plain =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
        let fits = (1..=128).contains(&name.len()) && name.bytes().all(is_plain);
        report.record(
            &TOOL_NAMES,
            revision,
            if fits { Ok(()) } else { Err(format!("the name {:?}", shown(name))) },
        );
        let outcome = if names.contains(&name) {
            Err(format!("{} is listed twice", shown(name)))
        } else {
            Ok(())
        };
        report.record(&UNIQUE, revision, outcome);
        names.push(name);

        let place = |problem: String| format!("{}: {}", shown(name), shown(&problem));
        let input = Schema::compile(&tool["inputSchema"].to_string());
        report.record(&INPUT_SCHEMA, revision, usable(&input).map_err(place));
        if let Some(output) = tool.get("outputSchema") {
            let needs_object = revision < Revision::V2026_07_28 && output["type"] != "object";
            let outcome = match needs_object {
                true => Err(format!("its type is {}", output["type"])),
                false => usable(&Schema::compile(&output.to_string())),
            };
            report.record(&OUTPUT_SCHEMA, revision, outcome.map_err(place));
        }
        let marked = ParamHeader::of_schema(&tool["inputSchema"].to_string());
        report.record(&HEADERS, revision, marked.map(|_| ()).map_err(place));
        if let (Ok(input), Ok(typed)) = (&input, serde_json::from_value::<Tool>(tool.clone())) {
            for problem in lint_tool(&typed, input) {
                let prefix = format!("tool {name:?}: ");
                let text = problem.strip_prefix(&prefix).unwrap_or(&problem).to_owned();
                problems.entry(text).or_default().push(name);
            }
        }
    }
    if problems.is_empty() {
        report.record(&HOST_RULES, revision, Ok(()));
    }
    for (problem, names) in problems {
        let more = names.len().saturating_sub(3);
        let mut examples: Vec<_> = names.iter().take(3).map(|name| shown(name)).collect();
        if more > 0 {
            examples.push(format!("{more} more"));
        }
        report.record(
            &HOST_RULES,
            revision,
            Err(format!("{}: {}", examples.join(", "), shown(&problem))),
        );
    }
}

/// Returns the reason for which a schema is not valid. One of another dialect, or with a reference to another document, may
/// be.
fn usable(schema: &Result<Schema, gudgeon::schema::SchemaError>) -> Result<(), String> {
    match schema {
        Err(error) if !error.is_foreign() => Err(error.to_string()),
        _ => Ok(()),
    }
}
