//! The events sent on the streams of one session, stored so that a client whose connection broke can resume
//! (spec: 2025-11-25, Transports, "Resumability and Redelivery").

use std::{collections::VecDeque, sync::Arc};

/// The approximate size of an event without its frame, in bytes.
const EVENT_OVERHEAD: usize = 48;
/// The approximate size of a stream without its events, in bytes.
const STREAM_OVERHEAD: usize = size_of::<StreamLog>();

/// The error for an event id that is not of this session, or whose later events are not stored any more.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Unknown;

/// The streams of one session, by ascending number. Nothing is allocated before the first event.
#[derive(Debug)]
pub(super) struct EventLog {
    max_events: usize,
    max_bytes: usize,
    /// The approximate number of stored bytes.
    bytes: usize,
    /// The number of ids that were given out.
    issued: u64,
    /// The streams, by number.
    streams: VecDeque<StreamLog>,
}

#[derive(Debug)]
struct StreamLog {
    number: u64,
    /// The number of the next event.
    next: u64,
    /// The event after which all events are stored.
    whole_after: u64,
    is_finished: bool,
    events: VecDeque<(u64, Arc<[u8]>)>,
}

impl EventLog {
    /// Creates a store with a maximum number of events per stream and of bytes in all streams.
    pub(super) fn new(max_events_per_stream: usize, max_bytes: usize) -> Self {
        Self {
            max_events: max_events_per_stream,
            max_bytes,
            bytes: 0,
            issued: 0,
            streams: VecDeque::new(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.streams.is_empty()
    }

    /// Stores a frame and returns the id of its event, which is unique in the session.
    pub(super) fn append(&mut self, stream: u64, frame: &[u8]) -> String {
        let (id, at) = self.issue(stream);
        let log = &mut self.streams[at];
        log.events.push_back((log.next - 1, frame.into()));
        self.bytes += cost(frame);
        if log.events.len() > self.max_events {
            self.bytes -= log.forget_first();
        }
        self.make_room(stream);
        id
    }

    /// Returns the id of an empty event, after which a client can resume.
    pub(super) fn prime(&mut self, stream: u64) -> String {
        let (id, _) = self.issue(stream);
        self.make_room(stream);
        id
    }

    /// Returns the stream of an event, and all later events of that stream with their ids.
    #[expect(clippy::type_complexity, reason = "frames are shared, ids are made")]
    pub(super) fn replay(&self, after: &str) -> Result<(u64, Vec<(String, Arc<[u8]>)>), Unknown> {
        let (stream, event) = parse(after).ok_or(Unknown)?;
        let at = self.position(stream).map_err(|_| Unknown)?;
        let log = &self.streams[at];
        if !(log.whole_after..log.next).contains(&event) {
            return Err(Unknown);
        }
        let later = log.events.iter().filter(|(number, _)| *number > event);
        Ok((
            stream,
            later.map(|(number, frame)| (spell(stream, *number), Arc::clone(frame))).collect(),
        ))
    }

    /// Returns the frame of an event, if it is stored.
    pub(super) fn frame(&self, stream: u64, event: u64) -> Option<&[u8]> {
        let log = &self.streams[self.position(stream).ok()?];
        let found = log.events.iter().rev().find(|(number, _)| *number == event);
        found.map(|(_, frame)| &**frame)
    }

    /// Marks a stream as complete. Its events stay stored while there is room.
    pub(super) fn finish(&mut self, stream: u64) {
        if let Ok(at) = self.position(stream) {
            self.streams[at].is_finished = true;
        }
    }

    /// Returns the next event number of a stream, and the stream's position.
    fn issue(&mut self, stream: u64) -> (String, usize) {
        let at = self.position(stream).unwrap_or_else(|at| {
            // A stream that was removed and continues must not reuse its ids.
            self.streams.insert(at, StreamLog::new(stream, self.issued));
            self.bytes += STREAM_OVERHEAD;
            at
        });
        let log = &mut self.streams[at];
        log.is_finished = false;
        let event = log.next;
        log.next += 1;
        self.issued += 1;
        (spell(stream, event), at)
    }

    /// Frees space: first the oldest complete streams, then the oldest events of the stream that grew, then those of others.
    fn make_room(&mut self, grown: u64) {
        while self.bytes > self.max_bytes {
            if let Some(at) = self.streams.iter().position(|log| log.is_finished) {
                if let Some(gone) = self.streams.remove(at) {
                    let frames = gone.events.iter().map(|(_, frame)| cost(frame)).sum::<usize>();
                    self.bytes -= frames + STREAM_OVERHEAD;
                }
                continue;
            }
            let has_events = |log: &&mut StreamLog| !log.events.is_empty();
            let own = self.streams.iter_mut().find(|log| log.number == grown).filter(has_events);
            let log = match own {
                Some(log) => Some(log),
                None => self.streams.iter_mut().find(has_events),
            };
            let Some(log) = log else { return };
            self.bytes -= log.forget_first();
        }
    }

    fn position(&self, stream: u64) -> Result<usize, usize> {
        self.streams.binary_search_by_key(&stream, |log| log.number)
    }
}

impl StreamLog {
    fn new(number: u64, first: u64) -> Self {
        Self {
            number,
            next: first,
            whole_after: first,
            is_finished: false,
            events: VecDeque::new(),
        }
    }

    /// Removes the oldest event. Returns the number of freed bytes.
    fn forget_first(&mut self) -> usize {
        let Some((event, frame)) = self.events.pop_front() else { return 0 };
        self.whole_after = event;
        cost(&frame)
    }
}

fn cost(frame: &[u8]) -> usize {
    frame.len() + EVENT_OVERHEAD
}

/// Returns the stream of an event by its id.
pub(super) fn stream_of(event: &str) -> Option<u64> {
    parse(event).map(|(stream, _)| stream)
}

/// Returns the number of an event in its stream by its id.
pub(super) fn number_of(event: &str) -> Option<u64> {
    parse(event).map(|(_, number)| number)
}

/// Returns the id of an event.
pub(super) fn spell(stream: u64, event: u64) -> String {
    format!("{stream}-{event}")
}

/// Parses an id written by `spell`: the stream, and the number of the event in it.
pub(super) fn parse(id: &str) -> Option<(u64, u64)> {
    let (stream, event) = id.split_once('-')?;
    let parts = (stream.parse().ok()?, event.parse().ok()?);
    (spell(parts.0, parts.1) == id).then_some(parts)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::{collection::vec, prelude::*};

    use super::*;

    fn after(log: &EventLog, id: &str) -> Option<(u64, Vec<String>)> {
        let (stream, frames) = log.replay(id).ok()?;
        let text = |frame: &Arc<[u8]>| String::from_utf8_lossy(frame).into_owned();
        Some((stream, frames.iter().map(|(_, frame)| text(frame)).collect()))
    }

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|&text| text.to_owned()).collect()
    }

