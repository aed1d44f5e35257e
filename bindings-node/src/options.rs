//! Checks of options: values of JavaScript as the core reads them.

use gudgeon::{
    bindings::{
        component_changes,
        http_options::HttpOptions,
        options::{self, Given, Taker, Value},
        unknown_name::unknown_name,
    },
    error::Language,
};
use napi::{
    JsValue, KeyCollectionMode, KeyConversion, KeyFilter, ValueType,
    bindgen_prelude::{Array, FromNapiValue, JsObjectValue, Object, Unknown},
};
use napi_derive::napi;

use crate::error::misuse;

/// The largest integer that a number represents exactly.
const MAX_SAFE: f64 = 9_007_199_254_740_991.0;

#[napi]
#[derive(Debug)]
pub struct NativeOptions;

#[napi]
impl NativeOptions {
    /// Returns the problem of an option, and `true` if the message goes on with `, not ` and the value; null if the value
    /// is allowed. `place` begins the message.
    #[napi(catch_unwind)]
    pub fn problem(
        taker: String,
        place: String,
        name: String,
        value: Unknown<'_>,
    ) -> napi::Result<Option<(String, bool)>> {
        let taker: Taker = taker.parse().map_err(misuse)?;
        let checked = options::check(Language::TypeScript, taker, &place, &name, &Js(value));
        Ok(checked.err().map(|error| (error.message, error.shows_value)))
    }

    /// Errors if the values of HTTP options, as JSON, don't fit their purpose, such as a host that matches no request.
    #[napi(catch_unwind)]
    pub fn check_http(options: String) -> napi::Result<()> {
        HttpOptions::parse(options.as_bytes()).map(drop).map_err(misuse)
    }

    /// Returns the problem of a member of a component that is to be changed; null if it may be.
    #[napi(catch_unwind)]
    pub fn change_problem(kind: String, name: String) -> Option<String> {
        component_changes::problem(Language::TypeScript, &kind, &name)
    }

    /// Returns the problem of a name that is not one of the known names, with the fix.
    #[napi(catch_unwind)]
    pub fn unknown_name(
        kind: String,
        name: String,
        known: Vec<String>,
        hint: Option<String>,
    ) -> String {
        let known: Vec<_> = known.iter().map(String::as_str).collect();
        unknown_name(&kind, &name, &known, hint.as_deref())
    }
}

pub(crate) struct Js<'a>(pub Unknown<'a>);

impl Given for Js<'_> {
    fn value(&self) -> Value {
        self.read().unwrap_or(Value::Other)
    }

    fn items(&self) -> Vec<Self> {
        let Ok(list) = Array::from_unknown(self.0) else { return Vec::new() };
        let item = |at| list.get_element::<Unknown<'_>>(at).ok().map(Js);
        (0..list.len()).filter_map(item).collect()
    }

    fn entries(&self) -> Vec<(Self, Self)> {
        self.own_entries().unwrap_or_default()
    }

    fn has_method(&self, name: &str) -> bool {
        let member =
            |object: Object<'_>| object.get_named_property::<Unknown<'_>>(name)?.get_type();
        self.value() == Value::Object
            && Object::from_unknown(self.0)
                .and_then(member)
                .is_ok_and(|kind| kind == ValueType::Function)
    }
}

impl Js<'_> {
    fn read(&self) -> napi::Result<Value> {
        Ok(match self.0.get_type()? {
            ValueType::Undefined => Value::Absent,
            ValueType::Boolean => Value::Boolean(bool::from_unknown(self.0)?),
            ValueType::Number => {
                let number = f64::from_unknown(self.0)?;
                if number.fract() == 0.0 && number.abs() <= MAX_SAFE {
                    Value::Integer(number)
                } else {
                    Value::Fraction(number)
                }
            }
            ValueType::String => Value::Text(String::from_unknown(self.0)?),
            ValueType::Function => Value::Function,
            ValueType::Object if self.0.is_array()? => Value::List,
            ValueType::Object if self.0.is_typedarray()? => Value::Bytes,
            ValueType::Object => Value::Object,
            _ => Value::Other,
        })
    }

    fn own_entries(&self) -> napi::Result<Vec<(Self, Self)>> {
        let object = Object::from_unknown(self.0)?;
        let keys = object.get_all_property_names(
            KeyCollectionMode::OwnOnly,
            KeyFilter::Enumerable,
            KeyConversion::NumbersToStrings,
        )?;
        let keys = Js(keys.to_unknown()).items();
        let entry = |key: Self| {
            let name = String::from_unknown(key.0).ok()?;
            let value = object.get_named_property::<Unknown<'_>>(&name).ok()?;
            Some((key, Js(value)))
        };
        Ok(keys.into_iter().filter_map(entry).collect())
    }
}
