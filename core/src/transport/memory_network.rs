//! Addresses at which servers listen in memory, for tests on a paused clock: it is advanced while a socket has yet to answer.
//!
//! Servers listen at, and clients connect to, any port of [`HOST`].

use std::{
    collections::{BTreeMap, btree_map::Entry},
    io,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU16, Ordering},
    },
};

use tokio::{
    io::{DuplexStream, duplex},
    sync::{
        Mutex as AsyncMutex,
        mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    },
};

/// The host of all servers in memory: a loopback address that tests use for nothing else.
pub const HOST: &str = "[::1]";

/// The bytes that one end of a connection writes before the other end reads.
const BUFFER: usize = 64 * 1024;

/// The listeners of this process, by port.
static LISTENERS: Mutex<BTreeMap<u16, UnboundedSender<DuplexStream>>> = Mutex::new(BTreeMap::new());

/// A server's end of the network. Its port is free again once it is dropped.
#[derive(Debug)]
pub struct MemoryListener {
    port: u16,
    arrivals: AsyncMutex<UnboundedReceiver<DuplexStream>>,
}

impl MemoryListener {
    /// Listens at a port; 0 stands for any free port.
    pub fn bind(port: u16) -> io::Result<Self> {
        let port = if port == 0 { free_port() } else { port };
        let (sender, arrivals) = unbounded_channel();
        match listeners().entry(port) {
            Entry::Vacant(vacant) => vacant.insert(sender),
            Entry::Occupied(_) => return Err(io::ErrorKind::AddrInUse.into()),
        };
        Ok(Self { port, arrivals: AsyncMutex::new(arrivals) })
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Waits for the next connection. Cancel safe.
    pub async fn accept(&self) -> DuplexStream {
        match self.arrivals.lock().await.recv().await {
            Some(stream) => stream,
            // The sender is dropped with this value.
            None => std::future::pending().await,
        }
    }

    /// Returns the next connection if one waits.
    pub fn next_waiting(&mut self) -> Option<DuplexStream> {
        self.arrivals.get_mut().try_recv().ok()
    }
}

impl Drop for MemoryListener {
    fn drop(&mut self) {
        listeners().remove(&self.port);
    }
}

/// Returns a port that no server of this process has listened at.
pub fn free_port() -> u16 {
    static LAST: AtomicU16 = AtomicU16::new(0);
    LAST.fetch_add(1, Ordering::Relaxed) + 1
}

/// Connects to the server at a port. Errors with `ConnectionRefused` if there is none.
pub fn connect(port: u16) -> io::Result<DuplexStream> {
    let (ours, theirs) = duplex(BUFFER);
    let accepted = listeners().get(&port).is_some_and(|listener| listener.send(theirs).is_ok());
    match accepted {
        true => Ok(ours),
        false => Err(io::ErrorKind::ConnectionRefused.into()),
    }
}

/// Returns whether a host, with or without brackets, is [`HOST`].
pub(super) fn is_host(host: &str) -> bool {
    host.trim_matches(['[', ']']) == HOST.trim_matches(['[', ']'])
}

fn listeners() -> MutexGuard<'static, BTreeMap<u16, UnboundedSender<DuplexStream>>> {
    LISTENERS.lock().unwrap_or_else(PoisonError::into_inner)
}