    #[test]
    fn replay_gives_what_came_later_on_that_stream_only() {
        let mut log = EventLog::new(9, 9999);
        let primed = log.prime(4);
        let first = log.append(4, b"a");
        let other = log.append(7, b"x");
        let last = log.append(4, b"b");
        assert_eq!(after(&log, &primed), Some((4, texts(&["a", "b"]))));
        assert_eq!(after(&log, &first), Some((4, texts(&["b"]))));
        assert_eq!(after(&log, &last), Some((4, texts(&[]))));
        assert_eq!(after(&log, &other), Some((7, texts(&[]))));
        let (_, frames) = log.replay(&primed).expect("known");
        assert_eq!(frames[1].0, last, "a replayed event keeps its id");
    }

    #[test]
    fn an_event_id_that_was_never_issued_is_unknown() {
        let mut log = EventLog::new(9, 9999);
        assert_eq!(log.replay("0-0"), Err(Unknown));
        let id = log.append(0, b"a");
        assert_eq!(id, "0-0");
        log.append(2, b"b");
        for id in [
            "",
            "-",
            "0",
            "0-",
            "0-1",
            "1-0",
            "2-0",
            "2-2",
            "00-0",
            "0-00",
            "+0-0",
            " 0-0",
            "0-0 ",
            "0-0-0",
            "-1-0",
            "0-99999999999999999999",
        ] {
            assert_eq!(log.replay(id), Err(Unknown), "{id:?}");
        }
    }

    #[test]
    fn evicted_events_make_only_those_ids_unknown_after_which_something_is_lost() {
        let mut log = EventLog::new(2, 9999);
        let primed = log.prime(1);
        let ids: Vec<_> =
            ["a", "b", "c", "d"].iter().map(|frame| log.append(1, frame.as_bytes())).collect();
        assert_eq!(after(&log, &primed), None);
        assert_eq!(after(&log, &ids[0]), None);
        assert_eq!(
            after(&log, &ids[1]),
            Some((1, texts(&["c", "d"]))),
            "b is gone, but not needed"
        );
        assert_eq!(after(&log, &ids[2]), Some((1, texts(&["d"]))));
    }

