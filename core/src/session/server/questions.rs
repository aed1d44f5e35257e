//! Questions to the client while one of its calls is under way, as real requests on its stream.

use serde_json::value::RawValue;

use super::{About, Asked, Output, Sent, ServerSession, asked::Answered};
use crate::{
    error::{Fault, FaultKind},
    protocol::{ErrorObject, Id, Method, Raw},
    session::{CallId, asking::AskId},
};

impl ServerSession {
    pub(super) fn ask(&mut self, call: CallId, ask: AskId, method: Method, params: Raw) {
        let Some((_, inbound)) = self.pending.get_mut(call) else {
            return self.settle_question(call, ask, Err(nobody()));
        };
        let seed = self.config.seed;
        let asked = self.asked.get_or_insert_with(|| {
            let own = [&seed[..], &call.0.to_le_bytes(), &ask.0.to_le_bytes()].concat();
            Box::new(Asked::new(&own))
        });
        let capabilities = inbound.client.capabilities.as_ref();
        match asked.ask(inbound.wire, capabilities, (call, ask), method, params) {
            Ok(frame) => self.say(About::Call(call), frame),
            Err(fault) => self.settle_question(call, ask, Err(fault)),
        }
    }

    pub(super) fn handle_answer(
        &mut self,
        id: Option<&Id>,
        outcome: Result<&RawValue, ErrorObject>,
    ) {
        // An answer to nothing is ignored: its question may have been withdrawn while it was on its way.
        let answered = self.asked.as_mut().and_then(|it| it.answer(id, outcome));
        if let Some(Answered { call, ask, outcome }) = answered {
            self.settle_question(call, ask, outcome);
        }
    }

    /// A call is over: what it still asks is taken back.
    pub(super) fn withdraw(&mut self, call: CallId) {
        let word = self.handshake.wire().unwrap_or(self.spoken).word(Method::Cancelled);
        let frames = self.asked.as_mut().map(|it| it.withdraw(call, word)).unwrap_or_default();
        for frame in frames {
            self.say(About::Call(call), frame);
        }
    }

    pub(super) fn give_up_questions(&mut self) {
        let open = self.asked.take().map(|mut it| it.close()).unwrap_or_default();
        for (call, ask) in open {
            self.settle_question(call, ask, Err(nobody()));
        }
    }

    pub(super) fn tell_page_done(&mut self, page: &str) {
        if let Some(frame) = self.asked.as_mut().and_then(|it| it.page_done(page)) {
            self.say(About::Peer, frame);
        }
    }

    fn settle_question(&mut self, call: CallId, ask: AskId, outcome: Result<Raw, Fault>) {
        self.outputs.push_back(Output::Answered { call, ask, outcome });
    }

    fn say(&mut self, about: About, frame: Vec<u8>) {
        self.outputs.push_back(Output::Send(Sent { frame, about, error: None }));
    }
}

fn nobody() -> Fault {
    Fault::new(FaultKind::Handler, "the client is gone: nobody answers this question any more")
}
