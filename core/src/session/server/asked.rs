//! The server's questions to its client that are in flight as requests, by call.

use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use super::About;
use crate::{
    error::{Fault, FaultKind},
    protocol::{ErrorObject, Id, Method, Question, Raw, code, json::ObjectWriter},
    session::{
        InboundKey,
        asking::{self, AskId, ReceivedAnswer},
    },
    wire::{self, Stamp, Wire},
};

/// The maximum number of open questions, and of open pages, per client.
const MAX_OPEN: usize = 1_000;

/// The questions in flight of one session.
#[derive(Debug)]
pub(super) struct Asked {
    /// Makes page ids unpredictable and different from those of other sessions.
    seed: [u8; 32],
    /// The id of the first question.
    first: u64,
    next: u64,
    open: BTreeMap<u64, Open>,
    /// Questions asked before the client confirmed the handshake.
    held: Vec<Asking>,
    /// Open pages that the client was asked to visit, by the number of their request.
    pages: BTreeMap<u64, String>,
}

/// A question with its call and its stream.
#[derive(Clone, Debug)]
pub(super) struct Asking {
    pub(super) call: InboundKey,
    pub(super) ask: AskId,
    /// The stream or call that the request is sent on.
    pub(super) about: About,
    pub(super) method: Method,
    /// The question in the newest vocabulary.
    pub(super) params: Raw,
}

#[derive(Debug)]
struct Open {
    asking: Asking,
    /// The id of the page to visit.
    page: Option<String>,
}

/// The interpretation of a client's response.
#[derive(Debug)]
pub(super) enum Answered {
    /// A result, not yet checked.
    Received { call: InboundKey, ask: AskId, answer: ReceivedAnswer },
    /// The client has no result.
    Failed { call: InboundKey, ask: AskId, fault: Fault },
}

impl Asked {
    /// `seed` must be different for every session, and should be random. `first` is the id of the first question.
    pub(super) fn new(seed: &[u8], first: u64) -> Self {
        Self {
            seed: Sha256::digest(seed).into(),
            first,
            next: first,
            open: BTreeMap::new(),
            held: Vec::new(),
            pages: BTreeMap::new(),
        }
    }

    /// Returns the request to send; errors if the question can't be asked. `capabilities` are those that the client
    /// declared.
    pub(super) fn ask(
        &mut self,
        wire: &'static Wire,
        capabilities: Option<&Raw>,
        asking: Asking,
    ) -> Result<Vec<u8>, Fault> {
        self.check(wire, capabilities, &asking)?;
        self.send(wire, asking)
    }

    /// Queues a question until the handshake is confirmed.
    pub(super) fn hold(
        &mut self,
        wire: &'static Wire,
        capabilities: Option<&Raw>,
        asking: Asking,
    ) -> Result<(), Fault> {
        self.check(wire, capabilities, &asking)?;
        self.held.push(asking);
        Ok(())
    }

    pub(super) fn take_held(&mut self) -> Vec<Asking> {
        std::mem::take(&mut self.held)
    }

    fn check(&self, wire: &Wire, capabilities: Option<&Raw>, asking: &Asking) -> Result<(), Fault> {
        let (method, params) = (asking.method, asking.params.clone());
        asking::check(&Question { key: String::new(), method, params }, capabilities, wire)?;
        if self.open.len() + self.held.len() < MAX_OPEN {
            return Ok(());
        }
        Err(Fault::new(
            FaultKind::Handler,
            format!("the client already has {MAX_OPEN} open questions: ask again later"),
        ))
    }

    /// Returns the question that a response answers; `None` if it answers none.
    pub(super) fn answer(
        &mut self,
        id: Option<&Id>,
        outcome: Result<&RawValue, ErrorObject>,
    ) -> Option<Answered> {
        let number = id?.as_json().parse().ok()?;
        let Open { asking, page } = self.open.remove(&number)?;
        let Asking { call, ask, method, params, .. } = asking;
        let fault = match outcome {
            Ok(result) => {
                let answer = ReceivedAnswer { method, params, page, result: result.to_owned() };
                return Some(Answered::Received { call, ask, answer });
            }
            Err(ErrorObject { code: code::USER_REJECTED, message, .. })
                if method == Method::CreateMessage =>
            {
                Fault::new(FaultKind::Declined, format!("sampling ({message})"))
            }
            Err(ErrorObject { code, message, data }) => {
                Fault::new(FaultKind::Protocol(code), message).with_data(data)
            }
        };
        Some(Answered::Failed { call, ask, fault })
    }

