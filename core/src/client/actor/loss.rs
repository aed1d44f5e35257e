//! The loss of a connection: its reason, and what fails with it.

use super::{
    super::{connection::Event, wire::ClientTransport},
    Actor,
};
use crate::{
    clock,
    peer::subscriptions,
    session::client::Input,
    transport::child::{ExitInfo, Process},
};

impl Actor {
    /// Handles the end of a connection: determines the reason and fails all pending requests.
    pub(super) async fn lose(&mut self, why: String) {
        let now = clock::now();
        let (session, messages) = (&mut self.session, &self.messages);
        let is_open = self.wire.as_mut().is_some_and(|wire| wire.finish(now, session, messages));
        self.exit_info = match &mut self.process {
            Some(process) if is_open => process.exit_info_now(),
            Some(process) => process.exit_info().await,
            None => ExitInfo::default(),
        };
        let is_unread = self.process.as_ref().is_some_and(Process::has_unread_input)
            || self.wire.as_ref().is_some_and(ClientTransport::has_unwritten);
        self.wire = None;
        let was_open = self.opened.is_none();
        let reason = match (self.process.is_some(), self.exit_info.status) {
            (true, Some(status @ ..=-1)) => format!("the server was killed by signal {}", -status),
            (true, Some(status)) => format!("the server exited with status {status}"),
            (true, None) if is_open => {
                "the server closed its input but is still running".to_owned()
            }
            (true, None) => "the server closed its output but is still running".to_owned(),
            (false, _) if why.is_empty() => "the other side closed the connection".to_owned(),
            (false, _) => why,
        };
        if self.process.is_some() && is_unread {
            self.handle(Input::Unread);
        }
        self.handle(Input::Closed(&reason));
        // A connection that ends during the negotiation may be opened again by the session.
        self.is_up.send_replace(!was_open);
        self.handle_subscriptions(subscriptions::Input::Closed(Some(&reason)));
        if was_open {
            (self.config.on_event)(Event::Closed(reason));
        }
    }
}
