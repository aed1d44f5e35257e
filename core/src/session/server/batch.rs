//! Batches: one array of replies, in the order of the requests (2024-11-05 and 2025-03-26).

use std::collections::HashMap;

use super::{Output, ServerSession};
use crate::{
    error::Fault,
    protocol::{Malformed, Message, Method},
};

/// More members than this are refused.
const MAX_MEMBERS: usize = 1_000;

/// Where in which batch a reply belongs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    batch: u64,
    index: usize,
}

/// Batches whose replies are not yet complete.
#[derive(Debug, Default)]
pub(super) struct Batches {
    open: HashMap<u64, Batch>,
    next: u64,
}

#[derive(Debug)]
struct Batch {
    waiting: usize,
    /// `None`: not answered yet, or never to be.
    replies: Vec<Option<Vec<u8>>>,
}

impl ServerSession {
    pub(super) fn handle_batch(&mut self, members: Vec<Result<Message<'_>, Malformed>>) {
        if let Err(fault) = self.check_batch(&members) {
            return self.refuse(None, None, None, fault);
        }
        let batch = self.batches.next;
        self.batches.next += 1;
        let replies = members.iter().filter(|it| expects_reply(it)).count();
        // One more than the replies, so that it is not complete before every member was read.
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
        self.fill(batch, None);
    }

    /// Sends a reply, or keeps it until its batch is complete; `None` when there will be none.
    pub(super) fn settle(&mut self, slot: Option<Slot>, frame: Option<Vec<u8>>) {
        match (slot, frame) {
            (Some(slot), frame) => self.fill(slot.batch, Some((slot.index, frame))),
            (None, Some(frame)) => self.outputs.push_back(Output::Send(frame)),
            (None, None) => (),
        }
    }

    fn check_batch(&self, members: &[Result<Message<'_>, Malformed>]) -> Result<(), Fault> {
        match self.handshake.wire() {
            Some(wire) if wire.vocabulary.batches => (),
            Some(wire) => {
                return Err(Fault::invalid_request(format!(
                    "{} has no batches: send each message by itself",
                    wire.revision
                )));
            }
            None => return Err(Fault::invalid_request("a batch before initialize")),
        }
        if members.is_empty() {
            return Err(Fault::invalid_request("an empty batch"));
        }
        if members.len() > MAX_MEMBERS {
            return Err(Fault::invalid_request(format!(
                "a batch of more than {MAX_MEMBERS} messages"
            )));
        }
        let initialize = Method::Initialize.as_str();
        let opens = members
            .iter()
            .any(|it| matches!(it, Ok(Message::Request { method, .. }) if method == initialize));
        match opens {
            true => Err(Fault::invalid_request("initialize must not be part of a batch")),
            false => Ok(()),
        }
    }

    fn fill(&mut self, number: u64, reply: Option<(usize, Option<Vec<u8>>)>) {
        let Some(batch) = self.batches.open.get_mut(&number) else { return };
        batch.waiting -= 1;
        if let Some((index, frame)) = reply {
            batch.replies[index] = frame;
        }
        if batch.waiting > 0 {
            return;
        }
        let Some(batch) = self.batches.open.remove(&number) else { return };
        let replies: Vec<_> = batch.replies.into_iter().flatten().collect();
        if !replies.is_empty() {
            let mut frame = vec![b'['];
            frame.extend(replies.join(&b','));
            frame.push(b']');
            self.outputs.push_back(Output::Send(frame));
        }
    }
}

fn expects_reply(member: &Result<Message<'_>, Malformed>) -> bool {
    match member {
        Ok(message) => matches!(message, Message::Request { .. }),
        Err(malformed) => !malformed.is_response,
    }
}
