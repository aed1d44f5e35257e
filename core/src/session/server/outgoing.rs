//! Notifications of the server, of a call or of the connection.

use super::{About, ListKind, OutgoingFrame, Output, Progress, ServerSession};
use crate::{
    log_events::LogEvent,
    protocol::{Method, MethodName, ServerCapabilities, json::ObjectWriter},
    session::InboundKey,
    wire,
};

impl ServerSession {
    /// Progress must increase, so a decrease is dropped (Progress, "Progress Flow").
    pub(super) fn send_progress(&mut self, call: InboundKey, step: Progress) {
        let is_only = self.pending.len() == 1;
        let Some((_, inbound)) = self.pending.get_mut(call) else { return };
        if !inbound.may_report() || inbound.progress_token.is_none() && !is_only {
            return;
        }
        if !step.progress.is_finite()
            || inbound.progress.is_some_and(|progress| step.progress <= progress)
        {
            if !std::mem::replace(&mut inbound.has_stepped_back, true) {
                let before = inbound.progress.map_or("nothing".to_owned(), number);
                let report = format!(
                    "the progress of {} must increase, and {} came after {before}: it was dropped, and so will be \
                     any other such step of this call",
                    inbound.method.as_str(),
                    number(step.progress),
                );
                self.outputs.push_back(Output::Log(None, Box::new(LogEvent::problem(report))));
            }
            return;
        }
        inbound.progress = Some(step.progress);
        let mut params = ObjectWriter::with_capacity(96);
        if let Some(token) = &inbound.progress_token {
            params.raw("progressToken", token.as_json());
        }
        params.raw("progress", &number(step.progress));
        if let Some(total) = step.total.filter(|total| total.is_finite()) {
            params.raw("total", &number(total));
        }
        if let Some(message) = step.message.filter(|_| inbound.wire.vocabulary.progress_messages) {
            params.member("message", &message);
        }
        self.notify(About::Call(call), Method::Progress, Some(&params.finish()));
    }

    /// Notifies of a list change: legacy peers always, modern ones through their subscriptions.
    pub(super) fn send_changed(&mut self, kind: ListKind) {
        let method = match kind {
            ListKind::Tools => Method::ToolListChanged,
            ListKind::Resources => Method::ResourceListChanged,
            ListKind::Prompts => Method::PromptListChanged,
        };
        self.notify_listeners(method, None, |filter| match kind {
            ListKind::Tools => filter.tools_list_changed == Some(true),
            ListKind::Resources => filter.resources_list_changed == Some(true),
            ListKind::Prompts => filter.prompts_list_changed == Some(true),
        });
        if !self.lists.contains(&kind) {
            return;
        }
        if self.handshake.is_confirmed() {
            self.notify_change(About::Peer, method, None, true);
        } else if !self.untold.contains(&kind) {
            self.untold.push(kind);
        }
    }

    /// Only capabilities declared in the handshake may be used afterwards (2025-11-25, Lifecycle, "Operation").
    pub(super) fn note_lists(&mut self, method: &MethodName, declared: &ServerCapabilities) {
        if *method != MethodName::Standard(Method::Initialize) {
            return;
        }
        let ServerCapabilities { tools, resources, prompts, .. } = declared;
        let declared = [
            (ListKind::Tools, tools.as_ref().and_then(|tools| tools.list_changed)),
            (ListKind::Resources, resources.as_ref().and_then(|resources| resources.list_changed)),
            (ListKind::Prompts, prompts.as_ref().and_then(|prompts| prompts.list_changed)),
        ];
        let changing = declared.into_iter().filter(|(_, changes)| *changes == Some(true));
        self.lists = changing.map(|(kind, _)| kind).collect();
    }

    pub(super) fn confirm(&mut self) {
        self.handshake.confirm();
        for kind in std::mem::take(&mut self.untold) {
            self.send_changed(kind);
        }
        self.put_held();
    }

    /// Sends a notification, unless the peer's revision does not define it.
    pub(super) fn notify(&mut self, about: About, method: Method, params: Option<&str>) {
        if let Some(frame) = self.notification(about, method, params) {
            self.outputs.push_back(Output::Send(OutgoingFrame::new(frame, about)));
        }
    }

    /// Sends a change notification, which is redundant while an equal one is queued.
    pub(super) fn notify_change(
        &mut self,
        about: About,
        method: Method,
        params: Option<&str>,
        is_list_change: bool,
    ) {
        if let Some(frame) = self.notification(about, method, params) {
            let sent = OutgoingFrame {
                is_change: true,
                is_list_change,
                ..OutgoingFrame::new(frame, about)
            };
            self.outputs.push_back(Output::Send(sent));
        }
    }

    fn notification(
        &mut self,
        about: About,
        method: Method,
        params: Option<&str>,
    ) -> Option<Vec<u8>> {
        let call = match about {
            About::Call(call) => self.pending.get_mut(call).map(|(_, inbound)| inbound.wire),
            About::Reply(_) | About::Peer => None,
        };
        let wire = call.or_else(|| self.handshake.wire()).unwrap_or(self.spoken);
        wire.server_notifications
            .contains(&method)
            .then(|| wire::notification_frame(wire.word(method), params))
    }
}

/// Formats a float as JSON, whole numbers without a fraction.
fn number(value: f64) -> String {
    let text = value.to_string();
    text.strip_suffix(".0").map_or_else(|| text.clone(), ToOwned::to_owned)
}
