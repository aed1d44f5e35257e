//! The validator's errors as problems: one wording for each keyword, and the one alternative that was meant.

use jsonschema::{
    ValidationError,
    error::{TypeKind, ValidationErrorKind as Kind},
};
use serde_json::Value;

use super::{
    alternatives::{self, Chosen},
    nearest::nearest,
    place,
    violation::{Problem, ProblemKind},
};

/// The most characters of a value, name or path that are repeated.
const ECHOED: usize = 100;
/// The most characters of an array or object that are repeated.
const ECHOED_INSIDE: usize = 60;
/// The most characters that one problem has.
const SAID: usize = 300;
/// Alternatives within alternatives are followed so far: this bounds the stack.
const FOLLOWED: usize = 16;

/// Appends what one error says about `value`, which was checked against `schema`.
pub(super) fn problems(
    error: &ValidationError<'_>,
    value: &Value,
    schema: &str,
    out: &mut Vec<Problem>,
) {
    Explainer { value, schema, out }.explain(error, 0);
}

/// Describes an error without its place.
pub(super) fn describe(error: &ValidationError<'_>) -> String {
    clipped(&wording(error), SAID)
}

struct Explainer<'a> {
    value: &'a Value,
    schema: &'a str,
    out: &'a mut Vec<Problem>,
}

impl Explainer<'_> {
    fn explain(&mut self, error: &ValidationError<'_>, depth: usize) {
        match error.kind() {
            Kind::Required { property } => {
                let name = property.as_str().unwrap_or_default();
                self.add(error, Some(name), ProblemKind::Missing);
            }
            Kind::AdditionalProperties { unexpected }
            | Kind::UnevaluatedProperties { unexpected } => self.unknown(error, unexpected),
            Kind::AnyOf { context } | Kind::OneOfNotValid { context } if depth < FOLLOWED => {
                match alternatives::choose(error.instance_path(), context) {
                    Chosen::One(errors) => {
                        for error in errors {
                            self.explain(error, depth + 1);
                        }
                    }
                    Chosen::Expected { error, expected } => {
                        let wrong = got(&expected, error);
                        self.add(error, None, ProblemKind::Wrong(wrong));
                    }
                    Chosen::Missing(names) => {
                        for name in names {
                            self.add(error, Some(name), ProblemKind::Missing);
                        }
                    }
                    Chosen::Unclear => {
                        let wrong = self.none_of(context);
                        self.add(error, None, ProblemKind::Wrong(wrong));
                    }
                }
            }
            _ => self.add(error, None, ProblemKind::Wrong(describe(error))),
        }
    }

    fn add(&mut self, error: &ValidationError<'_>, member: Option<&str>, kind: ProblemKind) {
        let place = place::dotted(error.instance_path(), self.value, member);
        self.out.push(Problem { place: clipped(&place, ECHOED), kind });
    }

    fn unknown(&mut self, error: &ValidationError<'_>, unexpected: &[String]) {
        let known = known_names(self.schema, error.schema_path().as_str());
        for name in unexpected {
            let meant = known.iter().flatten().map(String::as_str);
            let meant = nearest(name, meant).map(ToOwned::to_owned);
            let kind = ProblemKind::Unknown { meant, known: known.clone() };
            self.add(error, Some(name), kind);
        }
    }

    fn none_of(&self, context: &[Vec<ValidationError<'_>>]) -> String {
        let firsts = context.iter().filter_map(|errors| errors.first()).take(3);
        let firsts: Vec<_> = firsts.map(|it| clipped(&self.placed(it), ECHOED)).collect();
        let said = format!("fits none of {} alternatives: {}", context.len(), firsts.join(", or "));
        clipped(&said, SAID)
    }

    fn placed(&self, error: &ValidationError<'_>) -> String {
        match place::dotted(error.instance_path(), self.value, None).as_str() {
            "" => wording(error),
            place => format!("'{}': {}", clipped(place, ECHOED), wording(error)),
        }
    }
}

