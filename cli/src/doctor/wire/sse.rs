//! The transport HTTP+SSE of 2024-11-05: one stream of events from the server, and a POST for each text to it.

use std::time::Duration;

use gudgeon::transport::Url;
use http::Method;
use tokio::{
    sync::mpsc::{self, UnboundedReceiver},
    task::JoinHandle,
    time::{Instant, timeout_at},
};

use super::{
    End, Message,
    http::{Address, Head, Headers, Received},
};

/// The time for the status of a POST, whose answer comes on the stream.
const POST_TIMEOUT: Duration = Duration::from_secs(10);

/// An open stream, and the address for texts that the server named on it.
#[derive(Debug)]
pub struct SseWire {
    pub endpoint: Address,
    messages: UnboundedReceiver<Message>,
    /// Events with another name than `message`.
    others: UnboundedReceiver<(String, String)>,
    reader: JoinHandle<()>,
}

/// The reason why the server at an address does not speak HTTP+SSE.
#[derive(Debug)]
pub enum NotSse {
    /// GET opens no stream.
    NoStream(String),
    /// The stream does not begin with an `endpoint` event that names a URL; the text says what came instead.
    NoEndpoint(String),
}

impl SseWire {
    /// Opens the stream at an address and waits for its `endpoint` event.
    pub async fn open(address: &Address, until: Instant) -> Result<Self, NotSse> {
        let accept = [("accept", Some("text/event-stream"))];
        let mut stream = match address.open(Method::GET, &accept, "", until).await {
            Ok(stream) if stream.head.status == 200 && stream.head.is_stream() => stream,
            Ok(stream) => return Err(NotSse::NoStream(format!("HTTP {}", stream.head.status))),
            Err(end) => return Err(NotSse::NoStream(end.reason())),
        };
        let named = match stream.receive(until).await {
            Ok(Some(Received::Other { event, data })) if event == "endpoint" => data,
            Ok(Some(Received::Other { event, data })) => {
                return Err(NotSse::NoEndpoint(format!("event: {event}, data: {data}")));
            }
            Ok(Some(Received::Message(message))) => return Err(NotSse::NoEndpoint(message.raw)),
            Ok(None) => return Err(NotSse::NoEndpoint("the stream ends at once".into())),
            Err(end) => return Err(NotSse::NoEndpoint(end.reason())),
        };
        let url = Url::parse(&address.url).and_then(|url| url.join(&named));
        let url = url.map_err(|_| NotSse::NoEndpoint(format!("event: endpoint, data: {named}")))?;
        let endpoint = address.with_url(url.with_query());
        let (sender, messages) = mpsc::unbounded_channel();
        let (other_sender, others) = mpsc::unbounded_channel();
        let reader = tokio::spawn(async move {
            while let Ok(Some(received)) = stream.receive_any().await {
                let message = match received {
                    Received::Message(message) => message,
                    Received::Other { event, data } => {
                        // The receiver lives as long as that of messages.
                        let _ = other_sender.send((event, data.clone()));
                        let message = Message::new(data);
                        if !message.value.is_object() && !message.value.is_array() {
                            continue;
                        }
                        message
                    }
                };
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        Ok(Self { endpoint, messages, others, reader })
    }

    /// Sends a message by POST. Returns the head and the body of the response if its status is an error.
    pub async fn send(&self, text: &str, headers: Headers<'_>) -> Result<Option<Head>, String> {
        let exchange = self.endpoint.post(text, headers, &[], POST_TIMEOUT).await;
        match (exchange.http, exchange.end) {
            (Some(head), _) if head.status >= 400 => Ok(Some(head)),
            (_, End::Answered | End::Closed) => Ok(None),
            (_, end) => Err(end.reason()),
        }
    }

    /// Returns the next message until a time: `Ok(None)` after it, and `Err` once the server closed the stream.
    pub async fn next(&mut self, until: Instant) -> Result<Option<Message>, ()> {
        match timeout_at(until, self.messages.recv()).await {
            Ok(Some(message)) => Ok(Some(message)),
            Ok(None) => Err(()),
            Err(_) => Ok(None),
        }
    }

    /// Returns an event that came with another name than `message`, if there was one.
    pub fn other(&mut self) -> Option<(String, String)> {
        self.others.try_recv().ok()
    }

    /// Returns whether the endpoint has the origin of the stream.
    pub fn is_same_origin(&self, address: &Address) -> bool {
        match (Url::parse(&address.url), Url::parse(&self.endpoint.url)) {
            (Ok(stream), Ok(endpoint)) => endpoint.has_origin_of(&stream),
            _ => false,
        }
    }
}

impl Drop for SseWire {
    fn drop(&mut self) {
        self.reader.abort();
    }
}
