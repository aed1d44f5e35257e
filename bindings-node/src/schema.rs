//! A JSON Schema for values that the core does not check by itself.

use gudgeon::{error::Error, schema::Schema};
use napi_derive::napi;

use crate::error::misuse;

#[napi]
#[derive(Debug)]
pub struct NativeSchema(Schema);

#[napi]
impl NativeSchema {
    /// Fails when the schema can't be used, naming the place in it and the mend.
    #[napi(constructor, catch_unwind)]
    pub fn new(schema: String) -> napi::Result<Self> {
        Schema::compile(&schema).map(Self).map_err(|it| misuse(Error::misuse(it.to_string())))
    }

    /// What is wrong with a value given as JSON; null when nothing is.
    #[napi(catch_unwind)]
    pub fn violation(&self, value: String) -> Option<String> {
        match serde_json::from_str(&value) {
            Ok(value) => self.0.check(&value).err().map(|it| it.to_string()),
            Err(error) => Some(error.to_string()),
        }
    }
}
