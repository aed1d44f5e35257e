//! Connections that carry whole messages: WebSocket and user-defined transports.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::{sync::mpsc, task::JoinHandle};

use super::{Transport, writer::Writer};
use crate::{driver::boxed, error::Error, framing::TooLong};

/// The maximum number of messages that were received but not processed.
const MAX_WAITING: usize = 64;

/// The reason for the end of a connection to which nothing can be written.
pub(crate) const NOT_READ: &str = "the other side no longer reads";

/// An event on a message connection.
#[derive(Debug)]
pub(crate) enum Arrival {
    Frame(Bytes),
    /// A frame that ended the exchange of the request with this id.
    Response {
        id: u64,
        frame: Bytes,
    },
    /// A message longer than `limit` bytes was discarded, of which a few bytes at both ends are kept, or none.
    TooLong {
        limit: usize,
        beginning: Vec<u8>,
        end: Vec<u8>,
    },
    /// The request with this id will get no response.
    Failed {
        id: u64,
        error: Error,
    },
    /// Requests wait (`true`) or no longer wait (`false`) for the user to sign in.
    Held(bool),
    /// A new server session replaced the old one, whose state is lost.
    Renewed,
    /// The server's notifications can no longer be received, with the reason.
    StreamLost(String),
    /// The connection ended, with the reason.
    End(String),
}

impl Arrival {
    /// Returns the number of bytes in the message.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Frame(frame) | Self::Response { frame, .. } => frame.len(),
            _ => 0,
        }
    }
}

/// A message connection with one task for reading and one for writing.
#[derive(Debug)]
pub(crate) struct Messages {
    arrivals: mpsc::Receiver<Arrival>,
    pub(crate) writer: Writer,
    reader: JoinHandle<()>,
}

impl Messages {
    /// Starts the tasks; `read` forwards messages until it returns.
    pub(crate) fn start<F>(writer: Writer, read: impl FnOnce(mpsc::Sender<Arrival>) -> F) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (sender, arrivals) = mpsc::channel(MAX_WAITING);
        Self { arrivals, writer, reader: tokio::spawn(boxed(read(sender))) }
    }

    /// Wraps a user-defined transport.
    pub(crate) fn custom(transport: impl Transport, limit: usize) -> Self {
        let transport = Arc::new(transport);
        let output = Arc::clone(&transport);
        let writer = Writer::start(async move |mut queue| {
            let mut waiting = Vec::new();
            'all: while queue.take(&mut waiting).await {
                for frame in waiting.drain(..) {
                    let bytes = frame.len();
                    if let Err(error) = output.send(frame).await {
                        tracing::debug!(%error, "a message could not be sent");
                        break 'all;
                    }
                    queue.wrote(bytes);
                }
            }
            drop(queue);
            output.close().await;
        });
        Self::start(writer, async move |arrivals| {
            loop {
                let arrival = match transport.receive().await {
                    Ok(Some(frame)) if frame.len() > limit => {
                        let TooLong { limit, beginning, end } = TooLong::new(limit, &frame);
                        Arrival::TooLong { limit, beginning: beginning.into(), end: end.into() }
                    }
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

    /// Returns the next event. Cancel safe.
    pub(crate) async fn next(&mut self) -> Arrival {
        self.writer.room().await;
        let arrival = tokio::select! {
            biased;
            () = self.writer.failed() => {
                // A few messages that were received before are left.
                self.arrivals.close();
                self.arrivals.recv().await.unwrap_or_else(|| Arrival::End(NOT_READ.into()))
            }
            arrival = self.arrivals.recv() => {
                arrival.unwrap_or_else(|| Arrival::End("the other side closed the connection".into()))
            }
        };
        arrival
    }

    /// Writes queued messages for up to `grace` and closes the connection.
    pub(crate) async fn close(self, grace: Duration) {
        self.writer.close(grace).await;
        self.reader.abort();
    }
}
