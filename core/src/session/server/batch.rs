//! Batches: one array of replies, in the order of the requests (2024-11-05 and 2025-03-26).

use std::collections::HashMap;

use super::{OutgoingFrame, ServerSession};
use crate::{
    error::{Fault, FaultKind},
    framing::DEFAULT_LINE_LIMIT,
    protocol::{MAX_BATCH, Malformed, Message, Method},
    session::InboundKey,
};

/// The maximum size of queued replies to incomplete batches in one session, in bytes: the largest message that peers
/// accept.
const MAX_REPLIES: usize = DEFAULT_LINE_LIMIT;

/// The position of a reply in its batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    batch: u64,
    index: usize,
}

/// Batches whose replies are incomplete.
#[derive(Debug, Default)]
pub(super) struct Batches {
    open: HashMap<u64, Batch>,
    next: u64,
    /// The size of all queued replies, in bytes.
    bytes: usize,
}

impl Batches {
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Errors if a reply of this size can't be queued until its batch is complete.
    pub(super) fn check(&self, bytes: usize) -> Result<(), Fault> {
        if self.bytes + bytes <= MAX_REPLIES {
            return Ok(());
        }
        Err(Fault::new(
            FaultKind::Handler,
            format!(
                "the answers to a batch are longer than {MAX_REPLIES} bytes together: send this request by itself"
            ),
        ))
    }
}

#[derive(Debug)]
struct Batch {
    waiting: usize,
    /// `None`: not answered yet, or without a reply.
    replies: Vec<Option<Vec<u8>>>,
}

impl ServerSession {
    pub(super) fn handle_batch(&mut self, members: Vec<Result<Message<'_>, Malformed>>) {
        if let Err(fault) = self.check_batch(&members) {
            return self.refuse(None, None, None, fault);
        }
        let batch = self.batches.next;
        self.batches.next += 1;
        let replies = members.iter().filter(|member| expects_reply(member)).count();
        // One more than the number of replies, so that the batch is not complete before all members are read.
        let waiting = replies + 1;
        self.batches.open.insert(batch, Batch { waiting, replies: vec![None; replies] });
        let mut index = 0;
        for member in members {
            let slot = expects_reply(&member).then_some(Slot { batch, index });
            index += usize::from(slot.is_some());
            match member {
                Ok(message) => self.handle_message(message, slot),
                Err(malformed) => self.refuse_malformed(malformed, slot),
            }
        }
        self.count_down(None, batch);
    }

    fn check_batch(&self, members: &[Result<Message<'_>, Malformed>]) -> Result<(), Fault> {
        match self.handshake.wire() {
            Some(wire) if wire.vocabulary.batches => (),
            Some(wire) => {
                return Err(Fault::invalid_request(format!(
                    "{} does not support batches: send each message by itself",
                    wire.name()
                )));
            }
            None if self.mcp_headers.is_some() => return Err(modern_batch()),
            None => return Err(Fault::invalid_request("a batch before initialize")),
        }
        if members.is_empty() {
            return Err(Fault::invalid_request("an empty batch"));
        }
        if members.len() > MAX_BATCH {
            return Err(Fault::invalid_request(format!(
                "a batch of more than {MAX_BATCH} messages"
            )));
        }
        let initialize = Method::Initialize.as_str();
        let opens = members.iter().any(
            |member| matches!(member, Ok(Message::Request { method, .. }) if method == initialize),
        );
        match opens {
            true => Err(Fault::invalid_request("initialize must not be part of a batch")),
            false => Ok(()),
        }
    }

    /// Queues a reply; `None` means that there will be none. The last one completes the batch.
    pub(super) fn fill(&mut self, call: Option<InboundKey>, slot: Slot, reply: Option<Vec<u8>>) {
        if let Some(batch) = self.batches.open.get_mut(&slot.batch) {
            self.batches.bytes += reply.as_ref().map_or(0, Vec::len);
            batch.replies[slot.index] = reply;
        }
        self.count_down(call, slot.batch);
    }

    fn count_down(&mut self, call: Option<InboundKey>, number: u64) {
        let Some(batch) = self.batches.open.get_mut(&number) else { return };
        batch.waiting -= 1;
        if batch.waiting > 0 {
            return;
        }
        let Some(batch) = self.batches.open.remove(&number) else { return };
        let replies: Vec<_> = batch.replies.into_iter().flatten().collect();
        self.batches.bytes -= replies.iter().map(Vec::len).sum::<usize>();
        let answer = (!replies.is_empty()).then(|| {
            let mut frame = vec![b'['];
            frame.extend(replies.join(&b','));
            frame.push(b']');
            OutgoingFrame::reply(frame, None)
        });
        self.close_frame(call, answer);
    }
}

/// Returns the error for a batch of the stateless lifecycle.
pub(super) fn modern_batch() -> Fault {
    Fault::invalid_request("2026-07-28 does not support batches: send each request by itself")
}

fn expects_reply(member: &Result<Message<'_>, Malformed>) -> bool {
    match member {
        Ok(message) => matches!(message, Message::Request { .. }),
        Err(malformed) => !malformed.is_response,
    }
}
