//! The messages in a file: a table that each process with listeners looks at.

use rusqlite::{Connection, Transaction, params};

use super::file::Failure;
use crate::{store::StoreReply, stores::topics::Topics};

/// The maximum number of messages that are kept for processes that have not seen them yet.
const MAX_MESSAGES: u64 = 10_000;
/// The time for which a message is kept, in milliseconds.
const KEPT: i64 = 60_000;
/// The maximum length of a message in bytes.
const MAX_LENGTH: usize = 1024 * 1024;
/// The number of messages that are read at once.
const BATCH: u32 = 256;

/// Adds a message, and removes old ones.
pub(super) fn publish(
    file: &Transaction<'_>,
    now: i64,
    topic: &str,
    message: &[u8],
) -> Result<StoreReply, Failure> {
    if message.len() > MAX_LENGTH {
        let length = message.len();
        return Ok(StoreReply::Failed(format!(
            "a message of {length} bytes is longer than {MAX_LENGTH}"
        )));
    }
    file.prepare_cached("INSERT INTO messages (topic, message, sent) VALUES (?, ?, ?)")?
        .execute(params![topic, message, now])?;
    let newest = file.last_insert_rowid();
    let oldest = newest.saturating_sub(i64::try_from(MAX_MESSAGES).unwrap_or(i64::MAX));
    file.prepare_cached("DELETE FROM messages WHERE number <= ?")?.execute([oldest])?;
    // Numbers grow with time, so the first that is young ends the search.
    file.prepare_cached(
        "DELETE FROM messages WHERE number < (SELECT number FROM messages WHERE sent > ? ORDER BY number LIMIT 1)",
    )?
    .execute([now - KEPT])?;
    Ok(StoreReply::Published)
}

/// The messages that this process has seen.
#[derive(Default)]
pub(super) struct Messages {
    /// The number of the last message; `None` if nobody listened.
    last: Option<i64>,
    has_failed: bool,
}

impl Messages {
    /// Delivers new messages, if somebody listens.
    pub(super) fn look(&mut self, file: &Connection, topics: &Topics) -> rusqlite::Result<()> {
        let waiting = topics.unconnected();
        if let Some(last) = self.last {
            self.deliver(file, topics, last)?;
        } else if waiting.is_empty() {
            return Ok(());
        } else {
            self.last = Some(newest(file)?);
        }
        self.has_failed = false;
        topics.connected(&waiting);
        Ok(())
    }

    fn deliver(
        &mut self,
        file: &Connection,
        topics: &Topics,
        mut last: i64,
    ) -> rusqlite::Result<()> {
        loop {
            let mut read = file.prepare_cached(
                "SELECT number, topic, message FROM messages WHERE number > ? ORDER BY number LIMIT ?",
            )?;
            let rows = read.query_map(params![last, BATCH], |row| {
                Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?, row.get::<_, Vec<u8>>(2)?))
            })?;
            let rows = rows.collect::<rusqlite::Result<Vec<_>>>()?;
            let Some((newest, ..)) = rows.last() else { break };
            let (newest, count) = (*newest, rows.len());
            for (number, topic, message) in rows {
                if number > last + 1 {
                    // This process fell behind: some were removed before it saw them.
                    topics.disconnected();
                    topics.connected(&topics.unconnected());
                }
                last = number;
                topics.publish(topic, message);
            }
            self.last = Some(newest);
            if count < BATCH as usize {
                break;
            }
        }
        Ok(())
    }

    /// Notes that messages can't be read, so some may be lost.
    pub(super) fn failed(&mut self, reason: &str, topics: &Topics) {
        self.last = None;
        topics.disconnected();
        if !std::mem::replace(&mut self.has_failed, true) {
            tracing::error!("{reason}; operations of the store fail until that has changed");
        }
    }
}

fn newest(file: &Connection) -> rusqlite::Result<i64> {
    // The counter of the table, because all of its messages may be removed.
    let newest = "SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'messages'), 0)";
    file.prepare_cached(newest)?.query_row([], |row| row.get(0))
}
