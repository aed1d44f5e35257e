//! The bytes of messages that clients have begun to send and not finished: together, and for each client.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::protocol::ClientKey;

/// The bytes of a message that are not counted, so that small messages take no lock.
const FREE: usize = 16 * 1024;
/// The maximum number of counted bytes. A client with less than its share may exceed it, up to twice as much in all.
const MAX: usize = 128 * 1024 * 1024;

/// The counts of one endpoint.
#[derive(Debug, Default)]
pub(crate) struct InputLedger(Mutex<Held>);

#[derive(Debug, Default)]
struct Held {
    total: usize,
    clients: HashMap<Option<ClientKey>, usize>,
}

/// The part of a message that has arrived. Dropping it gives the bytes back.
#[derive(Debug)]
pub(crate) struct UnfinishedInput {
    ledger: Arc<InputLedger>,
    client: Option<ClientKey>,
    counted: usize,
}

impl UnfinishedInput {
    /// Begins a message of this client.
    pub(crate) fn new(ledger: &Arc<InputLedger>, client: Option<ClientKey>) -> Self {
        Self { ledger: Arc::clone(ledger), client, counted: 0 }
    }

    /// Sets the number of bytes that have arrived. Returns `false` if there is no room for them.
    #[must_use = "without room the message must not be read on"]
    pub(crate) fn set(&mut self, bytes: usize) -> bool {
        let after = bytes.saturating_sub(FREE);
        if after == self.counted {
            return true;
        }
        let has_room = self.ledger.lock().replace(self.client, self.counted, after);
        if has_room {
            self.counted = after;
        }
        has_room
    }
}

impl Drop for UnfinishedInput {
    fn drop(&mut self) {
        if self.counted > 0 {
            self.ledger.lock().replace(self.client, self.counted, 0);
        }
    }
}

impl InputLedger {
    fn lock(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    fn replace(&mut self, client: Option<ClientKey>, before: usize, after: usize) -> bool {
        let own = self.clients.get(&client).copied().unwrap_or_default();
        let (total, own_after) = (self.total - before + after, own - before + after);
        if after > before && total > MAX {
            let clients = self.clients.len() + usize::from(own == 0);
            if own_after > MAX / clients || total > 2 * MAX {
                return false;
            }
        }
        self.total = total;
        match own_after {
            0 => drop(self.clients.remove(&client)),
            _ => drop(self.clients.insert(client, own_after)),
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADA: Option<ClientKey> = Some(ClientKey::V4(1));
    const BOB: Option<ClientKey> = Some(ClientKey::V4(2));

    #[test]
    fn a_client_that_holds_everything_leaves_room_to_others() {
        let ledger = Arc::default();
        let mut all = UnfinishedInput::new(&ledger, ADA);
        assert!(all.set(MAX + FREE));
        assert!(!all.set(MAX + FREE + 1));
        let mut more = UnfinishedInput::new(&ledger, ADA);
        assert!(more.set(FREE), "small messages are not counted");
        assert!(!more.set(FREE + 1));
        let mut other = UnfinishedInput::new(&ledger, BOB);
        assert!(other.set(MAX / 2 + FREE));
        assert!(!other.set(MAX / 2 + FREE + 1));
        drop(all);
        assert!(other.set(MAX / 2 + FREE + 1));
        drop((more, other));
        let held = ledger.lock();
        assert_eq!((held.total, held.clients.len()), (0, 0));
    }

    #[test]
    fn a_message_that_ends_gives_its_bytes_back() {
        let ledger = Arc::default();
        let mut message = UnfinishedInput::new(&ledger, None);
        for _ in 0..3 {
            assert!(message.set(MAX));
            assert!(message.set(0));
        }
        assert_eq!(ledger.lock().total, 0);
    }
}
