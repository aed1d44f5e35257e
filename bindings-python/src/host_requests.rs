//! Requests of the core to its host, which Python functions answer on the threads of the pool.

use std::{sync::Arc, time::Instant};

use gudgeon::{
    engine::{HostReply, HostRequest, Ticket},
    router::visibility_question,
};
use pyo3::{prelude::*, types::PyBytes};

use crate::{
    calling,
    convert::{self, Outcome},
    forks,
    handler::Handler,
    stream::{Stream, Task, Wake, lock},
};

/// A request of the core to its host, and the function that answers it.
#[derive(Debug)]
pub(crate) struct HostJob {
    pub(crate) ticket: Ticket,
    pub(crate) handler: Handler,
    pub(crate) input: String,
}

impl Stream {
    /// Has a thread of the pool answer a request of the core.
    pub(crate) fn answer(self: &Arc<Self>, ticket: Ticket, request: HostRequest, wake: Wake) {
        let (function, input) = match request {
            HostRequest::FilterVisible { context, components } => (
                lock(&self.visibility_filter).clone(),
                visibility_question(context.principal.as_deref(), &components),
            ),
        };
        let Some(handler) = function else {
            let reply = HostReply::Failed("the server has no visibility filter".into());
            return self.sort(self.server.host_reply(ticket, reply), wake);
        };
        let mut pool = self.pool();
        self.queue(&mut pool, Task::Host(HostJob { ticket, handler, input }));
        self.wake(&mut pool, wake);
    }

    /// Calls the function that answers a request of the core, and reports its outcome.
    pub(crate) fn run_for_core(self: &Arc<Self>, py: Python<'_>, job: &HostJob) {
        let start = Instant::now();
        let raw = PyBytes::new(py, job.input.as_bytes());
        let result = self.copied_context(py).and_then(|context| {
            calling::call_method(&context, pyo3::intern!(py, "run"), (job.handler.inner(), raw))
        });
        if self.is_forked_copy() {
            forks::leave(py, &result);
        }
        job.handler.took(start.elapsed());
        self.answered(job.ticket, convert::outcome(py, result, &job.handler.expose));
    }

    /// Reports the answer to a request of the core.
    fn answered(self: &Arc<Self>, ticket: Ticket, outcome: Outcome) {
        let Outcome { result, thrown } = outcome;
        self.hand_out(self.server.host_reply(ticket, HostReply::visible(result)), thrown);
    }
}
