//! JSON-RPC messages, one a line, on the socket of the background process.

use std::{io, sync::Mutex};

use gudgeon::{
    Error,
    error::{ErrorDetails, ErrorKind},
    framing::{DEFAULT_LINE_LIMIT, Frame, LineDecoder, TooLong},
    protocol::{ErrorObject, Raw, code},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json, value::RawValue};
use tokio::io::{AsyncRead, AsyncReadExt as _};

use crate::failure::{Failure, FailureKind};

/// The code of errors of this program.
const FAILED: i64 = -32000;
/// The member of an error's `data` that has the failure as this program shows it.
const FAILURE: &str = "io.github.gudgeon-mcp/failure";
/// The kinds of failures, which are sent by their exit codes.
const KINDS: [FailureKind; 11] = [
    FailureKind::Reported,
    FailureKind::Usage,
    FailureKind::Connect,
    FailureKind::Timeout,
    FailureKind::Auth,
    FailureKind::Protocol,
    FailureKind::Unsupported,
    FailureKind::NotFound,
    FailureKind::Declined,
    FailureKind::File,
    FailureKind::Cancelled,
];
const CHUNK: usize = 16 * 1024;

/// A request, notification or response.
#[derive(Debug, Deserialize)]
pub struct Message {
    pub id: Option<Raw>,
    pub method: Option<String>,
    pub params: Option<Raw>,
    pub result: Option<Raw>,
    pub error: Option<ErrorObject>,
}

/// A failure on the socket.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct FailureData {
    exit_code: u8,
    message: String,
    hint: Option<String>,
}

/// Reads lines.
pub struct Lines<R> {
    reader: R,
    decoder: LineDecoder,
    chunk: Vec<u8>,
    /// The part of the chunk that was not decoded yet.
    rest: (usize, usize),
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub fn new(reader: R) -> Self {
        let decoder = LineDecoder::new(DEFAULT_LINE_LIMIT);
        Self { reader, decoder, chunk: vec![0; CHUNK], rest: (0, 0) }
    }

    /// Returns the next message, `None` at the end. Errors if a line is too long or is not a message.
    ///
    /// Cancel safe.
    pub async fn next(&mut self) -> io::Result<Option<Message>> {
        loop {
            let (start, end) = self.rest;
            let mut bytes = &self.chunk[start..end];
            let frame = self.decoder.next(&mut bytes);
            self.rest.0 = end - bytes.len();
            match frame {
                Some(Frame::Line(line)) => {
                    return serde_json::from_slice(line).map(Some).map_err(io::Error::other);
                }
                Some(Frame::TooLong(TooLong { limit, .. })) => {
                    return Err(io::Error::other(format!("a line is longer than {limit} bytes")));
                }
                None => (),
            }
            let count = self.reader.read(&mut self.chunk).await?;
            self.rest = (0, count);
            if count == 0 {
                return Ok(None);
            }
        }
    }

    /// Waits until the other side has closed the connection or broken the protocol.
    pub async fn closed(&mut self) {
        while let Ok(Some(_)) = self.next().await {}
    }
}

pub fn request(id: u64, method: &str, params: &impl Serialize) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}

pub fn notification(method: &str, params: &RawValue) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":{},"params":{params}}}"#, Value::from(method))
}

pub fn response(id: &RawValue, outcome: Result<&RawValue, &ErrorObject>) -> String {
    match outcome {
        Ok(result) => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#),
        Err(error) => json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string(),
    }
}

/// Serializes a value.
pub fn raw(value: &impl Serialize) -> Raw {
    serde_json::value::to_raw_value(value).unwrap_or_default()
}

/// Returns the failure of this program as an error of JSON-RPC.
pub fn error_of(failure: &Failure) -> ErrorObject {
    let data = FailureData {
        exit_code: failure.kind() as u8,
        message: failure.message().to_owned(),
        hint: failure.hint().map(ToOwned::to_owned),
    };
    let data = Some(raw(&json!({ FAILURE: data })));
    ErrorObject { code: FAILED, message: failure.message().to_owned(), data }
}

/// Returns an error of the core's client as an error of JSON-RPC: the server's own as it is, others with their kind.
pub fn error_object(error: Error) -> ErrorObject {
    match error.code {
        Some(code) if error.kind == ErrorKind::Protocol => {
            let ErrorDetails { message, data, .. } = error.into_details();
            ErrorObject { code, message, data }
        }
        _ => error_of(&failure_with_stderr(error)),
    }
}

/// Returns the failure for an error of a server whose standard error nobody sees: the message has its last lines.
pub fn failure_with_stderr(mut error: Error) -> Failure {
    if let Some(stderr) = &error.stderr {
        error.message = format!("{}; the end of its standard error:\n{stderr}", error.message);
    }
    error.into()
}

/// Returns the failure that the background process reported by an error.
pub fn failure_in(data: &RawValue) -> Option<Failure> {
    #[derive(Deserialize)]
    struct Data {
        #[serde(rename = "io.github.gudgeon-mcp/failure")]
        failure: FailureData,
    }
    let FailureData { exit_code, message, hint } =
        serde_json::from_str::<Data>(data.get()).ok()?.failure;
    let kind = KINDS.into_iter().find(|kind| *kind as u8 == exit_code)?;
    let failure = Failure::new(kind, message);
    Some(match hint {
        Some(hint) => failure.with_hint(hint),
        None => failure,
    })
}

pub fn method_not_found(method: &str) -> ErrorObject {
    let message = format!("unknown method {method:?}");
    ErrorObject { code: code::METHOD_NOT_FOUND, message, data: None }
}

pub fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_survives_the_socket() {
        let failure = Failure::new(FailureKind::Auth, "no token").with_hint("sign in");
        let error = error_of(&failure);
        let again = failure_in(&error.data.expect("data")).expect("a failure");
        assert_eq!(again.to_string(), "error: no token\n  hint: sign in");
        assert_eq!(again.kind(), FailureKind::Auth);
    }

    #[tokio::test]
    async fn lines_arrive_one_by_one() {
        let text = b"{\"id\":1,\"method\":\"a\"}\n{\"id\":2,\"result\":{}}\nx\n".as_slice();
        let mut lines = Lines::new(text);
        let first = lines.next().await.expect("a line").expect("a message");
        assert_eq!(first.method.as_deref(), Some("a"));
        let second = lines.next().await.expect("a line").expect("a message");
        assert_eq!(second.result.expect("a result").get(), "{}");
        assert!(lines.next().await.is_err());
        assert!(lines.next().await.expect("the end").is_none());
    }
}
