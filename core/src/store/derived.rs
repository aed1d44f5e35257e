//! The operations that a store lacks, made of `get`, `put` and `take`.
//!
//! A log is one value that holds its events, and a lease one that names its owner; its token is the version with which the owner
//! was written, because versions grow. Both are changed only if they have the version that was read.

use std::{sync::Arc, time::Duration};

use super::{
    Expect, StoreEngine, StoreOperation, StoreReply,
    log::{Log, too_long},
};
use crate::replier::Replier;

/// The number of times that a value is read and written again because others changed it in between.
const MAX_ROUNDS: usize = 64;

/// The time for which a lease that was released still has a value.
const RELEASED_TTL: Duration = Duration::from_secs(1);

/// The text of a failure to carry messages.
pub const NO_MESSAGES: &str = "this store carries no messages";

/// Carries out an operation with the operations `get`, `put` and `take` of a store. The numbers of a new log begin with the time,
/// in milliseconds since 1970, so that they are greater than those of a former log of the same name.
pub fn run(
    basic: &Arc<dyn StoreEngine>,
    unix_ms: u64,
    operation: StoreOperation,
    reply: Replier<StoreReply>,
) {
    let (key, decide): (String, Box<Decide>) = match operation {
        StoreOperation::Get { .. } | StoreOperation::Put { .. } | StoreOperation::Take { .. } => {
            return basic.run(operation, reply);
        }
        StoreOperation::Publish { .. } => {
            return reply.send(StoreReply::Failed(NO_MESSAGES.into()));
        }
        StoreOperation::Delete { key } => {
            let deleted = move |taken| {
                reply.send(match taken {
                    StoreReply::Taken(_) => StoreReply::Deleted,
                    other => unexpected(other),
                });
            };
            return basic.run(StoreOperation::Take { key }, Replier::new(deleted));
        }
        StoreOperation::Append { log, event, max_events, max_bytes, ttl } => {
            if let Some(failed) = too_long(&event, max_bytes) {
                return reply.send(failed);
            }
            let decide = move |found: Found<'_>| {
                let Some(mut log) = read_log(found, unix_ms) else { return not_a_log() };
                let appended = log.append(event.clone(), max_events, max_bytes);
                Change::Put(log.encode(), ttl, Box::new(|_| appended))
            };
            (key_of_log(&log), Box::new(decide))
        }
        StoreOperation::Read { log, after } => {
            let decide = move |found: Found<'_>| match (found, read_log(found, 0)) {
                (None, _) if after > 0 => Change::Reply(StoreReply::Gone),
                (_, Some(log)) => Change::Reply(log.read(after)),
                (_, None) => not_a_log(),
            };
            (key_of_log(&log), Box::new(decide))
        }
        StoreOperation::Lease { key, owner, ttl } => {
            let decide = move |found: Found<'_>| match found.and_then(read_lease) {
                Some((held_by, _)) if held_by != owner.as_bytes() => {
                    Change::Reply(StoreReply::Held)
                }
                _ => Change::Put(lease(0, &owner), ttl, Box::new(StoreReply::Leased)),
            };
            (key_of_lease(&key), Box::new(decide))
        }
        StoreOperation::Renew { key, owner, ttl } => {
            let decide = move |found: Found<'_>| match found.and_then(read_lease) {
                Some((held_by, token)) if held_by == owner.as_bytes() => {
                    let renewed = Box::new(move |_| StoreReply::Leased(token));
                    Change::Put(lease(token, &owner), ttl, renewed)
                }
                _ => Change::Reply(StoreReply::Held),
            };
            (key_of_lease(&key), Box::new(decide))
        }
        StoreOperation::Release { key, owner } => {
            let decide = move |found: Found<'_>| match found.and_then(read_lease) {
                Some((held_by, _)) if held_by == owner.as_bytes() => {
                    Change::Put(Vec::new(), RELEASED_TTL, Box::new(|_| StoreReply::Released))
                }
                _ => Change::Reply(StoreReply::Released),
            };
            (key_of_lease(&key), Box::new(decide))
        }
    };
    change(Arc::clone(basic), key, decide, MAX_ROUNDS, reply);
}

/// A value and its version.
type Found<'a> = Option<(&'a [u8], u64)>;

/// Decides what follows from a value.
type Decide = dyn Fn(Found<'_>) -> Change + Send;

enum Change {
    Reply(StoreReply),
    /// Stores a value for a time; its version decides the reply.
    Put(Vec<u8>, Duration, Box<dyn FnOnce(u64) -> StoreReply + Send>),
}

/// Reads a value and changes it as `decide` says, again and again until nobody changed it in between.
fn change(
    basic: Arc<dyn StoreEngine>,
    key: String,
    decide: Box<Decide>,
    rounds: usize,
    reply: Replier<StoreReply>,
) {
    let store = Arc::clone(&basic);
    let get = StoreOperation::Get { key: key.clone() };
    let found = move |found| {
        let found = match found {
            StoreReply::Found(found) => found,
            other => return reply.send(unexpected(other)),
        };
        let value = found.as_ref().map(|(value, version)| (&value[..], *version));
        let (value, ttl, stored) = match decide(value) {
            Change::Reply(done) => return reply.send(done),
            Change::Put(value, ttl, stored) => (value, ttl, stored),
        };
        let expect = found.map_or(Expect::Absent, |(_, version)| Expect::Version(version));
        let put = StoreOperation::Put { key: key.clone(), value, ttl, expect };
        let store = Arc::clone(&basic);
        let put_done = move |done| match done {
            StoreReply::Stored(version) => reply.send(stored(version)),
            StoreReply::Conflict if rounds > 0 => change(basic, key, decide, rounds - 1, reply),
            StoreReply::Conflict => {
                reply.send(StoreReply::Failed("too many others change the same value".into()));
            }
            other => reply.send(unexpected(other)),
        };
        store.run(put, Replier::new(put_done));
    };
    store.run(get, Replier::new(found));
}

fn unexpected(reply: StoreReply) -> StoreReply {
    match reply {
        failed @ StoreReply::Failed(_) => failed,
        _ => StoreReply::Failed("the reply is that of another operation".into()),
    }
}

fn key_of_log(log: &str) -> String {
    format!("gudgeon:log:{log}")
}

fn key_of_lease(key: &str) -> String {
    format!("gudgeon:lease:{key}")
}

fn read_log(found: Found<'_>, before: u64) -> Option<Log> {
    found.map_or_else(|| Some(Log::after(before)), |(value, _)| Log::decode(value))
}

fn not_a_log() -> Change {
    Change::Reply(StoreReply::Failed("the value of a log is none".into()))
}

/// Returns the value of a lease: its token, 0 if that is the value's version, and the owner.
fn lease(token: u64, owner: &str) -> Vec<u8> {
    [&token.to_le_bytes()[..], owner.as_bytes()].concat()
}

/// Returns the owner of a lease and its token; `None` if it was released.
fn read_lease((value, version): (&[u8], u64)) -> Option<(&[u8], u64)> {
    let (token, owner) = value.split_first_chunk()?;
    let token = u64::from_le_bytes(*token);
    Some((owner, if token == 0 { version } else { token }))
}
