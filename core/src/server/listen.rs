//! Serving at an address, and inside a tower application.

use std::{io::Write as _, time::Duration};

use super::{
    HttpService, Listening, Server, endpoint::endpoint, process_end::ProcessEnd, registry::Hub,
};
use crate::{
    driver::boxed,
    error::{Error, ErrorKind},
    transport::listen::{self, Address},
};

impl Server {
    /// Listens at an address and serves connections until the result is dropped or shut down: `http://host:port/path`
    /// and `https://…` (with [`HttpOptions::tls`](crate::HttpOptions::tls)), which include WebSocket, `http+unix:/path` for the same on a
    /// Unix socket, at the path `/mcp`, `tcp://host:port` and `unix:/path`. With port 0 the system chooses a free port. Must be called inside a tokio runtime.
    ///
    /// ```
    /// # use gudgeon::{Client, Server, client::Target, protocol::Tool};
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), gudgeon::error::Error> {
    /// let server = Server::new("shelf").tool("open", || async { "open" });
    /// let listening = server.listen("http://127.0.0.1:0/mcp").await?;
    /// let client = Client::connect(Target::url(listening.url())?).await?;
    /// assert_eq!(client.list::<Tool>().await?.len(), 1);
    /// client.close().await;
    /// listening.shut_down().await;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Errors if the address can't be bound, an option is invalid, or a hook at start fails.
    pub async fn listen(&self, at: &str) -> Result<Listening, Error> {
        let at: Address = if at == "stdio" {
            return Err(Error::misuse(
                "\"stdio\" is not an address to listen at; call run() to serve it",
            ));
        } else {
            at.parse()?
        };
        let serving = self.lifecycle.serve().await?;
        let config = self.options.endpoint(at.endpoint_config());
        let endpoint = endpoint(&self.hub, config, None);
        let options = self.options.http.listen(self.options.max_message);
        let mut listening = match listen::open(&at, endpoint, options).await {
            Ok(listening) => listening,
            Err(error) => {
                serving.end().await;
                return Err(error);
            }
        };
        listening.at_end(boxed(serving.end()));
        if let Some(warning) = &listening.warning {
            tracing::warn!("{warning}");
        }
        Ok(listening)
    }

    /// Returns the server as a [`tower_service::Service`], to mount in axum at any path or serve with hyper. Must be
    /// called inside a tokio runtime.
    ///
    /// ```
    /// # use gudgeon::Server;
    /// # use tower_service::Service as _;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mut service = Server::new("shelf").into_service();
    /// let request = http::Request::get("http://127.0.0.1/mcp")
    ///     .header("host", "127.0.0.1")
    ///     .header("accept", "text/event-stream")
    ///     .body(String::new())?;
    /// let response = service.call(request).await?;
    /// assert_eq!(response.status(), 400, "GET belongs to a session");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    /// Panics if the server has routes: the application has its own.
    #[track_caller]
    pub fn into_service(self) -> HttpService {
        HttpService::new(self.lifecycle, &self.hub, &self.options)
    }

    /// Serves at an address until a termination signal.
    pub(super) async fn serve_at(&self, at: &str) -> Result<(), Error> {
        let http = &self.options.http;
        let limit = http.drain_delay.saturating_add(http.shutdown_grace);
        listening(&self.hub, limit, self.listen(at)).await
    }
}

/// Serves until a termination signal; a second signal ends the process. `limit`: the time for pending calls after the first one.
async fn listening(
    hub: &Hub,
    limit: Duration,
    begun: impl Future<Output = Result<Listening, Error>>,
) -> Result<(), Error> {
    let unheard = |error: std::io::Error| {
        Error::new(ErrorKind::Connect, format!("signal handlers can't be installed: {error}"))
            .caused_by(error)
    };
    // Installed before the server can be reached.
    let mut process_end = ProcessEnd::start().map_err(unheard)?;
    let listening = begun.await?;
    let endpoint = listening.running();
    process_end.watchdog().watch(limit, endpoint);
    if let Some(warning) = &listening.warning {
        // A closed standard error must not prevent serving.
        let _ = writeln!(std::io::stderr(), "{warning}");
    }
    announce(&hub.edit(|components| components.server.info.name.clone()), listening.url());
    process_end.signal().await;
    listening.shut_down().await;
    process_end.finish();
    Ok(())
}

/// Writes the URL on a line of its own, because programs that start servers read it.
fn announce(name: &str, url: &str) {
    let name = if name.is_empty() { "gudgeon" } else { name };
    let _ = writeln!(std::io::stderr(), "{name} serves (Ctrl-C ends it)\n{url}");
}
