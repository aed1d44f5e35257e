//! Tools: registration, argument checks, and the conversion of replies.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use super::{
    Changes, Component, ComponentOptions, Handler,
    component::{changeable, updated},
    handler::{Failure, Reply, bad_result, cannot_ask, own_meta},
    lint, names,
};
use crate::{
    error::Error,
    protocol::{Raw, Structured, Tool, ToolOutcome, json},
    schema::{Checked, Schema, Violation, of_object},
    wire::{ParamHeader, describes_object},
};

/// The beginning of content with one text.
const TEXT: &str = r#"[{"type":"text","text":"#;

/// A tool and its handler.
#[derive(Clone, Debug)]
pub struct RegisteredTool {
    pub tool: Arc<Tool>,
    pub handler: Handler,
    pub options: ComponentOptions,
    /// Arguments that are repeated in HTTP headers.
    pub(super) mirrored: Arc<[ParamHeader]>,
    input: Arc<Schema>,
    /// Decodes arguments that a model quoted by mistake.
    pub(super) converts_arguments: bool,
    /// The declared input schema, if the handler validates its arguments itself.
    validated: Option<Arc<Schema>>,
    pub(super) output: Option<Output>,
}

#[derive(Clone, Debug)]
pub(super) struct Output {
    /// `None`: another server has checked the value.
    schema: Option<Arc<Schema>>,
    is_object: bool,
}

impl RegisteredTool {
    /// Errors if the name or a schema is not valid; the message names the tool and the fix.
    pub fn new(mut tool: Tool, handler: Handler) -> Result<Self, Error> {
        names::check_tool(&tool.name)?;
        let place = |which: &str| format!("the {which} schema of tool {:?}", tool.name);
        let input = compile(&tool.input_schema, &place("input"))?;
        if !describes_object(&tool.input_schema) {
            let typed = serde_json::from_str(tool.input_schema.get()).ok().and_then(of_object);
            let Some(typed) = typed else {
                return Err(Error::misuse(format!(
                    "{} must describe an object: {{\"type\": \"object\", …}}",
                    place("input")
                )));
            };
            tool.input_schema = json::to_raw(&typed);
        }
        let mirrored = ParamHeader::of_schema(tool.input_schema.get())
            .map_err(|error| Error::misuse(format!("{}: {error}", place("input"))))?;
        let output = match &tool.output_schema {
            None => None,
            Some(text) => Some(Output {
                schema: Some(compile(text, &place("output"))?),
                is_object: describes_object(text),
            }),
        };
        Ok(Self {
            tool: Arc::new(tool),
            handler,
            options: ComponentOptions::default(),
            mirrored: mirrored.into(),
            input,
            converts_arguments: true,
            validated: None,
            output,
        })
    }

    /// Returns a tool whose calls another server answers, which checks the arguments and the result itself. Errors if the name is
    /// not valid. It is not run twice, because its effects are not known.
    pub(crate) fn passed_on(mut tool: Tool, handler: Handler) -> Result<Self, Error> {
        names::check_tool(&tool.name)?;
        let invalid = |which: &str| {
            Error::misuse(format!(
                "the {which} schema of tool {:?} is not one of an object",
                tool.name
            ))
        };
        if tool.output_schema.as_ref().is_some_and(|schema| !schema.get().starts_with('{')) {
            return Err(invalid("output"));
        }
        if !describes_object(&tool.input_schema) {
            let given: Option<Changes> = serde_json::from_str(tool.input_schema.get()).ok();
            // Arguments are always an object, whether the schema says so or not.
            let mut typed = given
                .filter(|schema| !schema.contains_key("type"))
                .ok_or_else(|| invalid("input"))?;
            typed.insert("type".into(), "object".into());
            tool.input_schema = json::to_raw(&typed);
        }
        let any = json::raw("{}".into());
        let mirrored = ParamHeader::of_schema(tool.input_schema.get()).unwrap_or_default();
        let declared = tool.output_schema.as_ref();
        let output =
            declared.map(|schema| Output { schema: None, is_object: describes_object(schema) });
        Ok(Self {
            input: compile(&any, "the schema of any arguments")?,
            tool: Arc::new(tool),
            handler,
            options: ComponentOptions { forbids_replay: true, ..ComponentOptions::default() },
            mirrored: mirrored.into(),
            converts_arguments: false,
            validated: None,
            output,
        })
    }

