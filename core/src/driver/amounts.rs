//! The amounts that the endpoints of one server hold, for its metrics. The lock of an endpoint is held to read numbers, and not to
//! write them out.

use std::sync::{Mutex, PoisonError, Weak};

use super::EndpointServer;
use crate::metrics::{Amounts, Endpoints, HasAmounts};

/// The endpoints of one server that are not gone.
#[derive(Default)]
pub(super) struct ServerEndpoints(Mutex<Vec<Weak<dyn HasAmounts>>>);

impl Endpoints for ServerEndpoints {
    fn add(&self, endpoint: Weak<dyn HasAmounts>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|endpoint| endpoint.strong_count() > 0);
        all.push(endpoint);
    }

    fn amounts(&self) -> Vec<Amounts> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        all.iter().filter_map(Weak::upgrade).map(|endpoint| endpoint.amounts()).collect()
    }
}

impl HasAmounts for EndpointServer {
    fn amounts(&self) -> Amounts {
        let (own, names_worker) = {
            let state = self.lock();
            (state.endpoint.amounts(), state.names_worker)
        };
        let ledgers = self.ledgers();
        #[cfg(feature = "auth")]
        let key_sets = self.auth().map(|auth| auth.key_set_ages()).unwrap_or_default();
        Amounts {
            input_bytes: ledgers.input.amount(),
            unread_bytes: ledgers.unread.amount(),
            #[cfg(feature = "http")]
            connections: ledgers.connections.amount(),
            #[cfg(feature = "auth")]
            key_sets,
            worker: names_worker.then(std::process::id),
            ..own
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        http::EndpointConfig,
        metrics::{Metrics, text},
        protocol::Implementation,
        router::{Components, ServerFacts},
    };

    #[test]
    fn amounts_of_endpoints_are_added_up_and_name_the_process_on_request() {
        let components = Components::new(ServerFacts::from(Implementation::new("s", "1")));
        let (components, config) = (Arc::new(components), EndpointConfig::default());
        let metrics = Arc::clone(&components.server.metrics);
        let line = |metrics: &Metrics| {
            let text = text(&metrics.snapshot());
            let is_it = |line: &&str| line.starts_with("gudgeon_in_flight_limit");
            text.lines().find(is_it).expect("a limit").to_owned()
        };
        let one = EndpointServer::new(Arc::clone(&components), config.clone());
        let other = EndpointServer::new(components, config);
        assert_eq!(line(&metrics), "gudgeon_in_flight_limit 2000");
        drop(other);
        assert_eq!(line(&metrics), "gudgeon_in_flight_limit 1000");
        one.name_worker();
        let process = std::process::id();
        assert_eq!(line(&metrics), format!("gudgeon_in_flight_limit{{worker=\"{process}\"}} 1000"));
    }
}
