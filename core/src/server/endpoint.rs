//! The endpoint that serves the connections of a server.

use std::sync::Arc;

use super::{connection::Connection, registry::Hub, run::Runner};
use crate::{
    driver::{EndpointServer, HostedEndpoint},
    engine::TestMode,
    http::EndpointConfig,
    session::server::HttpFacts,
};

/// Creates an endpoint with a runner for its handlers.
pub(super) fn endpoint(
    hub: &Hub,
    config: EndpointConfig,
    test: Option<(TestMode, Option<HttpFacts>)>,
) -> Arc<HostedEndpoint> {
    let (connection, server) = hub.attach(|components| {
        let server = match test {
            None => EndpointServer::new(components, config),
            Some((mode, facts)) => EndpointServer::for_test(components, config, mode, facts),
        };
        (Connection::endpoint(Arc::clone(&server)), server)
    });
    HostedEndpoint::new(server, Arc::new(Runner::new(connection, hub.visibility_filter())))
}
