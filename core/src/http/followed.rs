//! Streams of sessions that began in another process and that a client resumes here (2025-11-25, Transports, "Resumability and
//! Redelivery"). What was sent is read from the store. What is still to come is sent by the process of the stream while it lives;
//! when it is gone, the request that the stream answers fails.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use http::StatusCode;
use rustc_hash::FxHashMap;

use super::{
    Endpoint, ExchangeId, ExchangeOwner,
    delivery::set_session_id,
    events,
    logging::Reason,
    process_message::ProcessMessage,
    reply,
    requests::{HttpRequest, too_many},
    sessions::{Session, is_standalone},
    stored::Awaiting,
    stored_events::{self, StoredEvent},
    streams::{exchange, too_old},
};
use crate::{
    framing::sse,
    protocol::{ErrorObject, Id, Raw, Revision, code, json},
    store::{StoreOperation, StoreReply},
    wire::{self, Wire},
};

/// The time in which the process of a stream has to say that it is there.
const PATIENCE: Duration = Duration::from_secs(5);
/// The maximum number of streams that are followed.
const MAX_FOLLOWED: usize = 10_000;
/// The maximum number of events of one stream that wait for those that precede them.
const MAX_EARLY: usize = 256;
/// The maximum number of events that a client may have seen and the store may not have.
const MAX_UNSTORED: u64 = 256;
const GONE: &str = "the process that handled this request is gone, and with it the result; whether the request took effect is unknown";
const AWAY: &str = "the store with the events of this stream does not answer: try again later";

/// The streams that are followed, by the GET that resumed them.
#[derive(Debug, Default)]
pub(super) struct FollowedStreams(FxHashMap<ExchangeId, Followed>);

#[derive(Debug)]
struct Followed {
    session: Arc<str>,
    stream: u64,
    /// The number of the next event.
    next: u64,
    stage: Stage,
    /// Events that came from the process of the stream before those that precede them.
    early: Vec<Event>,
    wire: &'static Wire,
    /// The id of the request that the stream answers.
    request: Option<Id>,
    /// `true` if the process of the stream has said that it is there.
    is_alive: bool,
    /// The time at which it must have said so again.
    until: Instant,
}

#[derive(Debug)]
enum Stage {
    /// The stored events are read for the first time, before the request is answered.
    Opening(Box<HttpRequest>),
    /// The events that were sent are read once more, because the process of the stream said nothing.
    Checking,
    /// Events come from the process of the stream.
    Open,
}

#[derive(Debug)]
struct Event {
    number: u64,
    frame: Raw,
    is_last: bool,
}

impl FollowedStreams {
    /// Returns the number of streams of a session that are followed.
    fn count(&self, session: &str) -> usize {
        self.0.values().filter(|followed| *followed.session == *session).count()
    }

    /// Returns the GET that follows a stream.
    fn of_stream(&self, session: &str, stream: u64) -> Option<ExchangeId> {
        let is_it =
            |followed: &Followed| followed.stream == stream && *followed.session == *session;
        self.0.iter().find(|(_, followed)| is_it(followed)).map(|(exchange, _)| *exchange)
    }
}

impl Endpoint {
    /// Resumes a stream that this process does not know, after the event with this id, if it may be stored.
    pub(super) fn follow(
        &mut self,
        now: Instant,
        request: HttpRequest,
        session: &Session,
        event: &str,
    ) {
        let found = events::parse(event).and_then(|(stream, event)| {
            Some((stream, event, stored_events::log(&session.id, stream)?))
        });
        let Some((stream, event, log)) = found else {
            return self.refuse_request(request, StatusCode::BAD_REQUEST, &too_old());
        };
        let followed = &mut self.followed;
        if session.listening(None) + followed.count(&session.id) >= self.config.max_streams
            || followed.0.len() >= MAX_FOLLOWED
        {
            return self
                .refuse_for_now(request, &too_many("streams of one session", "max_streams"));
        }
        let id = request.exchange;
        let until = now + PATIENCE;
        followed.0.insert(
            id,
            Followed {
                session: Arc::clone(&session.id),
                stream,
                next: event + 1,
                stage: Stage::Opening(Box::new(request)),
                early: Vec::new(),
                wire: session.peer.machine.agreed().unwrap_or(Wire::for_revision(Revision::LATEST)),
                request: None,
                is_alive: false,
                until,
            },
        );
        self.sweep_at(Some(until));
        // Asked before the events are read, so that none is missed in between.
        self.ask_owner(&session.id, stream, true);
        self.ask_store(StoreOperation::Read { log, after: 0 }, Awaiting::Events(id));
    }

