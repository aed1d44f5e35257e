//! Who sees what: predicates of the user's, and the judge that asks them on the service's behalf.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Weak},
};

use serde::Deserialize;

use super::{handler::Outcome, registry::Hub, run::report};
use crate::{
    protocol::{Principal, json::to_raw},
    router::{Failure, Handler, Offer, Offers, Reply},
};

/// Tells by who asks whether there is something for them.
pub(super) struct Predicate(Box<dyn Fn(Option<&Principal>) -> bool + Send + Sync>);

/// Asks the predicates of what is offered at the moment.
pub(super) struct Judge(pub(super) Weak<Hub>);

impl Predicate {
    pub(super) fn new(
        visible: impl Fn(Option<&Principal>) -> bool + Send + Sync + 'static,
    ) -> Handler {
        Arc::new(Self(Box::new(visible)))
    }

    /// One that panics hides what it was asked about.
    fn ask(&self, principal: Option<&Principal>) -> Option<bool> {
        catch_unwind(AssertUnwindSafe(|| (self.0)(principal))).ok()
    }
}

impl Judge {
    /// The answer to [`crate::router::Doubts::question`].
    pub(super) fn answer(&self, question: &str) -> Outcome {
        #[derive(Deserialize)]
        struct Question {
            principal: Option<Principal>,
            offers: Vec<(String, String)>,
        }
        let Question { principal, offers: asked } = serde_json::from_str(question)
            .map_err(|it| Failure::NotSupported(format!("the judge was asked nothing: {it}")))?;
        let offers = self.0.upgrade().map(|it| it.offers());
        let is_seen = |(kind, key): &(String, String)| {
            let predicate = offers.as_ref().and_then(|it| predicate(it, kind, key))?;
            let answer = predicate.ask(principal.as_ref());
            if answer.is_none() {
                report(&format!("visible(…) of the {kind} {key:?} panicked: it stays hidden"));
            }
            answer
        };
        let verdicts: Vec<_> = asked.iter().map(|it| is_seen(it).unwrap_or(false)).collect();
        Ok(Reply::Json(to_raw(&verdicts).get().to_owned()))
    }
}

fn predicate(offers: &Offers, kind: &str, key: &str) -> Option<Arc<Predicate>> {
    fn of<T: Offer>(offer: Option<&Arc<T>>) -> Option<Handler> {
        offer?.visible().cloned()
    }
    let handle = match kind {
        _ if kind == offers.tools.kind() => of(offers.tools.find(key)),
        _ if kind == offers.resources.kind() => of(offers.resources.find(key)),
        _ if kind == offers.templates.kind() => of(offers.templates.find(key)),
        _ => of(offers.prompts.find(key)),
    };
    handle?.downcast().ok()
}

impl fmt::Debug for Judge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Judge").finish_non_exhaustive()
    }
}
