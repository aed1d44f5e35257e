//! The IO thread of all clients in this process. It starts with the first connection and never enters the interpreter.

use std::{
    sync::{Arc, Mutex, Weak},
    time::Duration,
};

use gudgeon::{bindings::client_runtime, client::Member, upstream::Mounted};
use pyo3::{PyResult, Python, pyfunction};
use tokio::runtime::Runtime;

use crate::{client_connected::Connected, client_mailbox::Entries, interpreter, stream::lock};

/// Locked only by threads that hold the GIL, so that no fork finds it locked.
static RUNNING: Mutex<Option<Running>> = Mutex::new(None);

struct Running {
    process: u32,
    runtime: Arc<Runtime>,
    clients: Vec<Weak<Connected>>,
    upstreams: Vec<Weak<Mounted>>,
}

/// Returns the runtime of this process; after a fork a new one. The caller must be attached to the interpreter.
pub(crate) fn runtime() -> PyResult<Arc<Runtime>> {
    interpreter::check_is_main()?;
    let mut running = lock(&RUNNING);
    let process = std::process::id();
    if let Some(running) = running.as_ref().filter(|running| running.process == process) {
        return Ok(Arc::clone(&running.runtime));
    }
    let runtime = Arc::new(client_runtime::start()?);
    let fresh = Running {
        process,
        runtime: Arc::clone(&runtime),
        clients: Vec::new(),
        upstreams: Vec::new(),
    };
    // Its threads did not survive the fork, so waiting for them would never end.
    std::mem::forget(running.replace(fresh));
    Ok(runtime)
}

/// Registers a client that must be closed before the process ends.
pub(crate) fn remember(client: &Arc<Connected>) {
    if let Some(running) = lock(&RUNNING).as_mut() {
        running.clients.retain(|client| client.strong_count() > 0);
        running.clients.push(Arc::downgrade(client));
    }
}

/// Registers an upstream server whose connections must be closed before the process ends.
pub(crate) fn remember_upstream(mounted: &Arc<Mounted>) {
    if let Some(running) = lock(&RUNNING).as_mut() {
        running.upstreams.retain(|upstream| upstream.strong_count() > 0);
        running.upstreams.push(Arc::downgrade(mounted));
    }
}

/// Refuses the open questions of all clients whose events arrive in this mailbox.
pub(crate) fn refuse_questions(home: &Arc<Entries>) {
    if let Some(running) = lock(&RUNNING).as_ref() {
        let clients = running.clients.iter().filter_map(Weak::upgrade);
        clients.filter(|client| client.lives_in(home)).for_each(|client| client.refuse_questions());
    }
}

/// Closes all open clients and ends the thread, within about this many seconds.
#[pyfunction]
pub(crate) fn shut_down_clients(py: Python<'_>, timeout: f64) {
    let process = std::process::id();
    let Some(running) = lock(&RUNNING).take_if(|running| running.process == process) else {
        return;
    };
    let limit = Duration::try_from_secs_f64(timeout.max(0.0)).unwrap_or_default();
    py.detach(move || {
        let Running { runtime, clients, upstreams, .. } = running;
        let open: Vec<Arc<Member>> =
            clients.iter().filter_map(Weak::upgrade).filter_map(|client| client.take()).collect();
        runtime.block_on(async {
            let closing =
                open.into_iter().map(|member| tokio::spawn(async move { member.close().await }));
            let upstreams = upstreams.iter().filter_map(Weak::upgrade);
            // The process is a server's, whose own client waits for its end.
            let stopping = upstreams.map(|upstream| {
                tokio::spawn(async move {
                    let _ = tokio::time::timeout(limit / 2, upstream.stop()).await;
                })
            });
            let closing: Vec<_> = closing.chain(stopping).collect();
            let all = async {
                for client in closing {
                    let _ = client.await;
                }
            };
            let _ = tokio::time::timeout(limit, all).await;
        });
        // Remaining processes are killed when their tasks are dropped.
        if let Ok(runtime) = Arc::try_unwrap(runtime) {
            runtime.shutdown_timeout(Duration::from_millis(500));
        }
    });
}
