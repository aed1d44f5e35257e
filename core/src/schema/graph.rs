//! The graph of schemas and their references, used to bound the cost of compilation and checks.

use std::collections::HashMap;

use jsonschema::json::{Array as _, Json, Node as _, Object as _};
use serde_json::Value;

use super::build::{Backtracking, Builder};
use super::{MAX_IN_PLACE, SchemaError};

/// The nesting depth up to which a schema's expansion is counted.
const EXPANDED_DEPTH: usize = 256;

#[derive(Debug)]
pub(super) struct Graph {
    nodes: Vec<Node>,
    patterns: usize,
    backtracking: Backtracking,
}

/// A schema and its successors.
#[derive(Debug, Default)]
pub(super) struct Node {
    pub(super) pointer: String,
    /// `true` if its own `type`, `enum` or `const` excludes strings.
    pub(super) refuses_strings: bool,
    /// Schemas that the same value must all satisfy: `$ref`, `allOf`.
    pub(super) all: Vec<usize>,
    /// Alternatives for the same value, one of which must be satisfied: `anyOf`, `oneOf`.
    pub(super) any: Vec<Vec<usize>>,
    /// Other schemas applied to the same value: `not`, `if`, ….
    pub(super) beside: Vec<usize>,
    pub(super) properties: HashMap<String, usize>,
    /// Schemas applied to members or items.
    pub(super) inner: Vec<usize>,
}

impl Node {
    fn in_place(&self) -> impl Iterator<Item = usize> {
        self.all.iter().chain(self.any.iter().flatten()).chain(&self.beside).copied()
    }
}

impl Graph {
    pub(super) fn build(document: &Value) -> Result<Self, SchemaError> {
        let Builder { nodes, patterns, backtracking, .. } = Builder::read(document)?;
        let graph = Self { nodes, patterns, backtracking };
        let mut heights = vec![Height::Unknown; graph.nodes.len()];
        for node in 0..graph.nodes.len() {
            graph.height(node, 1, &mut heights)?;
        }
        Ok(graph)
    }

    /// Returns the number of schemas after expansion of all references, except recursive ones.
    pub(super) fn expansion(&self) -> usize {
        self.expanded(0, 0, &mut vec![None; self.nodes.len()])
    }

    pub(super) fn patterns(&self) -> usize {
        self.patterns
    }

    /// Returns the patterns with look-around or back-references.
    pub(super) fn backtracking(&self) -> &Backtracking {
        &self.backtracking
    }

    /// Returns the root properties that accept no string.
    pub(super) fn textless_properties(&self) -> Vec<String> {
        let mut takes = vec![None; self.nodes.len()];
        let mut names = Vec::new();
        let mut roots = vec![0];
        let mut next = 0;
        while let Some(&root) = roots.get(next) {
            next += 1;
            for (name, &property) in &self.nodes[root].properties {
                if !self.takes_strings(property, &mut takes) && !names.contains(name) {
                    names.push(name.clone());
                }
            }
            for target in &self.nodes[root].all {
                if !roots.contains(target) {
                    roots.push(*target);
                }
            }
        }
        names
    }

    /// Returns `true` if checking `value` without memoization takes at most `steps` steps.
    pub(super) fn can_afford<F: Json>(&self, value: F::Node<'_>, steps: usize) -> bool {
        let mut left = steps;
        let mut open = vec![(0, value)];
        while let Some((index, value)) = open.pop() {
            let node = &self.nodes[index];
            let before = open.len();
            open.extend(node.in_place().map(|target| (target, value.clone())));
            if let Some(object) = value.as_object() {
                if object.len() > left {
                    return false;
                }
                for (name, member) in object.members() {
                    let properties = node.properties.get(name.as_ref()).into_iter();
                    let targets = properties.chain(node.inner.iter().take(left));
                    open.extend(targets.map(|target| (*target, member.clone())));
                    if open.len() - before > left {
                        return false;
                    }
                }
            } else if let Some(array) = value.as_array() {
                if array.len() > left {
                    return false;
                }
                for item in array.elements() {
                    open.extend(node.inner.iter().map(|target| (*target, item.clone())));
                    if open.len() - before > left {
                        return false;
                    }
                }
            }
            match left.checked_sub(1 + open.len() - before) {
                Some(rest) => left = rest,
                None => return false,
            }
        }
        true
    }

    fn expanded(&self, index: usize, depth: usize, sizes: &mut Vec<Option<usize>>) -> usize {
        if let Some(size) = sizes[index] {
            return size;
        }
        if depth > EXPANDED_DEPTH {
            return usize::MAX;
        }
        // The result for a recursive reference to this schema.
        sizes[index] = Some(1);
        let node = &self.nodes[index];
        let targets = node
            .in_place()
            .chain(node.properties.values().copied())
            .chain(node.inner.iter().copied());
        let size = targets.fold(1, |size: usize, target| {
            size.saturating_add(self.expanded(target, depth + 1, sizes))
        });
        sizes[index] = Some(size);
        size
    }

    fn takes_strings(&self, index: usize, memory: &mut Vec<Option<bool>>) -> bool {
        if let Some(known) = memory[index] {
            return known;
        }
        let node = &self.nodes[index];
        let takes = !node.refuses_strings
            && node.all.iter().all(|&target| self.takes_strings(target, memory))
            && node
                .any
                .iter()
                .all(|group| group.iter().any(|&target| self.takes_strings(target, memory)));
        memory[index] = Some(takes);
        takes
    }

    /// Returns the longest chain from `index` that applies to the same value; errors on cycles and chains over the
    /// limit.
    fn height(
        &self,
        index: usize,
        above: usize,
        heights: &mut [Height],
    ) -> Result<usize, SchemaError> {
        let node = &self.nodes[index];
        match heights[index] {
            Height::Known(height) => return Ok(height),
            Height::Open => {
                let message = "this schema leads back to itself without going into a property or an item, so that no \
                               check would end; remove the circular `$ref`";
                return Err(SchemaError::at(&node.pointer, message));
            }
            Height::Unknown => heights[index] = Height::Open,
        }
        let mut height = 1;
        for target in node.in_place() {
            let below = if above < MAX_IN_PLACE + 1 {
                self.height(target, above + 1, heights)?
            } else {
                MAX_IN_PLACE
            };
            height = height.max(below + 1);
        }
        if height > MAX_IN_PLACE {
            let message = format!(
                "more than {MAX_IN_PLACE} schemas (`$ref`, `allOf`, …) apply to one value in a row; flatten them"
            );
            return Err(SchemaError::at(&node.pointer, message));
        }
        heights[index] = Height::Known(height);
        Ok(height)
    }
}

#[derive(Clone, Copy)]
enum Height {
    Unknown,
    Open,
    Known(usize),
}
