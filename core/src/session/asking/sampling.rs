//! What a model can be shown: revisions lack some kinds of content, and others can't stand for them.

use serde_json::{Map, Value};

use super::misused;
use crate::{error::Fault, wire::Wire};

pub(super) fn check(params: &Map<String, Value>, wire: &Wire) -> Result<(), Fault> {
    let messages = params.get("messages").and_then(Value::as_array);
    let mut contents = messages.into_iter().flatten().filter_map(|it| it.get("content"));
    let is_audio = |it: &Value| it.get("type").is_some_and(|it| it == "audio");
    let has_audio =
        contents.any(|it| is_audio(it) || it.as_array().is_some_and(|it| it.iter().any(is_audio)));
    if has_audio && !wire.vocabulary.audio {
        return Err(misused(&format!(
            "a model can't be given audio in {}, which has no words for it: give it text or an image",
            wire.name()
        )));
    }
    Ok(())
}
