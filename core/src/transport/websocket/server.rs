//! A server's WebSocket connection after the HTTP upgrade.

#[cfg(feature = "auth")]
use std::time::Instant;
use std::{io, net::IpAddr, sync::Arc, time::Duration};

use ::http::{HeaderMap, HeaderValue, Method, StatusCode, header, request::Parts};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::watch::Receiver,
    time::timeout,
};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        Error, Message,
        protocol::{CloseFrame, Role, WebSocketConfig, frame::coding::CloseCode},
    },
};

use super::{SUBPROTOCOL, accept_key, counted_input::CountedInput, lists};
use crate::{
    driver::Holding,
    http::Part,
    protocol::{ClientKey, Principal},
    transport::{
        listen::{Peers, Stage, closed},
        send_queue::Connected,
    },
};

/// The initial size of each connection's read buffer.
const READ_BUFFER: usize = 4 * 1024;
/// The size up to which frames are gathered before they are written.
const WRITE_BUFFER: usize = 16 * 1024;
/// The time for a client to answer the closing handshake.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// The reason for which a connection is closed with 1008.
const EXPIRED: &str = "the access token has expired: connect again with a new one";

/// Returns whether a request asks for an upgrade to WebSocket.
pub(crate) fn is_asked_for(head: &Parts) -> bool {
    head.method == Method::GET && lists(&head.headers, header::UPGRADE, "websocket")
}

/// Returns the headers of the upgrade response, or the response that rejects the upgrade (RFC 6455, 4.2).
pub(crate) fn shake_hands(head: &Parts) -> Result<HeaderMap, Part> {
    let headers = &head.headers;
    let mut answer = HeaderMap::new();
    if headers.get(header::SEC_WEBSOCKET_VERSION).is_none_or(|version| version != "13") {
        answer.insert(header::SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
        let status = StatusCode::UPGRADE_REQUIRED;
        return Err(Part::Head { status, headers: answer, body: Vec::new(), more: false });
    }
    let key = headers.get(header::SEC_WEBSOCKET_KEY).map_or(&b""[..], HeaderValue::as_bytes);
    let is_key = STANDARD.decode(key).is_ok_and(|bytes| bytes.len() == 16);
    let accepted = HeaderValue::from_str(&accept_key(key)).ok();
    let (true, true, Some(accepted)) =
        (is_key, lists(headers, header::CONNECTION, "upgrade"), accepted)
    else {
        let status = StatusCode::BAD_REQUEST;
        return Err(Part::Head { status, headers: answer, body: Vec::new(), more: false });
    };
    answer.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    answer.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    answer.insert(header::SEC_WEBSOCKET_ACCEPT, accepted);
    if lists(headers, header::SEC_WEBSOCKET_PROTOCOL, SUBPROTOCOL) {
        answer.insert(header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(SUBPROTOCOL));
    }
    Ok(answer)
}

/// The client of a connection, as far as it is known.
#[derive(Clone, Debug, Default)]
pub(crate) struct Client {
    pub(crate) principal: Option<Arc<Principal>>,
    pub(crate) remote: Option<IpAddr>,
    /// The time at which its access token expires.
    #[cfg(feature = "auth")]
    pub(crate) expires: Option<Instant>,
}

/// Serves the connection until either side closes it. `read` holds bytes that were read already.
pub(crate) async fn serve<S>(
    peers: Arc<Peers>,
    stream: S,
    client: Client,
    read: Bytes,
    mut stage: Receiver<Stage>,
) where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let limit = peers.endpoint.admission().max_body();
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER)
        .write_buffer_size(WRITE_BUFFER)
        .max_message_size(Some(limit))
        .max_frame_size(Some(limit));
    let key = ClientKey::new(client.principal.as_deref(), client.remote);
    let unfinished = Holding::new(&peers.endpoint.ledgers().input, key);
    let stream = CountedInput { stream, unfinished, arrived: 0 };
    let mut socket =
        WebSocketStream::from_partially_read(stream, read.into(), Role::Server, Some(config)).await;
    let ending = talk(&peers, &mut socket, client, &mut stage).await;
    let goodbye = async {
        if let Some((code, reason)) = ending {
            socket.close(Some(CloseFrame { code, reason: reason.into() })).await?;
        }
        socket.flush().await?;
        while socket.next().await.transpose()?.is_some() {
            socket.flush().await?;
        }
        Ok::<_, Error>(())
    };
    let _ = timeout(FLUSH_TIMEOUT, goodbye).await;
}

