//! Cursors of lists, sealed against forgery. Replicas with the same keys make the same cursors.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest as _, Sha256};

use super::key_ring::{KeyRing, NONCE};
use crate::router::Cursors;

const PLACE: usize = 8;

impl Cursors for KeyRing {
    fn seal(&self, list: &str, after: u64) -> String {
        seal(self, list, after)
    }

    fn open(&self, list: &str, cursor: &str) -> Option<u64> {
        open(self, list, cursor)
    }
}

/// Seals a place with a nonce that is derived from the server, the list and the place: the same place always gives the same
/// cursor, and two places never share a nonce.
fn seal(keys: &KeyRing, list: &str, after: u64) -> String {
    let (purpose, place) = (purpose(list), after.to_be_bytes());
    let bound = keys.bound_to(&purpose);
    let digest = Sha256::new().chain_update(bound).chain_update(place).finalize();
    let mut nonce = [0; NONCE];
    nonce.copy_from_slice(&digest[..NONCE]);
    // A service always has a key; without one, the cursor could not be opened.
    URL_SAFE_NO_PAD.encode(keys.seal(&purpose, &nonce, &place).unwrap_or_default())
}

fn open(keys: &KeyRing, list: &str, cursor: &str) -> Option<u64> {
    let bytes = URL_SAFE_NO_PAD.decode(cursor).ok()?;
    let place = keys.open(&purpose(list), &bytes)?;
    <[u8; PLACE]>::try_from(place.as_slice()).ok().map(u64::from_be_bytes)
}

fn purpose(list: &str) -> String {
    format!("gudgeon cursor 1 {list}")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that fails here says where")]

    use super::*;

    #[test]
    fn a_cursor_opens_in_its_own_list_only() {
        let keys = KeyRing::new(["secret"]);
        for place in [0, 1, 7, u64::MAX] {
            let cursor = seal(&keys, "tool", place);
            assert_eq!(open(&keys, "tool", &cursor), Some(place));
            assert_eq!(open(&keys, "prompt", &cursor), None);
            assert_eq!(open(&KeyRing::new(["other"]), "tool", &cursor), None);
        }
        assert_ne!(seal(&keys, "tool", 1), seal(&keys, "tool", 2));
    }

    #[test]
    fn a_server_of_another_name_opens_no_cursor() {
        let keys = |name| KeyRing::new(["secret"]).of_server(name);
        let cursor = seal(&keys("demo"), "tool", 3);
        assert_eq!(open(&keys("demo"), "tool", &cursor), Some(3));
        assert_eq!(open(&keys("production"), "tool", &cursor), None);
        assert_ne!(
            cursor[..32],
            seal(&keys("production"), "tool", 3)[..32],
            "a nonce is used once"
        );
    }

    #[test]
    fn replicas_with_the_same_keys_make_and_open_the_same_cursors() {
        let (one, other) = (KeyRing::new(["new", "old"]), KeyRing::new(["new"]));
        assert_eq!(seal(&one, "tool", 3), seal(&other, "tool", 3));
        let before = seal(&KeyRing::new(["old"]), "tool", 3);
        assert_eq!(open(&one, "tool", &before), Some(3), "keys change while cursors are about");
        assert_eq!(open(&other, "tool", &before), None);
    }

    #[test]
    fn what_was_changed_opens_nowhere() {
        let keys = KeyRing::new(["secret"]);
        let cursor = seal(&keys, "tool", 3);
        let mut bytes = URL_SAFE_NO_PAD.decode(&cursor).unwrap();
        for at in 0..bytes.len() {
            bytes[at] ^= 1;
            assert_eq!(open(&keys, "tool", &URL_SAFE_NO_PAD.encode(&bytes)), None, "byte {at}");
            bytes[at] ^= 1;
        }
        for garbage in ["", "garbage", "dG9vbDoz", "é", &cursor[1..], &format!("{cursor}=")] {
            assert_eq!(open(&keys, "tool", garbage), None, "{garbage}");
        }
    }
}
