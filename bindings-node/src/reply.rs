//! Replies of handlers from JavaScript: one line per reply, `slot kind payload`.

use gudgeon::router::{Failure, Reply};

/// The kinds of a line; 0 to 5 are shared by all bindings.
mod kind {
    pub(super) const NOTHING: &str = "0";
    pub(super) const BLOB: &str = "1";
    pub(super) const PARTS: &str = "2";
    pub(super) const RESULT: &str = "3";
    pub(super) const TEXT: &str = "4";
    pub(super) const JSON: &str = "5";
    /// A string passed beside the lines; the payload is its index.
    pub(super) const TEXT_BESIDE: &str = "6";
    pub(super) const FAILURE: &str = "7";
    pub(super) const QUESTIONS: &str = "8";
}

/// A handler's slot and its outcome.
pub(crate) type Line = (u64, Result<Reply, Failure>);

/// Reads all lines; an invalid line is a bug of the JavaScript half and fails its own call only.
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

/// Returns the outcome of a line.
pub(crate) fn outcome(kind: &str, payload: &str, texts: &mut [String]) -> Result<Reply, Failure> {
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
            let text = index.and_then(|index| texts.get_mut(index)).map(std::mem::take);
            text.map(Reply::Text).ok_or_else(|| invalid("a string is missing"))
        }
        kind::FAILURE => Err(Failure::described(payload.as_bytes())),
        _ => Err(invalid("unknown kind of reply")),
    }
}

fn invalid(message: &str) -> Failure {
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
    fn failures_are_read() {
        let lines = "1 7 {\"kind\":\"tool\",\"message\":\"m\"}\n2 7 nonsense\n";
        let all: Vec<_> = read(lines, &mut []).collect();
        assert!(matches!(&all[0].1, Err(Failure::Tool { message, meta: None }) if message == "m"));
        assert!(matches!(&all[1].1, Err(Failure::Exception { .. })));
    }
}
