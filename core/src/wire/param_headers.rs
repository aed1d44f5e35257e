//! `Mcp-Param-*` headers: arguments that a tool's schema marks to be repeated in headers, so that proxies can route by
//! them (Streamable HTTP, "Custom Headers from Tool Parameters").

use std::{borrow::Cow, fmt::Write};

use http::HeaderMap;
use serde_json::{Map, Value, value::RawValue};

use super::headers::{compare, encode_value, mismatch, only};
use crate::{error::Fault, protocol::Members};

/// The annotation of a property's schema.
const ANNOTATION: &str = "x-mcp-header";
const PREFIX: &str = "Mcp-Param-";
/// The largest integer that JavaScript represents exactly; only such integers may be repeated in headers.
const SAFE_INTEGERS: std::ops::RangeInclusive<i64> = -((1 << 53) - 1)..=(1 << 53) - 1;

/// An argument that is repeated in a header.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ParamHeader {
    /// The full header name, such as `Mcp-Param-Region`.
    pub header: String,
    /// The path of property names from the arguments to the value.
    pub path: Vec<String>,
}

impl ParamHeader {
    /// Returns the annotations of an input schema. The error names the annotation and the violated rule.
    pub fn of_schema(schema: &str) -> Result<Vec<Self>, String> {
        // Most schemas have no annotation; a key may be written with escapes.
        if !schema.contains(ANNOTATION) && !schema.contains("\\u") {
            return Ok(Vec::new());
        }
        let document: Value = serde_json::from_str(schema).map_err(|error| error.to_string())?;
        let mut reading = Reading::default();
        reading.schema(&document, SchemaPosition::Root)?;
        Ok(reading.found)
    }
}

/// The position of a schema in its document.
#[derive(Clone, Copy)]
enum SchemaPosition {
    Root,
    /// Reachable through `properties` only; `Reading` holds the path.
    Property,
    /// Below a keyword through which annotations are not allowed.
    Elsewhere,
}

#[derive(Default)]
struct Reading {
    path: Vec<String>,
    found: Vec<ParamHeader>,
}

impl Reading {
    fn schema(&mut self, schema: &Value, place: SchemaPosition) -> Result<(), String> {
        let Value::Object(members) = schema else { return Ok(()) };
        if let Some(annotation) = members.get(ANNOTATION) {
            self.annotation(annotation, members, place)?;
        }
        for (keyword, value) in members {
            match (&**keyword, value) {
                // Data, not a schema.
                ("const" | "enum" | "default" | "examples" | ANNOTATION, _) => (),
                ("properties", Value::Object(properties)) => {
                    for (name, schema) in properties {
                        self.property(name, schema, place)?;
                    }
                }
                (
                    "patternProperties" | "dependentSchemas" | "dependencies" | "$defs"
                    | "definitions",
                    Value::Object(schemas),
                ) => {
                    for schema in schemas.values() {
                        self.schema(schema, SchemaPosition::Elsewhere)?;
                    }
                }
                (_, Value::Object(_)) => self.schema(value, SchemaPosition::Elsewhere)?,
                (_, Value::Array(schemas)) => {
                    for schema in schemas {
                        self.schema(schema, SchemaPosition::Elsewhere)?;
                    }
                }
                _ => (),
            }
        }
        Ok(())
    }

    fn property(
        &mut self,
        name: &str,
        schema: &Value,
        place: SchemaPosition,
    ) -> Result<(), String> {
        let place = match place {
            SchemaPosition::Elsewhere => SchemaPosition::Elsewhere,
            SchemaPosition::Root | SchemaPosition::Property => SchemaPosition::Property,
        };
        self.path.push(name.to_owned());
        self.schema(schema, place)?;
        self.path.pop();
        Ok(())
    }

