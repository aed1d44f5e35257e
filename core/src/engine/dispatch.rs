//! The dispatch of large requests, which the driver runs outside its lock: schema checks, URI matching and copies take
//! time in proportion to the request, and other peers must not wait for them.

use std::{sync::Arc, time::Instant};

use super::{
    CallEvent, Effect, Engine,
    id::Origin,
    request_state::{KeyRing, RoundId},
    state::Continuation,
};
use crate::{
    protocol::{Raw, Request},
    router::{self, Components, Dispatch, RequestScope, Visibility},
    session::server::CallContext,
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

/// The part of a request that its dispatch does not change.
#[derive(Debug)]
pub(super) struct Opening {
    pub(super) context: CallContext,
    /// The round that the request continues.
    pub(super) round: Option<RoundId>,
    /// The request as it is replayed when its handler asks the client.
    pub(super) replayed: Option<Request>,
    /// `true` for reads whose result may be shared with others: the request contains no answers of the user.
    pub(super) may_share: bool,
}

impl<H: Clone> DispatchJob<H> {
    /// Returns the answer to the request, or the handler run that computes it.
    pub fn run(self) -> Dispatched<H> {
        let Self { components, request, raw_params, visibility, cursors, opening } = self;
        let scope = scope(&opening.context, &visibility, &cursors, raw_params.as_ref());
        Dispatched { dispatch: router::dispatch(&components, request, scope), opening }
    }
}

impl<H: Clone> Engine<H> {
    /// Dispatches a request: at once, or outside the lock where it is large.
    pub(super) fn dispatch(
        &mut self,
        now: Instant,
        origin: Origin,
        request: Request,
        raw_params: Option<Raw>,
        visibility: Visibility,
        opening: Opening,
    ) -> CallEvent {
        let weight = opening.context.weight;
        if weight <= MAX_UNDER_LOCK {
            let cursors = self.sealing.keys();
            let scope = scope(&opening.context, &visibility, cursors, raw_params.as_ref());
            let dispatch = router::dispatch(&self.components, request, scope);
            return self.begin_dispatched(now, origin, opening, dispatch);
        }
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

fn scope<'a>(
    context: &'a CallContext,
    visibility: &'a Visibility,
    cursors: &'a KeyRing,
    raw_params: Option<&'a Raw>,
) -> RequestScope<'a> {
    RequestScope {
        visibility,
        principal: context.principal.as_deref(),
        headers: context.http.as_deref().map(|it| &it.headers),
        checks_headers: context.checks_headers,
        cursors,
        raw_params,
    }
}