/// Exchanges messages; returns the close code and reason to send, if any.
async fn talk<S>(
    peers: &Arc<Peers>,
    socket: &mut WebSocketStream<CountedInput<S>>,
    client: Client,
    stage: &mut Receiver<Stage>,
) -> Option<(CloseCode, &'static str)>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let Client { principal, remote, .. } = client;
    let connected = Connected::open(Arc::clone(&peers.endpoint), principal, remote);
    #[cfg(feature = "auth")]
    if let Some(expires) = client.expires {
        connected.expire_at(expires);
    }
    let send_queue = connected.send_queue();
    let mut frames = Vec::new();
    let mut is_asked = false;
    loop {
        let reading = async {
            connected.has_room().await;
            // Reading pauses while the peer does not read the pongs, which would accumulate otherwise.
            let arriving = async {
                socket.flush().await?;
                socket.next().await.transpose()
            };
            timeout(peers.timeouts.idle, arriving).await
        };
        tokio::select! {
            biased;
            is_open = send_queue.take(&mut frames) => {
                if !is_open {
                    return Some(match send_queue.has_expired() {
                        true => (CloseCode::Policy, EXPIRED),
                        false => (CloseCode::Away, "the server is shutting down"),
                    });
                }
                let bytes = frames.iter().map(Vec::len).sum();
                let writing = async {
                    for frame in frames.drain(..) {
                        let Ok(text) = String::from_utf8(frame) else { continue };
                        socket.feed(Message::text(text)).await?;
                    }
                    socket.flush().await
                };
                match timeout(peers.timeouts.for_bytes(bytes), writing).await {
                    Ok(Ok(())) => send_queue.wrote(bytes),
                    Ok(Err(_)) | Err(_) => return None,
                }
            }
            arrived = reading => {
                let Ok(arrived) = arrived else {
                    // The connection was idle, so a ping tests whether the peer is still there.
                    let asking = timeout(peers.timeouts.idle, socket.send(Message::Ping(Bytes::new())));
                    if std::mem::replace(&mut is_asked, true) || !matches!(asking.await, Ok(Ok(()))) {
                        return None;
                    }
                    continue;
                };
                is_asked = false;
                // Pings and pongs come between the fragments of a message, which stay counted.
                if !matches!(arrived, Ok(Some(Message::Ping(_) | Message::Pong(_)))) {
                    socket.get_mut().restart();
                }
                match arrived {
                    Ok(Some(Message::Text(text))) => connected.take_frame(text.into()).await,
                    Ok(Some(Message::Binary(_))) => {
                        return Some((CloseCode::Unsupported, "messages must be text"));
                    }
                    Ok(Some(Message::Close(_)) | None) => return None,
                    Ok(Some(_)) => (),
                    Err(error) => return refusal(&error),
                }
            }
            () = closed(stage) => return None,
        }
    }
}

fn refusal(error: &Error) -> Option<(CloseCode, &'static str)> {
    match error {
        Error::Capacity(_) => Some((CloseCode::Size, "the message is too long")),
        Error::Io(error) if error.kind() == io::ErrorKind::OutOfMemory => {
            Some((CloseCode::Again, "too much is being received: connect again later"))
        }
        Error::Utf8(_) => Some((CloseCode::Invalid, "text must be UTF-8")),
        Error::Protocol(_) => Some((CloseCode::Protocol, "invalid WebSocket frame")),
        _ => None,
    }
}
