//! JSON in canonical form (RFC 8785): equal values have the same text, so that digests can be compared.

use std::fmt::Write;

use serde_json::{Number, Value};

use super::json;

/// Returns the canonical text of a value. 64-bit integers keep all their digits.
pub fn canonical(value: &Value) -> String {
    let mut text = String::new();
    write(&mut text, value);
    text
}

fn write(text: &mut String, value: &Value) {
    match value {
        Value::Null => text.push_str("null"),
        Value::Bool(value) => text.push_str(if *value { "true" } else { "false" }),
        Value::Number(value) => write_number(text, value),
        Value::String(value) => json::push_string(text, value),
        Value::Array(items) => {
            text.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    text.push(',');
                }
                write(text, item);
            }
            text.push(']');
        }
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
            text.push('{');
            for (at, (name, value)) in members.into_iter().enumerate() {
                if at > 0 {
                    text.push(',');
                }
                json::push_string(text, name);
                text.push(':');
                write(text, value);
            }
            text.push('}');
        }
    }
}

/// Writes a number as ECMAScript does: the fewest digits that give the same number when read back.
fn write_number(text: &mut String, number: &Number) {
    if !number.is_f64() {
        return text.push_str(&number.to_string());
    }
    let value = number.as_f64().unwrap_or_default();
    if value == 0.0 {
        return text.push('0');
    }
    let scientific = format!("{:e}", value.abs());
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let digits = mantissa.replace('.', "");
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if value < 0.0 {
        text.push('-');
    }
    if !(-6..21).contains(&exponent) {
        let (first, rest) = digits.split_at(1);
        text.push_str(first);
        if !rest.is_empty() {
            text.push('.');
            text.push_str(rest);
        }
        let _ = write!(text, "e{exponent:+}");
    } else if let Ok(whole) = usize::try_from(exponent + 1)
        && whole > 0
    {
        match digits.split_at_checked(whole) {
            Some((all, "")) => text.push_str(all),
            Some((before, after)) => {
                let _ = write!(text, "{before}.{after}");
            }
            None => {
                let _ = write!(text, "{digits:0<whole$}");
            }
        }
    } else {
        let zeros = usize::try_from(-exponent - 1).unwrap_or_default();
        let _ = write!(text, "0.{:0<zeros$}{digits}", "");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical_of(text: &str) -> String {
        canonical(&serde_json::from_str(text).expect("JSON"))
    }

    #[test]
    fn members_are_sorted_by_utf_16_and_texts_escaped_as_little_as_can_be() {
        // The example of RFC 8785, section 3.2.3.
        assert_eq!(
            canonical_of(
                r#"{"\u20ac":"E","\r":"C","\ufb33":"H","1":"O","\ud83d\ude00":"S","\u0080":"X","\u00f6":"L"}"#
            ),
            "{\"\\r\":\"C\",\"1\":\"O\",\"\u{80}\":\"X\",\"ö\":\"L\",\"€\":\"E\",\"😀\":\"S\",\"\u{fb33}\":\"H\"}"
        );
        assert_eq!(
            canonical_of(r#""\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/""#),
            r#""€$\u000f\nA'B\"\\\\\"/""#
        );
    }

    #[test]
    fn numbers_are_written_as_ecmascript_does() {
        for (given, written) in [
            ("1.0", "1"),
            ("-0.0", "0"),
            ("333333333.33333329", "333333333.3333333"),
            ("1E30", "1e+30"),
            ("4.50", "4.5"),
            ("2e-3", "0.002"),
            ("0.000000000000000000000000001", "1e-27"),
            ("1e-6", "0.000001"),
            ("1e-7", "1e-7"),
            ("1.5e-7", "1.5e-7"),
            ("1e20", "100000000000000000000"),
            ("1e21", "1e+21"),
            ("-1.25e22", "-1.25e+22"),
            ("123456789012.5", "123456789012.5"),
            ("9007199254740993", "9007199254740993"),
        ] {
            assert_eq!(canonical_of(given), written, "{given}");
        }
    }
}
