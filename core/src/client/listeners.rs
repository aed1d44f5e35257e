//! The subscriptions of a connection's users: the state machine and the callbacks of the listeners.

use std::{collections::HashMap, sync::Arc, time::Instant};

use tokio::sync::oneshot;

use crate::{
    error::Error,
    peer::subscriptions::{
        Input, Interests, Output, SubscriptionKey, SubscriptionSettings, Subscriptions,
    },
    session::client::{
        Change, ClientSession, Input as SessionInput, RequestOptions, ServerIdentity,
    },
};

/// A callback for events of a subscription, called in order. It must not block.
pub(super) type OnSubscriptionEvent = Box<dyn FnMut(SubscriptionEvent) + Send>;

#[derive(Debug)]
pub(super) enum SubscriptionEvent {
    Changed(Change),
    /// The subscription ended, with the error unless the server ended it regularly.
    Ended(Option<Error>),
}

pub(super) struct Listener {
    /// Signalled when the subscription is established; `None` afterwards.
    pub(super) opened: Option<oneshot::Sender<Result<(), Error>>>,
    pub(super) on_event: OnSubscriptionEvent,
}

#[derive(Default)]
pub(super) struct Listeners {
    machine: Subscriptions,
    listeners: HashMap<SubscriptionKey, Listener>,
}

impl Listeners {
    pub(super) fn open(
        &mut self,
        now: Instant,
        key: SubscriptionKey,
        (interests, settings): (Interests, SubscriptionSettings),
        server: &Arc<ServerIdentity>,
        listener: Listener,
    ) {
        self.listeners.insert(key, listener);
        self.machine.handle(now, Input::Open { key, interests, settings, server });
    }

    pub(super) fn close(&mut self, now: Instant, key: SubscriptionKey) {
        self.listeners.remove(&key);
        self.machine.handle(now, Input::Close(key));
    }

    pub(super) fn handle(&mut self, now: Instant, input: Input<'_>) {
        self.machine.handle(now, input);
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.machine.deadline()
    }

    /// Processes the outputs of the state machine; returns `false` if there were none.
    pub(super) fn settle(
        &mut self,
        now: Instant,
        session: &mut ClientSession,
        in_context: impl Fn(Error) -> Error,
    ) -> bool {
        let mut did_something = false;
        while let Some(output) = self.machine.poll() {
            did_something = true;
            match output {
                Output::Request { key, method, params, timeout } => {
                    let options = RequestOptions { timeout, ..RequestOptions::default() };
                    let (method, params) = (method.into(), params.as_str());
                    session.handle(now, SessionInput::Request { key, method, params, options });
                }
                Output::Cancel(key) => session.handle(now, SessionInput::Cancel(key, None)),
                Output::Opened(key) => {
                    let listener = self.listeners.get_mut(&key);
                    if let Some(opened) = listener.and_then(|listener| listener.opened.take()) {
                        // A caller that has given up cancels the subscription itself.
                        let _ = opened.send(Ok(()));
                    }
                }
                Output::Changed(key, change) => {
                    if let Some(listener) = self.listeners.get_mut(&key) {
                        (listener.on_event)(SubscriptionEvent::Changed(change));
                    }
                }
                Output::Ended(key, why) => {
                    let Some(mut listener) = self.listeners.remove(&key) else { continue };
                    let why = why.map(&in_context);
                    match (listener.opened.take(), why) {
                        (Some(opened), Some(why)) => drop(opened.send(Err(why))),
                        (opened, why) => {
                            if let Some(opened) = opened {
                                let _ = opened.send(Ok(()));
                            }
                            (listener.on_event)(SubscriptionEvent::Ended(why));
                        }
                    }
                }
            }
        }
        did_something
    }
}