    #[test]
    fn finished_streams_go_first_and_open_ones_stay_whole() {
        let frame = [b'x'; 100];
        let mut log = EventLog::new(99, 700);
        let open = log.prime(0);
        log.append(0, &frame);
        let old = log.prime(2);
        log.append(2, &frame);
        let new = log.prime(4);
        log.append(4, &frame);
        log.finish(4);
        log.finish(2);
        log.append(6, &frame);
        assert!(log.replay(&old).is_err());
        assert!(log.replay(&new).is_ok());
        assert!(log.replay(&open).is_ok());
        assert!(log.bytes <= 700, "{} bytes", log.bytes);
    }

    #[test]
    fn a_frame_that_never_fits_is_a_gap_and_no_more() {
        let mut log = EventLog::new(9, 300);
        let primed = log.prime(0);
        let huge = log.append(0, &[b'x'; 1000]);
        assert_eq!(after(&log, &primed), None);
        assert_eq!(after(&log, &huge), Some((0, texts(&[]))));
        log.append(0, b"a");
        assert_eq!(after(&log, &huge), Some((0, texts(&["a"]))));
    }

    #[test]
    fn a_forgotten_stream_that_goes_on_uses_no_id_twice() {
        let mut log = EventLog::new(9, 400);
        let first = log.append(0, b"a");
        log.finish(0);
        log.append(2, &[b'x'; 200]);
        assert!(log.replay(&first).is_err());
        let next = log.append(0, b"b");
        assert_ne!(first, next);
        assert!(log.replay(&first).is_err());
        assert!(log.replay(&next).is_ok());
    }

    #[test]
    fn nothing_is_allocated_before_the_first_event() {
        let log = EventLog::new(256, 1024);
        assert_eq!((log.streams.capacity(), log.bytes), (0, 0));
        assert!(size_of::<EventLog>() <= 64 && STREAM_OVERHEAD <= 64);
    }

    #[derive(Clone, Debug)]
    enum EventLogStep {
        Append(u64, usize),
        Prime(u64),
        Finish(u64),
    }

    fn steps() -> impl Strategy<Value = Vec<EventLogStep>> {
        let stream = || 0_u64..6;
        let step = prop_oneof![
            4 => (stream(), 0_usize..120)
                .prop_map(|(stream, size)| EventLogStep::Append(stream, size)),
            1 => stream().prop_map(EventLogStep::Prime),
            1 => stream().prop_map(EventLogStep::Finish),
        ];
        vec(step, 0..80)
    }

    proptest! {
        #[test]
        fn replay_is_all_or_unknown_and_the_log_stays_bounded(steps in steps(), max_bytes in 400_usize..2000) {
            let mut log = EventLog::new(5, max_bytes);
            let mut sent: Vec<(String, u64, Option<Vec<u8>>)> = Vec::new();
            for (index, step) in steps.into_iter().enumerate() {
                match step {
                    EventLogStep::Append(stream, size) => {
                        let mut frame = index.to_string().into_bytes();
                        frame.resize(frame.len() + size, b'.');
                        sent.push((log.append(stream, &frame), stream, Some(frame)));
                    }
                    EventLogStep::Prime(stream) => sent.push((log.prime(stream), stream, None)),
                    EventLogStep::Finish(stream) => log.finish(stream),
                }
                prop_assert!(log.bytes <= max_bytes);
            }
            let ids: HashSet<_> = sent.iter().map(|(id, ..)| id).collect();
            prop_assert_eq!(ids.len(), sent.len(), "an id was given out twice");
            for (index, (id, stream, _)) in sent.iter().enumerate() {
                let Ok((found, frames)) = log.replay(id) else { continue };
                prop_assert_eq!(found, *stream);
                let expected: Vec<_> = sent[index + 1..]
                    .iter()
                    .filter(|(_, other, frame)| other == stream && frame.is_some())
                    .map(|(id, _, frame)| (id.clone(), Arc::from(frame.clone().unwrap_or_default())))
                    .collect();
                prop_assert_eq!(frames, expected);
            }
        }

        #[test]
        fn no_text_breaks_the_reader(text in "[0-9+-]{0,30}|.{0,20}") {
            let mut log = EventLog::new(5, 2000);
            let id = log.append(3, b"a");
            prop_assert_eq!(log.replay(&text).is_ok(), text == id);
        }
    }
}