    fn annotation(
        &mut self,
        annotation: &Value,
        schema: &Map<String, Value>,
        place: SchemaPosition,
    ) -> Result<(), String> {
        if !matches!(place, SchemaPosition::Property) {
            return Err(format!(
                "{ANNOTATION} {annotation} does not stand on a property that is reached from the root through \
                 \"properties\" only: take it out, or write out what a \"$ref\" on the way points at"
            ));
        }
        let place = self.path.join(".");
        let name = annotation.as_str().filter(|name| is_token(name)).ok_or_else(|| {
            format!(
                "{ANNOTATION} of property {place:?} is {annotation}, but must be a header's name: one or more letters, \
                 digits or !#$%&'*+-.^_`|~"
            )
        })?;
        let kind = schema.get("type");
        if !matches!(kind.and_then(Value::as_str), Some("string" | "integer" | "boolean")) {
            let found = kind.map_or("none".to_owned(), Value::to_string);
            let says_null = |value: &Value| value == "null" || value["type"] == "null";
            let lists = [kind, schema.get("anyOf"), schema.get("oneOf")];
            let fix = match lists
                .into_iter()
                .flatten()
                .filter_map(Value::as_array)
                .flatten()
                .any(says_null)
            {
                true => {
                    ": headers can't contain null, so leave null out of the type, and the argument out of \"required\""
                }
                false => "",
            };
            return Err(format!(
                "{ANNOTATION} {name:?} of property {place:?} needs the type string, integer or boolean, not {found}{fix}"
            ));
        }
        let header = format!("{PREFIX}{name}");
        if self.found.iter().any(|known| known.header.eq_ignore_ascii_case(&header)) {
            return Err(format!(
                "{ANNOTATION} {name:?} of property {place:?} is the name of another property's header already"
            ));
        }
        self.found.push(ParamHeader { header, path: self.path.clone() });
        Ok(())
    }
}

/// Returns `true` for a `token` of RFC 9110.
fn is_token(name: &str) -> bool {
    let is_mark = |byte| b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || is_mark(byte))
}

/// Returns the headers of a call with these arguments, a JSON object.
pub fn mirror(annotated: &[ParamHeader], arguments: &str) -> Vec<(String, String)> {
    let values = annotated.iter().map(|param| (param, argument(&param.path, arguments)));
    values
        .filter_map(|(param, value)| {
            let text = match value? {
                Argument::Text(text) => text,
                Argument::Number(number) => exact_integer(number)?.to_string().into(),
                Argument::Boolean(flag) => Cow::Borrowed(if flag { "true" } else { "false" }),
                Argument::Other => return None,
            };
            Some((param.header.clone(), encode_value(&text)))
        })
        .collect()
}

/// Returns the first argument that must be repeated and can't be: a number that is not an integer or not exact in
/// JavaScript.
pub fn inexpressible(annotated: &[ParamHeader], arguments: &str) -> Option<String> {
    let is_inexpressible = |param: &&ParamHeader| matches!(argument(&param.path, arguments), Some(Argument::Number(number)) if exact_integer(number).is_none());
    annotated.iter().find(is_inexpressible).map(|param| param.path.join("."))
}

/// Checks that the headers match the arguments.
pub fn check_params(
    headers: &HeaderMap,
    annotated: &[ParamHeader],
    arguments: &str,
) -> Result<(), Fault> {
    for ParamHeader { header, path } in annotated {
        let value = argument(path, arguments);
        match (only(headers, header, header)?, value) {
            (None, None | Some(Argument::Other)) => (),
            (None, Some(_)) => {
                return Err(mismatch(format!(
                    "{header} is missing: it must repeat the argument {:?}",
                    path.join(".")
                )));
            }
            (Some(said), value) => compare(header, &said, |said| match value {
                Some(value) => value.is(said),
                None => Err(format!("there is no argument {:?}", path.join("."))),
            })?,
        }
    }
    Ok(())
}

