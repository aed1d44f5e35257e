//! The operations on the tables of a file.

use std::time::Duration;

use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior, params};

use super::{file::Failure, messages};
use crate::store::{Expect, StoreOperation, StoreReply, is_gone, too_long};

/// The number of rows that an operation removes because they have ended.
const REMOVED_AT_ONCE: u32 = 32;

/// Carries out an operation. The time is in milliseconds since 1970.
pub(super) fn run(
    file: &mut Connection,
    now: u64,
    operation: StoreOperation,
) -> Result<StoreReply, Failure> {
    let now = integer(now);
    match operation {
        StoreOperation::Get { key } => {
            let mut get = file
                .prepare_cached("SELECT value, version FROM entries WHERE key = ? AND ends > ?")?;
            let found = get.query_row(params![key, now], |row| Ok((row.get(0)?, row.get(1)?)));
            return Ok(StoreReply::Found(found.optional()?));
        }
        StoreOperation::Read { log, after } => return read(file, now, &log, after),
        _ => {}
    }
    let transaction = file.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let done = write(&transaction, now, operation)?;
    if !matches!(done, StoreReply::Conflict | StoreReply::Held | StoreReply::Failed(_)) {
        remove_ended(&transaction, now)?;
    }
    transaction.commit()?;
    Ok(done)
}

fn write(
    file: &Transaction<'_>,
    now: i64,
    operation: StoreOperation,
) -> Result<StoreReply, Failure> {
    Ok(match operation {
        StoreOperation::Put { key, value, ttl, expect } => {
            let mut current =
                file.prepare_cached("SELECT version FROM entries WHERE key = ? AND ends > ?")?;
            let current: Option<u64> =
                current.query_row(params![key, now], |row| row.get(0)).optional()?;
            let is_expected = match expect {
                Expect::Any => true,
                Expect::Absent => current.is_none(),
                Expect::Version(version) => current == Some(version),
            };
            if !is_expected {
                return Ok(StoreReply::Conflict);
            }
            let version = next_number(file, now)?;
            file.prepare_cached("INSERT OR REPLACE INTO entries VALUES (?, ?, ?, ?)")?
                .execute(params![key, value, integer(version), end(now, ttl)])?;
            StoreReply::Stored(version)
        }
        StoreOperation::Take { key } => {
            let mut take =
                file.prepare_cached("DELETE FROM entries WHERE key = ? RETURNING value, ends")?;
            let taken: Option<(Vec<u8>, i64)> =
                take.query_row([key], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
            StoreReply::Taken(taken.filter(|(_, ends)| *ends > now).map(|(value, _)| value))
        }
        StoreOperation::Delete { key } => {
            file.prepare_cached("DELETE FROM entries WHERE key = ?")?.execute([key])?;
            StoreReply::Deleted
        }
        StoreOperation::Append { log, event, max_events, max_bytes, ttl } => {
            match too_long(&event, max_bytes) {
                Some(failed) => failed,
                None => append(file, now, &log, &event, (max_events, max_bytes), ttl)?,
            }
        }
        StoreOperation::Publish { topic, message } => {
            messages::publish(file, now, &topic, &message)?
        }
        StoreOperation::Lease { key, owner, ttl } => match holder(file, now, &key)? {
            Some((held_by, _)) if held_by != owner => StoreReply::Held,
            _ => {
                let token = next_number(file, now)?;
                file.prepare_cached("INSERT OR REPLACE INTO leases VALUES (?, ?, ?, ?)")?
                    .execute(params![key, owner, integer(token), end(now, ttl)])?;
                StoreReply::Leased(token)
            }
        },
        StoreOperation::Renew { key, owner, ttl } => match holder(file, now, &key)? {
            Some((held_by, token)) if held_by == owner => {
                file.prepare_cached("UPDATE leases SET ends = ? WHERE key = ?")?
                    .execute(params![end(now, ttl), key])?;
                StoreReply::Leased(token)
            }
            _ => StoreReply::Held,
        },
        StoreOperation::Release { key, owner } => {
            file.prepare_cached("DELETE FROM leases WHERE key = ? AND owner = ?")?
                .execute([key, owner])?;
            StoreReply::Released
        }
        StoreOperation::Get { .. } | StoreOperation::Read { .. } => {
            return Err(Failure::new("an operation that reads can't write"));
        }
    })
}

/// The facts about a log beside its events.
struct Info {
    before: u64,
    removed: u64,
    last: u64,
    bytes: u64,
    count: u64,
}

fn info(file: &Connection, now: i64, log: &str) -> rusqlite::Result<Option<Info>> {
    let mut info = file.prepare_cached(
        "SELECT before, removed, last, bytes, count FROM logs WHERE log = ? AND ends > ?",
    )?;
    let read = |row: &rusqlite::Row<'_>| {
        Ok(Info {
            before: row.get(0)?,
            removed: row.get(1)?,
            last: row.get(2)?,
            bytes: row.get(3)?,
            count: row.get(4)?,
        })
    };
    info.query_row(params![log, now], read).optional()
}

