//! The checks of a store: those of values are in [`steps`], and the others in [`checks`].

mod checks;
mod steps;

use std::{fmt, sync::Arc, time::Duration};

use tokio::{
    sync::oneshot,
    time::{sleep, timeout},
};

use self::{
    checks::Checks,
    steps::{Act, STEPS},
};
use crate::{
    clock,
    error::Error,
    replier::Replier,
    store::{StoreEngine, StoreOperation, StoreReply},
    stores::{OwnStore, Store},
};

const LONG: Duration = Duration::from_secs(600);
const SHORT: Duration = Duration::from_secs(1);
/// The time limit for an operation, and for the end of a value whose `ttl` is over.
const LIMIT: Duration = Duration::from_secs(15);
const PAUSE: Duration = Duration::from_millis(100);
/// The number of operations of a race.
const RACERS: usize = 8;

/// Checks that a store of the program's own does what servers rely on: its replies, versions, the ends of values, logs and
/// leases, one winner among concurrent operations, and messages if it carries any. It takes some seconds, may run beside the store's
/// other users, and leaves nothing behind for longer than a second. Errors with the first rule that the store does not keep.
///
/// ```
/// use std::sync::Arc;
///
/// use gudgeon::{server::MemoryStore, testing::check_store};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), gudgeon::Error> {
/// check_store(Arc::new(MemoryStore::default())).await?;
/// # Ok(())
/// # }
/// ```
pub async fn check_store(store: Arc<dyn Store>) -> Result<(), Error> {
    check_engine(Arc::new(OwnStore(store)), "check_store").await
}

/// Checks the store of a host as [`check_store`] does. Errors begin with `name`.
pub async fn check_engine(store: Arc<dyn StoreEngine>, name: &str) -> Result<(), Error> {
    let checked = check_within(&*store, LIMIT).await;
    checked.map_err(|error| Error::misuse(format!("{name}: {error}")))
}

async fn check_within(store: &dyn StoreEngine, limit: Duration) -> Result<(), Error> {
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(|error| Error::misuse(error.to_string()))?;
    let prefix = format!("gudgeon:check:{:016x}:", u64::from_be_bytes(random));
    // The versions of the values that each key has had.
    let mut versions: Vec<(&str, Vec<u64>)> = Vec::new();
    let begun = clock::now();
    for &(rule, key, act, want) in STEPS {
        if !versions.iter().any(|(name, _)| *name == key) {
            versions.push((key, Vec::new()));
        }
        let Some((_, known)) = versions.iter_mut().find(|(name, _)| *name == key) else { continue };
        let operation = act.operation(format!("{prefix}{key}"), known);
        let replies = loop {
            let replies = run(store, &operation, act.count(), limit).await;
            let waits = matches!((act, &replies[..]), (Act::Wait, [StoreReply::Found(Some(_))]));
            if !waits || clock::since(begun) > limit {
                break replies;
            }
            sleep(PAUSE).await;
        };
        if !want.is_met(&replies, known) {
            return Err(broken(rule, operation.name(), &replies));
        }
        let stored = replies.iter().filter_map(|reply| match reply {
            StoreReply::Stored(version) => Some(*version),
            _ => None,
        });
        known.extend(stored);
    }
    let checks = Checks { store, prefix: &prefix, limit };
    checks.delete().await?;
    checks.logs().await?;
    checks.leases().await?;
    checks.messages().await
}

/// Returns the error of a rule that the reply to an operation does not keep.
fn broken(rule: &str, operation: &str, replied: &impl fmt::Debug) -> Error {
    Error::misuse(format!("{rule}; {operation}() replied {replied:?}"))
}

/// Carries out an operation several times at once.
async fn run(
    store: &dyn StoreEngine,
    operation: &StoreOperation,
    count: usize,
    limit: Duration,
) -> Vec<StoreReply> {
    let begin = |_| {
        let (sender, reply) = oneshot::channel();
        store.run(operation.clone(), Replier::new(move |answer| drop(sender.send(answer))));
        reply
    };
    let waiting: Vec<_> = (0..count).map(begin).collect();
    let mut replies = Vec::new();
    for reply in waiting {
        replies.push(match timeout(limit, reply).await {
            Ok(Ok(reply)) => reply,
            _ => StoreReply::Failed(format!("no reply within {limit:?}")),
        });
    }
    replies
}

#[cfg(test)]
mod tests;
