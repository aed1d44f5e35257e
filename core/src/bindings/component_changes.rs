//! Changes of registered components: the members that a change may name.

use super::{
    options::{Row, Taker},
    unknown_name::unknown_name,
};
use crate::{error::Language, router::changeable};

/// Members that decide how calls are answered, which no option sets.
const FIXED: [&str; 6] =
    ["name", "uri", "uri_template", "input_schema", "output_schema", "arguments"];

/// Returns the problem of a member that is to be changed; `None` if it may be. `kind` is the sort of component as the
/// language names it. Values are checked as those of options.
pub fn problem(language: Language, kind: &str, name: &str) -> Option<String> {
    let (taker, members) = match kind.trim_end_matches('s') {
        "tool" => (Taker::Tool, changeable::TOOL),
        "resource" => (Taker::Resource, changeable::RESOURCE),
        "prompt" => (Taker::Prompt, changeable::PROMPT),
        _ => (Taker::Resource, changeable::RESOURCE_TEMPLATE),
    };
    let named = |member: &&str| {
        let mut rows = Row::all(language, taker);
        rows.find(|row| row.member().as_deref().unwrap_or(row.name) == *member)
            .map(|row| row.name_in(language))
    };
    let known: Vec<_> = members.iter().filter_map(named).collect();
    if known.iter().any(|member| member == name) {
        return None;
    }
    Some(if name == "enabled" {
        "enabled can't be changed here; call enable(name) or disable(name)".to_owned()
    } else if Row::find(language, taker, name).is_some()
        || FIXED.iter().any(|fixed| *fixed == name || Language::TypeScript.option(fixed) == name)
    {
        let component = format!("{taker:?}").to_lowercase();
        format!("{name} can't be changed; remove this {component} and register it again")
    } else {
        let known: Vec<_> = known.iter().map(String::as_str).collect();
        unknown_name("member", name, &known, (name == "_meta").then_some("meta"))
    })
}
