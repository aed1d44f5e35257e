//! Newline-delimited JSON: one message per line, as on stdio and byte streams.

use super::separators;

/// The default limit of a line's length: 16 MiB.
pub const DEFAULT_LINE_LIMIT: usize = 16 * 1024 * 1024;

/// The length from which the buffer grows in the large steps of [`STEPS`], because the line may be much longer.
const LONG: usize = 32 * 1024;
/// The capacities that the buffer of a long line grows through. A longer line gets a buffer of the full limit at once: growing in more
/// steps would leave the outgrown buffers in memory.
const STEPS: [usize; 2] = [256 * 1024, 1280 * 1024];
/// A buffer that grew beyond this capacity is freed after its line.
const KEPT_CAPACITY: usize = STEPS[0];
/// The most bytes of the beginning and of the end of an overlong line that are returned.
const PART: usize = 512;

/// A frame that the decoder found.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Frame<'a> {
    /// A line without its line end; never blank.
    Line(&'a [u8]),
    /// A line that is too long, reported when it ends.
    TooLong(TooLong<'a>),
}

/// A message longer than `limit` bytes, of which at most 512 bytes at each end are kept.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TooLong<'a> {
    pub limit: usize,
    pub beginning: &'a [u8],
    pub end: &'a [u8],
}

impl<'a> TooLong<'a> {
    /// Returns the parts of a whole message.
    pub fn new(limit: usize, message: &'a [u8]) -> Self {
        let end = message.len() - message.len().min(PART);
        Self { limit, beginning: &message[..message.len().min(PART)], end: &message[end..] }
    }

    /// Returns a message of which nothing is known.
    pub fn unread(limit: usize) -> Self {
        Self { limit, beginning: &[], end: &[] }
    }
}

/// A decoder that splits chunks of any size into lines. A line that lies within one chunk is not copied.
#[derive(Debug)]
pub struct LineDecoder {
    limit: usize,
    /// The beginning of an incomplete line; at most `limit` bytes.
    held: Vec<u8>,
    /// The last bytes of an overlong line.
    end: Vec<u8>,
    /// True once `held` was returned as a frame and must be cleared.
    spent: bool,
    /// True inside an overlong line.
    skipping: bool,
}

/// The location of a line.
enum Cut<'a> {
    Chunk(&'a [u8]),
    Held,
    TooLong,
}

impl LineDecoder {
    /// Creates a decoder; `limit` is the maximum number of bytes before the newline.
    pub fn new(limit: usize) -> Self {
        Self { limit, held: Vec::new(), end: Vec::new(), spent: false, skipping: false }
    }

    /// Returns the next frame and advances `chunk` past it, or `None` at the end of the chunk: `while let Some(frame)
    /// = decoder.next(&mut chunk) { … }`.
    pub fn next<'a, 'chunk: 'a>(&'a mut self, chunk: &mut &'chunk [u8]) -> Option<Frame<'a>> {
        match self.cut(chunk)? {
            Cut::Chunk(line) => Some(Frame::Line(line)),
            Cut::Held => Some(Frame::Line(without_return(&self.held))),
            Cut::TooLong => Some(Frame::TooLong(self.overlong())),
        }
    }

