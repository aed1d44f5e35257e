//! What handlers answered, as JavaScript hands it over: one line a reply, `slot kind payload`.

use gudgeon::{
    protocol::Raw,
    router::{Failure, Reply},
};
use serde::Deserialize;
use serde_json::value::RawValue;

/// The kinds of a line; 0 to 5 are those of every binding.
mod kind {
    pub(super) const NOTHING: &str = "0";
    pub(super) const BLOB: &str = "1";
    pub(super) const PARTS: &str = "2";
    pub(super) const RESULT: &str = "3";
    pub(super) const TEXT: &str = "4";
    pub(super) const JSON: &str = "5";
    /// A text that is handed over beside the lines: the payload is its index.
    pub(super) const TEXT_BESIDE: &str = "6";
    pub(super) const FAILURE: &str = "7";
    pub(super) const QUESTIONS: &str = "8";
}

/// A handler's slot and what came of it.
pub(crate) type Line = (u64, Result<Reply, Failure>);

/// Reads all lines; one that makes no sense is a bug of the JavaScript half and fails its own call only.
pub(crate) fn read<'a>(
    lines: &'a str,
    texts: &'a mut [String],
) -> impl Iterator<Item = Line> + use<'a> {
    lines.split_terminator('\n').filter_map(|line| {
        let (slot, rest) = line.split_once(' ')?;
        let (kind, payload) = rest.split_once(' ')?;
        Some((slot.parse().ok()?, outcome(kind, payload, texts)))
    })
}

fn outcome(kind: &str, payload: &str, texts: &mut [String]) -> Result<Reply, Failure> {
    let text = || payload.to_owned();
    match kind {
        kind::NOTHING => Ok(Reply::Nothing),
        kind::BLOB => Ok(Reply::Blob(text())),
        kind::PARTS => Ok(Reply::Parts(text())),
        kind::RESULT => Ok(Reply::Result(text())),
        kind::TEXT => Ok(Reply::Text(text())),
        kind::JSON => Ok(Reply::Json(text())),
        kind::QUESTIONS => Ok(Reply::Questions(text())),
        kind::TEXT_BESIDE => {
            let index: Option<usize> = payload.parse().ok();
            let text = index.and_then(|it| texts.get_mut(it)).map(std::mem::take);
            text.map(Reply::Text).ok_or_else(|| garbled("a text is missing"))
        }
        kind::FAILURE => Err(failure(payload)),
        _ => Err(garbled("unknown kind of reply")),
    }
}

/// A thrown value, described.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Described<'a> {
    kind: &'a str,
    #[serde(default)]
    message: Option<String>,
    #[serde(default)]
    code: Option<f64>,
    #[serde(default, borrow)]
    data: Option<&'a RawValue>,
    #[serde(default, borrow)]
    meta: Option<&'a RawValue>,
    #[serde(default)]
    uri: String,
    #[serde(default, rename = "type")]
    class: String,
    #[serde(default)]
    traceback: String,
}

fn failure(payload: &str) -> Failure {
    let Ok(it) = serde_json::from_str::<Described<'_>>(payload) else {
        return garbled("the description of a failure can't be read");
    };
    let owned = |raw: Option<&RawValue>| raw.map(|it| -> Raw { it.to_owned() });
    let message = it.message.clone().unwrap_or_default();
    match it.kind {
        "tool" => Failure::Tool { message, meta: owned(it.meta) },
        "protocol" => Failure::Protocol { code: code(it.code), message, data: owned(it.data) },
        "notFound" => Failure::NotFound { uri: it.uri, message: it.message },
        "exposed" => Failure::Exposed(message),
        "declined" => Failure::Declined(message),
        "invalid" => Failure::Invalid(message),
        "missingCapability" => Failure::MissingCapability { message, data: owned(it.data) },
        "cancelled" => Failure::Cancelled,
        _ => Failure::Exception { kind: it.class, message, traceback: it.traceback },
    }
}

#[allow(clippy::cast_possible_truncation, reason = "a code that is no integer is nobody's code")]
fn code(given: Option<f64>) -> i64 {
    given.map_or(gudgeon::protocol::code::INTERNAL_ERROR, |it| it as i64)
}

fn garbled(message: &str) -> Failure {
    Failure::Exception {
        kind: "internal".into(),
        message: message.into(),
        traceback: String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_one_reply() {
        let mut texts = vec!["a\nb".to_owned()];
        let all: Vec<_> =
            read("1 4 plain text \n2 5 {\"a\":1}\n3 6 0\n4 0 \n5 6 9\n", &mut texts).collect();
        assert!(matches!(&all[0], (1, Ok(Reply::Text(text))) if text == "plain text "));
        assert!(matches!(&all[1], (2, Ok(Reply::Json(json))) if json == "{\"a\":1}"));
        assert!(matches!(&all[2], (3, Ok(Reply::Text(text))) if text == "a\nb"));
        assert!(matches!(&all[3], (4, Ok(Reply::Nothing))));
        assert!(matches!(&all[4], (5, Err(Failure::Exception { .. }))));
    }

    #[test]
    fn failures_keep_what_they_say() {
        let lines = "1 7 {\"kind\":\"protocol\",\"code\":-32001,\"message\":\"no\",\"data\":{\"a\":1}}\n2 7 {\"kind\":\"tool\",\"message\":\"m\"}\n3 7 nonsense\n";
        let all: Vec<_> = read(lines, &mut []).collect();
        assert!(matches!(&all[0].1, Err(Failure::Protocol { code: -32001, data: Some(_), .. })));
        assert!(matches!(&all[1].1, Err(Failure::Tool { message, meta: None }) if message == "m"));
        assert!(matches!(&all[2].1, Err(Failure::Exception { .. })));
    }
}
