//! The host's side over HTTP on the loopback interface: each session of a client has a connection to a server of its own, and
//! requests without a session, of revisions from 2026-07-28 on, share one.

mod channel;
mod guard;
mod handle;
mod reply;

use std::{convert::Infallible, process::ExitCode, sync::Arc, time::Duration};

use gudgeon::{auth::url::is_loopback, transport::http::HyperIo};
use hyper::{
    Request, Response, Uri,
    body::{Body, Bytes, Incoming},
    server::conn::http1,
    service::service_fn,
};
use tokio::{net::TcpListener, time::sleep};

use self::handle::Endpoint;
pub use self::handle::collect;
use super::{Upstream, stdio::stop_signal};
use crate::{
    failure::{Failure, FailureKind},
    log_format::LogFormat,
};

/// The URL of `--http` without a value.
pub const DEFAULT_URL: &str = "http://127.0.0.1:8000/mcp";
/// The delay before accepting again when the process has no free file descriptor.
const NO_ROOM: Duration = Duration::from_millis(50);

/// A socket that listens on the loopback interface.
pub struct Listener {
    socket: TcpListener,
    path: String,
    url: String,
}

/// A listening socket and the endpoint behind it.
pub struct Front {
    listener: Listener,
    endpoint: Arc<Endpoint>,
}

/// Serves at a URL until a signal comes; `name` is shown to the user.
pub async fn serve(
    url: &str,
    server: impl Upstream,
    name: &str,
    log_format: LogFormat,
) -> Result<ExitCode, Failure> {
    let front = Front::bind(url, server).await?;
    log_format.announce(name, front.url());
    Ok(front.run().await)
}

impl Listener {
    /// Listens at a URL, in which port 0 chooses a free port.
    pub async fn bind(url: &str) -> Result<Self, Failure> {
        let ListenUrl { host, port, path } = check_url(url)?;
        if !is_loopback(&host) {
            return Err(Failure::usage(format!("{url}: other machines could call the server"))
                .with_hint(format!("listen at 127.0.0.1, as in {DEFAULT_URL}")));
        }
        let address = (host.trim_matches(['[', ']']), port);
        let socket = TcpListener::bind(address).await.map_err(|error| {
            Failure::new(FailureKind::Connect, format!("can't listen at {url}: {error}"))
                .with_hint("give another port; port 0 chooses a free one")
        })?;
        let port = socket.local_addr().map_or(port, |address| address.port());
        let url = format!("http://{host}:{port}{path}");
        Ok(Self { socket, path, url })
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// Answers requests until it is dropped.
    pub async fn answer<B, A>(
        &self,
        answer: impl Fn(Request<Incoming>) -> A + Clone + Send + 'static,
    ) where
        A: Future<Output = Response<B>> + Send + 'static,
        B: Body<Data = Bytes, Error = Infallible> + Send + 'static,
    {
        loop {
            let Ok((stream, _)) = self.socket.accept().await else {
                sleep(NO_ROOM).await;
                continue;
            };
            let answer = answer.clone();
            let service = service_fn(move |request| {
                let answer = answer(request);
                async move { Ok::<_, Infallible>(answer.await) }
            });
            // A client that breaks the connection is not an error of this program.
            tokio::spawn(http1::Builder::new().serve_connection(HyperIo::new(stream), service));
        }
    }
}

impl Front {
    /// Listens at a URL, in which port 0 chooses a free port.
    pub async fn bind(url: &str, server: impl Upstream) -> Result<Self, Failure> {
        let listener = Listener::bind(url).await?;
        let endpoint = Endpoint::new(listener.path.clone(), server);
        Ok(Self { listener, endpoint })
    }

    pub fn url(&self) -> &str {
        self.listener.url()
    }

    /// Serves until a signal comes, and ends the servers; returns the exit code of the signal.
    pub async fn run(self) -> ExitCode {
        let endpoint = Arc::clone(&self.endpoint);
        let answer = move |request| {
            let endpoint = Arc::clone(&endpoint);
            async move { endpoint.handle(request).await }
        };
        let code = tokio::select! {
            code = stop_signal() => code,
            () = self.listener.answer(answer) => 0,
        };
        self.endpoint.close().await;
        ExitCode::from(code)
    }
}

/// A URL to listen at.
pub struct ListenUrl {
    host: String,
    port: u16,
    path: String,
}

/// Reads a URL to listen at. Errors if it is not of the form `http://host:port/path`.
pub fn check_url(url: &str) -> Result<ListenUrl, Failure> {
    let wrong = || {
        Failure::usage(format!("{url:?} is not a URL to listen at"))
            .with_hint(format!("write it as {DEFAULT_URL}"))
    };
    let uri: Uri = url.parse().map_err(|_| wrong())?;
    let (Some("http"), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
        return Err(wrong());
    };
    let host = authority.host();
    let has_port = authority.as_str().len() > host.len();
    let port = match authority.port_u16() {
        Some(port) => port,
        None if has_port => return Err(wrong()),
        None => 80,
    };
    if uri.query().is_some() || host.is_empty() || authority.as_str().contains('@') {
        return Err(wrong());
    }
    Ok(ListenUrl { host: host.to_owned(), port, path: uri.path().to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_to_listen_at_are_http_with_host_and_port() {
        for url in [DEFAULT_URL, "http://localhost:0/", "http://[::1]:80/a/b"] {
            assert!(check_url(url).is_ok(), "{url}");
        }
        for url in ["8000", "https://a/mcp", "http://a:b/", "http://a:1/?q", "http://u@a/", "x"] {
            assert!(check_url(url).is_err(), "{url}");
        }
    }
}