    /// Withdraws the open questions of a finished call. Returns the cancellation notifications to send, in the
    /// session's vocabulary.
    pub(super) fn withdraw(&mut self, call: InboundKey, cancelled: &str) -> Vec<Vec<u8>> {
        self.held.retain(|asking| asking.call != call);
        let over: Vec<_> = self
            .open
            .iter()
            .filter(|(_, question)| question.asking.call == call)
            .map(|(number, _)| *number)
            .collect();
        over.into_iter()
            .map(|number| {
                self.open.remove(&number);
                let mut params = ObjectWriter::with_capacity(64);
                params
                    .member("requestId", &number)
                    .member("reason", "the call that asked this is over");
                wire::notification_frame(cancelled, Some(&params.finish()))
            })
            .collect()
    }

    /// Returns whether a question with this id is open.
    pub(super) fn has(&self, id: &Id) -> bool {
        id.as_json().parse().is_ok_and(|number: u64| self.open.contains_key(&number))
    }

    /// Returns whether a question with this id was sent.
    pub(super) fn has_sent(&self, id: &Id) -> bool {
        id.as_json().parse().is_ok_and(|number: u64| (self.first..self.next).contains(&number))
    }

    /// Returns whether no question and no page is open.
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty() && self.held.is_empty() && self.pages.is_empty()
    }

    /// Returns all questions that remain unanswered because the client disconnected.
    pub(super) fn close(&mut self) -> Vec<(InboundKey, AskId)> {
        self.pages.clear();
        let open = std::mem::take(&mut self.open).into_values().map(|question| question.asking);
        open.chain(self.take_held()).map(|asking| (asking.call, asking.ask)).collect()
    }

    /// Records a page that an error, not a question, asked the client to visit.
    pub(super) fn note_page(&mut self, page: String) {
        if !self.pages.values().any(|known| *known == page) {
            let number = self.next;
            self.next += 1;
            self.keep_page(number, page);
        }
    }

    /// Completes a page. Returns the notification to send if this client was asked to visit it (2025-11-25,
    /// Elicitation, "Completion Notifications").
    pub(super) fn page_done(&mut self, page: &str) -> Option<Vec<u8>> {
        let number = *self.pages.iter().find(|(_, known)| *known == page)?.0;
        self.pages.remove(&number);
        let mut params = ObjectWriter::with_capacity(64);
        params.member("elicitationId", page);
        let method = Method::ElicitationComplete.as_str();
        Some(wire::notification_frame(method, Some(&params.finish())))
    }

    fn send(&mut self, wire: &'static Wire, asking: Asking) -> Result<Vec<u8>, Fault> {
        let number = self.next;
        self.next += 1;
        let Asking { method, params, .. } = &asking;
        let (lowered, page) = wire::lower_question(wire, *method, params, self.page_name(number));
        let frame = wire::request_frame(number, method.as_str(), lowered.get(), Stamp::default())
            .map_err(|problem| Fault::new(FaultKind::Handler, problem))?;
        if let Some(page) = &page {
            self.keep_page(number, page.clone());
        }
        self.open.insert(number, Open { asking, page });
        Ok(frame)
    }

    fn keep_page(&mut self, number: u64, page: String) {
        if self.pages.len() >= MAX_OPEN {
            self.pages.pop_first();
        }
        self.pages.insert(number, page);
    }

    fn page_name(&self, number: u64) -> String {
        let hash =
            Sha256::new().chain_update(self.seed).chain_update(number.to_be_bytes()).finalize();
        URL_SAFE_NO_PAD.encode(&hash[..16])
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that fails here says where")]

    use serde_json::{Value, json};

    use super::*;
    use crate::protocol::{Revision, json::to_raw};

    fn form() -> Raw {
        to_raw(&json!({
            "mode": "form", "message": "Sure?",
            "requestedSchema": {"type": "object", "properties": {"value": {"type": "boolean"}}, "required": ["value"]},
        }))
    }

    fn latest() -> &'static Wire {
        Wire::for_revision(Revision::V2025_11_25)
    }

    fn asking(call: u64, ask: u64, params: Raw) -> Asking {
        let (call, ask) = (InboundKey(call), AskId(ask));
        Asking { call, ask, about: About::Call(call), method: Method::Elicit, params }
    }

    fn ask(asked: &mut Asked, call: u64, ask: u64) -> Result<Value, Fault> {
        let declared = to_raw(&json!({"elicitation": {}}));
        asked
            .ask(latest(), Some(&declared), asking(call, ask, form()))
            .map(|frame| serde_json::from_slice(&frame).unwrap())
    }

    /// The client answers, and that settles it.
    fn settle(
        asked: &mut Asked,
        number: u64,
        outcome: Result<&RawValue, ErrorObject>,
    ) -> (InboundKey, AskId, Result<Raw, Fault>) {
        match asked.answer(Some(&id(number)), outcome).unwrap() {
            Answered::Received { call, ask, answer } => (call, ask, Ok(answer.check().unwrap())),
            Answered::Failed { call, ask, fault } => (call, ask, Err(fault)),
        }
    }

    fn id(number: u64) -> Id {
        Id::number(number)
    }

    #[test]
    fn a_question_is_answered_once_and_for_its_own_call() {
        let mut asked = Asked::new(b"a", 1);
        let request = ask(&mut asked, 5, 7).unwrap();
        assert_eq!(request["method"], "elicitation/create");
        assert_eq!(request["params"]["message"], "Sure?");
        assert_eq!(request["id"], 1);
        let result = to_raw(&json!({"action": "accept", "content": {"value": true}}));
        for wrong in [None, Some(id(2)), Id::parse(r#""1""#)] {
            assert!(asked.answer(wrong.as_ref(), Ok(&result)).is_none());
        }
        let (call, ask, outcome) = settle(&mut asked, 1, Ok(&result));
        assert_eq!((call, ask), (InboundKey(5), AskId(7)));
        assert_eq!(
            serde_json::from_str::<Value>(outcome.unwrap().get()).unwrap()["content"],
            json!({"value": true})
        );
        assert!(asked.answer(Some(&id(1)), Ok(&result)).is_none());
        assert!(asked.open.is_empty());
    }

    #[test]
    fn a_model_that_may_not_be_asked_was_declined() {
        let mut asked = Asked::new(b"a", 1);
        let declared = to_raw(&json!({"sampling": {}}));
        let text = json!({"role": "user", "content": {"type": "text", "text": "Hi."}});
        let params = to_raw(&json!({"messages": [text], "maxTokens": 5}));
        let asking = Asking { method: Method::CreateMessage, ..asking(0, 0, params) };
        asked.ask(latest(), Some(&declared), asking).unwrap();
        let refused = ErrorObject::new(code::USER_REJECTED, "User rejected sampling request");
        let fault = settle(&mut asked, 1, Err(refused)).2.unwrap_err();
        assert_eq!(fault.kind, FaultKind::Declined);
        assert_eq!(fault.message, "sampling (User rejected sampling request)");
    }

    #[test]
    fn an_error_is_the_handlers_to_see() {
        let mut asked = Asked::new(b"a", 1);
        ask(&mut asked, 0, 0).unwrap();
        let refused = ErrorObject::new(-1, "User rejected it");
        let fault = settle(&mut asked, 1, Err(refused)).2.unwrap_err();
        assert_eq!((fault.kind, &*fault.message), (FaultKind::Protocol(-1), "User rejected it"));
    }

    #[test]
    fn an_answer_that_does_not_fit_says_why_and_settles_nothing() {
        let mut asked = Asked::new(b"a", 1);
        ask(&mut asked, 5, 7).unwrap();
        let unfit = to_raw(&json!({"action": "accept", "content": {"value": "yes"}}));
        let Some(Answered::Received { call, ask, answer }) = asked.answer(Some(&id(1)), Ok(&unfit))
        else {
            panic!("it is an error");
        };
        assert_eq!((call, ask), (InboundKey(5), AskId(7)));
        let problem = answer.check().unwrap_err();
        assert!(problem.starts_with("its content does not fit the form: "), "{problem}");
        assert!(asked.answer(Some(&id(1)), Ok(&unfit)).is_none(), "it is answered once");
        assert!(asked.open.is_empty());
    }

    #[test]
    fn what_a_call_asked_is_taken_back_when_it_ends() {
        let mut asked = Asked::new(b"a", 1);
        for (call, number) in [(1, 0), (2, 0), (1, 1)] {
            ask(&mut asked, call, number).unwrap();
        }
        let frames = asked.withdraw(InboundKey(1), "notifications/cancelled");
        let ids: Vec<Value> = frames
            .iter()
            .map(|frame| serde_json::from_slice::<Value>(frame).unwrap())
            .inspect(|frame| assert_eq!(frame["method"], "notifications/cancelled"))
            .map(|frame| frame["params"]["requestId"].clone())
            .collect();
        assert_eq!(ids, [1, 3]);
        assert!(asked.withdraw(InboundKey(1), "notifications/cancelled").is_empty());
        assert_eq!(asked.close(), [(InboundKey(2), AskId(0))]);
    }

    #[test]
    fn questions_in_flight_are_bounded() {
        let mut asked = Asked::new(b"a", 1);
        for number in 0..MAX_OPEN as u64 {
            ask(&mut asked, 0, number).unwrap();
        }
        assert!(ask(&mut asked, 0, 0).unwrap_err().message.contains("ask again later"));
        assert_eq!(asked.open.len(), MAX_OPEN);
    }

    #[test]
    fn nobody_is_asked_what_it_did_not_declare() {
        let mut asked = Asked::new(b"a", 1);
        let fault = asked.ask(latest(), None, asking(0, 0, form())).unwrap_err();
        assert_eq!(fault.kind, FaultKind::MissingCapability);
        assert!(asked.open.is_empty());
    }

    #[test]
    fn a_page_has_a_name_that_its_end_is_told_by() {
        let mut asked = Asked::new(b"a", 1);
        let declared = to_raw(&json!({"elicitation": {"url": {}}}));
        let page = to_raw(&json!({"mode": "url", "message": "In?", "url": "https://a.example/in"}));
        let frame = asked.ask(latest(), Some(&declared), asking(0, 0, page)).unwrap();
        let request: Value = serde_json::from_slice(&frame).unwrap();
        let name = request["params"]["elicitationId"].as_str().unwrap();
        assert_eq!(name.len(), 22);
        let accepted = to_raw(&json!({"action": "accept"}));
        let answer = settle(&mut asked, 1, Ok(&accepted)).2.unwrap();
        let answer: Value = serde_json::from_str(answer.get()).unwrap();
        assert_eq!(answer, json!({"action": "accept", "elicitationId": name}));
        assert!(asked.page_done("another").is_none());
        let done: Value = serde_json::from_slice(&asked.page_done(name).unwrap()).unwrap();
        assert_eq!(done["method"], "notifications/elicitation/complete");
        assert_eq!(done["params"], json!({"elicitationId": name}));
        assert!(asked.page_done(name).is_none(), "it is told once");
    }
    #[test]
    fn a_page_that_an_error_named_is_told_once_however_often_it_did() {
        let mut asked = Asked::new(b"a", 1);
        for _ in 0..3 {
            asked.note_page("own".into());
        }
        assert!(asked.page_done("own").is_some() && asked.page_done("own").is_none());
        for number in 0..=MAX_OPEN {
            asked.note_page(number.to_string());
        }
        assert_eq!(asked.pages.len(), MAX_OPEN);
    }
}