    /// Leaves arguments that do not match this schema to the handler, which validates them itself: its messages are the
    /// ones that the schema's author wrote.
    pub(super) fn validated_by_handler(&mut self, schema: &Raw) -> Result<(), Error> {
        let place = format!("the input schema of tool {:?}", self.tool.name);
        self.validated = Some(compile(schema, &place)?);
        Ok(())
    }

    /// Refuses arguments with integers that a double can't hold where the input schema names types.
    pub(super) fn refuse_beyond_doubles(&mut self) {
        if let Some(input) = Arc::get_mut(&mut self.input) {
            input.refuse_beyond_doubles();
        }
    }

    /// Validates the arguments of a call.
    pub(super) fn check_arguments(&self, arguments: &str) -> Result<Checked, Violation> {
        if self.converts_arguments {
            return self.input.check_arguments(arguments);
        }
        self.input.check_arguments_as_given(arguments).map(|()| Checked::AsGiven)
    }

    /// Returns whether the check of small arguments may take long.
    pub(super) fn checks_arguments_slowly(&self) -> bool {
        self.input.is_slow() || self.validated.as_ref().is_some_and(|schema| schema.is_slow())
    }

    /// Returns the declared output schema.
    pub(super) fn output_schema(&self) -> Option<&Arc<Schema>> {
        self.output.as_ref()?.schema.as_ref()
    }

    /// Returns whether the handler has to explain why these arguments are not valid.
    #[cold]
    pub(super) fn leaves_to_handler(&self, arguments: &str) -> bool {
        let Some(schema) = &self.validated else { return false };
        serde_json::from_str::<Value>(arguments)
            .is_ok_and(|value| value.is_object() && schema.check(&value).is_err())
    }
}

impl Component for RegisteredTool {
    type Listed = Tool;

    fn key(&self) -> &str {
        &self.tool.name
    }

    fn listed(&self) -> &Arc<Tool> {
        &self.tool
    }

    fn options(&self) -> &ComponentOptions {
        &self.options
    }

    fn meta(&self) -> Option<&Raw> {
        self.tool.meta.as_ref()
    }

    fn lint(&self) -> Vec<String> {
        lint::tool(&self.tool, &self.input)
    }

    fn checks_slowly(&self) -> bool {
        self.checks_arguments_slowly()
            || self.output_schema().is_some_and(|schema| schema.is_slow())
    }

    fn update(&mut self, changes: &Changes) -> Result<(), Error> {
        self.tool = Arc::new(updated(&*self.tool, changes, changeable::TOOL)?);
        Ok(())
    }
}

/// Converts a tool's reply into content and an optional structured value. `None` means that the schema is not known.
pub(super) fn outcome(output: Option<&Output>, reply: Reply) -> Result<ToolOutcome, Failure> {
    match reply {
        Reply::Nothing => match output {
            None => Ok(ToolOutcome { content: "[]".into(), ..ToolOutcome::default() }),
            Some(_) => structured(output, "null".into()),
        },
        Reply::Text(text) => {
            let Some(output) = output else {
                let content = text_content(&text);
                return Ok(ToolOutcome { content, ..ToolOutcome::default() });
            };
            let mut value = String::with_capacity(text.len() + 2);
            json::push_string(&mut value, &text);
            if let Some(schema) = &output.schema {
                schema.check_text(&text).map_err(misfit)?;
            }
            let content = escaped_text_content(&value);
            let structured =
                Some(Structured { json: value, schema_is_object: Some(output.is_object) });
            Ok(ToolOutcome { content, structured, ..ToolOutcome::default() })
        }
        Reply::Json(value) => structured(output, value),
        Reply::Parts(parts) => {
            let structured = structured_from_content(output, &parts)?;
            Ok(ToolOutcome { content: blocks(&parts)?, structured, ..ToolOutcome::default() })
        }
        Reply::Result(result) => whole(output, &result),
        Reply::Questions(_) => Err(cannot_ask()),
        Reply::Blob(_) => {
            Err(bad_result("a tool can't return plain bytes: wrap them in an image, audio or file"))
        }
    }
}

fn structured(output: Option<&Output>, value: String) -> Result<ToolOutcome, Failure> {
    let schema_is_object = check_output(output, &value)?;
    let content = text_content(&value);
    let structured = Some(Structured { json: value, schema_is_object });
    Ok(ToolOutcome { content, structured, ..ToolOutcome::default() })
}

