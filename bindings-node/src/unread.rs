//! The bytes of a response that its client has not read, in the native queue and at the host.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use gudgeon::driver::{self, Holding};

use crate::shared::lock;

/// The responses of which the host holds bytes that are not read, by the number of their request.
#[derive(Debug, Default)]
pub(crate) struct UnreadResponses(Mutex<HashMap<u64, Unread>>);

/// The unread bytes of one response; clones are the same response.
#[derive(Clone, Debug)]
pub(crate) struct Unread(Arc<Mutex<Inside>>);

#[derive(Debug)]
struct Inside {
    /// The number of pieces that wait for the event loop.
    parts: usize,
    /// Their bytes.
    queued: usize,
    /// Bytes that the host holds.
    at_host: usize,
    counted: Holding,
    is_cut: bool,
}

impl UnreadResponses {
    pub(crate) fn insert(&self, request: u64, unread: Unread) {
        lock(&self.0).insert(request, unread);
    }

    /// Sets the number of bytes of a response that the host holds. Returns `false` if there is no room for them.
    pub(crate) fn report(&self, request: u64, bytes: usize) -> bool {
        let mut all = lock(&self.0);
        let Some(unread) = all.get(&request) else { return true };
        let has_room = unread.report(bytes);
        if bytes == 0 || !has_room {
            all.remove(&request);
        }
        has_room
    }
}

impl Unread {
    /// Creates the count of a new response, in a holding of its client.
    pub(crate) fn new(counted: Holding) -> Self {
        Self(Arc::new(Mutex::new(Inside {
            parts: 0,
            queued: 0,
            at_host: 0,
            counted,
            is_cut: false,
        })))
    }

    /// Returns what waits for the event loop.
    pub(crate) fn waiting(&self) -> driver::Unread {
        let inside = lock(&self.0);
        driver::Unread { parts: inside.parts, bytes: inside.queued }
    }

    /// Adds a piece to the queue. Returns `false` and adds nothing if there is no room for it.
    pub(crate) fn add(&self, bytes: usize) -> bool {
        let mut inside = lock(&self.0);
        let (queued, at_host) = (inside.queued + bytes, inside.at_host);
        let has_room = !inside.is_cut && inside.set(queued, at_host);
        inside.parts += usize::from(has_room);
        has_room
    }

    /// Discards everything. Returns `false` if it was discarded before.
    pub(crate) fn cut(&self) -> bool {
        let mut inside = lock(&self.0);
        inside.counted.clear();
        !std::mem::replace(&mut inside.is_cut, true)
    }

    /// Moves a piece from the queue to the host. Returns whether the host must report what is read of them.
    pub(crate) fn take(&self, bytes: usize) -> bool {
        let mut inside = lock(&self.0);
        inside.parts = inside.parts.saturating_sub(1);
        inside.queued = inside.queued.saturating_sub(bytes);
        inside.at_host += bytes;
        !inside.counted.is_empty()
    }

    /// Sets the number of bytes that the host holds. Returns `false` if there is no room for them.
    pub(crate) fn report(&self, at_host: usize) -> bool {
        let mut inside = lock(&self.0);
        let queued = inside.queued;
        inside.is_cut || inside.set(queued, at_host)
    }
}

impl Inside {
    fn set(&mut self, queued: usize, at_host: usize) -> bool {
        let has_room = self.counted.set(queued + at_host);
        if has_room {
            (self.queued, self.at_host) = (queued, at_host);
        }
        has_room
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use gudgeon::{
        driver::EndpointServer,
        http::EndpointConfig,
        router::{Components, ServerFacts},
    };

    use super::*;

    #[test]
    fn a_response_that_was_read_or_cut_is_forgotten() {
        const LARGE: usize = 1024 * 1024;
        let facts = ServerFacts::declared(br#"{"name":"t","version":""}"#).unwrap();
        let components = Arc::new(Components::new(facts));
        let server = EndpointServer::new(components, EndpointConfig::default());
        let client = Some(IpAddr::V4(Ipv4Addr::LOCALHOST));
        let responses = UnreadResponses::default();
        for request in [1, 2] {
            let unread = Unread::new(server.unread_of(None, client));
            assert!(unread.add(LARGE));
            assert!(unread.take(LARGE));
            responses.insert(request, unread);
        }
        assert!(responses.report(1, 10) && responses.report(1, 0));
        assert!(!responses.report(2, usize::MAX / 4));
        assert!(lock(&responses.0).is_empty());
        assert!(responses.report(3, 10), "it is not counted");
    }
}
