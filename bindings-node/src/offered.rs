//! What a server offers at the moment, and who must hear of changes.

use std::sync::{Arc, Mutex, Weak};

use gudgeon::{error::Error, router::Offers, session::server::ListKind};

use crate::shared::{Shared, lock};

#[derive(Debug)]
pub(crate) struct Offered {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    offers: Arc<Offers>,
    served: Vec<Weak<Shared>>,
}

impl Offered {
    pub(crate) fn new(offers: Offers) -> Self {
        Self { state: Mutex::new(State { offers: Arc::new(offers), served: Vec::new() }) }
    }

    pub(crate) fn offers(&self) -> Arc<Offers> {
        Arc::clone(&lock(&self.state).offers)
    }

    /// Opens a server of what is offered now; changes reach it as long as it lives.
    pub(crate) fn open<T>(
        &self,
        make: impl FnOnce(Arc<Offers>) -> (Arc<Shared>, T),
    ) -> (Arc<Shared>, T) {
        let mut state = lock(&self.state);
        let (shared, rest) = make(Arc::clone(&state.offers));
        state.served.retain(|it| it.strong_count() > 0);
        state.served.push(Arc::downgrade(&shared));
        (shared, rest)
    }

    /// Everything that is served at the moment.
    pub(crate) fn served(&self) -> Vec<Arc<Shared>> {
        lock(&self.state).served.iter().filter_map(Weak::upgrade).collect()
    }

    /// Changes what is offered, and tells everybody which list is another now, unless it made no difference.
    pub(crate) fn change(
        &self,
        list: Option<ListKind>,
        change: impl FnOnce(&mut Offers) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        let mut state = lock(&self.state);
        if !change(Arc::make_mut(&mut state.offers))? {
            return Ok(());
        }
        for served in state.served.iter().filter_map(Weak::upgrade) {
            served.set_offers(Arc::clone(&state.offers), list);
        }
        Ok(())
    }
}
