//! HTTP/1.1 served: hyper moves the bytes, the endpoint decides what they are.

mod answer;
mod body;
mod watch;

use std::{
    convert::Infallible,
    sync::{Arc, Mutex, PoisonError},
};

use http::{Request, Response, header};
use http_body::Body;
use hyper::{body::Incoming, server::conn::http1, service::service_fn, upgrade::OnUpgrade};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::watch::Receiver,
};

pub use self::answer::{AnswerBody, GivenUp};
use self::{
    answer::{Awaited, Mailbox},
    watch::{Watch, Watched},
};
use super::io::HyperIo;
use crate::{
    driver::{EndpointServer, Shell},
    transport::{
        listen::{Peers, Stage},
        patience::Patience,
        websocket::server as websocket,
    },
};

/// What hyper buffers at most of one connection, beside heads.
const BUFFER: usize = 64 * 1024;

/// Serves one connection until it ends.
pub(crate) async fn serve<S>(peers: Arc<Peers>, stream: S, mut stage: Receiver<Stage>)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let line = Arc::new(Line { watch: Watch::new(peers.patience), upgrade: Mutex::default() });
    let service = service_fn(|request: Request<Incoming>| {
        let (peers, line) = (Arc::clone(&peers), Arc::clone(&line));
        async move { Ok::<_, Infallible>(exchange(&peers, &line, request).await) }
    });
    let io = HyperIo(Watched { stream, watch: Arc::clone(&line.watch) });
    let connection = http1::Builder::new()
        .max_buf_size(peers.max_headers.max(BUFFER))
        .max_header_size(peers.max_headers)
        .serve_connection(io, service)
        .with_upgrades();
    let mut connection = std::pin::pin!(connection);
    let mut expired = std::pin::pin!(line.watch.expired());
    loop {
        tokio::select! {
            ended = connection.as_mut() => match ended {
                Ok(()) => break,
                Err(error) => {
                    tracing::debug!(%error, "a connection broke");
                    return;
                }
            },
            () = expired.as_mut() => return,
            changed = stage.changed() => match *stage.borrow() {
                Stage::Closing if changed.is_ok() => connection.as_mut().graceful_shutdown(),
                _ => return,
            }
        }
    }
    let upgrade = line.upgrade.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(upgrade) = upgrade
        && let Ok(upgraded) = upgrade.await
        && let Ok(parts) = upgraded.downcast::<HyperIo<Watched<S>>>()
    {
        let stream = parts.io.0.stream;
        // Not part of the future that every connection keeps.
        Box::pin(websocket::serve(peers, stream, parts.read_buf, stage)).await;
    }
}

/// One connection.
struct Line {
    watch: Arc<Watch>,
    /// It becomes a WebSocket.
    upgrade: Mutex<Option<OnUpgrade>>,
}

async fn exchange(
    peers: &Peers,
    line: &Line,
    mut request: Request<Incoming>,
) -> Response<AnswerBody> {
    line.watch.busy();
    if request.headers().contains_key(header::UPGRADE) {
        let upgrade = hyper::upgrade::on(&mut request);
        let (head, body) = request.into_parts();
        if websocket::is_asked_for(&head) {
            let shaken =
                peers.server.admit_upgrade(&head).and_then(|()| websocket::shake_hands(&head));
            let answer = match shaken {
                Ok(headers) => {
                    *line.upgrade.lock().unwrap_or_else(PoisonError::into_inner) = Some(upgrade);
                    AnswerBody::switching(headers)
                }
                Err(refusal) => AnswerBody::of(refusal),
            };
            line.watch.idle();
            return answer;
        }
        request = Request::from_parts(head, body);
    }
    answer(&peers.server, &peers.shell, Some(&line.watch), peers.patience, request).await
}

/// Answers one request, whoever reads and writes it.
pub(crate) async fn answer<B: Body>(
    server: &Arc<EndpointServer>,
    shell: &Arc<dyn Shell>,
    watch: Option<&Arc<Watch>>,
    patience: Patience,
    request: Request<B>,
) -> Response<AnswerBody> {
    let (head, body) = request.into_parts();
    let waits_for_leave = head.headers.contains_key(header::EXPECT);
    let body = match body::read(body, server.max_body(), patience, waits_for_leave).await {
        Ok(body) => body,
        Err(refused) => {
            watch.inspect(|it| it.idle());
            return AnswerBody::of(server.refuse(&head, refused));
        }
    };
    let mailbox = Mailbox::new(watch.cloned());
    let (exchange, work) = server.request(head, body, Box::new(Arc::clone(&mailbox)));
    let awaited = Awaited::new(Arc::clone(server), Arc::clone(shell), exchange, mailbox);
    shell.run(work);
    awaited.response().await
}
