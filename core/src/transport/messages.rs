//! Wires that carry whole messages: WebSocket, and wires of the user's own.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::{sync::mpsc, task::JoinHandle};

use super::{Transport, writer::Writer};
use crate::error::Error;

/// Messages that arrived and were not looked at yet.
const MAX_WAITING: usize = 64;

/// What arrives on a wire of messages.
#[derive(Debug)]
pub(crate) enum Arrival {
    Frame(Bytes),
    /// A message longer than `limit` bytes was thrown away.
    TooLong {
        limit: usize,
    },
    /// There will be no answer to the request with this id.
    Failed {
        id: u64,
        error: Error,
    },
    /// The server has a session that it did not have before: what was set in the old one is gone.
    Renewed,
    /// What the server says unasked will not arrive any more, and why.
    Deaf(String),
    /// Nothing more will arrive, and why.
    End(String),
}

/// A wire whose reading and writing are tasks of their own.
#[derive(Debug)]
pub(crate) struct Messages {
    arrivals: mpsc::Receiver<Arrival>,
    pub(crate) writer: Writer,
    reader: JoinHandle<()>,
}

impl Messages {
    /// `read` passes on what arrives until it ends.
    pub(crate) fn start<F>(writer: Writer, read: impl FnOnce(mpsc::Sender<Arrival>) -> F) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (sender, arrivals) = mpsc::channel(MAX_WAITING);
        Self { arrivals, writer, reader: tokio::spawn(read(sender)) }
    }

    /// A wire of the user's own.
    pub(crate) fn custom(transport: impl Transport, limit: usize) -> Self {
        let transport = Arc::new(transport);
        let output = Arc::clone(&transport);
        let writer = Writer::start(async move |mut queue| {
            let mut waiting = Vec::new();
            'all: while queue.take(&mut waiting).await {
                for frame in waiting.drain(..) {
                    let bytes = frame.len();
                    let written = output.send(frame).await;
                    queue.wrote(bytes);
                    if let Err(error) = written {
                        tracing::debug!(%error, "a message could not be sent");
                        break 'all;
                    }
                }
            }
            output.close().await;
        });
        Self::start(writer, async move |arrivals| {
            loop {
                let arrival = match transport.receive().await {
                    Ok(Some(frame)) if frame.len() > limit => Arrival::TooLong { limit },
                    Ok(Some(frame)) => Arrival::Frame(frame.into()),
                    Ok(None) => Arrival::End("the other side closed the connection".into()),
                    Err(error) => Arrival::End(format!("the connection broke: {error}")),
                };
                let is_end = matches!(arrival, Arrival::End(_));
                if arrivals.send(arrival).await.is_err() || is_end {
                    break;
                }
            }
        })
    }

    /// What arrives next. Loses nothing when dropped half-way.
    pub(crate) async fn next(&mut self) -> Arrival {
        self.writer.room().await;
        let end = || Arrival::End("the other side closed the connection".into());
        self.arrivals.recv().await.unwrap_or_else(end)
    }

    /// Writes what is queued, for a while, and closes.
    pub(crate) async fn close(self, grace: Duration) {
        self.writer.close(grace).await;
        self.reader.abort();
    }
}
