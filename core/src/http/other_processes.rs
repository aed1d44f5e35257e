//! Sessions and changes that an endpoint shares with the other processes of its address: a client's next request may go to any
//! of them.
//!
//! A process acts on a message if it holds the session that the message names. A session that no process holds has nothing
//! that a message could concern.

use std::{borrow::Cow, time::Instant};

use super::{
    Endpoint,
    logging::End,
    process_message::{List, Outcome, ProcessMessage, Sender},
    sealed_id, session,
};
use crate::{
    log_events::EventKind,
    protocol::{Frame, Id, Message, Method, Params, Raw, json},
    session::server::{HttpFacts, ListKind},
};

impl Endpoint {
    /// Has the endpoint send messages to other processes, and take theirs.
    #[doc(hidden)] // For the drivers and the tests.
    pub fn share(&mut self) {
        self.is_shared = true;
    }

    /// Handles a message of another process. One that can't be read is ignored: processes of two versions may serve together
    /// during an update.
    pub(super) fn handle_published(&mut self, now: Instant, message: &[u8]) {
        let Ok(message) = json::from_bytes::<ProcessMessage>(message) else {
            return tracing::debug!("ignored a message of another process that can't be read");
        };
        match message {
            ProcessMessage::Changed(lists) => {
                let lists: Vec<_> = lists.into_iter().map(ListKind::from).collect();
                self.lists_changed(now, &lists);
            }
            ProcessMessage::Updated(uri) => self.resource_updated(now, &uri),
            ProcessMessage::PageDone(page) => {
                self.pass_to_all(now, |()| session::Input::PageDone(&page));
            }
            ProcessMessage::Answer { session, question, outcome } => {
                let outcome = match &outcome {
                    Outcome::Result(result) => Ok(&**result),
                    Outcome::Error(error) => Err(error.clone()),
                };
                let id = Id::parse(question.get());
                let message = Message::Response { id, outcome, has_both: false };
                self.pass_from_elsewhere(now, &session, message);
            }
            ProcessMessage::Cancel { session, request } => {
                let method = Cow::Borrowed(Method::Cancelled.as_str());
                let params = Params::Object(vec![(Cow::Borrowed("requestId"), &*request)]);
                let message = Message::Notification { method, params };
                self.pass_from_elsewhere(now, &session, message);
            }
            ProcessMessage::Ended { session } => {
                if let Some(key) = sealed_id::key(&session) {
                    self.absent.ended.add(key);
                }
                if let Some(number) = self.sessions.number_of(&session) {
                    self.end_session(now, number, End::Deleted);
                }
            }
            ProcessMessage::Listens { session } => self.send_kept_elsewhere(&session),
            ProcessMessage::Send { session, sender, frame, is_change } => {
                self.send_from_elsewhere(now, session, sender, &frame, is_change);
            }
            ProcessMessage::Made { session, changes } => self.adopt_changes(now, &session, changes),
            ProcessMessage::Follow { session, stream, is_new } => {
                self.let_follow(session, stream, is_new);
            }
            ProcessMessage::Followed { session, stream } => self.note_owner(&session, stream),
            ProcessMessage::Event { session, stream, event, frame, is_last } => {
                self.pass_event(now, (&session, stream), event, frame, is_last);
            }
            ProcessMessage::Offer { to, from, request } => {
                if to == self.engine.process() {
                    self.take_over(now, from, *request);
                }
            }
            ProcessMessage::Taken { from, is_here } => self.note_taken(now, from, is_here),
            ProcessMessage::Ask { to, from } => {
                if to == self.engine.process() {
                    self.confirm_taken(from);
                }
            }
            ProcessMessage::Left { to, from } => {
                if to == self.engine.process() {
                    self.leave_taken(now, from);
                }
            }
            ProcessMessage::Part { to, number, part } => self.pass_part(now, to, number, part),
            ProcessMessage::Count { from } => self.keep_numbers(from),
            ProcessMessage::Counted { to, by } => self.note_counted(now, to, by),
            ProcessMessage::Sent { session, sender } => {
                if sender.process == self.engine.process()
                    && let Some(number) = self.sessions.number_of(&session)
                    && let Some(session) = self.sessions.get_mut(number)
                {
                    session.forget_kept(sender.message);
                }
            }
        }
    }

    /// Tells clients and the other processes that lists have changed.
    pub(super) fn announce_lists(&mut self, now: Instant, lists: &[ListKind]) {
        if !lists.is_empty() {
            self.publish(&ProcessMessage::Changed(lists.iter().copied().map(List::from).collect()));
            self.lists_changed(now, lists);
        }
    }

    /// Tells clients and the other processes that a resource has changed.
    pub(super) fn announce_update(&mut self, now: Instant, uri: &str) {
        if self.is_shared {
            self.publish(&ProcessMessage::Updated(uri.to_owned()));
        }
        self.resource_updated(now, uri);
    }

    /// Tells clients and the other processes that a page is done.
    pub(super) fn announce_page(&mut self, now: Instant, page: &str) {
        if self.is_shared {
            self.publish(&ProcessMessage::PageDone(page.to_owned()));
        }
        self.pass_to_all(now, |()| session::Input::PageDone(page));
    }

