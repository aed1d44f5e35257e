//! Questions to the client as requests, and their answers, in each handshake revision.

use serde_json::{Map, Value};

use super::Wire;
use crate::protocol::{ErrorObject, Method, Raw, code, json};

/// Returns the params of a question. `id` identifies a page to visit where the revision has such ids; it is returned if
/// it was used.
pub fn lower(wire: &Wire, method: Method, params: &Raw, id: String) -> (Raw, Option<String>) {
    let Ok(mut object) = serde_json::from_str::<Map<String, Value>>(params.get()) else {
        return (params.clone(), None);
    };
    if method == Method::CreateMessage && !wire.vocabulary.sampled_lists {
        older_messages(&mut object);
        return (json::to_raw(&object), None);
    }
    if method != Method::Elicit {
        return (params.clone(), None);
    }
    let knows_pages = wire.server_notifications.contains(&Method::ElicitationComplete);
    if !knows_pages {
        object.shift_remove("mode");
    }
    if !wire.vocabulary.rich_forms
        && let Some(form) = object.get_mut("requestedSchema").and_then(Value::as_object_mut)
    {
        older_form(form);
    }
    if knows_pages && object.get("mode").is_some_and(|mode| mode == "url") {
        let id = match object.get("elicitationId").and_then(Value::as_str) {
            Some(own) => own.to_owned(),
            None => id,
        };
        object.insert("elicitationId".into(), id.clone().into());
        return (json::to_raw(&object), Some(id));
    }
    (json::to_raw(&object), None)
}

/// Returns an answer. Before 2025-11-25 a sampled message is one content block.
pub fn lower_answer(wire: &Wire, answer: &Raw) -> Result<Raw, ErrorObject> {
    if wire.vocabulary.sampled_lists || !answer.get().contains("\"content\"") {
        return Ok(answer.clone());
    }
    let Ok(mut object) = serde_json::from_str::<Map<String, Value>>(answer.get()) else {
        return Ok(answer.clone());
    };
    // The content of a form is an object.
    let Some(Value::Array(blocks)) = object.get_mut("content") else { return Ok(answer.clone()) };
    if blocks.len() != 1 {
        let message = format!(
            "the model's answer has {} blocks of content, and {} supports one",
            blocks.len(),
            wire.name()
        );
        return Err(ErrorObject::new(code::INTERNAL_ERROR, message));
    }
    let block = blocks.remove(0);
    object.insert("content".into(), block);
    Ok(json::to_raw(&object))
}

/// Converts messages for revisions before 2025-11-25: each content block becomes its own message.
fn older_messages(object: &mut Map<String, Value>) {
    let Some(Value::Array(messages)) = object.get_mut("messages") else { return };
    let each = |message: Value| match message.get("content").and_then(Value::as_array) {
        None => vec![message],
        Some(blocks) => blocks
            .iter()
            .map(|block| {
                let mut one = message.clone();
                one["content"] = block.clone();
                one
            })
            .collect(),
    };
    *messages = std::mem::take(messages).into_iter().flat_map(each).collect();
}

/// Converts a form for revisions before 2025-11-25, which have defaults for booleans only and ignore other keywords. A field
/// with a default becomes optional: a client that ignores the default may leave it out, and it is filled into the answer.
fn older_form(form: &mut Map<String, Value>) {
    form.shift_remove("$schema");
    let mut optional = Vec::new();
    let fields = form.get_mut("properties").and_then(Value::as_object_mut);
    for (name, field) in fields.into_iter().flatten() {
        older_choice(field);
        if let Some(field) = field.as_object()
            && field.get("type").is_none_or(|kind| kind != "boolean")
            && field.contains_key("default")
        {
            optional.push(name.clone());
        }
    }
    if let Some(Value::Array(required)) = form.get_mut("required") {
        required.retain(|field| !optional.iter().any(|name| field == name));
    }
}

