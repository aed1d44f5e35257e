//! The tools in a list of a server, as far as calls depend on them.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{KnownTool, ListedSchema, is_marked, is_repeatable};
use crate::{protocol::Raw, wire::ParamHeader};

/// The tools in a list, for [`KnownTools::learn`](super::KnownTools::learn).
#[derive(Debug)]
pub struct ListedTools {
    pub(super) tools: HashMap<String, KnownTool>,
}

/// An entry of a list.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    name: String,
    input_schema: Option<Raw>,
    output_schema: Option<Raw>,
    // Hints that can't be read do not keep the schemas from being known.
    annotations: Option<Raw>,
}

impl ListedTools {
    /// Reads the entries of a list. If arguments are `mirrored` in headers, removes entries whose annotations for that
    /// break the rules (Streamable HTTP, "Schema Extension").
    pub fn read(items: &mut Vec<Raw>, mirrored: bool) -> Self {
        let mut tools = HashMap::with_capacity(items.len());
        items.retain(|item| {
            // The caller reports entries that can't be read.
            let Ok(entry) = serde_json::from_str::<Entry>(item.get()) else { return true };
            let schema = entry.input_schema.as_deref().map(RawValue::get);
            match schema.map(ParamHeader::of_schema).transpose() {
                Err(problem) if mirrored => {
                    tracing::warn!(
                        tool = entry.name,
                        problem,
                        "left out a tool that can't be called over HTTP"
                    );
                    return false;
                }
                headers => {
                    let headers = headers.ok().flatten().unwrap_or_default();
                    tools.insert(entry.name.clone(), entry.known(headers));
                }
            }
            true
        });
        Self { tools }
    }
}

impl Entry {
    fn known(self, mirrored: Vec<ParamHeader>) -> KnownTool {
        KnownTool {
            is_wrapped: self.output_schema.as_deref().is_some_and(is_marked),
            is_repeatable: self.annotations.as_deref().is_some_and(is_repeatable),
            input: self.input_schema.map(ListedSchema::new),
            output: self.output_schema.map(ListedSchema::new),
            mirrored,
        }
    }
}