    /// Ends the stream; returns the last line if it has no newline. The decoder can be used again.
    pub fn finish(&mut self) -> Option<Frame<'_>> {
        self.forget_spent();
        self.spent = true;
        if std::mem::take(&mut self.skipping) {
            return Some(Frame::TooLong(self.overlong()));
        }
        let line = without_return(&self.held);
        (!is_blank(line)).then_some(Frame::Line(line))
    }

    /// Moves the decoder out, and leaves one that holds nothing.
    pub(crate) fn take(&mut self) -> Self {
        std::mem::replace(self, Self::new(self.limit))
    }

    /// Returns the number of buffered bytes of an incomplete line that is not too long.
    pub(crate) fn held(&self) -> usize {
        if self.spent || self.skipping { 0 } else { self.held.len() }
    }

    fn cut<'a>(&mut self, chunk: &mut &'a [u8]) -> Option<Cut<'a>> {
        self.forget_spent();
        while !chunk.is_empty() {
            let Some(end) = memchr::memchr(b'\n', chunk) else {
                self.hold(std::mem::take(chunk));
                return None;
            };
            let (line, rest) = (&chunk[..end], &chunk[end + 1..]);
            *chunk = rest;
            if self.skipping || self.held.len() + line.len() > self.limit {
                self.skip(line);
                self.skipping = false;
                self.spent = true;
                return Some(Cut::TooLong);
            }
            if self.held.is_empty() {
                let line = without_return(line);
                if !is_blank(line) {
                    return Some(Cut::Chunk(line));
                }
            } else {
                self.make_room(line.len());
                self.held.extend_from_slice(line);
                self.spent = true;
                if !is_blank(&self.held) {
                    return Some(Cut::Held);
                }
                self.forget_spent();
            }
        }
        None
    }

    /// Buffers the beginning of a line.
    fn hold(&mut self, rest: &[u8]) {
        if self.skipping || self.held.len() + rest.len() > self.limit {
            return self.skip(rest);
        }
        self.make_room(rest.len());
        self.held.extend_from_slice(rest);
    }

    /// Grows in few steps: each copies what is held, and memory that is not used yet costs nothing.
    fn make_room(&mut self, bytes: usize) {
        let needed = self.held.len() + bytes;
        if needed > self.held.capacity() && needed >= LONG {
            let step = STEPS.into_iter().find(|step| *step >= needed && *step < self.limit);
            self.held.reserve_exact(step.unwrap_or(self.limit) - self.held.len());
        }
    }

    /// Keeps only the beginning and the last bytes of an overlong line, which goes on with `rest`.
    fn skip(&mut self, rest: &[u8]) {
        if !std::mem::replace(&mut self.skipping, true) {
            let line = std::mem::take(&mut self.held);
            self.held = TooLong::new(self.limit, &line).beginning.to_vec();
            self.held.extend_from_slice(&rest[..rest.len().min(PART - self.held.len())]);
            self.end.clear();
            self.end.extend_from_slice(TooLong::new(self.limit, &line).end);
        }
        self.end.extend_from_slice(TooLong::new(self.limit, rest).end);
        self.end.drain(..self.end.len().saturating_sub(PART));
    }

    fn overlong(&self) -> TooLong<'_> {
        TooLong { limit: self.limit, beginning: &self.held, end: without_return(&self.end) }
    }

    fn forget_spent(&mut self) {
        if std::mem::take(&mut self.spent) {
            self.held.clear();
            self.held.shrink_to(KEPT_CAPACITY);
        }
    }
}

/// Makes a line of `frame`, which is JSON, like [`encode_line`].
pub fn into_line(mut frame: Vec<u8>) -> Vec<u8> {
    if separators::has_any(&frame) {
        let mut line = Vec::new();
        encode_line(&frame, &mut line);
        return line;
    }
    blank_line_ends(&mut frame);
    frame.reserve_exact(1);
    frame.push(b'\n');
    frame
}

/// Appends `frame`, which is JSON, and a newline. Line ends inside the frame, which can only be white space of the
/// user's raw JSON, become spaces, because a message must not contain any (stdio). What only some readers take for a line
/// end is escaped.
pub fn encode_line(frame: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.reserve(frame.len() + 1);
    separators::push_escaped(frame, out);
    blank_line_ends(&mut out[start..]);
    out.push(b'\n');
}

fn blank_line_ends(frame: &mut [u8]) {
    let mut at = 0;
    while let Some(next) = memchr::memchr2(b'\n', b'\r', &frame[at..]) {
        at += next;
        frame[at] = b' ';
    }
}

fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

