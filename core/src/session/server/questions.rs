//! Questions to the client as requests on its stream, during one of its calls.

use std::sync::Arc;

use serde_json::value::RawValue;

use super::{
    About, Asked, ClientIdentity, OutgoingFrame, Output, ServerSession,
    asked::{Answered, Asking},
};
use crate::{
    error::{Fault, FaultKind},
    protocol::{
        ElicitRequestParams, ElicitRequestUrlParams, ErrorObject, Id, Method, Raw,
        UrlElicitationRequiredData, code,
    },
    session::{InboundKey, asking::AskId},
    wire::Wire,
};

impl ServerSession {
    pub(super) fn ask(&mut self, call: InboundKey, ask: AskId, method: Method, params: Raw) {
        let Some((_, inbound)) = self.pending.get_mut(call) else {
            return self.ask_for_listener(call, ask, method, params);
        };
        if self.answers_nothing {
            return self.settle_question(call, ask, Err(disconnected()));
        }
        let (wire, client) = (inbound.wire, Arc::clone(&inbound.client));
        let asking = Asking { call, ask, about: About::Call(call), method, params };
        self.put(wire, &client, asking);
    }

    /// Asks on behalf of a notification handler. Only a session can carry such a question, since no request is in
    /// flight.
    fn ask_for_listener(&mut self, call: InboundKey, ask: AskId, method: Method, params: Raw) {
        let client = self.handshake.client().filter(|_| !self.answers_nothing);
        match client {
            _ if !self.answers_nothing && !self.listeners.contains(&call) => {
                self.settle_question(call, ask, Err(handler_finished()));
            }
            Some((wire, client)) => {
                let asking = Asking { call, ask, about: About::Peer, method, params };
                self.put(wire, &client, asking);
            }
            None => self.settle_question(call, ask, Err(disconnected())),
        }
    }

    /// Ends a notification handler and withdraws its open questions.
    pub(super) fn end_listener(&mut self, call: InboundKey) {
        self.listeners.remove(&call);
        self.take_back(call, About::Peer);
    }

    fn put(&mut self, wire: &'static Wire, client: &ClientIdentity, asking: Asking) {
        let Asking { call, ask, about, .. } = asking;
        let is_early = self.handshake.wire().is_some() && !self.handshake.is_confirmed();
        let (book, declared) = (self.book(call, ask), client.capabilities.as_ref());
        let put = match is_early {
            true => book.hold(wire, declared, asking).map(|()| None),
            false => book.ask(wire, declared, asking).map(Some),
        };
        match put {
            Ok(Some(frame)) => self.send_question(about, frame),
            Ok(None) => (),
            Err(fault) => self.settle_question(call, ask, Err(fault)),
        }
    }

    /// Sends the queued questions after the handshake is confirmed (Lifecycle, "Initialization").
    pub(super) fn put_held(&mut self) {
        let held = self.asked.as_mut().map(|asked| asked.take_held()).unwrap_or_default();
        let Some((wire, client)) = self.handshake.client() else { return };
        for asking in held {
            self.put(wire, &client, asking);
        }
    }

    /// Returns the questions of this client; the first question creates the table.
    fn book(&mut self, call: InboundKey, ask: AskId) -> &mut Asked {
        let (seed, first) = (self.config.seed, self.first_question);
        self.asked.get_or_insert_with(|| {
            let own = [&seed[..], &call.0.to_le_bytes(), &ask.0.to_le_bytes()].concat();
            Box::new(Asked::new(&own, first))
        })
    }

    /// Records the pages named in an error, whose completion is to be reported (2025-11-25, Elicitation, "URL
    /// Elicitation Required Error").
    pub(super) fn note_pages(&mut self, call: InboundKey, wire: &Wire, fault: &Fault) {
        let is_needed = fault.kind == FaultKind::Protocol(code::URL_ELICITATION_REQUIRED)
            && wire.server_notifications.contains(&Method::ElicitationComplete);
        let data = fault.data.as_ref().filter(|_| is_needed);
        let Some(UrlElicitationRequiredData { elicitations }) =
            data.and_then(|data| serde_json::from_str(data.get()).ok())
        else {
            return;
        };
        for page in elicitations {
            if let ElicitRequestParams::Url(ElicitRequestUrlParams {
                elicitation_id: Some(name),
                ..
            }) = page
            {
                self.book(call, AskId(0)).note_page(name);
            }
        }
    }

    pub(super) fn handle_answer(
        &mut self,
        id: Option<&Id>,
        outcome: Result<&RawValue, ErrorObject>,
    ) {
        // An unknown id is ignored: its question may have been withdrawn in the meantime.
        match self.asked.as_mut().and_then(|asked| asked.answer(id, outcome)) {
            Some(Answered::Failed { call, ask, fault }) => {
                self.settle_question(call, ask, Err(fault));
            }
            Some(Answered::Received { call, ask, answer }) => {
                self.outputs.push_back(Output::AnswerReceived { call, ask, answer });
            }
            None => (),
        }
    }

    /// Withdraws the open questions of a finished call.
    pub(super) fn withdraw(&mut self, call: InboundKey) {
        self.take_back(call, About::Call(call));
    }

    fn take_back(&mut self, call: InboundKey, about: About) {
        let word = self.handshake.wire().unwrap_or(self.spoken).word(Method::Cancelled);
        let frames =
            self.asked.as_mut().map(|asked| asked.withdraw(call, word)).unwrap_or_default();
        for frame in frames {
            self.send_question(about, frame);
        }
    }

    /// Drops all questions of a disconnected client. Its cancelled handlers receive no error, because they would
    /// continue without an answer.
    pub(super) fn give_up_questions(&mut self, stopped: &[InboundKey]) {
        let open = self.asked.take().map(|mut asked| asked.close()).unwrap_or_default();
        for (call, ask) in open.into_iter().filter(|(call, _)| !stopped.contains(call)) {
            self.settle_question(call, ask, Err(disconnected()));
        }
    }

    pub(super) fn notify_page_done(&mut self, page: &str) {
        if let Some(frame) = self.asked.as_mut().and_then(|asked| asked.page_done(page)) {
            self.send_question(About::Peer, frame);
        }
    }

    fn settle_question(&mut self, call: InboundKey, ask: AskId, outcome: Result<Raw, Fault>) {
        self.outputs.push_back(Output::Answered { call, ask, outcome });
    }

    fn send_question(&mut self, about: About, frame: Vec<u8>) {
        let sent = OutgoingFrame { is_asking: true, ..OutgoingFrame::new(frame, about) };
        self.outputs.push_back(Output::Send(sent));
    }
}

/// Returns the error for a question asked after the handler's call has ended.
pub fn handler_finished() -> Fault {
    let problem = "the call is over: a handler can ask its client only while its call runs";
    Fault::new(FaultKind::Handler, problem)
}

/// Returns the error for a question that stays unanswered because the client disconnected.
pub fn disconnected() -> Fault {
    Fault::new(FaultKind::Handler, "the client disconnected: this question gets no answer")
}
