//! Server-sent events as in the WHATWG HTML standard: an encoder for one JSON text per event, and a decoder for any
//! stream.

use std::time::Duration;

use super::separators;
use crate::protocol::BYTE_ORDER_MARK;

/// A comment that shows proxies and clients that an idle stream is alive.
pub const KEEP_ALIVE: &[u8] = b": keep-alive\n\n";

/// A buffer that grew beyond this capacity is freed after its line.
const KEPT_CAPACITY: usize = 64 * 1024;

/// Appends an event without a type, which clients treat as `message`.
pub fn event(out: &mut Vec<u8>, id: Option<&str>, data: &[u8]) {
    out.reserve(data.len() + 32);
    if let Some(id) = id {
        field(out, "id", id.as_bytes());
    }
    lines(out, data);
}

/// Appends an event with a type, as used by the HTTP+SSE transport of 2024-11-05.
pub fn named_event(out: &mut Vec<u8>, name: &str, data: &[u8]) {
    field(out, "event", name.as_bytes());
    lines(out, data);
}

/// Appends an event without data whose id lets the client resume the stream before the first message was sent.
pub fn priming(out: &mut Vec<u8>, id: &str, retry: Option<Duration>) {
    field(out, "id", id.as_bytes());
    if let Some(after) = retry {
        field(out, "retry", after.as_millis().to_string().as_bytes());
    }
    lines(out, b"");
}

/// Appends the delay before a client reconnects.
pub fn retry(out: &mut Vec<u8>, after: Duration) {
    field(out, "retry", after.as_millis().to_string().as_bytes());
    out.push(b'\n');
}

fn field(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    debug_assert!(memchr::memchr2(b'\n', b'\r', value).is_none(), "{name} must be one line");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    separators::push_escaped(value, out);
    out.push(b'\n');
}

/// Appends the data, one field per line: a handler's JSON may contain line ends between tokens, and the reader joins
/// the lines.
fn lines(out: &mut Vec<u8>, mut data: &[u8]) {
    while let Some(end) = memchr::memchr2(b'\n', b'\r', data) {
        field(out, "data", &data[..end]);
        data = &data[end + 1..];
    }
    field(out, "data", data);
    out.push(b'\n');
}

/// An item that the decoder found.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum SseItem {
    /// An event with data or, at least, an id.
    Event {
        event: Option<String>,
        data: String,
        /// The id that the event carried; an empty id clears the last event id.
        id: Option<String>,
    },
    /// The delay before a reconnect.
    Retry(Duration),
    /// An event over the limit was discarded. It is reported once, and decoding goes on.
    TooLong,
}

/// A decoder that splits chunks of any size into events.
#[derive(Debug)]
pub struct SseDecoder {
    limit: usize,
    /// The beginning of an incomplete line.
    line: Vec<u8>,
    /// The size of the current event's lines in bytes.
    size: usize,
    event: Option<String>,
    data: Option<String>,
    id: Option<String>,
    last_id: Option<String>,
    /// True if the last byte was a carriage return: a newline right after it belongs to the same line end.
    after_return: bool,
    /// The number of bytes of a byte order mark seen at the start of the stream; `None` after it.
    mark: Option<usize>,
    /// True inside an event over the limit.
    skipping: bool,
}

impl SseDecoder {
    /// Creates a decoder; `max_event_bytes` limits the total size of an event's lines.
    pub fn new(max_event_bytes: usize) -> Self {
        Self {
            limit: max_event_bytes,
            line: Vec::new(),
            size: 0,
            event: None,
            data: None,
            id: None,
            last_id: None,
            after_return: false,
            mark: Some(0),
            skipping: false,
        }
    }

    /// Returns the next item and advances `chunk` past it, or `None` at the end of the chunk.
    pub fn next(&mut self, chunk: &mut &[u8]) -> Option<SseItem> {
        self.pass_mark(chunk);
        while let Some(first) = chunk.first() {
            if std::mem::take(&mut self.after_return) && *first == b'\n' {
                *chunk = &chunk[1..];
                continue;
            }
            let Some(end) = memchr::memchr2(b'\n', b'\r', chunk) else {
                return self.hold(std::mem::take(chunk));
            };
            let (line, rest) = (&chunk[..end], &chunk[end + 1..]);
            self.after_return = chunk[end] == b'\r';
            *chunk = rest;
            if let Some(item) = self.end_line(line) {
                return Some(item);
            }
        }
        None
    }