fn is_blank(line: &[u8]) -> bool {
    line.iter().all(u8::is_ascii_whitespace)
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Eq, PartialEq)]
    enum Owned {
        Line(Vec<u8>),
        TooLong,
    }

    fn own(frame: Frame<'_>) -> Owned {
        match frame {
            Frame::Line(line) => Owned::Line(line.to_vec()),
            Frame::TooLong(_) => Owned::TooLong,
        }
    }

    fn decode<'a>(limit: usize, chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<Owned> {
        let mut decoder = LineDecoder::new(limit);
        let mut frames = Vec::new();
        for chunk in chunks {
            let mut rest = chunk;
            while let Some(frame) = decoder.next(&mut rest) {
                frames.push(own(frame));
            }
            assert!(decoder.held() <= limit, "{} bytes held", decoder.held());
        }
        frames.extend(decoder.finish().map(own));
        assert_eq!(decoder.held(), 0);
        frames
    }

    fn line(text: &str) -> Owned {
        Owned::Line(text.as_bytes().to_vec())
    }

    #[test]
    fn stdio_transport_messages_are_delimited_by_newlines() {
        assert_eq!(
            decode(99, [&b"{\"a\":1}\n{\"b\":2}\n"[..]]),
            [line("{\"a\":1}"), line("{\"b\":2}")]
        );
    }

    #[test]
    fn a_newline_inside_a_frame_ends_no_line() {
        let mut out = b"{}\n".to_vec();
        encode_line(b"{\n\"a\":\n1}", &mut out);
        assert_eq!(out, b"{}\n{ \"a\": 1}\n");
        for frame in ["{}", "{\n\"a\":\n1}", "\n\n[1,\n\n2]\n"] {
            let mut line = Vec::new();
            encode_line(frame.as_bytes(), &mut line);
            assert_eq!(into_line(frame.into()), line);
        }
    }

    #[test]
    fn crlf_blank_lines_and_a_missing_last_newline_are_accepted() {
        assert_eq!(
            decode(99, [&b"\r\n{}\r\n\n \t\n[]\r"[..], &b"\n\n7"[..]]),
            [line("{}"), line("[]"), line("7")]
        );
    }

    #[test]
    fn a_line_of_exactly_the_limit_passes_and_one_byte_more_does_not() {
        assert_eq!(decode(4, [&b"1234\n12345\n1"[..]]), [line("1234"), Owned::TooLong, line("1")]);
        assert_eq!(decode(4, [&b"12345"[..]]), [Owned::TooLong]);
    }

    #[test]
    fn an_overlong_line_is_reported_with_its_ends() {
        let line = [&b"{\"result\":"[..], &[b'x'; 2000], b",\"id\":1}"].concat();
        for (size, end) in
            [1, 7, 512, 1500, 3000].into_iter().flat_map(|size| [(size, "\r\n"), (size, "")])
        {
            let mut decoder = LineDecoder::new(1000);
            let mut reported = Vec::new();
            let mut report = |frame: Frame<'_>| {
                let Frame::TooLong(TooLong { limit: 1000, beginning, end }) = frame else {
                    panic!()
                };
                reported.push((beginning.to_vec(), end.to_vec()));
            };
            for chunk in [&line[..], end.as_bytes()].concat().chunks(size) {
                let mut rest = chunk;
                while let Some(frame) = decoder.next(&mut rest) {
                    report(frame);
                }
                assert!(decoder.held() <= 1000);
            }
            decoder.finish().map(&mut report);
            let [(beginning, last)] = &reported[..] else { panic!("{} reports", reported.len()) };
            assert_eq!(beginning, &line[..PART], "chunks of {size} bytes");
            // A `\r` before the line end counts among the bytes that are kept.
            assert!(line.ends_with(last) && last.len() >= PART - 1, "chunks of {size} bytes");
            assert_eq!((decoder.held(), decoder.finish()), (0, None));
        }
    }

    #[test]
    fn a_line_whole_in_its_chunk_is_not_copied() {
        let bytes = b"{}\n{}\n";
        let mut decoder = LineDecoder::new(9);
        let mut rest = &bytes[..];
        while let Some(frame) = decoder.next(&mut rest) {
            let Frame::Line(line) = frame else { panic!("too long") };
            assert!(bytes.as_ptr_range().contains(&line.as_ptr()));
        }
        assert_eq!(decoder.held.capacity(), 0);
    }

    #[test]
    fn a_large_line_leaves_no_large_buffer_behind() {
        let mut decoder = LineDecoder::new(DEFAULT_LINE_LIMIT);
        let large = vec![b'x'; 4 * 1024 * 1024];
        assert_eq!(decoder.next(&mut &large[..]), None);
        assert!(matches!(decoder.next(&mut &b"\n"[..]), Some(Frame::Line(_))));
        assert_eq!(decoder.next(&mut &b"\n"[..]), None);
        assert!(decoder.held.capacity() <= KEPT_CAPACITY);
    }

    #[test]
    fn what_is_encoded_is_decoded() {
        let mut bytes = Vec::new();
        encode_line(b"{\"text\":\"a\\nb\"}", &mut bytes);
        encode_line(b"[]", &mut bytes);
        assert_eq!(decode(99, [&bytes[..]]), [line("{\"text\":\"a\\nb\"}"), line("[]")]);
    }

    #[test]
    fn a_message_is_one_line_for_every_reader() {
        for (frame, line) in [
            ("{\n\"a\":\r1}", "{ \"a\": 1}\n"),
            ("[\"\u{2028}x\u{85}\",\n\"\u{2029}é\"]", "[\"\\u2028x\\u0085\", \"\\u2029é\"]\n"),
        ] {
            let mut encoded = b"before\r".to_vec();
            encode_line(frame.as_bytes(), &mut encoded);
            assert_eq!(encoded, [b"before\r", line.as_bytes()].concat());
            assert_eq!(into_line(frame.into()), line.as_bytes());
        }
    }

    /// A second implementation of the same rules for a complete stream.
    fn reference(limit: usize, bytes: &[u8]) -> Vec<Owned> {
        let lines = bytes.split(|byte| *byte == b'\n');
        let cut = lines.map(|line| {
            if line.len() > limit { Owned::TooLong } else { own(Frame::Line(without_return(line))) }
        });
        cut.filter(|frame| !matches!(frame, Owned::Line(line) if is_blank(line))).collect()
    }

    proptest! {
        #[test]
        fn any_chunking_gives_the_same_frames(
            bytes in vec(prop_oneof![Just(b'\n'), Just(b'\r'), Just(b' '), Just(b'x'), any::<u8>()], 0..400),
            sizes in vec(1_usize..20, 1..20),
            limit in 0_usize..40,
        ) {
            let mut chunks = Vec::new();
            let mut rest = &bytes[..];
            for size in sizes.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (chunk, after) = rest.split_at((*size).min(rest.len()));
                chunks.push(chunk);
                rest = after;
            }
            let expected = reference(limit, &bytes);
            prop_assert_eq!(decode(limit, chunks), expected);
            let whole = decode(limit, [&bytes[..]]);
            prop_assert_eq!(whole, reference(limit, &bytes));
        }

        #[test]
        fn an_overlong_line_does_not_disturb_its_neighbours(before in 0_usize..5, after in 0_usize..5, extra in 1_usize..200, size in 1_usize..64) {
            let limit = 16;
            let mut bytes = b"before\n".repeat(before);
            bytes.extend(vec![b'x'; limit + extra]);
            bytes.push(b'\n');
            bytes.extend(b"after\n".repeat(after));
            let frames = decode(limit, bytes.chunks(size));
            prop_assert_eq!(frames.len(), before + 1 + after);
            prop_assert!(frames[..before].iter().all(|frame| *frame == line("before")));
            prop_assert_eq!(&frames[before], &Owned::TooLong);
            prop_assert!(frames[before + 1..].iter().all(|frame| *frame == line("after")));
        }
    }
}
