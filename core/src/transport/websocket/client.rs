//! A client's WebSocket connection.

use std::time::Duration;

use ::http::{HeaderMap, HeaderValue, Request, header};
use futures_util::{SinkExt, StreamExt};
use tokio::sync::mpsc;
use tokio_tungstenite::{
    WebSocketStream, client_async_with_config,
    tungstenite::{
        self, Message,
        error::{CapacityError, ProtocolError, SubProtocolError},
        handshake::client::generate_key,
        protocol::WebSocketConfig,
    },
};

use super::SUBPROTOCOL;
use crate::{
    error::{Error, ErrorKind, option_name},
    transport::{
        ByteStream, Url,
        dial::dial,
        http::client::refused,
        messages::{Arrival, Messages},
        proxy::Proxy,
        writer::Writer,
    },
};

const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum number of pings with an unwritten answer.
const MAX_PINGS: usize = 1_000;
/// The initial size of each connection's read buffer. All frames of one read are handled without a pause, while other
/// connections wait, and thousands of empty frames would fit into a larger buffer.
const READ_BUFFER: usize = 4 * 1024;
/// The size up to which frames are gathered before they are written.
const WRITE_BUFFER: usize = 16 * 1024;

type Socket = WebSocketStream<Box<dyn ByteStream>>;

/// Connects; a message longer than `limit` bytes ends the connection.
pub(crate) async fn connect(
    url: &Url,
    proxy: Option<&Proxy>,
    headers: &HeaderMap,
    limit: usize,
) -> Result<Messages, Error> {
    let socket = match handshake(url, proxy, headers, limit, true).await? {
        Some(socket) => socket,
        // A server that does not know subprotocols must not name one in its response.
        None => handshake(url, proxy, headers, limit, false).await?.ok_or_else(|| {
            Error::new(ErrorKind::Connect, "the server chose a subprotocol that was not offered")
                .in_phase("connect")
        })?,
    };
    let (mut output, mut input) = socket.split();
    let (pinged, mut pings) = mpsc::channel(MAX_PINGS);
    let writer = Writer::start(async move |mut queue| {
        let mut waiting = Vec::new();
        'all: loop {
            tokio::select! {
                is_open = queue.take(&mut waiting) => if !is_open {
                    break;
                },
                // tungstenite writes the pong together with the next message.
                Some(()) = pings.recv() => while pings.try_recv().is_ok() {},
            }
            let bytes = waiting.iter().map(Vec::len).sum();
            for frame in waiting.drain(..) {
                let Ok(text) = String::from_utf8(frame) else { continue };
                if output.feed(Message::text(text)).await.is_err() {
                    break 'all;
                }
            }
            if output.flush().await.is_err() {
                break;
            }
            queue.wrote(bytes);
        }
        drop(queue);
        let _ = output.close().await;
    });
    Ok(Messages::start(writer, async move |arrivals| {
        loop {
            let arrival = match input.next().await {
                Some(Ok(Message::Text(text))) => Arrival::Frame(text.into()),
                Some(Ok(Message::Binary(bytes))) => Arrival::Frame(bytes),
                Some(Ok(Message::Close(frame))) => Arrival::End(match frame {
                    Some(it) if !it.reason.is_empty() => {
                        format!("the server closed the connection: {} ({})", it.reason, it.code)
                    }
                    Some(it) => format!("the server closed the connection (code {})", it.code),
                    None => "the server closed the connection".to_owned(),
                }),
                Some(Ok(Message::Ping(_))) => {
                    // Reading pauses while the peer does not read the pongs.
                    let _ = pinged.send(()).await;
                    continue;
                }
                Some(Ok(_)) => continue,
                Some(Err(error)) => {
                    if is_too_long(&error) {
                        let _ =
                            arrivals.send(Arrival::TooLong { limit, beginning: Vec::new() }).await;
                    }
                    Arrival::End(ending(&error, limit))
                }
                None => Arrival::End("the server closed the connection".to_owned()),
            };
            let is_end = matches!(arrival, Arrival::End(_));
            if arrivals.send(arrival).await.is_err() || is_end {
                break;
            }
        }
    }))
}

