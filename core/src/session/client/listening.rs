//! Subscriptions: matching notifications to them, acknowledgments and endings; and the state to restore in a new
//! session.

use serde::Deserialize;

use super::{
    ClientSession, ListKind, Output, incoming::member, negotiate::Phase, tolerance::number,
};
use crate::{
    error::{Error, ErrorKind},
    protocol::{Id, LoggingLevel, Meta, Method, MethodName, Params, SubscriptionFilter},
    wire::{self, Stamp},
};

/// A change at the server.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub enum Change {
    /// Entries of the list were added, removed or changed.
    List(ListKind),
    /// The resource with this URI changed, or a part of a subscribed one.
    Updated(String),
}

impl FromIterator<Change> for SubscriptionFilter {
    fn from_iter<I: IntoIterator<Item = Change>>(changes: I) -> Self {
        changes.into_iter().fold(Self::default(), |filter, change| match change {
            Change::List(ListKind::Tools) => filter.tools(),
            Change::List(ListKind::Prompts) => filter.prompts(),
            Change::List(ListKind::Resources) => filter.resources(),
            Change::Updated(uri) => filter.uri(uri),
        })
    }
}

impl ClientSession {
    /// Handles `notifications/…/list_changed` and `notifications/resources/updated`.
    pub(super) fn read_change(&self, method: Method, params: &Params<'_>) -> Option<Output> {
        let change = match method {
            Method::ToolListChanged => Change::List(ListKind::Tools),
            Method::ResourceListChanged => Change::List(ListKind::Resources),
            Method::PromptListChanged => Change::List(ListKind::Prompts),
            _ => Change::Updated(member(params, "uri")?),
        };
        if !self.is_modern() {
            return Some(match change {
                Change::List(kind) => Output::ListChanged(kind),
                Change::Updated(uri) => Output::ResourceUpdated(uri),
            });
        }
        match subscription(params) {
            None => Some(Output::ChangeNotified(None, change)),
            // A subscription that was closed here and whose end has not reached the server yet.
            Some(id) => {
                self.calls.listen(number(&id)?).map(|key| Output::ChangeNotified(Some(key), change))
            }
        }
    }

    /// Handles `notifications/subscriptions/acknowledged` (Subscriptions, "Acknowledgment").
    pub(super) fn read_acknowledged(&self, params: &Params<'_>) -> Option<Output> {
        let key = self.calls.listen(number(&subscription(params)?)?)?;
        let kept: Option<SubscriptionFilter> = member(params, "notifications");
        if kept.is_none() {
            tracing::warn!(
                "a subscription's acknowledgment was dropped: its filter is not readable"
            );
        }
        Some(Output::Acknowledged(key, kept?))
    }

    /// Handles a subscription ended by the server (Cancellation).
    pub(super) fn end_listen(&mut self, id: &Id, params: &Params<'_>) {
        let Some(call) = number(id).filter(|call| self.calls.listen(*call).is_some()) else {
            return;
        };
        let Some((key, _)) = self.calls.complete(call) else { return };
        let message = match member::<String>(params, "reason").filter(|reason| !reason.is_empty()) {
            Some(reason) => format!("the server ended the subscription: {reason}"),
            None => "the server ended the subscription without a reason".to_owned(),
        };
        let error = Error::new(ErrorKind::Cancelled, message);
        self.outputs.push_back(Output::Done(key, Err(error)));
    }

    /// Records the settings that the server forgets when its session ends.
    pub(super) fn learn_level(&mut self, method: &MethodName, params: &str) {
        #[derive(Deserialize)]
        struct SetLevelParams {
            level: LoggingLevel,
        }
        if *method == MethodName::Standard(Method::SetLevel)
            && let Ok(SetLevelParams { level }) = serde_json::from_str(params)
        {
            self.set_level = Some(level);
        }
    }

    /// Sends the log level in a new session. The response is ignored.
    pub(super) fn restore(&mut self) {
        if !matches!(self.phase, Phase::Open) {
            return;
        }
        if let Some(level) = self.set_level {
            let id = self.next_id;
            self.next_id += 1;
            let params = format!(r#"{{"level":{:?}}}"#, level.as_str());
            let word = self.wire.word(Method::SetLevel);
            let frame = wire::request_frame(id, word, &params, Stamp::default())
                .expect("our own params are an object");
            self.outputs.push_back(Output::Send(frame));
        }
        self.outputs.push_back(Output::Renewed);
    }
}

/// Returns the subscription of a notification: the id of its request.
fn subscription(params: &Params<'_>) -> Option<Id> {
    Id::parse(Meta::parse(params.get("_meta")?)?.subscription_id?.get())
}
