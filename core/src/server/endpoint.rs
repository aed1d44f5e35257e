//! The endpoint that serves the connections of a server.

use std::sync::Arc;

use super::{registry::Hub, run::Runner};
use crate::{
    driver::{EndpointServer, HostedEndpoint, hosted},
    engine::TestMode,
    http::EndpointConfig,
    session::server::HttpFacts,
};

/// Creates an endpoint with a runner for its handlers.
pub(super) fn endpoint(
    hub: &Hub,
    config: EndpointConfig,
    test: Option<(TestMode, Option<HttpFacts>)>,
) -> Arc<dyn HostedEndpoint> {
    let server = hub.attach(|components| match test {
        None => EndpointServer::new(components, config),
        Some((mode, facts)) => EndpointServer::for_test(components, config, mode, facts),
    });
    let runner = Runner::new(Arc::clone(&server) as Arc<_>, hub.visibility_filter());
    hosted(server, Arc::new(runner))
}