/// The names that the schema around the keyword at `pointer` has for properties; `None` where patterns allow others.
fn known_names(schema: &str, pointer: &str) -> Option<Vec<String>> {
    let document: Value = serde_json::from_str(schema).ok()?;
    let (parent, _) = pointer.rsplit_once('/')?;
    let schema = document.pointer(parent)?;
    if schema.get("patternProperties").is_some() {
        return None;
    }
    let combined = ["allOf", "anyOf", "oneOf"].iter().filter_map(|it| schema.get(it)?.as_array());
    let mut names = Vec::new();
    for schema in combined.flatten().chain([schema]) {
        let properties = schema.get("properties").and_then(Value::as_object);
        for name in properties.into_iter().flat_map(|it| it.keys()) {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
    }
    Some(names)
}

/// The types or values that a keyword allows: "an integer", "null".
pub(super) fn expectation(error: &ValidationError<'_>) -> Option<Vec<String>> {
    Some(match error.kind() {
        Kind::Type { kind: TypeKind::Single(one) } => vec![article(one.as_str())],
        Kind::Type { kind: TypeKind::Multiple(several) } => {
            several.into_iter().map(|it| article(it.as_str())).collect()
        }
        Kind::Enum { options } => options.as_array()?.iter().map(Value::to_string).collect(),
        Kind::Constant { expected_value } => vec![shown(expected_value)],
        _ => return None,
    })
}

fn wording(error: &ValidationError<'_>) -> String {
    if let Some(expected) = expectation(error) {
        return got(&either(expected), error);
    }
    let expected = match error.kind() {
        Kind::Minimum { limit } => format!("at least {limit}"),
        Kind::Maximum { limit } => format!("at most {limit}"),
        Kind::ExclusiveMinimum { limit } => format!("more than {limit}"),
        Kind::ExclusiveMaximum { limit } => format!("less than {limit}"),
        Kind::MultipleOf { multiple_of } => format!("a multiple of {multiple_of}"),
        Kind::MinLength { limit } => format!("at least {}", counted(*limit, "character")),
        Kind::MaxLength { limit } => format!("at most {}", counted(*limit, "character")),
        Kind::MinItems { limit } => format!("at least {}", counted(*limit, "item")),
        Kind::MaxItems { limit } => format!("at most {}", counted(*limit, "item")),
        Kind::MinProperties { limit } => format!("at least {}", counted(*limit, "property")),
        Kind::MaxProperties { limit } => format!("at most {}", counted(*limit, "property")),
        // The one keyword of our own is `pattern`.
        Kind::Pattern { pattern } | Kind::Custom { message: pattern, .. } => {
            format!("a string that matches {:?}", clipped(pattern, ECHOED))
        }
        Kind::Format { format } => format!("a string of the format {:?}", clipped(format, ECHOED)),
        Kind::UniqueItems => "items that all differ".to_owned(),
        Kind::Required { property } => return format!("missing property {property}"),
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            return format!("unknown properties {}", clipped_list(unexpected));
        }
        Kind::OneOfMultipleValid { .. } => {
            return "fits more than one of the alternatives; exactly one is allowed".to_owned();
        }
        Kind::PropertyNames { error } => {
            return format!("the name of a property is wrong: {}", describe(error));
        }
        Kind::FalseSchema => return format!("no value is allowed here, got {}", shown_of(error)),
        _ => return error.masked_with(shown_of(error)).to_string(),
    };
    got(&expected, error)
}

fn got(expected: &str, error: &ValidationError<'_>) -> String {
    format!("expected {}, got {}", clipped(expected, SAID), shown_of(error))
}

fn shown_of(error: &ValidationError<'_>) -> String {
    shown(error.instance())
}

/// A value, or its kind and size where it is long.
fn shown(value: &Value) -> String {
    let text = match value {
        Value::String(text) if text.chars().nth(ECHOED).is_some() => {
            return format!("a string of {} characters", text.chars().count());
        }
        Value::Array(items) if items.len() > ECHOED_INSIDE => String::new(),
        Value::Object(members) if members.len() > ECHOED_INSIDE => String::new(),
        _ => value.to_string(),
    };
    let fits = !text.is_empty() && text.len() <= ECHOED_INSIDE;
    match value {
        Value::Array(items) if !fits => format!("an array of {}", counted(items.len(), "item")),
        Value::Object(members) if !fits => {
            format!("an object of {}", counted(members.len(), "member"))
        }
        _ => text,
    }
}

fn counted(count: impl TryInto<u64>, noun: &str) -> String {
    match (count.try_into().unwrap_or(u64::MAX), noun) {
        (1, noun) => format!("1 {noun}"),
        (count, "property") => format!("{count} properties"),
        (count, noun) => format!("{count} {noun}s"),
    }
}

fn article(kind: &str) -> String {
    match kind {
        "null" => kind.to_owned(),
        _ if kind.starts_with(['a', 'e', 'i', 'o', 'u']) => format!("an {kind}"),
        _ => format!("a {kind}"),
    }
}

/// "a, b or c".
pub(super) fn either(options: impl IntoIterator<Item = String>) -> String {
    let mut options: Vec<String> = options.into_iter().collect();
    let last = options.pop().unwrap_or_default();
    match options.is_empty() {
        true => last,
        false => format!("{} or {last}", options.join(", ")),
    }
}

pub(super) fn clipped_list(names: &[String]) -> String {
    let names: Vec<_> = names.iter().map(|it| clipped(it, ECHOED)).collect();
    clipped(&names.join(", "), SAID)
}

pub(super) fn clipped(text: &str, length: usize) -> String {
    match text.char_indices().nth(length) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}