/// The value of an argument; `null` counts as absent.
enum Argument<'a> {
    Text(Cow<'a, str>),
    /// A number in its original text.
    Number(&'a str),
    Boolean(bool),
    /// An array or object, which the tool's schema rejects.
    Other,
}

fn argument<'a>(path: &[String], arguments: &'a str) -> Option<Argument<'a>> {
    let mut value = arguments;
    for name in path {
        let members: Members<&'a RawValue> = serde_json::from_str(value).ok()?;
        value = members.get(name)?.get();
    }
    Some(match value.as_bytes().first()? {
        b'n' => return None,
        b't' | b'f' => Argument::Boolean(value == "true"),
        b'"' => Argument::Text(serde_json::from_str::<String>(value).ok()?.into()),
        b'{' | b'[' => Argument::Other,
        _ => Argument::Number(value),
    })
}

impl Argument<'_> {
    fn is(&self, said: &str) -> Result<(), String> {
        let mut body = String::new();
        let agrees = match self {
            Self::Text(text) => {
                let _ = write!(body, "{text:?}");
                text == said
            }
            Self::Number(number) => {
                body.push_str(number);
                number == &said
                    || exact_integer(number)
                        .is_some_and(|integer| Some(integer) == exact_integer(said))
            }
            Self::Boolean(it) => {
                body.push_str(if *it { "true" } else { "false" });
                body == said
            }
            Self::Other => {
                body.push_str("no string, integer or boolean");
                false
            }
        };
        agrees.then_some(()).ok_or_else(|| format!("the argument is {body}"))
    }
}