    /// Returns the id of the last complete event that had one, for `Last-Event-ID`.
    pub fn last_event_id(&self) -> Option<&str> {
        self.last_id.as_deref().filter(|id| !id.is_empty())
    }

    /// Prepares for a new stream after a disconnect: an incomplete event is dropped, the last event id is kept.
    pub fn restart(&mut self) {
        *self = Self { last_id: self.last_id.take(), ..Self::new(self.limit) };
    }

    /// Returns the number of buffered bytes of an incomplete event.
    pub fn held(&self) -> usize {
        self.line.len() + self.size
    }

    /// Skips a byte order mark at the start of the stream.
    fn pass_mark(&mut self, chunk: &mut &[u8]) {
        while let (Some(seen), Some(next)) = (self.mark, chunk.first()) {
            if *next == BYTE_ORDER_MARK[seen] {
                *chunk = &chunk[1..];
                self.mark = Some(seen + 1).filter(|count| *count < BYTE_ORDER_MARK.len());
            } else {
                self.line.extend_from_slice(&BYTE_ORDER_MARK[..seen]);
                self.mark = None;
            }
        }
    }

    /// Buffers the beginning of a line. Of comments and skipped lines a single byte is kept, to know that the line is
    /// not blank.
    fn hold(&mut self, part: &[u8]) -> Option<SseItem> {
        let first = self.line.first().or(part.first());
        if self.skipping || first == Some(&b':') {
            if self.line.is_empty() {
                self.line.extend_from_slice(&part[..1]);
            }
            return None;
        }
        if self.held() + part.len() > self.limit {
            self.line = vec![b':'];
            return Some(self.skip());
        }
        self.line.extend_from_slice(part);
        None
    }

    /// Processes a complete line: the buffered part followed by `rest`.
    fn end_line(&mut self, rest: &[u8]) -> Option<SseItem> {
        let mut held = std::mem::take(&mut self.line);
        let item = if held.is_empty() {
            self.line(rest)
        } else if self.skipping || held[0] == b':' {
            None
        } else if held.len() + self.size + rest.len() > self.limit {
            Some(self.skip())
        } else {
            held.extend_from_slice(rest);
            self.line(&held)
        };
        held.clear();
        held.shrink_to(KEPT_CAPACITY);
        self.line = held;
        item
    }

