//! HTTP/1.1 served: hyper moves the bytes, the endpoint decides what they are.

mod answer;
mod body;
mod watch;

use std::{convert::Infallible, sync::Arc, time::Duration};

use http::{Request, Response, header};
use http_body::Body;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::watch::Receiver,
};

pub(crate) use self::watch::Patience;
use self::{
    answer::{AnswerBody, Awaited, Mailbox},
    watch::{Watch, Watched},
};
use super::io::HyperIo;
use crate::{
    driver::{EndpointServer, Shell},
    transport::listen::{Peers, Stage},
};

/// What hyper buffers at most of one connection, beside heads.
const BUFFER: usize = 64 * 1024;

/// Serves one connection until it ends.
pub(crate) async fn serve<S>(peers: Arc<Peers>, stream: S, mut stage: Receiver<Stage>)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let watch = Watch::new(peers.patience);
    let service = service_fn(|request: Request<Incoming>| {
        let (peers, watch) = (Arc::clone(&peers), Arc::clone(&watch));
        async move { Ok::<_, Infallible>(exchange(&peers, &watch, request).await) }
    });
    let io = HyperIo(Watched { stream, watch: Arc::clone(&watch) });
    let connection = http1::Builder::new()
        .max_buf_size(peers.max_headers.max(BUFFER))
        .max_header_size(peers.max_headers)
        .serve_connection(io, service);
    let mut connection = std::pin::pin!(connection);
    let mut expired = std::pin::pin!(watch.expired());
    loop {
        tokio::select! {
            ended = connection.as_mut() => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "a connection broke");
                }
                return;
            }
            () = expired.as_mut() => return,
            changed = stage.changed() => match *stage.borrow() {
                Stage::Closing if changed.is_ok() => connection.as_mut().graceful_shutdown(),
                _ => return,
            }
        }
    }
}

async fn exchange(
    peers: &Peers,
    watch: &Arc<Watch>,
    request: Request<Incoming>,
) -> Response<AnswerBody> {
    watch.busy();
    answer(&peers.server, &peers.shell, Some(watch), peers.patience.idle, request).await
}

/// Answers one request, whoever reads and writes it.
async fn answer<B: Body>(
    server: &Arc<EndpointServer>,
    shell: &Arc<dyn Shell>,
    watch: Option<&Arc<Watch>>,
    idle: Duration,
    request: Request<B>,
) -> Response<AnswerBody> {
    let (head, body) = request.into_parts();
    let waits_for_leave = head.headers.contains_key(header::EXPECT);
    let body = match body::read(body, server.max_body(), idle, waits_for_leave).await {
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