/// Returns the integer value of a number such as `42`, `42.0` or `4.2e1`, if it is exact in JavaScript.
fn exact_integer(text: &str) -> Option<i64> {
    // JSON's grammar, which excludes `inf`, `+1` and `.5`.
    let number: serde_json::Number = serde_json::from_str(text).ok()?;
    if let Some(integer) = number.as_i64() {
        return SAFE_INTEGERS.contains(&integer).then_some(integer);
    }
    let float = number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < 9.1e15)?;
    #[expect(clippy::cast_possible_truncation, reason = "a whole number below 2^53 or so")]
    let integer = float as i64;
    SAFE_INTEGERS.contains(&integer).then_some(integer)
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};
    use proptest::prelude::*;

    use super::*;
    use crate::error::FaultKind;

    fn property(schema: &str) -> Result<Vec<ParamHeader>, String> {
        ParamHeader::of_schema(&format!(r#"{{"type":"object","properties":{{"p":{schema}}}}}"#))
    }

    fn annotated() -> Vec<ParamHeader> {
        ParamHeader::of_schema(
            r#"{"type":"object","properties":{
                "region":{"type":"string","x-mcp-header":"Region"},
                "query":{"type":"string"},
                "where":{"type":"object","properties":{"count":{"type":"integer","x-mcp-header":"Count"}}},
                "dry":{"type":"boolean","x-mcp-header":"Dry-Run"}}}"#,
        )
        .expect("valid annotations")
    }

    fn check(lines: &[(&str, &str)], arguments: &str) -> Result<(), String> {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            let name: HeaderName = name.parse().expect("a name");
            headers.append(name, HeaderValue::from_bytes(value.as_bytes()).expect("a value"));
        }
        check_params(&headers, &annotated(), arguments).map_err(|fault| {
            assert_eq!(fault.kind, FaultKind::HeaderMismatch);
            fault.message
        })
    }

    #[test]
    fn annotations_are_found_through_properties() {
        let found = annotated();
        let names: Vec<_> =
            found.iter().map(|param| (&*param.header, param.path.join("."))).collect();
        assert_eq!(
            names,
            [
                ("Mcp-Param-Region", "region".into()),
                ("Mcp-Param-Count", "where.count".into()),
                ("Mcp-Param-Dry-Run", "dry".into())
            ]
        );
        assert_eq!(property(r#"{"type":"string"}"#), Ok(Vec::new()));
        let escaped = property(r#"{"type":"string","x\u002dmcp-header":"A"}"#).expect("valid");
        assert_eq!(escaped.len(), 1);
    }

    #[test]
    fn an_annotation_anywhere_else_makes_the_tool_invalid() {
        let annotated = r#"{"type":"string","x-mcp-header":"A"}"#;
        for around in [
            r#"{"type":"array","items":@}"#,
            r#"{"type":"array","prefixItems":[@]}"#,
            r#"{"oneOf":[@]}"#,
            r#"{"anyOf":[{"properties":{"q":@}}]}"#,
            r#"{"allOf":[@]}"#,
            r#"{"not":@}"#,
            r#"{"if":@}"#,
            r#"{"then":{"properties":{"q":@}}}"#,
            r#"{"else":@}"#,
            r#"{"additionalProperties":@}"#,
            r#"{"patternProperties":{"^q":@}}"#,
            r#"{"$defs":{"q":@},"$ref":"\#/$defs/q"}"#,
        ] {
            let schema = around.replace('@', annotated).replace("\\#", "#");
            let error = property(&schema).expect_err(&schema);
            assert!(error.contains("\"properties\" only"), "{error}");
        }
        assert!(ParamHeader::of_schema(r#"{"type":"object","x-mcp-header":"A"}"#).is_err());
    }

    #[test]
    fn what_only_looks_like_an_annotation_is_none() {
        for schema in [
            r#"{"type":"object","default":{"x-mcp-header":"A"}}"#,
            r#"{"const":{"x-mcp-header":1},"enum":[{"x-mcp-header":2}],"examples":[{"x-mcp-header":3}]}"#,
            r#"{"type":"object","properties":{"x-mcp-header":{"type":"string"}}}"#,
            r#"{"description":"x-mcp-header"}"#,
        ] {
            assert_eq!(property(schema), Ok(Vec::new()), "{schema}");
        }
    }

    #[test]
    fn constraints_on_names_and_types_hold() {
        for name in ["", "My Region", "Region:Primary", "R\u{e9}gion", "Re\\tgion", "Re\\r\\ngion"]
        {
            let schema = format!(r#"{{"type":"string","x-mcp-header":"{name}"}}"#);
            assert!(property(&schema).is_err(), "{name:?}");
        }
        assert!(property(r#"{"type":"string","x-mcp-header":7}"#).is_err());
        for kind in ["\"number\"", "\"object\"", "\"array\"", "\"null\"", "[\"string\",\"null\"]"] {
            let schema = format!(r#"{{"type":{kind},"x-mcp-header":"A"}}"#);
            assert!(property(&schema).expect_err(kind).contains(kind));
        }
        assert!(property(r#"{"x-mcp-header":"A"}"#).expect_err("no type").ends_with("not none"));
        for null in
            [r#""type":["string","null"]"#, r#""anyOf":[{"type":"string"},{"type":"null"}]"#]
        {
            let problem = property(&format!(r#"{{{null},"x-mcp-header":"A"}}"#)).expect_err(null);
            assert!(problem.contains("leave null out"), "{problem}");
        }
        let twice = r#"{"properties":{"a":{"type":"string","x-mcp-header":"A"},
            "b":{"properties":{"c":{"type":"string","x-mcp-header":"a"}}}}}"#;
        assert!(ParamHeader::of_schema(twice).expect_err("twice").contains("b.c"));
    }

    #[test]
    fn clients_mirror_values_and_leave_out_what_is_not_there() {
        let mirrored = mirror(
            &annotated(),
            r#"{"region":" a ","query":"q","where":{"count":-7},"dry":false}"#,
        );
        let lines: Vec<_> = mirrored.iter().map(|(name, value)| (&**name, &**value)).collect();
        assert_eq!(
            lines,
            [
                ("Mcp-Param-Region", "=?base64?IGEg?="),
                ("Mcp-Param-Count", "-7"),
                ("Mcp-Param-Dry-Run", "false")
            ]
        );
        for none in ["{}", r#"{"region":null,"where":{}}"#, r#"{"where":3}"#, r#"{"region":{}}"#] {
            assert_eq!(mirror(&annotated(), none), [], "{none}");
        }
        assert_eq!(mirror(&annotated(), r#"{"where":{"count":42.0}}"#)[0].1, "42");
        assert_eq!(mirror(&annotated(), r#"{"region":""}"#)[0].1, "");
    }

    #[test]
    fn servers_compare_strings_as_they_are_and_integers_as_numbers() {
        let region = |value| [("mcp-param-region", value)];
        assert_eq!(check(&region("eu"), r#"{"region":"eu"}"#), Ok(()));
        assert_eq!(check(&region("=?base64?ZXU=?="), r#"{"region":"eu"}"#), Ok(()));
        assert_eq!(check(&[("MCP-PARAM-REGION", " eu ")], r#"{"region":"\u0065u"}"#), Ok(()));
        assert!(check(&region("EU"), r#"{"region":"eu"}"#).is_err());
        assert!(check(&region("=?base64?ZXU?="), r#"{"region":"eu"}"#).is_err());
        let count = |value| [("mcp-param-count", value)];
        for same in ["42", "42.0", "4.2e1"] {
            assert_eq!(check(&count(same), r#"{"where":{"count":42}}"#), Ok(()), "{same}");
            assert_eq!(check(&count("42"), &format!(r#"{{"where":{{"count":{same}}}}}"#)), Ok(()));
        }
        for other in ["43", "", "+42", "042", "0x2a", "forty-two", "NaN", "1e999"] {
            assert!(check(&count(other), r#"{"where":{"count":42}}"#).is_err(), "{other}");
        }
        assert!(
            check(&count("9007199254740993"), r#"{"where":{"count":9007199254740992}}"#).is_err()
        );
        let dry = |value| [("mcp-param-dry-run", value)];
        assert_eq!(check(&dry("true"), r#"{"dry":true}"#), Ok(()));
        assert!(check(&dry("True"), r#"{"dry":true}"#).is_err());
        assert!(check(&dry("1"), r#"{"dry":true}"#).is_err());
    }

    #[test]
    fn a_header_belongs_to_a_value_and_a_value_to_a_header() {
        assert_eq!(check(&[], "{}"), Ok(()));
        assert_eq!(check(&[], r#"{"region":null}"#), Ok(()));
        assert!(check(&[], r#"{"region":"eu"}"#).expect_err("no header").contains("missing"));
        assert!(check(&[("mcp-param-region", "eu")], "{}").is_err());
        assert!(check(&[("mcp-param-region", "null")], r#"{"region":null}"#).is_err());
        assert!(check(&[("mcp-param-region", "")], r#"{"region":{}}"#).is_err());
        let twice = [("mcp-param-region", "eu"), ("mcp-param-region", "us")];
        assert!(check(&twice, r#"{"region":"eu"}"#).expect_err("twice").contains("twice"));
        assert_eq!(check(&[("mcp-param-other", "x")], "{}"), Ok(()), "not recognised: ignored");
    }

    proptest! {
        #[test]
        fn what_a_client_mirrors_a_server_accepts(region in any::<Option<String>>(), count in -9_007_199_254_740_991_i64..=9_007_199_254_740_991, dry in any::<bool>()) {
            let arguments = serde_json::json!({ "region": region, "where": { "count": count }, "dry": dry }).to_string();
            let mirrored = mirror(&annotated(), &arguments);
            let lines: Vec<_> = mirrored.iter().map(|(name, value)| (&**name, &**value)).collect();
            prop_assert_eq!(lines.len(), 2 + usize::from(region.is_some()));
            prop_assert_eq!(check(&lines, &arguments), Ok(()));
        }

        #[test]
        fn no_header_and_no_arguments_break_the_check(value in "[ -~]{0,20}", arguments in "[{}\\[\\]a-z\":,0-9]{0,40}") {
            let _ = check(&[("mcp-param-count", &value), ("mcp-param-region", &value)], &arguments);
        }
    }
}
