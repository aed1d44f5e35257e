use serde_json::{Map, json};

use super::*;

fn read(schema: &Value) -> (Type, Vec<Declaration>) {
    let mut builder = Builder::new(Names::of_types());
    let kind = builder.root(&Root { schema, pointer: "", name: "Root", doc: "The root." });
    (kind, builder.finish())
}

#[test]
fn values_have_the_types_of_both_languages() {
    let union = |members: &[Type]| Type::Union(members.to_vec());
    for (schema, expected) in [
        (json!({ "type": "string" }), Type::String),
        (json!({ "type": ["integer", "null"] }), union(&[Type::Integer, Type::Null])),
        (json!({ "type": "string", "nullable": true }), union(&[Type::String, Type::Null])),
        (
            json!({ "enum": ["a", null, "a", 1] }),
            union(&[Type::Literal(vec![json!("a"), json!(1)]), Type::Null]),
        ),
        (json!({ "const": 1.5 }), Type::Number),
        (json!({ "type": "string", "anyOf": [{ "minLength": 1 }, {}] }), Type::String),
        (
            json!({ "anyOf": [{ "type": "null" }, { "type": "string" }] }),
            union(&[Type::String, Type::Null]),
        ),
        (json!({ "items": { "type": "number" } }), Type::Array(Box::new(Type::Number))),
        (json!({ "type": "object" }), Type::Map(Box::new(Type::Any))),
        (json!({ "$ref": "https://example.com" }), Type::Any),
        (json!({ "$ref": "#/$defs/gone" }), Type::Any),
        (json!(true), Type::Any),
    ] {
        let (kind, declarations) = read(&schema);
        let kind = match (&kind, declarations.first()) {
            (Type::Named(0), Some(Declaration { shape: Shape::Alias(kind), .. })) => kind.clone(),
            _ => kind,
        };
        assert_eq!(kind, expected, "{schema}");
    }
}

#[test]
fn definitions_are_declared_once_and_may_refer_to_themselves() {
    let schema = json!({
        "type": "object",
        "properties": { "a": { "$ref": "#/$defs/node" }, "b": { "$ref": "#/$defs/node" } },
        "$defs": { "node": { "type": "object", "properties": { "next": { "$ref": "#/$defs/node" } } } },
    });
    let (_, declarations) = read(&schema);
    let names: Vec<_> = declarations.iter().map(|declaration| declaration.name.as_str()).collect();
    assert_eq!(names, ["Node", "Root"]);
    assert_eq!(declarations[1].doc, "The root.");
}

#[test]
fn an_alias_of_itself_is_anything() {
    let schema = json!({
        "type": "object",
        "properties": { "a": { "$ref": "#/$defs/a" } },
        "$defs": { "a": { "anyOf": [{ "$ref": "#/$defs/b" }, { "type": "null" }] }, "b": { "$ref": "#/$defs/a" } },
    });
    let (_, declarations) = read(&schema);
    assert!(matches!(declarations[0].shape, Shape::Alias(Type::Any)), "{declarations:?}");
}

#[test]
fn parts_of_all_of_are_one_object() {
    let schema = json!({
        "allOf": [
            { "$ref": "#/$defs/base" },
            { "properties": { "b": { "type": "integer" } }, "required": ["b"] },
        ],
        "$defs": { "base": { "type": "object", "properties": { "a": { "type": "string" } } } },
    });
    let (_, declarations) = read(&schema);
    let Shape::Object { fields, .. } = &declarations[0].shape else { panic!("{declarations:?}") };
    let fields: Vec<_> = fields.iter().map(|field| (field.name.as_str(), field.required)).collect();
    assert_eq!(fields, [("a", false), ("b", true)]);
}

#[test]
fn a_schema_that_stands_for_very_many_types_is_bounded() {
    let mut definitions = Map::new();
    for level in 0..40 {
        let next = json!({ "$ref": format!("#/$defs/l{}", level + 1) });
        definitions.insert(format!("l{level}"), json!({ "allOf": [next, next] }));
    }
    definitions.insert("l40".into(), json!({ "properties": { "a": { "type": "string" } } }));
    let (kind, _) = read(&json!({ "$ref": "#/$defs/l0", "$defs": definitions }));
    assert!(matches!(kind, Type::Named(_) | Type::Any), "{kind:?}");
    let mut deep = json!({ "type": "string" });
    for _ in 0..1_000 {
        deep = json!({ "type": "array", "items": deep });
    }
    read(&deep);
}