    /// Handles the stored events of a stream.
    pub(super) fn continue_following(&mut self, now: Instant, id: ExchangeId, reply: StoreReply) {
        let Some(mut followed) = self.followed.0.remove(&id) else { return };
        let events = match reply {
            StoreReply::Events(events) => read(&events),
            _ => return self.fail_to_follow(now, id, followed),
        };
        followed.request = followed.request.take().or_else(|| request_of(&events));
        let before = followed.next - 1;
        let later: Vec<_> = events.iter().filter(|event| event.number > before).collect();
        match std::mem::replace(&mut followed.stage, Stage::Open) {
            Stage::Opening(request) => {
                // Events that were sent may have come to the client before the store could have them.
                let last = events.last().map(|event| event.number);
                let is_known = last.is_some_and(|last| before.saturating_sub(last) <= MAX_UNSTORED)
                    && later.first().is_none_or(|event| event.number == followed.next);
                if is_standalone(followed.stream) {
                    return self.replace_standalone(now, *request, &followed, is_known, events);
                }
                if !is_known {
                    return self.refuse_request(*request, StatusCode::BAD_REQUEST, &too_old());
                }
                let is_over =
                    events.iter().any(|event| event.is_last && event.number < followed.next);
                self.open_followed(now, *request, &followed.session);
                if is_over {
                    return self.end(id);
                }
                self.followed.0.insert(id, followed);
                self.send_stored(now, id, events);
            }
            Stage::Checking if later.is_empty() => self.end_lost(now, id, &followed),
            // The client resumes it again, and is told that events are missing.
            Stage::Checking | Stage::Open
                if later.first().is_some_and(|event| event.number > followed.next) =>
            {
                self.end(id);
            }
            Stage::Checking | Stage::Open => {
                self.followed.0.insert(id, followed);
                self.send_stored(now, id, events);
            }
        }
    }

    /// Handles a message of another process that follows a stream of this one.
    pub(super) fn let_follow(&mut self, session: String, stream: u64, is_new: bool) {
        // The client may have moved on from here.
        if is_new && let Some(id) = self.followed.of_stream(&session, stream) {
            self.followed.0.remove(&id);
            self.end(id);
        }
        let Some(number) = self.sessions.number_of(&session) else { return };
        let Some(mut entry) = self.sessions.take(number) else { return };
        if is_new {
            // The other process may have read the store before these were in it.
            for (_, event, _) in self.unsent.events_of(number, stream) {
                event.is_followed = true;
            }
        }
        let before = match entry.stream(stream) {
            Some(own) if is_new && is_standalone(stream) => own.exchange,
            Some(own) if is_new && own.is_streaming => {
                own.is_followed = true;
                own.exchange.take()
            }
            _ => None,
        };
        if is_standalone(stream) {
            entry.close(stream);
        } else if entry.stream(stream).is_some_and(|own| own.is_followed) {
            self.publish(&ProcessMessage::Followed { session, stream });
        }
        if let Some(before) = before {
            self.unsent.discard(before);
            self.end(before);
        }
        self.sessions.put(entry);
    }

    /// Notes that the process of a stream is there.
    pub(super) fn note_owner(&mut self, session: &str, stream: u64) {
        if let Some(id) = self.followed.of_stream(session, stream)
            && let Some(followed) = self.followed.0.get_mut(&id)
        {
            followed.is_alive = true;
        }
    }