fn append(
    file: &Transaction<'_>,
    now: i64,
    log: &str,
    event: &[u8],
    (max_events, max_bytes): (u64, u64),
    ttl: Duration,
) -> Result<StoreReply, Failure> {
    let number = next_number(file, now)?;
    let mut info = if let Some(info) = info(file, now, log)? {
        info
    } else {
        // Those of a log that has ended.
        file.prepare_cached("DELETE FROM events WHERE log = ?")?.execute([log])?;
        Info { before: number - 1, removed: 0, last: 0, bytes: 0, count: 0 }
    };
    file.prepare_cached("INSERT INTO events VALUES (?, ?, ?)")?.execute(params![
        log,
        integer(number),
        event
    ])?;
    info.last = number;
    info.bytes += event.len() as u64;
    info.count += 1;
    while info.count > max_events.max(1) || info.bytes > max_bytes {
        let mut oldest = file.prepare_cached(
            "DELETE FROM events WHERE log = ?1 AND number = (SELECT min(number) FROM events WHERE log = ?1)
             RETURNING number, length(event)",
        )?;
        let (number, length): (u64, u64) =
            oldest.query_row([log], |row| Ok((row.get(0)?, row.get(1)?)))?;
        info.removed = number;
        info.bytes = info.bytes.saturating_sub(length);
        info.count -= 1;
    }
    file.prepare_cached("INSERT OR REPLACE INTO logs VALUES (?, ?, ?, ?, ?, ?, ?)")?.execute(
        params![
            log,
            integer(info.before),
            integer(info.removed),
            integer(info.last),
            integer(info.bytes),
            integer(info.count),
            end(now, ttl)
        ],
    )?;
    Ok(StoreReply::Appended(number))
}

fn read(file: &mut Connection, now: i64, log: &str, after: u64) -> Result<StoreReply, Failure> {
    // In one transaction, so that no other process removes events in between.
    let file = file.transaction()?;
    let Some(info) = info(&file, now, log)? else {
        return Ok(if after == 0 { StoreReply::Events(Vec::new()) } else { StoreReply::Gone });
    };
    if is_gone(after, info.before, info.removed, info.last) {
        return Ok(StoreReply::Gone);
    }
    let mut read = file.prepare_cached(
        "SELECT number, event FROM events WHERE log = ? AND number > ? ORDER BY number",
    )?;
    let events =
        read.query_map(params![log, integer(after)], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(StoreReply::Events(events.collect::<rusqlite::Result<_>>()?))
}

fn holder(file: &Connection, now: i64, key: &str) -> rusqlite::Result<Option<(String, u64)>> {
    file.prepare_cached("SELECT owner, token FROM leases WHERE key = ? AND ends > ?")?
        .query_row(params![key, now], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()
}

/// Returns a number that is greater than each before, also in a file that was removed: at least the time in microseconds.
fn next_number(file: &Connection, now: i64) -> rusqlite::Result<u64> {
    file.prepare_cached("UPDATE counter SET number = max(number + 1, ?) RETURNING number")?
        .query_row([now.saturating_mul(1_000)], |row| row.get(0))
}

fn remove_ended(file: &Transaction<'_>, now: i64) -> rusqlite::Result<()> {
    for remove in [
        "DELETE FROM entries WHERE key IN (SELECT key FROM entries WHERE ends <= ? LIMIT ?)",
        "DELETE FROM leases WHERE key IN (SELECT key FROM leases WHERE ends <= ? LIMIT ?)",
        "DELETE FROM events WHERE log IN (SELECT log FROM logs WHERE ends <= ? LIMIT ?)",
        "DELETE FROM logs WHERE log IN (SELECT log FROM logs WHERE ends <= ? LIMIT ?)",
    ] {
        file.prepare_cached(remove)?.execute(params![now, REMOVED_AT_ONCE])?;
    }
    Ok(())
}

/// Returns the end of what is stored now.
fn end(now: i64, ttl: Duration) -> i64 {
    now.saturating_add(integer(u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX)))
}

fn integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
