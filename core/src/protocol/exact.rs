//! Serialization of users' values as JSON that reports NaN and infinity, with their place in the value, as errors.
//! `serde_json` would write `null`. The output is a single line, even if the value holds multi-line raw JSON.

use std::fmt::{self, Write as _};

use serde::{
    Serialize,
    ser::{self, Serializer},
};

use super::{Raw, json};

/// Serializes a value as JSON text. The error for a value that JSON can't represent names its place, starting with
/// `place`.
pub fn to_string<T: Serialize + ?Sized>(
    value: &T,
    place: &str,
) -> Result<String, serde_json::Error> {
    let json = check(serde_json::to_string(value), String::as_str, value, place)?;
    Ok(if is_one_line(&json) { json } else { one_line(&json) })
}

/// Serializes a value as raw JSON, with the same errors as [`to_string`].
pub fn to_raw<T: Serialize + ?Sized>(value: &T, place: &str) -> Result<Raw, serde_json::Error> {
    let raw = check(serde_json::value::to_raw_value(value), |raw| raw.get(), value, place)?;
    Ok(if is_one_line(raw.get()) { raw } else { json::raw(one_line(raw.get())) })
}

/// Line ends inside strings are escaped in JSON, so a literal one is white space.
fn is_one_line(json: &str) -> bool {
    memchr::memchr2(b'\n', b'\r', json.as_bytes()).is_none()
}

fn one_line(json: &str) -> String {
    json.replace(['\n', '\r'], " ")
}

/// Searches the value for NaN and infinity, but only if the output contains `null`, which is rare.
fn check<T: Serialize + ?Sized, J>(
    written: Result<J, serde_json::Error>,
    text: impl Fn(&J) -> &str,
    value: &T,
    place: &str,
) -> Result<J, serde_json::Error> {
    let unsaid = |why: &dyn fmt::Display| ser::Error::custom(why);
    let json = written
        .map_err(|error| unsaid(&format_args!("{place} can't be written as JSON: {error}")))?;
    if memchr::memmem::find(text(&json).as_bytes(), b"null").is_some() {
        value.serialize(&mut Finder { place: place.to_owned() }).map_err(|found| unsaid(&found))?;
    }
    Ok(json)
}

/// The message about an unrepresentable value.
#[derive(Debug)]
struct Found(String);

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Found {}

impl ser::Error for Found {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self(message.to_string())
    }
}

/// A serializer that discards its output and tracks its place in the value.
struct Finder {
    place: String,
}

impl Finder {
    fn inside<T: Serialize + ?Sized>(
        &mut self,
        step: impl FnOnce(&mut String),
        value: &T,
    ) -> Result<(), Found> {
        let before = self.place.len();
        step(&mut self.place);
        value.serialize(&mut *self)?;
        self.place.truncate(before);
        Ok(())
    }

    fn field<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> Result<(), Found> {
        let is_word = !name.is_empty()
            && name.bytes().all(|byte| byte == b'_' || byte.is_ascii_alphanumeric());
        let step = |place: &mut String| {
            // Writing to a String never fails.
            let _ = if is_word { write!(place, ".{name}") } else { write!(place, "[{name:?}]") };
        };
        self.inside(step, value)
    }

    fn item<T: Serialize + ?Sized>(&mut self, at: usize, value: &T) -> Result<(), Found> {
        self.inside(|place| _ = write!(place, "[{at}]"), value)
    }
}

/// The elements of a list, map or struct: how many were visited, and the key of the next one.
struct Parts<'f> {
    finder: &'f mut Finder,
    seen: usize,
    key: String,
}

impl<'f> Parts<'f> {
    const fn new(finder: &'f mut Finder) -> Self {
        Self { finder, seen: 0, key: String::new() }
    }

    fn next<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Found> {
        self.seen += 1;
        self.finder.item(self.seen - 1, value)
    }
}

macro_rules! nothing {
    ($($method:ident($value:ty))*) => {$(
        fn $method(self, _: $value) -> Result<(), Found> {
            Ok(())
        }
    )*};
}

impl<'f> Serializer for &'f mut Finder {
    type Ok = ();
    type Error = Found;
    type SerializeSeq = Parts<'f>;
    type SerializeTuple = Parts<'f>;
    type SerializeTupleStruct = Parts<'f>;
    type SerializeTupleVariant = Parts<'f>;
    type SerializeMap = Parts<'f>;
    type SerializeStruct = Parts<'f>;
    type SerializeStructVariant = Parts<'f>;

