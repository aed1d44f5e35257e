//! The decoder of server-sent events: the first line has the limit and a size of chunks, the rest is the stream.

use gudgeon::framing::{
    SseDecoder, SseItem,
    sse::{event, named_event},
};

use crate::script::number;

pub(super) const SEEDS: &[&str] = &[
    "64 3\nid: 1-2\ndata: {}\n\n: comment\nretry: 500\n\nevent: endpoint\ndata: /sse\n\n",
    "16 1\n\u{feff}data: a\r\ndata:b\r\rid\n\nid: \u{0}\ndata: long long long long\n\n",
];

pub(super) fn run(input: &[u8]) {
    let line = input.iter().position(|byte| *byte == b'\n').unwrap_or(input.len());
    let (header, stream) = (&input[..line], input.get(line + 1..).unwrap_or_default());
    let (limit, rest) = number(header);
    let size = number(rest).0 % 64 + 1;
    let whole = decode(limit, stream, usize::MAX);
    assert_eq!(decode(limit, stream, 1), whole, "byte by byte");
    assert_eq!(decode(limit, stream, size), whole, "{size} bytes at a time");
    // The events are the same when they are written and read again.
    for item in whole.0 {
        let SseItem::Event { event: name, data, id } = item else { continue };
        let mut out = Vec::new();
        let id = id.filter(|id| !id.contains(['\n', '\r']));
        match &name {
            Some(name) => named_event(&mut out, name, data.as_bytes()),
            None => event(&mut out, id.as_deref(), data.as_bytes()),
        }
        let id = id.filter(|_| name.is_none());
        let (items, _) = decode(usize::MAX, &out, usize::MAX);
        assert_eq!(items, [SseItem::Event { event: name, data, id }]);
    }
}

fn decode(limit: usize, stream: &[u8], size: usize) -> (Vec<SseItem>, Option<String>) {
    let mut decoder = SseDecoder::new(limit);
    let mut items = Vec::new();
    for mut chunk in stream.chunks(size) {
        while let Some(item) = decoder.next(&mut chunk) {
            items.push(item);
        }
        // One more byte is held, by which a comment is known.
        assert!(decoder.held() <= limit.saturating_add(1), "{} bytes held", decoder.held());
    }
    (items, decoder.last_event_id().map(str::to_owned))
}