/// Performs the handshake; returns `None` if the server does not confirm the subprotocol.
async fn handshake(
    url: &Url,
    proxy: Option<&Proxy>,
    headers: &HeaderMap,
    limit: usize,
    asks_subprotocol: bool,
) -> Result<Option<Socket>, Error> {
    let stream = dial(url, proxy).await?;
    let mut request = Request::builder()
        .uri(format!("ws://{}{}", url.authority(), url.path()))
        .body(())
        .map_err(|it| Error::misuse(format!("{url}: {it}")))?;
    *request.headers_mut() = headers.clone();
    let mut set = |name, value: &str| {
        if let Ok(value) = HeaderValue::from_str(value) {
            request.headers_mut().insert(name, value);
        }
    };
    set(header::HOST, &url.authority());
    set(header::CONNECTION, "Upgrade");
    set(header::UPGRADE, "websocket");
    set(header::SEC_WEBSOCKET_VERSION, "13");
    set(header::SEC_WEBSOCKET_KEY, &generate_key());
    if asks_subprotocol {
        set(header::SEC_WEBSOCKET_PROTOCOL, SUBPROTOCOL);
    }
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER)
        .write_buffer_size(WRITE_BUFFER)
        .max_message_size(Some(limit))
        .max_frame_size(Some(limit));
    let shaken = client_async_with_config(request, stream, Some(config));
    match tokio::time::timeout(HANDSHAKE_TIMEOUT, shaken).await {
        Ok(Ok((socket, response))) => match chosen_extension(response.headers()) {
            None => Ok(Some(socket)),
            Some(chosen) => {
                let message =
                    format!("the server chose the extension {chosen:?}, which was not offered");
                Err(Error::new(ErrorKind::Connect, message).in_phase("connect"))
            }
        },
        Ok(Err(tungstenite::Error::Protocol(ProtocolError::SecWebSocketSubProtocolError(
            SubProtocolError::NoSubProtocol,
        )))) => Ok(None),
        Ok(Err(tungstenite::Error::Http(response))) => {
            let body = response.body().as_deref().unwrap_or_default();
            let mut error =
                refused(response.status(), response.headers(), body).in_phase("connect");
            if error.kind != ErrorKind::Auth {
                error.kind = ErrorKind::Connect;
            }
            Err(error)
        }
        Ok(Err(error)) => {
            let message = format!("the WebSocket handshake failed: {error}");
            Err(Error::new(ErrorKind::Connect, message).caused_by(error).in_phase("connect"))
        }
        Err(_) => {
            let message = format!(
                "no response to the WebSocket handshake in {} s",
                HANDSHAKE_TIMEOUT.as_secs()
            );
            Err(Error::new(ErrorKind::Connect, message).in_phase("connect"))
        }
    }
}

/// Returns an extension in the response to a handshake, at most 100 bytes of it. Such a response must be refused (RFC 6455,
/// section 4.1), because this client offers no extension, and tungstenite does not check it.
fn chosen_extension(headers: &HeaderMap) -> Option<String> {
    let mut values = headers.get_all(header::SEC_WEBSOCKET_EXTENSIONS).iter();
    let chosen = values.find(|it| !it.as_bytes().trim_ascii().is_empty())?.as_bytes();
    Some(String::from_utf8_lossy(&chosen[..chosen.len().min(100)]).into_owned())
}

fn is_too_long(error: &tungstenite::Error) -> bool {
    matches!(error, tungstenite::Error::Capacity(CapacityError::MessageTooLong { .. }))
}

fn ending(error: &tungstenite::Error, limit: usize) -> String {
    match is_too_long(error) {
        true => format!(
            "a message of the server's is longer than {limit} bytes ({})",
            option_name("max_message")
        ),
        false => format!("the connection broke: {error}"),
    }
}
