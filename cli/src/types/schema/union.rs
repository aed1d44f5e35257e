//! Types of which a value has one.

use serde_json::Value;

use crate::types::model::Type;

/// Returns the union of types: flat, without repetitions, and null at the end.
pub fn union(kinds: Vec<Type>) -> Type {
    let mut members: Vec<Type> = Vec::new();
    let mut values: Vec<Value> = Vec::new();
    let mut open: Vec<Type> = kinds.into_iter().rev().collect();
    while let Some(kind) = open.pop() {
        match kind {
            Type::Union(inner) => open.extend(inner.into_iter().rev()),
            Type::Any => return Type::Any,
            Type::Literal(inner) => {
                if values.is_empty() {
                    members.push(Type::Literal(Vec::new()));
                }
                for value in inner {
                    if !values.contains(&value) {
                        values.push(value);
                    }
                }
            }
            kind if members.contains(&kind) => (),
            kind => members.push(kind),
        }
    }
    if let Some(all) = members.iter_mut().find(|member| matches!(member, Type::Literal(_))) {
        *all = Type::Literal(values);
    }
    if let Some(null) = members.iter().position(|member| *member == Type::Null) {
        let null = members.remove(null);
        members.push(null);
    }
    match members.len() {
        0 => Type::Any,
        1 => members.remove(0),
        _ => Type::Union(members),
    }
}

/// Returns the type of the values of `enum` or `const`.
pub fn literals(values: &[Value]) -> Type {
    let kind = |value: &Value| match value {
        Value::Null => Type::Null,
        Value::String(_) | Value::Bool(_) => Type::Literal(vec![value.clone()]),
        Value::Number(it) if it.is_i64() || it.is_u64() => Type::Literal(vec![value.clone()]),
        Value::Number(_) => Type::Number,
        Value::Array(_) => Type::Array(Box::new(Type::Any)),
        Value::Object(_) => Type::Map(Box::new(Type::Any)),
    };
    union(values.iter().map(kind).collect())
}
