//! Message connections: one conversation each, whose frames all go the same way.

use std::{sync::Arc, time::Instant};

use super::{
    ConnectionId, Conversation, Endpoint, EndpointOutput, Owner, Part, Reader, Scene, session,
};
use crate::{protocol::Principal, session::server::ServerSession};

impl Endpoint {
    pub(super) fn open_connection(&mut self, id: ConnectionId, principal: Option<Arc<Principal>>) {
        let machine = ServerSession::new(Arc::clone(&self.session));
        let mut conversation = Box::new(Conversation::new(machine));
        conversation.principal = principal;
        self.connections.insert(id, conversation);
        if self.is_closing {
            self.outputs.push_back(EndpointOutput::Connection(id, Part::End));
        }
    }

    pub(super) fn tell_connection(
        &mut self,
        now: Instant,
        id: ConnectionId,
        input: session::Input<'_>,
    ) {
        let Some(conversation) = self.connections.get_mut(&id) else { return };
        let mut scene = Scene {
            now,
            owner: Owner::Connection(id),
            calls: &mut self.calls,
            flights: &mut self.flights,
            facts: None,
        };
        for emission in conversation.handle(&mut scene, 0, input) {
            let Some(frame) = emission.frame else { continue };
            self.outputs.push_back(match emission.is_change {
                true => EndpointOutput::Change(Reader::Connection(id), frame),
                false => EndpointOutput::Connection(id, Part::Bytes(frame)),
            });
        }
    }

    pub(super) fn close_connection(&mut self, now: Instant, id: ConnectionId) {
        self.tell_connection(now, id, session::Input::Closed);
        self.connections.remove(&id);
    }
}
