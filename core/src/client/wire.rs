//! The transport of a connection, of any kind.

use std::{sync::Arc, time::Duration};

use http::{HeaderMap, HeaderName, HeaderValue};

use super::message_log::MessageLog;
use crate::{
    error::Error,
    framing::Frame,
    session::client::{ClientSession, Input, NegotiatedProtocol},
    transport::{
        Link,
        http::client::{HttpWire, Mirror, SessionId},
        messages::{Arrival, Messages, NOT_READ},
        network::Network,
        off_thread::beside_other_tasks,
        proxy::Proxy,
        sign_in::Authorizer,
        stream::LineReader,
        writer::Writer,
    },
};

/// The time for writing queued messages when the connection closes.
const LAST_WRITES: Duration = Duration::from_secs(2);
/// The number of reads after which the output of a server that no longer reads is left. Together they are longer than the buffer
/// of a pipe.
const LAST_READS: usize = 32;

pub(super) enum ClientTransport {
    Lines(LineReader, Writer),
    Messages(Messages),
    Http(Box<HttpWire>),
}

/// The event that woke the reader.
pub(super) enum WireEvent {
    /// This many bytes were read into the line buffer.
    Bytes(usize),
    Arrival(Arrival),
}

impl ClientTransport {
    pub(super) fn lines(link: Link, limit: usize) -> Self {
        let (reader, writer) = link.split(limit);
        Self::Lines(reader, writer)
    }

    pub(super) fn send(&mut self, frame: Vec<u8>, spoken: NegotiatedProtocol) {
        match self {
            Self::Lines(_, writer) => writer.send(frame),
            Self::Messages(messages) => messages.writer.send(frame),
            Self::Http(http) => http.send(frame, spoken),
        }
    }

    /// Returns the next event. Cancel safe.
    pub(super) async fn next_event(&mut self) -> WireEvent {
        match self {
            Self::Lines(reader, writer) => {
                writer.room().await;
                let end = |why| WireEvent::Arrival(Arrival::End(why));
                tokio::select! {
                    biased;
                    () = writer.failed() => end(NOT_READ.into()),
                    read = reader.read() => match read {
                        Ok(read @ 1..) => WireEvent::Bytes(read),
                        Ok(0) => end(String::new()),
                        Err(error) => end(format!("the connection broke: {error}")),
                    },
                }
            }
            Self::Messages(messages) => WireEvent::Arrival(messages.next().await),
            Self::Http(http) => WireEvent::Arrival(http.next().await),
        }
    }

    /// Returns whether a process was not sent all frames.
    pub(super) fn has_unwritten(&self) -> bool {
        matches!(self, Self::Lines(_, writer) if writer.has_unwritten())
    }

    /// Passes the bytes that were just read to the session.
    pub(super) fn read(
        &mut self,
        read: usize,
        now: std::time::Instant,
        to: &mut ClientSession,
        log: &MessageLog,
    ) {
        let Self::Lines(reader, _) = self else { return };
        let (decoder, mut chunk) = reader.parts(read);
        while let Some(frame) = decoder.next(&mut chunk) {
            let bytes = match frame {
                Frame::Line(line) => {
                    log.received(line);
                    line.len()
                }
                Frame::TooLong(_) => 0,
            };
            beside_other_tasks(bytes, || to.handle(now, input(frame)));
        }
    }

    /// Passes what the server sent before the end to the session, a last line without a line end included. Returns whether
    /// the server may still send more, although the connection is lost.
    pub(super) fn finish(
        &mut self,
        now: std::time::Instant,
        to: &mut ClientSession,
        log: &MessageLog,
    ) -> bool {
        let mut is_open = true;
        for _ in 0..LAST_READS {
            match self.read_now() {
                None => break,
                Some(Ok(read @ 1..)) => self.read(read, now, to, log),
                Some(_) => {
                    is_open = false;
                    break;
                }
            }
        }
        if let Self::Lines(reader, _) = self
            && let Some(last) = reader.decoder.finish()
        {
            let input = match last {
                Frame::Line(line) => {
                    log.received(line);
                    Input::LastLine(line)
                }
                Frame::TooLong(message) => Input::TooLong(message),
            };
            to.handle(now, input);
        }
        is_open
    }

    fn read_now(&mut self) -> Option<std::io::Result<usize>> {
        match self {
            Self::Lines(reader, _) => reader.read_now(),
            Self::Messages(_) | Self::Http(_) => Some(Ok(0)),
        }
    }

    pub(super) async fn close(self) {
        match self {
            Self::Lines(reader, writer) => {
                writer.close(LAST_WRITES).await;
                drop(reader);
            }
            Self::Messages(messages) => messages.close(LAST_WRITES).await,
            Self::Http(http) => http.close(LAST_WRITES).await,
        }
    }
}

fn input(frame: Frame<'_>) -> Input<'_> {
    match frame {
        Frame::Line(line) => Input::Frame(line),
        Frame::TooLong(message) => Input::TooLong(message),
    }
}

/// Options of a transport.
pub(super) struct WireOptions {
    /// The maximum size of a received message in bytes; longer ones are discarded.
    pub(super) limit: usize,
    pub(super) headers: HeaderMap,
    /// The proxy to connect through.
    pub(super) proxy: Option<Arc<Proxy>>,
    pub(super) network: Network,
    pub(super) mirror: Mirror,
    pub(super) session: SessionId,
    /// The credentials for a server over HTTP.
    pub(super) auth: Option<Arc<Authorizer>>,
}

impl WireOptions {
    pub(super) fn new(
        limit: usize,
        headers: &[(String, String)],
        mirror: &Mirror,
    ) -> Result<Self, Error> {
        let (headers, mirror) = (read_headers(headers)?, Arc::clone(mirror));
        let (session, network) = (SessionId::default(), Network::default());
        Ok(Self { limit, headers, proxy: None, network, mirror, session, auth: None })
    }

    /// Adds the proxy to an error before the first answer of the server.
    pub(super) fn explain(&self, error: Error) -> Error {
        match &self.proxy {
            Some(proxy) => proxy.explain(error),
            None => error,
        }
    }
}

/// Parses the user's headers. Errors never include a value, which may be secret.
fn read_headers(given: &[(String, String)]) -> Result<HeaderMap, Error> {
    const OURS: [&str; 6] =
        ["connection", "content-length", "content-type", "transfer-encoding", "upgrade", "accept"];
    let mut headers = HeaderMap::new();
    let agent = concat!("gudgeon/", env!("CARGO_PKG_VERSION"));
    headers.insert(http::header::USER_AGENT, HeaderValue::from_static(agent));
    for (name, value) in given {
        let parsed = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| Error::misuse(format!("headers: {name:?} is not a valid header name")))?;
        if OURS.contains(&parsed.as_str()) {
            let message = format!("headers: {name:?} is set by the transport; leave it out");
            return Err(Error::misuse(message));
        }
        let mut value = HeaderValue::from_str(value).map_err(|_| {
            Error::misuse(format!(
                "headers: the value of {name:?} has characters that are invalid in a header, such as a line end"
            ))
        })?;
        value.set_sensitive(true);
        headers.insert(parsed, value);
    }
    Ok(headers)
}