    /// Handles an event from the process of a stream that is followed here.
    pub(super) fn pass_event(
        &mut self,
        now: Instant,
        (session, stream): (&str, u64),
        number: u64,
        frame: Raw,
        is_last: bool,
    ) {
        let Some(id) = self.followed.of_stream(session, stream) else { return };
        let Some(followed) = self.followed.0.get_mut(&id) else { return };
        followed.is_alive = true;
        let is_opening = matches!(followed.stage, Stage::Opening(_));
        if !is_opening && number == followed.next {
            return self.send_followed(now, id, &Event { number, frame, is_last });
        }
        if number < followed.next {
            return;
        }
        // One that does not fit is read from the store later.
        if followed.early.len() < MAX_EARLY {
            followed.early.push(Event { number, frame, is_last });
        }
        if !is_opening && let Some(log) = stored_events::log(session, stream) {
            self.ask_store(StoreOperation::Read { log, after: 0 }, Awaiting::Events(id));
        }
    }

    /// Asks the processes of streams that are followed whether they are there, and ends those streams that are lost.
    pub(super) fn check_followed(&mut self, now: Instant) {
        let mut due = Vec::new();
        for (id, followed) in &self.followed.0 {
            match followed.until <= now {
                true => due.push(*id),
                false => {
                    self.next_sweep =
                        [self.next_sweep, Some(followed.until)].into_iter().flatten().min();
                }
            }
        }
        for id in due {
            let Some(followed) = self.followed.0.get_mut(&id) else { continue };
            followed.until = now + PATIENCE;
            let (session, stream) = (Arc::clone(&followed.session), followed.stream);
            let was_alive = std::mem::take(&mut followed.is_alive);
            match followed.stage {
                Stage::Open if was_alive => self.ask_owner(&session, stream, false),
                Stage::Open => {
                    // Its last event may have been stored when it was asked.
                    followed.stage = Stage::Checking;
                    if let Some(log) = stored_events::log(&session, stream) {
                        let read = StoreOperation::Read { log, after: 0 };
                        self.ask_store(read, Awaiting::Events(id));
                    }
                }
                Stage::Opening(_) | Stage::Checking => (),
            }
            self.sweep_at(Some(now + PATIENCE));
        }
    }

    /// Forgets a stream whose client has left. Returns whether it was followed.
    pub(super) fn stop_following(&mut self, id: ExchangeId) -> bool {
        self.followed.0.remove(&id).is_some()
    }

    /// Ends all streams that are followed, so that their clients resume them elsewhere.
    pub(super) fn end_followed(&mut self) {
        for (id, followed) in std::mem::take(&mut self.followed.0) {
            match followed.stage {
                Stage::Opening(request) => self.refuse_for_now(*request, &away()),
                Stage::Checking | Stage::Open => self.end(id),
            }
        }
    }

    fn ask_owner(&mut self, session: &str, stream: u64, is_new: bool) {
        let session = session.to_owned();
        self.publish(&ProcessMessage::Follow { session, stream, is_new });
    }

    /// Begins the answer to a GET.
    fn open_followed(&mut self, now: Instant, request: HttpRequest, session: &str) {
        let (id, expires) = (request.exchange, request.expires);
        if let Some(session) =
            self.sessions.number_of(session).and_then(|number| self.sessions.take(number))
        {
            self.log_stream_opened(&session, &request.facts);
            self.sessions.put(session);
        }
        let mut exchange = exchange(now, request, ExchangeOwner::Followed);
        let mut headers = reply::stream_head();
        set_session_id(&mut headers, session);
        let first = sse::KEEP_ALIVE.to_vec();
        self.respond(id, &mut exchange, StatusCode::OK, headers, first, true);
        self.exchanges.insert(id, exchange);
        if let Some(at) = expires {
            self.expiry.note(at);
        }
    }

