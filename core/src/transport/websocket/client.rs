//! A client's WebSocket connection.

use std::time::Duration;

use ::http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use futures_util::{SinkExt, StreamExt};
use hyper::body::Incoming;
use tokio::{sync::mpsc, time::timeout};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        self, Message,
        error::CapacityError,
        protocol::{Role, WebSocketConfig},
    },
};

use super::{SUBPROTOCOL, accept_key, lists};
use crate::{
    error::{Error, ErrorKind, option_name},
    transport::{
        ByteStream, Url,
        dial::dial,
        http::{
            body::Whole,
            client::{Credentials, refused},
            connection,
        },
        messages::{Arrival, Messages},
        network::Network,
        proxy::Proxy,
        writer::Writer,
    },
};

const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum size of the head of the server's response, in bytes.
const MAX_HEAD: usize = 64 * 1024;
/// The size of the beginning of a refusal's body that is read, in bytes, and the time for it.
const MAX_REFUSAL: usize = 4 * 1024;
const REFUSAL_TIME: Duration = Duration::from_secs(1);
/// The maximum number of pings with an unwritten answer.
const MAX_PINGS: usize = 1_000;
/// The initial size of each connection's read buffer. All frames of one read are handled without a pause, while other
/// connections wait, and thousands of empty frames would fit into a larger buffer.
const READ_BUFFER: usize = 4 * 1024;
/// The size up to which frames are gathered before they are written.
const WRITE_BUFFER: usize = 16 * 1024;

const NOT_OFFERED: &str = "the server chose a subprotocol that was not offered";

type Socket = WebSocketStream<Box<dyn ByteStream>>;

/// A stream after the handshake.
struct Upgraded {
    stream: Box<dyn ByteStream>,
    /// The bytes that followed the response.
    read: Vec<u8>,
    subprotocol: Option<HeaderValue>,
}

/// Connects; a message longer than `limit` bytes ends the connection.
pub(crate) async fn connect(
    url: &Url,
    proxy: Option<&Proxy>,
    network: &Network,
    headers: &HeaderMap,
    limit: usize,
) -> Result<Messages, Error> {
    let socket = match handshake(url, proxy, network, headers, limit, true).await? {
        Some(socket) => Some(socket),
        // A server that does not know subprotocols must not name one in its response.
        None => handshake(url, proxy, network, headers, limit, false).await?,
    };
    let socket = socket.ok_or_else(|| failed(NOT_OFFERED))?;
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
                        let _ = arrivals
                            .send(Arrival::TooLong {
                                limit,
                                beginning: Vec::new(),
                                end: Vec::new(),
                            })
                            .await;
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

/// Performs the handshake. Returns `None` if the server does not confirm the subprotocol.
async fn handshake(
    url: &Url,
    proxy: Option<&Proxy>,
    network: &Network,
    headers: &HeaderMap,
    limit: usize,
    asks_subprotocol: bool,
) -> Result<Option<Socket>, Error> {
    let stream = dial(url, proxy, network).await?;
    let key = generate_key();
    let mut request = Request::new(Whole::default());
    *request.uri_mut() =
        url.path().parse().map_err(|error| Error::misuse(format!("{url}: {error}")))?;
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
    set(header::SEC_WEBSOCKET_KEY, &key);
    if asks_subprotocol {
        set(header::SEC_WEBSOCKET_PROTOCOL, SUBPROTOCOL);
    }
    let Ok(opened) = timeout(HANDSHAKE_TIMEOUT, upgrade(stream, request, &key)).await else {
        let limit = HANDSHAKE_TIMEOUT.as_secs();
        return Err(failed(&format!("no response to the WebSocket handshake in {limit} s")));
    };
    let Upgraded { stream, read, subprotocol } = opened?;
    match (asks_subprotocol, subprotocol) {
        (false, None) => (),
        (true, Some(chosen)) if chosen == SUBPROTOCOL => (),
        (true, None) => return Ok(None),
        _ => return Err(failed(NOT_OFFERED)),
    }
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER)
        .write_buffer_size(WRITE_BUFFER)
        .max_message_size(Some(limit))
        .max_frame_size(Some(limit));
    let socket = WebSocketStream::from_partially_read(stream, read, Role::Client, Some(config));
    Ok(Some(socket.await))
}
/// Sends the request and checks the response (RFC 6455, section 4.1).
async fn upgrade(
    stream: Box<dyn ByteStream>,
    request: Request<Whole>,
    key: &str,
) -> Result<Upgraded, Error> {
    let broken = |error: hyper::Error| invalid(&error).caused_by(error);
    let sent = Credentials::from_headers(request.headers(), Credentials::NoHeader);
    let (mut sender, _) = connection::open(stream, MAX_HEAD).await.map_err(broken)?;
    let response = sender.send_request(request).await.map_err(broken)?;
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        return Err(refusal(response, sent).await);
    }
    let headers = response.headers();
    if !lists(headers, header::UPGRADE, "websocket") {
        return Err(invalid(&"the response has no header `Upgrade: websocket`"));
    }
    if !lists(headers, header::CONNECTION, "upgrade") {
        return Err(invalid(&"the response has no header `Connection: Upgrade`"));
    }
    let accepted = accept_key(key.as_bytes());
    if headers.get(header::SEC_WEBSOCKET_ACCEPT).is_none_or(|value| *value != accepted) {
        return Err(invalid(&"the response has no `Sec-WebSocket-Accept` for this request"));
    }
    if let Some(chosen) = chosen_extension(headers) {
        let message = format!("the server chose the extension {chosen:?}, which was not offered");
        return Err(failed(&message));
    }
    let subprotocol = headers.get(header::SEC_WEBSOCKET_PROTOCOL).cloned();
    let (stream, read) = connection::upgraded(response).await.map_err(broken)?;
    Ok(Upgraded { stream, read: read.into(), subprotocol })
}

/// Returns the error of a response with another status, which contains the beginning of its body.
async fn refusal(response: Response<Incoming>, sent: Credentials) -> Error {
    let (head, body) = response.into_parts();
    let mut read = Vec::new();
    // Without the rest, the error says less.
    let _ = timeout(REFUSAL_TIME, connection::read_body(body, MAX_REFUSAL, &mut read)).await;
    let mut error = refused(head.status, &head.headers, &read, sent).in_phase("connect");
    if error.kind != ErrorKind::Auth {
        error.kind = ErrorKind::Connect;
    }
    error
}

fn invalid(reason: &dyn std::fmt::Display) -> Error {
    failed(&format!("the WebSocket handshake failed: {reason}"))
}

fn failed(message: &str) -> Error {
    Error::new(ErrorKind::Connect, message).in_phase("connect")
}

fn generate_key() -> String {
    let mut random = [0; 16];
    getrandom::fill(&mut random).expect("the system gives random bytes");
    STANDARD.encode(random)
}

/// Returns an extension in the response to a handshake, at most 100 bytes of it. Such a response must be refused, because
/// this client offers no extension.
fn chosen_extension(headers: &HeaderMap) -> Option<String> {
    let mut values = headers.get_all(header::SEC_WEBSOCKET_EXTENSIONS).iter();
    let chosen = values.find(|value| !value.as_bytes().trim_ascii().is_empty())?.as_bytes();
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
