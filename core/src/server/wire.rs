//! Serving a client over tokio streams or a user-defined transport.

use std::{sync::Arc, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    task::AbortHandle,
};

use super::{
    endpoint::endpoint,
    registry::Hub,
    serve::{FLUSH_TIMEOUT, Limits},
};
use crate::{
    driver::{HostedEndpoint, boxed, keep_time},
    engine::TestMode,
    error::{Error, ErrorKind},
    framing::TooLong,
    http::EndpointConfig,
    session::server::HttpFacts,
    transport::{Transport, lines::Lines, send_queue::Connected},
};

/// The number of pending requests of a client at which reading pauses.
const MAX_IN_FLIGHT: usize = 10_000;

/// Serves until the reader ends.
pub(super) async fn streams<R, W>(
    hub: Arc<Hub>,
    limits: Limits,
    test: Option<(TestMode, Option<HttpFacts>)>,
    reader: R,
    writer: W,
) where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let one = One::open(&hub, test);
    let Limits { line: limit, grace } = limits;
    let lines = Lines { limit, write_timeout: |_| Duration::MAX, grace, guard: None };
    lines.serve(one.connected(), reader, writer).await;
}

/// Serves until the transport ends or fails.
pub(super) async fn transport(
    hub: Arc<Hub>,
    limits: Limits,
    transport: impl Transport,
) -> Result<(), Error> {
    let one = One::open(&hub, None);
    let connected = one.connected();
    let send_queue = connected.send_queue();
    let mut writing = std::pin::pin!(async {
        let mut frames = Vec::new();
        while send_queue.take(&mut frames).await {
            for frame in frames.drain(..) {
                let bytes = frame.len();
                transport.send(frame).await?;
                send_queue.wrote(bytes);
            }
        }
        Ok(())
    });
    let reading = async {
        let mut received = Ok(());
        loop {
            let frame = match transport.receive().await {
                Ok(Some(frame)) => frame,
                Ok(None) => break,
                Err(error) => {
                    received = Err(error);
                    break;
                }
            };
            match frame.len() > limits.line {
                true => connected.refuse_too_long(TooLong::new(limits.line, &frame)),
                false => connected.take_frame(frame.into()).await,
            }
            connected.has_room().await;
        }
        if received.is_ok() {
            connected.finish(limits.grace).await;
        }
        received
    };
    let (mut ended, is_broken) = tokio::select! {
        received = reading => (received, false),
        written = &mut writing => (written, true),
    };
    drop(connected);
    if !is_broken && let Ok(written) = tokio::time::timeout(FLUSH_TIMEOUT, writing).await {
        ended = ended.and(written);
    }
    transport.close().await;
    ended.map_err(|error: std::io::Error| {
        Error::new(ErrorKind::Lost, format!("the transport failed: {error}")).caused_by(error)
    })
}

/// An endpoint with a single client. Dropping it cancels pending calls.
struct One {
    endpoint: Arc<HostedEndpoint>,
    timer: AbortHandle,
}

impl One {
    fn open(hub: &Hub, test: Option<(TestMode, Option<HttpFacts>)>) -> Self {
        let config = EndpointConfig { max_in_flight: MAX_IN_FLIGHT, ..EndpointConfig::default() };
        let endpoint = endpoint(hub, config, test);
        let timer = tokio::spawn(boxed(keep_time(Arc::clone(&endpoint))));
        Self { endpoint, timer: timer.abort_handle() }
    }

    fn connected(&self) -> Connected {
        Connected::open(Arc::clone(&self.endpoint), None, None)
    }
}

impl Drop for One {
    fn drop(&mut self) {
        self.timer.abort();
        self.endpoint.close();
    }
}
