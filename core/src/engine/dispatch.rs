//! The dispatch of large requests, which the driver runs outside its lock: schema checks, URI matching and copies take
//! time in proportion to the request, and other peers must not wait for them.

use std::{sync::Arc, time::Instant};

use super::{
    CallEvent, Effect, Engine, begin::Opening, id::Origin, request_state::KeyRing,
    state::Continuation,
};
use crate::{
    protocol::{Raw, Request},
    router::{self, Components, Dispatch, Visibility},
};

/// Bytes of a message or reply up to which the driver handles it under its lock, because taking the lock again costs more.
pub const MAX_UNDER_LOCK: usize = 64 * 1024;

/// The dispatch of one request. [`run`](Self::run) needs no lock and changes nothing.
#[derive(Debug)]
pub struct DispatchJob<H> {
    components: Arc<Components<H>>,
    request: Request,
    raw_params: Option<Raw>,
    visibility: Visibility,
    cursors: KeyRing,
    opening: Box<Opening>,
}

/// The result of a [`DispatchJob`].
#[derive(Debug)]
pub struct Dispatched<H> {
    pub(super) dispatch: Dispatch<H>,
    pub(super) opening: Box<Opening>,
}

impl<H: Clone> DispatchJob<H> {
    /// Returns the answer to the request, or the handler run that computes it.
    pub fn run(self) -> Dispatched<H> {
        let Self { components, request, raw_params, visibility, cursors, opening } = self;
        let scope = opening.scope(&visibility, &cursors, raw_params.as_ref());
        Dispatched { dispatch: router::dispatch(&components, request, scope), opening }
    }
}

impl<H: Clone> Engine<H> {
    /// Dispatches a large request, outside the lock.
    pub(super) fn dispatch_outside(
        &mut self,
        now: Instant,
        origin: Origin,
        request: Request,
        raw_params: Option<Raw>,
        visibility: Visibility,
        opening: Opening,
    ) -> CallEvent {
        let weight = opening.context.weight;
        let job = DispatchJob {
            components: Arc::clone(&self.components),
            request,
            raw_params,
            visibility,
            cursors: self.sealing.keys().clone(),
            opening: Box::new(opening),
        };
        self.await_reply(now, origin, weight, Continuation::Dispatch, |ticket| {
            Effect::Dispatch(ticket, Box::new(job))
        })
    }
}
