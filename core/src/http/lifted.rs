//! Stateless requests that their own session has read: this needs no endpoint, so no lock either.

use std::sync::Arc;

use super::{
    ExchangeId, PeerId, PeerSession, admitted::AdmittedRequest, content::Content, session,
};
use crate::{
    protocol::{Frame, Message, Method},
    session::server::{ServerSession, SessionConfig},
    wire::RequestEra,
};

impl AdmittedRequest<'_> {
    /// Reads a stateless request in a session of its own. Subscriptions, whose answer is a stream, and everything else stay as
    /// they are.
    pub(crate) fn lift(&mut self, exchange: ExchangeId, config: &Arc<SessionConfig>) {
        let (Content::Post(frame, RequestEra::Modern), head) = (&mut self.content, &mut self.head)
        else {
            return;
        };
        let Frame::One(Ok(Message::Request { id, method, .. })) = frame else { return };
        if *method == Method::Listen.as_str() {
            return;
        }
        let id = id.clone();
        let frame = std::mem::replace(frame, Frame::Batch(Vec::new()));
        let headers = std::mem::take(&mut head.mcp_headers);
        let machine = ServerSession::for_exchange(Arc::clone(config), headers);
        let mut peer = Box::new(PeerSession::new(PeerId::Exchange(exchange), machine));
        peer.machine.handle(session::Input::Parsed(frame));
        self.content = Content::Lifted(peer, id);
    }
}