    fn line(&mut self, line: &[u8]) -> Option<SseItem> {
        if line.is_empty() {
            return self.dispatch();
        }
        if self.skipping || line[0] == b':' {
            return None;
        }
        self.size += line.len();
        if self.size > self.limit {
            return Some(self.skip());
        }
        let (name, value) = match memchr::memchr(b':', line) {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &b""[..]),
        };
        let value = String::from_utf8_lossy(value.strip_prefix(b" ").unwrap_or(value));
        match name {
            b"data" => match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(&value);
                }
                None => self.data = Some(value.into_owned()),
            },
            b"event" => self.event = Some(value.into_owned()),
            b"id" if !value.contains('\0') => self.id = Some(value.into_owned()),
            b"retry" if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) => {
                // A value that overflows is longer than any sensible delay.
                let milliseconds = value.parse::<u32>().unwrap_or(u32::MAX);
                return Some(SseItem::Retry(Duration::from_millis(milliseconds.into())));
            }
            _ => (),
        }
        None
    }

    /// Ends the event at a blank line.
    fn dispatch(&mut self) -> Option<SseItem> {
        self.size = 0;
        let (event, data, id) = (self.event.take(), self.data.take(), self.id.take());
        if id.is_some() {
            self.last_id.clone_from(&id);
        }
        if std::mem::take(&mut self.skipping) || (data.is_none() && id.is_none()) {
            return None;
        }
        let event = event.filter(|event| !event.is_empty());
        Some(SseItem::Event { event, data: data.unwrap_or_default(), id })
    }

    /// Discards the event but keeps its id, so that a resumed stream does not deliver the same event again.
    fn skip(&mut self) -> SseItem {
        self.skipping = true;
        self.size = 0;
        self.data = None;
        self.event = None;
        SseItem::TooLong
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    fn decode<'a>(limit: usize, chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<SseItem> {
        let mut decoder = SseDecoder::new(limit);
        let mut items = Vec::new();
        for chunk in chunks {
            let mut rest = chunk;
            while let Some(item) = decoder.next(&mut rest) {
                items.push(item);
            }
            // One more byte is buffered to recognise a comment.
            assert!(decoder.held() <= limit + 1, "{} bytes held", decoder.held());
        }
        items
    }

    /// Decodes a string in one piece and byte by byte.
    fn read(text: &str) -> Vec<SseItem> {
        let whole = decode(999, [text.as_bytes()]);
        assert_eq!(decode(999, text.as_bytes().chunks(1)), whole);
        whole
    }

    fn item(event: Option<&str>, data: &str, id: Option<&str>) -> SseItem {
        SseItem::Event { event: event.map(Into::into), data: data.into(), id: id.map(Into::into) }
    }

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn events_are_written_as_clients_expect_them() {
        assert_eq!(written(|out| event(out, Some("1-2"), b"{}")), "id: 1-2\ndata: {}\n\n");
        assert_eq!(written(|out| event(out, None, b"{}")), "data: {}\n\n");
        assert_eq!(
            written(|out| named_event(out, "endpoint", b"/sse?session_id=1")),
            "event: endpoint\ndata: /sse?session_id=1\n\n"
        );
        assert_eq!(
            written(|out| priming(out, "7-0", Some(Duration::from_millis(500)))),
            "id: 7-0\nretry: 500\ndata: \n\n"
        );
        assert_eq!(written(|out| retry(out, Duration::from_secs(2))), "retry: 2000\n\n");
    }

    #[test]
    fn line_ends_in_data_do_not_end_the_event() {
        let text = written(|out| event(out, None, b"{\r\n\n}"));
        assert_eq!(read(&text), [item(None, "{\n\n\n}", None)]);
    }

    #[test]
    fn every_line_end_ends_a_line() {
        let one = item(None, "a\nb", None);
        for end in ["\n", "\r", "\r\n"] {
            let text = format!("data: a{end}data:b{end}{end}");
            assert_eq!(read(&text), std::slice::from_ref(&one), "{end:?}");
        }
    }

    #[test]
    fn comments_unknown_fields_and_a_byte_order_mark_are_nothing() {
        let text = "\u{feff}: hello\r\n\r\n:\nfoo: bar\ndata\n\ndata: \u{feff}x\n\n";
        assert_eq!(read(text), [item(None, "", None), item(None, "\u{feff}x", None)]);
        assert_eq!(read(std::str::from_utf8(KEEP_ALIVE).expect("text")), []);
    }

    #[test]
    fn only_one_space_after_the_colon_belongs_to_the_grammar() {
        assert_eq!(read("data:  x:y\n\n"), [item(None, " x:y", None)]);
        assert_eq!(read(" data: x\n\n"), []);
    }

    #[test]
    fn ids_are_kept_and_one_with_nul_is_ignored() {
        let mut decoder = SseDecoder::new(99);
        let mut bytes = &b"id: 1\n\ndata: x\n\nid: 2\0\n\nid: 3\n"[..];
        assert_eq!(decoder.next(&mut bytes), Some(item(None, "", Some("1"))));
        assert_eq!(decoder.next(&mut bytes), Some(item(None, "x", None)));
        assert_eq!(decoder.next(&mut bytes), None);
        assert_eq!(decoder.last_event_id(), Some("1"), "the event with 3 is not complete");
        decoder.restart();
        assert_eq!(decoder.last_event_id(), Some("1"));
        assert_eq!(decoder.next(&mut &b"id\n\n"[..]), Some(item(None, "", Some(""))));
        assert_eq!(decoder.last_event_id(), None);
    }

    #[test]
    fn retry_takes_digits_only() {
        let wait = |milliseconds| SseItem::Retry(Duration::from_millis(milliseconds));
        assert_eq!(read("retry: 500\nretry: 5s\nretry:\nretry: -1\nretry: +1\n\n"), [wait(500)]);
        assert_eq!(read("retry: 99999999999999999999\n"), [wait(u32::MAX.into())]);
        assert_eq!(
            read(&written(|out| priming(out, "a", Some(Duration::from_secs(1))))),
            [wait(1000), item(None, "", Some("a"))]
        );
    }

    #[test]
    fn an_event_over_the_limit_is_told_once_and_the_next_is_whole() {
        let text = "id: 1\nevent: e\ndata: 0123456789\ndata: 0123456789\n\ndata: ok\n\n";
        for size in [1, 7, 999] {
            let mut decoder = SseDecoder::new(20);
            let mut items = Vec::new();
            for mut chunk in text.as_bytes().chunks(size) {
                while let Some(item) = decoder.next(&mut chunk) {
                    items.push(item);
                }
            }
            assert_eq!(items, [SseItem::TooLong, item(None, "ok", None)]);
            assert_eq!(decoder.last_event_id(), Some("1"));
        }
        let comment = format!(":{}\ndata: x\n\n", "c".repeat(99));
        for size in [1, 7, 999] {
            assert_eq!(decode(20, comment.as_bytes().chunks(size)), [item(None, "x", None)]);
        }
    }

    #[test]
    fn what_is_no_utf_8_is_replaced() {
        assert_eq!(decode(99, [&b"data: a\xFFb\n\n"[..]]), [item(None, "a\u{fffd}b", None)]);
    }

    /// The algorithm of the standard, for a complete text.
    fn reference(text: &str) -> Vec<SseItem> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let mut lines: Vec<_> = text.split('\n').collect();
        lines.pop();
        let (mut event, mut data, mut id) = (String::new(), String::new(), None);
        let mut items = Vec::new();
        for line in lines {
            if line.is_empty() {
                if !data.is_empty() || id.is_some() {
                    let name = (!event.is_empty()).then(|| event.clone());
                    data.pop();
                    items.push(SseItem::Event { event: name, data: data.clone(), id: id.take() });
                }
                (event, data) = (String::new(), String::new());
                continue;
            }
            let (name, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match name {
                "event" => event = value.into(),
                "data" => {
                    data.push_str(value);
                    data.push('\n');
                }
                "id" if !value.contains('\0') => id = Some(value.into()),
                "retry" => {
                    if let (Ok(wait), false) = (value.parse::<u32>(), value.contains('+')) {
                        items.push(SseItem::Retry(Duration::from_millis(wait.into())));
                    }
                }
                _ => (),
            }
        }
        items
    }

    fn pieces() -> impl Strategy<Value = Vec<&'static str>> {
        let pieces = [
            "data", "id", "event", "retry", ":", ": ", " ", "\n", "\r", "\r\n", "\0", "12", "x",
            "é", "\u{feff}",
        ];
        vec(proptest::sample::select(pieces.to_vec()), 0..60)
    }

    proptest! {
        #[test]
        fn any_text_in_any_chunks_reads_as_the_standard_says(pieces in pieces(), size in 1_usize..9) {
            let text = pieces.concat();
            prop_assert_eq!(decode(9999, text.as_bytes().chunks(size)), reference(&text));
        }

        #[test]
        fn chunks_make_no_difference_to_what_is_too_long(bytes in vec(prop_oneof![Just(b'\n'), Just(b'\r'), Just(b':'), Just(b'd'), any::<u8>()], 0..200), size in 1_usize..9, limit in 3_usize..30) {
            prop_assert_eq!(decode(limit, bytes.chunks(size)), decode(limit, [&bytes[..]]));
        }

        #[test]
        fn what_is_written_is_read(frames in vec(("[0-9]{1,4}", "[^\r\n\u{85}\u{2028}\u{2029}]{0,40}"), 0..8), size in 1_usize..40) {
            let mut out = Vec::new();
            for (id, data) in &frames {
                event(&mut out, Some(id), data.as_bytes());
                out.extend_from_slice(KEEP_ALIVE);
            }
            let expected: Vec<_> = frames.iter().map(|(id, data)| item(None, data, Some(id))).collect();
            prop_assert_eq!(decode(9999, out.chunks(size)), expected);
        }
    }
}
