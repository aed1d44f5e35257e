//! Whether an answer is one to its question.

use serde_json::{Map, Value};

use super::mode;
use crate::{
    protocol::{
        CreateMessageResult, ElicitAction, ElicitResult, ListRootsResult, Method, Raw,
        json::{self, ObjectWriter},
    },
    schema::Schema,
};

/// The answer, if it is one to this question; otherwise what is wrong with it.
pub fn fit(method: Method, params: &str, answer: &Raw) -> Result<Raw, String> {
    let text = answer.get();
    match method {
        Method::Elicit => fit_elicitation(params, answer),
        Method::CreateMessage => match serde_json::from_str::<CreateMessageResult>(text) {
            Ok(_) => Ok(answer.clone()),
            Err(error) => Err(format!("it is no sampled message: {error}")),
        },
        Method::ListRoots => match serde_json::from_str::<ListRootsResult>(text) {
            Ok(_) => Ok(answer.clone()),
            Err(error) => Err(format!("it is no list of roots: {error}")),
        },
        _ => Err(format!("{} is no question", method.as_str())),
    }
}

fn fit_elicitation(params: &str, answer: &Raw) -> Result<Raw, String> {
    let result: ElicitResult = serde_json::from_str(answer.get())
        .map_err(|error| format!("it is no result of an elicitation: {error}"))?;
    let asked: Value = serde_json::from_str(params).map_err(|error| error.to_string())?;
    if result.action != ElicitAction::Accept || mode(&asked) == "url" {
        return Ok(answer.clone());
    }
    let schema = asked.get("requestedSchema").unwrap_or(&Value::Null);
    let mut content: Map<String, Value> = match &result.content {
        None => Map::new(),
        Some(content) => serde_json::from_str(content.get())
            .map_err(|_| "its content must be an object".to_owned())?,
    };
    let fields = schema.get("properties").and_then(Value::as_object);
    for (name, field) in fields.into_iter().flatten() {
        if let Some(default) = field.get("default")
            && !content.contains_key(name)
        {
            content.insert(name.clone(), default.clone());
        }
    }
    let content = Value::Object(content);
    Schema::compile(&schema.to_string())
        .map_err(|error| error.to_string())?
        .check(&content)
        .map_err(|violation| format!("its content does not fit the form: {violation}"))?;
    let mut filled = ObjectWriter::with_capacity(answer.get().len() + 32);
    filled.raw("action", r#""accept""#).raw("content", &content.to_string());
    if let Some(meta) = &result.meta {
        filled.raw("_meta", meta.get());
    }
    Ok(json::raw(filled.finish()))
}