    nothing! {
        serialize_bool(bool)
        serialize_i8(i8) serialize_i16(i16) serialize_i32(i32) serialize_i64(i64) serialize_i128(i128)
        serialize_u8(u8) serialize_u16(u16) serialize_u32(u32) serialize_u64(u64) serialize_u128(u128)
        serialize_char(char) serialize_str(&str) serialize_bytes(&[u8]) serialize_unit_struct(&'static str)
    }

    fn serialize_f32(self, value: f32) -> Result<(), Found> {
        self.serialize_f64(value.into())
    }

    fn serialize_f64(self, value: f64) -> Result<(), Found> {
        match value.is_finite() {
            true => Ok(()),
            false => Err(Found(format!(
                "{} is {value}, which JSON can't represent; write null or a string",
                self.place
            ))),
        }
    }

    fn serialize_none(self) -> Result<(), Found> {
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Found> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Found> {
        Ok(())
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, _: &'static str) -> Result<(), Found> {
        Ok(())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Found> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Found> {
        self.field(variant, value)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Parts<'f>, Found> {
        Ok(Parts::new(self))
    }

    fn serialize_tuple(self, _: usize) -> Result<Parts<'f>, Found> {
        Ok(Parts::new(self))
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Parts<'f>, Found> {
        Ok(Parts::new(self))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Parts<'f>, Found> {
        Ok(Parts::new(self))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Parts<'f>, Found> {
        Ok(Parts::new(self))
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Parts<'f>, Found> {
        Ok(Parts::new(self))
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Parts<'f>, Found> {
        Ok(Parts::new(self))
    }

    fn collect_str<T: fmt::Display + ?Sized>(self, _: &T) -> Result<(), Found> {
        Ok(())
    }
}

macro_rules! items {
    ($($kind:ident $method:ident),*) => {$(
        impl ser::$kind for Parts<'_> {
            type Ok = ();
            type Error = Found;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Found> {
                self.next(value)
            }

            fn end(self) -> Result<(), Found> {
                Ok(())
            }
        }
    )*};
}

items!(
    SerializeSeq serialize_element,
    SerializeTuple serialize_element,
    SerializeTupleStruct serialize_field,
    SerializeTupleVariant serialize_field
);

macro_rules! fields {
    ($($kind:ident),*) => {$(
        impl ser::$kind for Parts<'_> {
            type Ok = ();
            type Error = Found;

            fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), Found> {
                self.finder.field(name, value)
            }

            fn end(self) -> Result<(), Found> {
                Ok(())
            }
        }
    )*};
}

fields!(SerializeStruct, SerializeStructVariant);

impl ser::SerializeMap for Parts<'_> {
    type Ok = ();
    type Error = Found;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Found> {
        let written = serde_json::to_string(key).unwrap_or_default();
        self.key = serde_json::from_str(&written).unwrap_or(written);
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Found> {
        let key = std::mem::take(&mut self.key);
        self.finder.field(&key, value)
    }

    fn end(self) -> Result<(), Found> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Serialize;

    use super::{to_raw, to_string};

    #[derive(Serialize)]
    struct Point {
        x: f64,
        y: Option<f64>,
    }

    #[derive(Serialize)]
    enum Shape {
        At(Point),
        Between(f32, f64),
        Round { radius: f64 },
        Nowhere,
    }

    fn why(value: &impl Serialize) -> String {
        let text = to_string(value, "the result").unwrap_err().to_string();
        assert_eq!(text, to_raw(value, "the result").unwrap_err().to_string());
        text.strip_suffix(", which JSON can't represent; write null or a string")
            .unwrap_or(&text)
            .to_owned()
    }

    #[test]
    fn raw_json_of_several_lines_becomes_one() {
        let raw = super::json::raw("{\r\n \"a\": \"b\\n\",\n \"c\": 1\n}".into());
        let line = r#"{   "a": "b\n",  "c": 1 }"#;
        assert_eq!(to_raw(&raw, "it").unwrap().get(), line);
        assert_eq!(to_string(&raw, "it").unwrap(), line);
    }

    #[test]
    fn what_is_no_number_in_json_is_named() {
        let (nan, inf) = (f64::NAN, f64::INFINITY);
        assert_eq!(why(&nan), "the result is NaN");
        assert_eq!(why(&f32::NEG_INFINITY), "the result is -inf");
        assert_eq!(why(&[None, Some(1.5), Some(inf)]), "the result[2] is inf");
        assert_eq!(why(&Point { x: 1.0, y: Some(nan) }), "the result.y is NaN");
        let map = BTreeMap::from([("a", vec![]), ("b c", vec![Point { x: nan, y: None }])]);
        assert_eq!(why(&map), "the result[\"b c\"][0].x is NaN");
        assert_eq!(why(&BTreeMap::from([(1, (2, "null", inf))])), "the result.1[2] is inf");
        assert_eq!(why(&Shape::At(Point { x: inf, y: None })), "the result.At.x is inf");
        assert_eq!(why(&[Shape::Nowhere, Shape::Between(1.0, nan)]), "the result[1][1] is NaN");
        assert_eq!(why(&Shape::Round { radius: nan }), "the result.radius is NaN");
        let nested = BTreeMap::from([((1, 2), 3)]);
        assert_eq!(why(&nested), "the result can't be written as JSON: key must be a string");
    }

    #[test]
    fn nothing_is_null() {
        let value = (Point { x: 1.0, y: None }, "null", Shape::Nowhere, ());
        assert_eq!(
            to_string(&value, "it").unwrap(),
            r#"[{"x":1.0,"y":null},"null","Nowhere",null]"#
        );
    }
}
