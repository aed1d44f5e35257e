//! Renewal of an expired session: `initialize` is sent again, then the rejected requests, which had no effect. Only a
//! dialect needs this.

use std::collections::BTreeMap;

use super::{ClientSession, Output};
use crate::{
    error::{Error, ErrorKind},
    protocol::{Dialect, ErrorObject, Method, Params, code},
    wire::{self, Stamp},
};

/// The data kept for a renewal.
#[derive(Debug, Default)]
pub(super) struct Renewal {
    sent: BTreeMap<u64, Sent>,
    /// The `initialize` in flight, and the requests that wait for its response.
    under_way: Option<(u64, Vec<u64>)>,
}

/// A request in flight.
#[derive(Debug)]
struct Sent {
    frame: Vec<u8>,
    /// The URI that it reads.
    uri: Option<String>,
    is_repeated: bool,
}

impl Renewal {
    /// Removes a request that is answered or cancelled. Returns the URI that it read.
    pub(super) fn forget(&mut self, id: u64) -> Option<String> {
        self.sent.remove(&id)?.uri
    }

    /// Returns whether this is the `initialize` in flight.
    pub(super) fn is_negotiating(&self, id: u64) -> bool {
        self.under_way.as_ref().is_some_and(|(own, _)| *own == id)
    }

    /// Returns whether a request waits for a new session, in which it is sent again.
    pub(super) fn will_repeat(&self, id: u64) -> bool {
        self.under_way.as_ref().is_some_and(|(_, waiting)| waiting.contains(&id))
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

impl ClientSession {
    pub(super) fn remember(&mut self, id: u64, frame: &[u8], params: &str) {
        if self.config.dialect != Some(Dialect::V0_7) {
            return;
        }
        let params: Params<'_> = serde_json::from_str(params).unwrap_or_default();
        let uri = params.get("uri").and_then(|uri| serde_json::from_str(uri.get()).ok());
        self.renewal.sent.insert(id, Sent { frame: frame.to_vec(), uri, is_repeated: false });
    }

    /// Handles a response; returns `false` if it is unrelated to an expired session.
    pub(super) fn renewed(&mut self, id: u64, outcome: Result<&str, &ErrorObject>) -> bool {
        match (&mut self.renewal.under_way, outcome) {
            (Some((own, _)), outcome) if *own == id => {
                let outcome = outcome
                    .map_err(|error| format!("{} ({})", error.message, error.code))
                    .and_then(|result| wire::read_semantic_initialize(result).map(drop));
                self.end_renewal(&outcome);
                true
            }
            (under_way, Err(error)) if error.code == code::DIALECT_SESSION_EXPIRED => {
                let Some(sent) = self.renewal.sent.get_mut(&id) else { return false };
                if std::mem::replace(&mut sent.is_repeated, true) {
                    return false;
                }
                match under_way {
                    Some((_, waiting)) => waiting.push(id),
                    None => self.renew(id),
                }
                true
            }
            _ => false,
        }
    }

    fn renew(&mut self, waiting: u64) {
        let id = self.next_id;
        self.next_id += 1;
        let params = wire::semantic_initialize_params();
        let method = Method::Initialize.as_str();
        let frame = wire::request_frame(id, method, &params, Stamp::default())
            .expect("our own params are an object");
        self.renewal.under_way = Some((id, vec![waiting]));
        self.outputs.push_back(Output::Send(frame));
    }

    fn end_renewal(&mut self, outcome: &Result<(), String>) {
        let Some((_, waiting)) = self.renewal.under_way.take() else { return };
        if outcome.is_ok() {
            self.restore();
        }
        for id in waiting {
            match (outcome, self.renewal.sent.get(&id)) {
                (_, None) => (),
                (Ok(()), Some(sent)) => self.outputs.push_back(Output::Send(sent.frame.clone())),
                (Err(why), Some(_)) => {
                    self.renewal.forget(id);
                    let Some((key, method)) = self.calls.complete(id) else { continue };
                    let message = format!(
                        "{}: the session expired, and no new one could be opened: {why}",
                        method.as_str()
                    );
                    let error = Error::new(ErrorKind::Lost, message);
                    self.outputs.push_back(Output::Done(key, Err(error)));
                }
            }
        }
    }
}
