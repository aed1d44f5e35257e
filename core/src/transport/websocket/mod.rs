//! WebSocket: one message per WebSocket message.

#[cfg(feature = "client")]
pub(crate) mod client;
mod counted_input;
pub(crate) mod server;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{HeaderMap, HeaderName};
use sha1::{Digest, Sha1};

/// The subprotocol that clients request and servers confirm.
pub(crate) const SUBPROTOCOL: &str = "mcp";

/// The end of what is digested for `Sec-WebSocket-Accept` (RFC 6455, section 1.3).
const ACCEPT_SUFFIX: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// Returns the value of `Sec-WebSocket-Accept` for the value of `Sec-WebSocket-Key`.
fn accept_key(key: &[u8]) -> String {
    STANDARD.encode(Sha1::new().chain_update(key).chain_update(ACCEPT_SUFFIX).finalize())
}

/// Returns whether the comma-separated values of a header contain a word, in any case.
fn lists(headers: &HeaderMap, name: HeaderName, word: &str) -> bool {
    let words = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    words.flat_map(|value| value.split(',')).any(|listed| listed.trim().eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_key_of_rfc_6455_is_accepted() {
        let accepted = super::accept_key(b"dGhlIHNhbXBsZSBub25jZQ==");
        assert_eq!(accepted, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }
}
