//! Validation of answers against their questions.

use serde_json::{Map, Value};

use super::mode;
use crate::{
    protocol::{
        CreateMessageResult, ElicitAction, ElicitResult, ListRootsResult, Method, Raw,
        json::{self, ObjectWriter},
    },
    schema::{Schema, Subject},
};

/// Returns the answer, for forms with defaults filled in; or the problem if it is not valid.
pub fn validate(method: Method, params: &str, answer: &Raw) -> Result<Raw, String> {
    let text = answer.get();
    match method {
        Method::Elicit => match Form::read(params, answer)? {
            None => Ok(answer.clone()),
            Some(form) => {
                form.check(&form.compile()?)?;
                Ok(form.finish(answer))
            }
        },
        Method::CreateMessage => match serde_json::from_str::<CreateMessageResult>(text) {
            Ok(_) => Ok(answer.clone()),
            Err(error) => Err(format!("it is not a sampled message: {error}")),
        },
        Method::ListRoots => match serde_json::from_str::<ListRootsResult>(text) {
            Ok(_) => Ok(answer.clone()),
            Err(error) => Err(format!("it is not a list of roots: {error}")),
        },
        _ => Err(format!("{} is not a question", method.as_str())),
    }
}

/// Returns a form's answer with defaults filled in (Elicitation, "Requested Schema"), as a client sends it; or the
/// problem if it does not match the form. Unlike in [`validate`], an invalid schema is ignored, since the server wrote
/// it.
pub fn fill(params: &str, answer: &Raw) -> Result<Raw, String> {
    let Some(form) = Form::read(params, answer)? else { return Ok(answer.clone()) };
    if let Ok(schema) = form.compile() {
        form.check(&schema)?;
    }
    Ok(form.finish(answer))
}

/// The answer to a form that the user accepted.
struct Form {
    schema: Value,
    /// An object, with defaults filled in.
    content: Value,
    meta: Option<Raw>,
}

impl Form {
    /// Returns `None` if there is no form to fill in.
    fn read(params: &str, answer: &Raw) -> Result<Option<Self>, String> {
        let result: ElicitResult = serde_json::from_str(answer.get())
            .map_err(|error| format!("it is not an elicitation result: {error}"))?;
        let mut asked: Value = serde_json::from_str(params).map_err(|error| error.to_string())?;
        if result.action != ElicitAction::Accept || mode(&asked) == "url" {
            return Ok(None);
        }
        let schema = asked.get_mut("requestedSchema").map(Value::take).unwrap_or_default();
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
        Ok(Some(Self { schema, content: Value::Object(content), meta: result.meta }))
    }

    fn compile(&self) -> Result<Schema, String> {
        Schema::compile(&self.schema.to_string()).map_err(|error| error.to_string())
    }

    fn check(&self, schema: &Schema) -> Result<(), String> {
        schema.check(&self.content).map_err(|error| {
            format!("its content does not fit the form: {}", error.with_subject(Subject::Field))
        })
    }

    fn finish(self, answer: &Raw) -> Raw {
        let mut filled = ObjectWriter::with_capacity(answer.get().len() + 32);
        filled.raw("action", r#""accept""#).raw("content", &self.content.to_string());
        if let Some(meta) = &self.meta {
            filled.raw("_meta", meta.get());
        }
        json::raw(filled.finish())
    }
}