fn whole(output: Option<&Output>, result: &str) -> Result<ToolOutcome, Failure> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Whole<'a> {
        #[serde(borrow)]
        content: Option<&'a RawValue>,
        #[serde(borrow)]
        structured_content: Option<&'a RawValue>,
        #[serde(default)]
        is_error: bool,
        #[serde(borrow, rename = "_meta")]
        meta: Option<&'a RawValue>,
    }
    let whole: Whole<'_> =
        serde_json::from_str(result).map_err(|error| bad_result(error.to_string()))?;
    let structured = match whole.structured_content {
        None if whole.is_error => None,
        None => structured_from_content(output, whole.content.map_or("[]", RawValue::get))?,
        Some(value) => {
            let schema_is_object = match whole.is_error {
                true => None,
                false => check_output(output, value.get())?,
            };
            Some(Structured { json: value.get().to_owned(), schema_is_object })
        }
    };
    let content = match (whole.content.map(RawValue::get), &structured) {
        (None | Some("[]"), Some(value)) => text_content(&value.json),
        (None, None) => return Err(bad_result("the result has no \"content\"")),
        (Some(parts), _) => blocks(parts)?,
    };
    Ok(ToolOutcome { content, structured, is_error: whole.is_error, meta: own_meta(whole.meta)? })
}

/// Returns the structured value of a result that has content only: its single text, or null, if the output schema
/// accepts that.
fn structured_from_content(
    output: Option<&Output>,
    parts: &str,
) -> Result<Option<Structured>, Failure> {
    let Some((output, schema)) = output.and_then(|output| Some((output, output.schema.as_ref()?)))
    else {
        return Ok(None);
    };
    let parts: Vec<Value> = serde_json::from_str(parts).unwrap_or_default();
    let text = match &parts[..] {
        [text @ Value::String(_)] => text,
        [part] => &part["text"],
        _ => &Value::Null,
    };
    let fits = [text, &Value::Null].into_iter().find(|value| schema.check(value).is_ok());
    match fits {
        Some(value) => {
            let schema_is_object = Some(output.is_object);
            Ok(Some(Structured { json: value.to_string(), schema_is_object }))
        }
        None => Err(bad_result(
            "the tool has an output schema, so its result needs structured content that fits it",
        )),
    }
}

/// Checks structured content, which MUST conform to the output schema (Tools, "Output Schema").
fn check_output(output: Option<&Output>, value: &str) -> Result<Option<bool>, Failure> {
    let Some(output) = output else { return Ok(None) };
    if let Some(schema) = &output.schema {
        schema.check_json(value).map_err(misfit)?;
    }
    Ok(Some(output.is_object))
}

#[expect(clippy::needless_pass_by_value, reason = "that is what errors are mapped with")]
fn misfit(violation: Violation) -> Failure {
    bad_result(format!("the result does not fit the output schema: {violation}"))
}

fn text_content(text: &str) -> String {
    let mut content = String::with_capacity(text.len() + 32);
    content.push_str(TEXT);
    json::push_string(&mut content, text);
    content.push_str("}]");
    content
}

/// Returns the content for a text that is a JSON string already.
fn escaped_text_content(string: &str) -> String {
    let mut content = String::with_capacity(string.len() + 32);
    content.push_str(TEXT);
    content.push_str(string);
    content.push_str("}]");
    content
}

/// Reads an array of content blocks; strings in it become text blocks.
fn blocks(parts: &str) -> Result<String, Failure> {
    let parts: Vec<&RawValue> =
        serde_json::from_str(parts).map_err(|error| bad_result(error.to_string()))?;
    let mut content = String::from("[");
    for part in parts {
        if content.len() > 1 {
            content.push(',');
        }
        match part.get().as_bytes().first() {
            Some(b'"') => {
                content.push_str(r#"{"type":"text","text":"#);
                content.push_str(part.get());
                content.push('}');
            }
            Some(b'{') => {
                super::content::check(part.get())?;
                content.push_str(part.get());
            }
            _ => return Err(bad_result("content holds strings and content blocks only")),
        }
    }
    content.push(']');
    Ok(content)
}

fn compile(text: &Raw, place: &str) -> Result<Arc<Schema>, Error> {
    Schema::compile(text.get())
        .map(Arc::new)
        .map_err(|error| Error::misuse(format!("{place} can't be used: {error}")))
}