    /// Passes on what a client says about a request or question that this process does not know.
    pub(super) fn pass_on(&mut self, number: u64, frame: &Frame<'_>, facts: &HttpFacts) {
        if !self.is_shared {
            return self.log_lost_answers(number, frame, facts);
        }
        let Some(session) = self.sessions.get_mut(number) else { return };
        let (id, machine) = (session.id.to_string(), &session.peer.machine);
        let unknown = |message: &Message<'_>| match message {
            Message::Response { id: Some(question), outcome, .. } if !machine.asked(question) => {
                let outcome = match outcome {
                    Ok(result) => Outcome::Result((*result).to_owned()),
                    Err(error) => Outcome::Error(error.clone()),
                };
                let question = json::raw(question.as_json().to_owned());
                Some(ProcessMessage::Answer { session: id.clone(), question, outcome })
            }
            Message::Notification { method, params } if *method == Method::Cancelled.as_str() => {
                let request = params.get("requestId")?;
                let is_here = Id::parse(request.get()).is_some_and(|request| machine.has(&request));
                let request = request.to_owned();
                (!is_here).then(|| ProcessMessage::Cancel { session: id.clone(), request })
            }
            _ => None,
        };
        let messages: Vec<_> = match frame {
            Frame::One(message) => message.iter().filter_map(unknown).collect(),
            Frame::Batch(messages) => messages.iter().flatten().filter_map(unknown).collect(),
        };
        for message in messages {
            self.publish(&message);
        }
    }

    /// Logs answers that reach nobody. Their POST succeeds nevertheless: an error would end the connection of some clients for good,
    /// such as those of the official Python SDK 1.x, and with it all their calls.
    fn log_lost_answers(&mut self, number: u64, frame: &Frame<'_>, facts: &HttpFacts) {
        let Some(session) = self.sessions.get_mut(number) else { return };
        let machine = &session.peer.machine;
        // One whose question is over is late, and no loss.
        let is_lost = |message: &Message<'_>| match message {
            Message::Response { id: Some(question), .. } => !machine.has_asked(question),
            _ => false,
        };
        let is_lost = match frame {
            Frame::One(message) => message.as_ref().is_ok_and(is_lost),
            Frame::Batch(messages) => messages.iter().flatten().any(is_lost),
        };
        if is_lost {
            self.log_of_request(EventKind::AnswerLost, number, facts);
        }
    }

    /// Tells the other processes that a client has opened a stream of a session here.
    pub(super) fn announce_stream(&mut self, number: u64) {
        if self.is_shared
            && let Some(session) = self.sessions.get_mut(number)
        {
            let session = session.id.to_string();
            self.publish(&ProcessMessage::Listens { session });
        }
    }

    /// Offers a message, which this process keeps for a session without a stream, to the others.
    pub(super) fn offer(&mut self, session: &str, message: u64, frame: Raw, is_change: bool) {
        let sender = Sender { process: self.engine.process(), message };
        let session = session.to_owned();
        self.publish(&ProcessMessage::Send { session, sender, frame, is_change });
    }

    /// Offers what is kept for a session whose client has a stream at another process.
    fn send_kept_elsewhere(&mut self, session: &str) {
        let Some(number) = self.sessions.number_of(session) else { return };
        if self.stored.is_there()
            && let Some(session) = self.sessions.get_mut(number)
        {
            session.forget_kept_changes();
        }
        let kept = self.sessions.get_mut(number).map(|session| session.kept()).unwrap_or_default();
        for (message, frame, is_change) in kept {
            self.offer(session, message, frame, is_change);
        }
    }

    /// Sends a message that another process keeps, if the session's stream is open here.
    fn send_from_elsewhere(
        &mut self,
        now: Instant,
        id: String,
        sender: Sender,
        frame: &Raw,
        is_change: bool,
    ) {
        let Some(number) = self.sessions.number_of(&id) else { return };
        let Some(mut session) = self.sessions.take(number) else { return };
        if let Some(stream) = session.standalone() {
            let frame = (frame.get().as_bytes(), false);
            self.log_and_write(now, &mut session, stream, frame, is_change);
            self.publish(&ProcessMessage::Sent { session: id, sender });
        }
        self.sessions.put(session);
    }

    pub(super) fn lists_changed(&mut self, now: Instant, lists: &[ListKind]) {
        self.note_list_changes(now, lists);
        for list in lists {
            self.pass_to_all(now, |()| session::Input::Changed(*list));
        }
    }

    fn resource_updated(&mut self, now: Instant, uri: &str) {
        self.engine.forget_reads(uri);
        self.pass_to_all(now, |()| session::Input::Updated(uri));
    }

    fn pass_from_elsewhere(&mut self, now: Instant, session: &str, message: Message<'_>) {
        if let Some(number) = self.sessions.number_of(session) {
            self.pass_to_session(now, number, session::Input::Parsed(Frame::One(Ok(message))));
        }
    }
}