    /// Sends those of these events that come next, and then those that came early.
    fn send_stored(&mut self, now: Instant, id: ExchangeId, events: Vec<StoredEvent>) {
        for StoredEvent { number, frame, is_last, .. } in events {
            match frame {
                Some(frame) => self.send_followed(now, id, &Event { number, frame, is_last }),
                None => {
                    if let Some(followed) = self.followed.0.get_mut(&id)
                        && followed.next == number
                    {
                        followed.next += 1;
                    }
                }
            }
        }
        let Some(followed) = self.followed.0.get_mut(&id) else { return };
        let mut early = std::mem::take(&mut followed.early);
        early.sort_by_key(|event| event.number);
        for event in early {
            self.send_followed(now, id, &event);
        }
    }

    /// Sends an event if it is the next one.
    fn send_followed(&mut self, now: Instant, id: ExchangeId, event: &Event) {
        let Some(followed) = self.followed.0.get_mut(&id) else { return };
        if event.number != followed.next {
            return;
        }
        followed.next += 1;
        let spelled = events::spell(followed.stream, event.number);
        self.write_event(now, id, Some(&spelled), event.frame.get());
        if event.is_last {
            self.followed.0.remove(&id);
            self.end(id);
        }
    }

    /// Sends what was stored of a stream that answers no request, and opens a new one in its place.
    fn replace_standalone(
        &mut self,
        now: Instant,
        request: HttpRequest,
        followed: &Followed,
        is_known: bool,
        events: Vec<StoredEvent>,
    ) {
        let Some(number) = self.sessions.number_of(&followed.session) else {
            return self.refuse_for_now(request, &away());
        };
        let Some(mut session) = self.sessions.take(number) else { return };
        let id = request.exchange;
        let stream = session.open(id, true);
        self.connect(now, request, &session, stream);
        // Where events are missing, what they reported is reported anew, because the session is new here.
        for StoredEvent { number, frame, .. } in events.into_iter().filter(|_| is_known) {
            if let Some(frame) = frame.filter(|_| number >= followed.next) {
                let spelled = events::spell(followed.stream, number);
                self.write_event(now, id, Some(&spelled), frame.get());
            }
        }
        self.deliver_kept(now, &mut session, stream);
        self.sessions.put(session);
        self.tell_missed_changes(now, number);
        self.announce_stream(number);
    }

    fn end_lost(&mut self, now: Instant, id: ExchangeId, followed: &Followed) {
        if let Some(request) = &followed.request {
            let error = ErrorObject::new(code::INTERNAL_ERROR, GONE);
            let frame = wire::error_frame(followed.wire, Some(request), &error);
            self.write_event(now, id, None, &String::from_utf8_lossy(&frame));
        }
        self.end(id);
    }

    /// The store has no events for a client now.
    fn fail_to_follow(&mut self, now: Instant, id: ExchangeId, mut followed: Followed) {
        match std::mem::replace(&mut followed.stage, Stage::Open) {
            Stage::Opening(request) if is_standalone(followed.stream) => {
                self.replace_standalone(now, *request, &followed, false, Vec::new());
            }
            Stage::Opening(request) => self.refuse_for_now(*request, &away()),
            // The client resumes it again, perhaps elsewhere.
            Stage::Checking => self.end(id),
            Stage::Open => drop(self.followed.0.insert(id, followed)),
        }
    }

    fn write_event(&mut self, now: Instant, id: ExchangeId, event: Option<&str>, frame: &str) {
        let mut bytes = Vec::with_capacity(frame.len() + 32);
        sse::event(&mut bytes, event, frame.as_bytes());
        self.write(now, id, bytes, false);
    }
}

fn away() -> Reason {
    Reason::new("store", AWAY)
}

fn read(events: &[(u64, Vec<u8>)]) -> Vec<StoredEvent> {
    let mut events: Vec<StoredEvent> =
        events.iter().filter_map(|(_, event)| json::from_bytes(event).ok()).collect();
    events.sort_by_key(|event| event.number);
    events
}

fn request_of(events: &[StoredEvent]) -> Option<Id> {
    events.iter().find_map(|event| Id::parse(event.request.as_ref()?.get()))
}
