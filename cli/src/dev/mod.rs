//! Servers that are started again when their files change, without an end of their clients' sessions.

mod session;
mod watch;

use std::{future::Future, pin::Pin, sync::Arc};

use tokio::sync::{mpsc, watch as latest};

use self::session::Session;
pub use self::watch::{Changes, Watching};
use crate::{
    failure::Failure,
    frames::{Connection, MAX_WAITING, Upstream, process::Process},
};

/// Returns the process to start. It is asked at each start, because the interpreter of the project may have changed.
pub type Start = Arc<dyn Fn() -> Result<Process, Failure> + Send + Sync>;

/// A server that is started again when its files change.
pub struct Reloading {
    /// The name that users know.
    pub name: String,
    pub start: Start,
    pub changes: latest::Receiver<Changes>,
}

impl Upstream for Reloading {
    fn open(&self) -> Pin<Box<dyn Future<Output = Result<Connection, Failure>> + Send + '_>> {
        let (to_server, from_host) = mpsc::unbounded_channel();
        let (to_host, from_server) = mpsc::channel(MAX_WAITING);
        let (ending, ended) = tokio::sync::oneshot::channel();
        let session = Session::new(self.name.clone(), Arc::clone(&self.start), to_host);
        let mut changes = self.changes.clone();
        changes.mark_unchanged();
        tokio::spawn(async move {
            session.run(from_host, changes).await;
            let _ = ending.send(crate::frames::Ended::default());
        });
        Box::pin(async { Ok(Connection { to_server, from_server, ended }) })
    }
}
