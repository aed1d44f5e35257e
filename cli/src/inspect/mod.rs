//! The inspector: a page on the loopback interface that shows a server and all that is exchanged with it.

mod assets;
mod guard;
mod journal;
mod operations;
mod questions;
mod response;
mod routes;
mod session;
mod settings;

use std::{net::Ipv4Addr, sync::Arc, time::Duration};

use gudgeon::transport::http::HyperIo;
use hyper::{server::conn::http1, service::service_fn};
use tokio::{net::TcpListener, task::JoinSet};

use self::{guard::Guard, routes::Routes, session::Session, settings::Settings};
use crate::{
    browser,
    connection::ConnectionArguments,
    failure::{Failure, FailureKind},
    frames::stdio::stop_signal,
    output,
    target::Target,
};

/// The maximum number of connections at the same time; a browser opens six.
const MAX_CONNECTIONS: usize = 256;
/// The maximum size of the head of a request in bytes.
const MAX_HEAD: usize = 64 * 1024;

#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The port on 127.0.0.1; 0 means any.
    pub port: u16,
    /// True if the page is opened in the user's browser.
    pub opens: bool,
}

/// Serves the page until the program is interrupted. Connects to the target first, if there is one; the page can connect
/// to others.
pub async fn serve(
    target: Option<Target>,
    connection: &ConnectionArguments,
    options: Options,
) -> Result<(), Failure> {
    let failed = |message: String| Failure::new(FailureKind::Connect, message);
    let listener =
        TcpListener::bind((Ipv4Addr::LOCALHOST, options.port)).await.map_err(|error| {
            failed(format!("can't listen on 127.0.0.1:{}: {error}", options.port))
                .with_hint("choose another port, or leave --port out for any free one")
        })?;
    let guard =
        Guard::new(listener.local_addr()?.port()).map_err(|error| failed(error.to_string()))?;
    let url = guard.url();
    let has_target = target.is_some();
    let settings = Settings::new(target.as_ref(), connection);
    let session = Session::new(target, settings);
    if has_target {
        session.connect_again().await;
    }
    output::line(&url)?;
    // The file has to be there when the browser reads it.
    let _redirect = match options.opens.then(|| browser::open_secret(&url)) {
        Some(Err(reason)) => {
            output::note(format_args!("no browser was opened ({reason}): open the URL yourself"));
            None
        }
        Some(Ok(redirect)) => Some(redirect),
        None => None,
    };
    let routes = Arc::new(Routes::new(guard, Arc::clone(&session)));
    tokio::select! {
        () = accept(listener, routes) => (),
        _ = stop_signal() => (),
    }
    session.disconnect().await;
    Ok(())
}

async fn accept(listener: TcpListener, routes: Arc<Routes>) {
    let mut connections = JoinSet::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Too many open files, for example.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        while connections.try_join_next().is_some() {}
        if connections.len() >= MAX_CONNECTIONS {
            continue;
        }
        let routes = Arc::clone(&routes);
        connections.spawn(async move {
            let service = service_fn(move |request| {
                let routes = Arc::clone(&routes);
                async move { Ok::<_, std::convert::Infallible>(routes.answer(request).await) }
            });
            let connection = http1::Builder::new()
                .max_buf_size(MAX_HEAD)
                .serve_connection(HyperIo::new(stream), service);
            // The browser closes connections as it likes.
            let _ = connection.await;
        });
    }
}