/// Converts titled choices into the two parallel lists of older revisions.
fn older_choice(field: &mut Value) {
    let Some(object) = field.as_object_mut() else { return };
    let Some(Value::Array(choices)) = object.get("oneOf") else { return };
    let list = |name: &str| -> Option<Vec<Value>> {
        choices.iter().map(|choice| choice.get(name).cloned()).collect()
    };
    if let (Some(values), Some(titles)) = (list("const"), list("title")) {
        object.shift_remove("oneOf");
        object.insert("enum".into(), values.into());
        object.insert("enumNames".into(), titles.into());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::protocol::Revision;

    fn lowered(revision: Revision, params: &Value) -> (Value, Option<String>) {
        let (params, id) =
            lower(Wire::for_revision(revision), Method::Elicit, &json::to_raw(params), "e1".into());
        (serde_json::from_str(params.get()).expect("JSON"), id)
    }

    #[test]
    fn forms_have_no_mode_and_choices_two_lists_before_pages_were_known() {
        let choice =
            json!({"type": "string", "oneOf": [{"const": "a", "title": "A"}], "default": "a"});
        let schema = |field: Value| json!({"type": "object", "properties": {"value": field}});
        let form = json!({"mode": "form", "message": "?", "requestedSchema": schema(choice)});
        assert_eq!(lowered(Revision::V2025_11_25, &form), (form.clone(), None));
        let older = json!({"type": "string", "enum": ["a"], "enumNames": ["A"], "default": "a"});
        assert_eq!(
            lowered(Revision::V2025_06_18, &form),
            (json!({"message": "?", "requestedSchema": schema(older)}), None)
        );
    }

    #[test]
    fn a_field_with_a_default_keeps_it_and_is_not_required() {
        let form = |required: &[&str]| {
            let why = json!({"type": "string", "default": "tidy"});
            let sure = json!({"type": "boolean", "default": true});
            let properties = json!({"why": why, "who": {"type": "string"}, "sure": sure});
            let schema = json!({"type": "object", "properties": properties, "required": required});
            json!({"mode": "form", "message": "?", "requestedSchema": schema})
        };
        let newer = form(&["why", "who", "sure"]);
        assert_eq!(lowered(Revision::V2025_11_25, &newer), (newer.clone(), None));
        let mut older = form(&["who", "sure"]);
        older.as_object_mut().expect("an object").shift_remove("mode");
        assert_eq!(lowered(Revision::V2025_06_18, &newer), (older, None));
    }

    #[test]
    fn messages_to_a_model_held_one_block_each() {
        let text = |text: &str| json!({"type": "text", "text": text});
        let sampled = |messages: Value| json!({"messages": messages, "maxTokens": 5});
        let newer = sampled(json!([
            {"role": "user", "content": text("a")},
            {"role": "assistant", "content": [text("b"), text("c")]},
            {"role": "user", "content": [text("d")]},
        ]));
        let older = sampled(json!([
            {"role": "user", "content": text("a")},
            {"role": "assistant", "content": text("b")},
            {"role": "assistant", "content": text("c")},
            {"role": "user", "content": text("d")},
        ]));
        for revision in Revision::ALL {
            let lowered = lower(
                Wire::for_revision(revision),
                Method::CreateMessage,
                &json::to_raw(&newer),
                String::new(),
            );
            let lowered: Value = serde_json::from_str(lowered.0.get()).expect("JSON");
            let is_older = revision < Revision::V2025_11_25;
            assert_eq!(lowered, if is_older { older.clone() } else { newer.clone() });
        }
    }

    #[test]
    fn what_a_model_says_was_one_block() {
        let text = |text: &str| json!({"type": "text", "text": text});
        let answer =
            |content: Value| json!({"role": "assistant", "content": content, "model": "m"});
        for revision in Revision::ALL {
            let lowered = |content: Value| {
                lower_answer(Wire::for_revision(revision), &json::to_raw(&answer(content)))
                    .map(|raw| {
                        serde_json::from_str::<Value>(raw.get()).expect("JSON")["content"].clone()
                    })
                    .map_err(|error| error.message)
            };
            assert_eq!(lowered(text("a")), Ok(text("a")));
            let (one, two) = (json!([text("a")]), json!([text("a"), text("b")]));
            if revision < Revision::V2025_11_25 {
                assert_eq!(lowered(one), Ok(text("a")));
                let message = format!(
                    "the model's answer has 2 blocks of content, and {revision} supports one"
                );
                assert_eq!(lowered(two), Err(message));
            } else {
                assert_eq!((lowered(one.clone()), lowered(two.clone())), (Ok(one), Ok(two)));
            }
        }
    }

    #[test]
    fn pages_get_a_name() {
        let page = |id: &str| json!({"mode": "url", "message": "?", "url": "https://a.example", "elicitationId": id});
        let bare = json!({"mode": "url", "message": "?", "url": "https://a.example"});
        assert_eq!(lowered(Revision::V2025_11_25, &bare), (page("e1"), Some("e1".into())));
        assert_eq!(lowered(Revision::V2025_11_25, &page("own")), (page("own"), Some("own".into())));
    }
}
