//! What a server offers at the moment, and who must hear of changes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use gudgeon::{
    error::Error,
    protocol::json,
    router::{Changes, Offer, Offers, Registry},
    session::server::ListKind,
};

use crate::{declare::Kind, shared::Shared};

#[derive(Debug)]
pub(crate) struct Offered {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    offers: Arc<Offers>,
    served: Vec<Weak<Shared>>,
}

/// Does the same with whichever registry holds this kind.
macro_rules! with_registry {
    ($offers:expr, $kind:expr, $registry:ident => $body:expr) => {
        match $kind {
            Kind::Tool => {
                let $registry = $offers.tools;
                $body
            }
            Kind::Resource => {
                let $registry = $offers.resources;
                $body
            }
            Kind::Template => {
                let $registry = $offers.templates;
                $body
            }
            Kind::Prompt => {
                let $registry = $offers.prompts;
                $body
            }
        }
    };
}

/// One registry of each kind, borrowed to be read or changed.
struct Registries<T, R, U, P> {
    tools: T,
    resources: R,
    templates: U,
    prompts: P,
}

macro_rules! read {
    ($offers:expr) => {
        Registries {
            tools: &$offers.tools,
            resources: &$offers.resources,
            templates: &$offers.templates,
            prompts: &$offers.prompts,
        }
    };
}

macro_rules! write {
    ($offers:expr) => {
        Registries {
            tools: &mut $offers.tools,
            resources: &mut $offers.resources,
            templates: &mut $offers.templates,
            prompts: &mut $offers.prompts,
        }
    };
}

impl Offered {
    pub(crate) fn new(offers: Offers) -> Self {
        Self { state: Mutex::new(State { offers: Arc::new(offers), served: Vec::new() }) }
    }

    pub(crate) fn offers(&self) -> Arc<Offers> {
        Arc::clone(&self.lock().offers)
    }

    /// Opens a server of what is offered now; changes reach it as long as it lives.
    pub(crate) fn open<T>(
        &self,
        make: impl FnOnce(Arc<Offers>) -> (Arc<Shared>, T),
    ) -> (Arc<Shared>, T) {
        let mut state = self.lock();
        let (shared, rest) = make(Arc::clone(&state.offers));
        state.served.retain(|it| it.strong_count() > 0);
        state.served.push(Arc::downgrade(&shared));
        (shared, rest)
    }

    /// Everything that is served at the moment.
    pub(crate) fn served(&self) -> Vec<Arc<Shared>> {
        self.lock().served.iter().filter_map(Weak::upgrade).collect()
    }

    /// Changes what is offered, and tells everybody which list is another now, unless it made no difference.
    pub(crate) fn change(
        &self,
        list: Option<ListKind>,
        change: impl FnOnce(&mut Offers) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        let mut state = self.lock();
        if !change(Arc::make_mut(&mut state.offers))? {
            return Ok(());
        }
        for served in state.served.iter().filter_map(Weak::upgrade) {
            served.set_offers(Arc::clone(&state.offers), list);
        }
        Ok(())
    }

    pub(crate) fn remove(&self, kind: Kind, key: &str) -> Result<(), Error> {
        self.change(
            Some(kind.list()),
            |offers| with_registry!(write!(offers), kind, registry => registry.remove(key).map(|()| true)),
        )
    }

    pub(crate) fn update(&self, kind: Kind, key: &str, changes: &Changes) -> Result<(), Error> {
        self.change(Some(kind.list()), |offers| {
            with_registry!(write!(offers), kind, registry => registry.update(key, changes).map(|()| true))
        })
    }

    pub(crate) fn set_enabled(
        &self,
        kind: Kind,
        keys: &[String],
        tags: &[String],
        enabled: bool,
    ) -> Result<(), Error> {
        self.change(Some(kind.list()), |offers| {
            with_registry!(write!(offers), kind, registry => registry.set_enabled(keys, tags, enabled))
        })
    }

    /// What clients see of one offer, enabled or not, as JSON.
    pub(crate) fn find(&self, kind: Kind, key: &str) -> Option<String> {
        let offers = self.offers();
        with_registry!(read!(offers), kind, registry => listed(registry, key))
    }

    /// The same of all, in order, as a JSON array.
    pub(crate) fn list(&self, kind: Kind) -> String {
        let offers = self.offers();
        with_registry!(read!(offers), kind, registry => all_listed(registry))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn listed<T: Offer<Listed: serde::Serialize>>(registry: &Registry<T>, key: &str) -> Option<String> {
    registry.find(key).map(|it| json::to_raw(&**it.listed()).get().to_owned())
}

fn all_listed<T: Offer<Listed: serde::Serialize>>(registry: &Registry<T>) -> String {
    let all: Vec<_> = registry.all().map(|(it, _)| json::to_raw(&**it.listed())).collect();
    json::to_raw(&all).get().to_owned()
}
