//! Who of a connection's users hears of changes: the machine that keeps subscriptions, and whom it tells.

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

/// What a listener is told, in order. Must not block.
pub(super) type OnNews = Box<dyn FnMut(News) + Send>;

#[derive(Debug)]
pub(super) enum News {
    Changed(Change),
    /// There will be no more, and why, unless the server ended it well.
    Ended(Option<Error>),
}

pub(super) struct Listener {
    /// Until the subscription stands.
    pub(super) opened: Option<oneshot::Sender<Result<(), Error>>>,
    pub(super) on_news: OnNews,
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

    pub(super) fn tell(&mut self, now: Instant, input: Input<'_>) {
        self.machine.handle(now, input);
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.machine.deadline()
    }

    /// Does what the machine asks for; `false` when there was nothing.
    pub(super) fn settle(
        &mut self,
        now: Instant,
        session: &mut ClientSession,
        dress: impl Fn(Error) -> Error,
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
                    if let Some(opened) = listener.and_then(|it| it.opened.take()) {
                        // Who gave up meanwhile takes it back.
                        let _ = opened.send(Ok(()));
                    }
                }
                Output::Changed(key, change) => {
                    if let Some(listener) = self.listeners.get_mut(&key) {
                        (listener.on_news)(News::Changed(change));
                    }
                }
                Output::Ended(key, why) => {
                    let Some(mut listener) = self.listeners.remove(&key) else { continue };
                    let why = why.map(&dress);
                    match (listener.opened.take(), why) {
                        (Some(opened), Some(why)) => drop(opened.send(Err(why))),
                        (opened, why) => {
                            if let Some(opened) = opened {
                                let _ = opened.send(Ok(()));
                            }
                            (listener.on_news)(News::Ended(why));
                        }
                    }
                }
            }
        }
        did_something
    }
}
