//! A large text for JavaScript. Its engine reads it where it is, because the event loop does nothing else while it copies.

use std::{
    ffi::{c_char, c_void},
    sync::OnceLock,
};

use napi::{Env, JsString, bindgen_prelude::FromNapiValue};
use napi_sys::{napi_value, node_api_basic_env};

/// The size from which on a text is not copied, in bytes. It is about that of Node's own strings: memory outside of the engine
/// makes it collect garbage more often, which takes longer than copying small texts.
const EXTERNAL: usize = 1024 * 1024;
/// The first version of Node that offers external strings.
const FIRST_WITH_EXTERNAL: (u32, u32) = (20, 4);

/// A text in the encoding that JavaScript's engine uses for it.
#[derive(Debug, Eq, PartialEq)]
pub(crate) enum LargeText {
    /// One byte for each character: all of them are below U+0100.
    Latin1(Vec<u8>),
    Utf16(Vec<u16>),
}

impl LargeText {
    /// Encodes a text, on a thread that has the time.
    pub(crate) fn new(text: String) -> Self {
        if text.is_ascii() {
            return Self::Latin1(text.into_bytes());
        }
        let latin1: Result<Vec<u8>, _> = text.chars().map(u8::try_from).collect();
        latin1.map_or_else(|_| Self::Utf16(text.encode_utf16().collect()), Self::Latin1)
    }

    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Latin1(bytes) => bytes.len(),
            Self::Utf16(units) => 2 * units.len(),
        }
    }

    /// Returns the JavaScript string. The engine keeps the memory of a very large one until the string is collected.
    pub(crate) fn into_js(self, env: &Env) -> napi::Result<JsString<'_>> {
        if self.bytes() >= EXTERNAL && has_external_strings(*env) {
            return self.into_external(env);
        }
        match self {
            Self::Latin1(bytes) => env.create_string_latin1(bytes),
            Self::Utf16(units) => env.create_string_utf16(units),
        }
    }

    #[expect(
        unsafe_code,
        reason = "napi-rs offers external strings only with a feature that fails in Node before version 20.4"
    )]
    fn into_external(self, env: &Env) -> napi::Result<JsString<'_>> {
        let size = i64::try_from(self.bytes()).unwrap_or(i64::MAX);
        let text = Box::into_raw(Box::new(self));
        let mut string: napi_value = std::ptr::null_mut();
        let mut is_copied = false;
        // Not at the end, because the engine may have freed a text that it has copied.
        env.adjust_external_memory(size)?;
        // SAFETY: the characters stay where they are until the engine calls `free`, which it does once, unless it fails.
        let status = unsafe {
            match &*text {
                Self::Latin1(bytes) => napi_sys::node_api_create_external_string_latin1(
                    env.raw(),
                    bytes.as_ptr().cast::<c_char>(),
                    bytes.len().cast_signed(),
                    Some(free),
                    text.cast(),
                    &raw mut string,
                    &raw mut is_copied,
                ),
                Self::Utf16(units) => napi_sys::node_api_create_external_string_utf16(
                    env.raw(),
                    units.as_ptr(),
                    units.len().cast_signed(),
                    Some(free),
                    text.cast(),
                    &raw mut string,
                    &raw mut is_copied,
                ),
            }
        };
        if status != napi_sys::Status::napi_ok {
            // SAFETY: the engine has not taken it.
            drop(unsafe { Box::from_raw(text) });
            env.adjust_external_memory(-size)?;
            return Err(napi::Error::new(napi::Status::from(status), "no string could be created"));
        }
        // SAFETY: the call succeeded, so this is a string of this environment.
        unsafe { JsString::from_napi_value(env.raw(), string) }
    }
}

/// Frees a text whose string was collected. `env` is null where the thread of the event loop ends.
#[expect(unsafe_code, reason = "the engine returns the pointer that it was given")]
unsafe extern "C" fn free(env: node_api_basic_env, _: *mut c_void, text: *mut c_void) {
    // SAFETY: `into_external` has made it, and the engine calls this once.
    let text = unsafe { Box::from_raw(text.cast::<LargeText>()) };
    if !env.is_null() {
        let size = i64::try_from(text.bytes()).unwrap_or(i64::MAX);
        // It only counts, so that there is nothing to do about a failure.
        let _ = Env::from_raw(env.cast()).adjust_external_memory(-size);
    }
}

fn has_external_strings(env: Env) -> bool {
    static KNOWN: OnceLock<bool> = OnceLock::new();
    *KNOWN.get_or_init(|| {
        let version = env.get_node_version();
        version.is_ok_and(|version| (version.major, version.minor) >= FIRST_WITH_EXTERNAL)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_takes_one_byte_a_character_where_that_is_possible() {
        assert_eq!(LargeText::new("ab".into()), LargeText::Latin1(b"ab".to_vec()));
        assert_eq!(LargeText::new("a\u{80}ÿ".into()), LargeText::Latin1(vec![b'a', 0x80, 0xff]));
        let wide = LargeText::new("aĀ😀".into());
        assert_eq!(wide, LargeText::Utf16(vec![0x61, 0x100, 0xd83d, 0xde00]));
        assert_eq!(wide.bytes(), 8);
    }
}
