//! Schemas that describe objects only, as arguments and params must.

use serde_json::{Map, Value};

use super::portable::target;

type Object = Map<String, Value>;

/// The maximum number of references and combinations that are followed inside each other.
const MAX_DEPTH: usize = 32;

/// Returns the schema with `"type": "object"`, which clients look for; `None` if other values fit it as well.
pub fn of_object(schema: Object) -> Option<Object> {
    if !describes_object(&schema, &schema, 0) {
        return None;
    }
    let mut typed = Object::with_capacity(schema.len() + 1);
    typed.insert("type".into(), "object".into());
    typed.extend(schema);
    Some(typed)
}

fn describes_object(schema: &Object, root: &Object, depth: usize) -> bool {
    if let Some(kind) = schema.get("type") {
        return kind == "object";
    }
    if depth > MAX_DEPTH {
        return false;
    }
    let inner = |schema: &Object| describes_object(schema, root, depth + 1);
    let is_object = |value: &Value| value.as_object().is_some_and(inner);
    let reference = schema.get("$ref").and_then(Value::as_str);
    let list = |name: &str| schema.get(name).and_then(Value::as_array);
    if reference.and_then(|reference| target(root, reference)).is_some_and(inner)
        || list("allOf").is_some_and(|schemas| schemas.iter().any(is_object))
    {
        return true;
    }
    match list("anyOf").or_else(|| list("oneOf")) {
        Some(choices) => !choices.is_empty() && choices.iter().all(is_object),
        None => schema.get("properties").is_some_and(Value::is_object),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn typed(schema: Value) -> Option<String> {
        let Value::Object(schema) = schema else { panic!("{schema} is not an object") };
        of_object(schema).map(|schema| Value::Object(schema).to_string())
    }

    #[test]
    fn schemas_of_objects_get_the_type() {
        let (object, string) = (json!({"type": "object"}), json!({"type": "string"}));
        for schema in [
            json!({"properties": {}}),
            json!({"anyOf": [object, {"properties": {}}]}),
            json!({"oneOf": [object]}),
            json!({"allOf": [{}, object]}),
            json!({"$ref": "#/$defs/a", "$defs": {"a": object}}),
            json!({"anyOf": [{"$ref": "#/$defs/a~1b"}], "$defs": {"a/b": {"oneOf": [object]}}}),
        ] {
            let typed = typed(schema.clone()).expect("a schema of objects");
            assert!(typed.starts_with(r#"{"type":"object","#), "{typed}");
            assert_eq!(typed.replacen(r#""type":"object","#, "", 1), schema.to_string());
        }
        assert_eq!(typed(object.clone()).as_deref(), Some(r#"{"type":"object"}"#));
        for schema in [
            json!({}),
            string.clone(),
            json!({"type": ["object", "null"]}),
            json!({"anyOf": []}),
            json!({"anyOf": [object, string]}),
            json!({"oneOf": [object, {}], "properties": {}}),
            json!({"allOf": [string]}),
            json!({"$ref": "#"}),
            json!({"$ref": "#/$defs/none", "$defs": {}}),
            json!({"$ref": "https://example.org/a.json"}),
        ] {
            assert_eq!(typed(schema.clone()), None, "{schema}");
        }
    }
}
