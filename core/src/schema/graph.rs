//! Questions about a schema as a whole.

use super::instance::Instance;
use super::keyword::{Keyword, Schemas};
use super::{MAX_IN_PLACE, SchemaError};

/// The nesting depth up to which a schema's expansion is counted.
const EXPANDED_DEPTH: usize = 256;

/// Errors if more than [`MAX_IN_PLACE`] schemas apply to one value in a row, or if they lead back to the first.
pub(super) fn check_chains(schemas: &Schemas) -> Result<(), SchemaError> {
    let mut heights = vec![Height::Unknown; schemas.nodes.len()];
    for schema in 0..schemas.nodes.len() {
        height(schemas, schema, 1, &mut heights)?;
    }
    Ok(())
}

/// Returns the number of schemas after expansion of all references, except recursive ones.
pub(super) fn expansion(schemas: &Schemas) -> usize {
    expanded(schemas, 0, 0, &mut vec![None; schemas.nodes.len()])
}

fn expanded(
    schemas: &Schemas,
    schema: usize,
    depth: usize,
    sizes: &mut Vec<Option<usize>>,
) -> usize {
    if let Some(size) = sizes[schema] {
        return size;
    }
    if depth > EXPANDED_DEPTH {
        return usize::MAX;
    }
    // The result for a recursive reference to this schema.
    sizes[schema] = Some(1);
    let mut size: usize = 1;
    for keyword in &schemas.nodes[schema].keywords {
        for target in schemas.in_place(keyword).into_iter().chain(Schemas::inside(keyword)) {
            size = size.saturating_add(expanded(schemas, target, depth + 1, sizes));
        }
    }
    sizes[schema] = Some(size);
    size
}

/// Returns `false` if `type`, `enum` and `const` exclude all strings.
pub(super) fn takes_strings(
    schemas: &Schemas,
    schema: usize,
    known: &mut Vec<Option<bool>>,
) -> bool {
    if let Some(takes) = known[schema] {
        return takes;
    }
    // The result for a recursive reference to this schema.
    known[schema] = Some(true);
    let takes = schemas.nodes[schema].keywords.iter().all(|keyword| match keyword {
        Keyword::Never => false,
        Keyword::Types(types) => types.accepts(&Instance::String("".into())),
        Keyword::Values(allowed) => allowed.values.iter().any(is_string),
        Keyword::Const(value) => is_string(value),
        Keyword::All(_) | Keyword::Reference(_) | Keyword::DynamicReference { .. } => {
            let targets = schemas.in_place(keyword);
            targets.into_iter().all(|target| takes_strings(schemas, target, known))
        }
        Keyword::Any(targets) | Keyword::One(targets) => {
            targets.iter().any(|target| takes_strings(schemas, *target, known))
        }
        _ => true,
    });
    known[schema] = Some(takes);
    takes
}

fn is_string(value: &Instance<'_>) -> bool {
    matches!(value, Instance::String(_))
}

/// Returns the longest chain from a schema that applies to the same value; errors on cycles and chains over the limit.
fn height(
    schemas: &Schemas,
    schema: usize,
    above: usize,
    heights: &mut [Height],
) -> Result<usize, SchemaError> {
    let node = &schemas.nodes[schema];
    match heights[schema] {
        Height::Known(height) => return Ok(height),
        Height::Open => {
            let message = "this schema leads back to itself without going into a property or an item, so that no \
                           check would end; remove the circular `$ref`";
            return Err(SchemaError::at(&node.pointer, message));
        }
        Height::Unknown => heights[schema] = Height::Open,
    }
    let mut longest = 1;
    for target in node.keywords.iter().flat_map(|keyword| schemas.in_place(keyword)) {
        let below = if above < MAX_IN_PLACE + 1 {
            height(schemas, target, above + 1, heights)?
        } else {
            MAX_IN_PLACE
        };
        longest = longest.max(below + 1);
    }
    if longest > MAX_IN_PLACE {
        let message = format!(
            "more than {MAX_IN_PLACE} schemas (`$ref`, `allOf`, …) apply to one value in a row; flatten them"
        );
        return Err(SchemaError::at(&node.pointer, message));
    }
    heights[schema] = Height::Known(longest);
    Ok(longest)
}

#[derive(Clone, Copy)]
enum Height {
    Unknown,
    Open,
    Known(usize),
}
