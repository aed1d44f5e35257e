//! Tells how many operations a second each store carries out, with 1 and with 32 in flight: half of them store a value of 200 bytes,
//! and half read one. Arguments: a folder for a file, and the URL of a Redis, if there is one.

#![allow(clippy::print_stdout, reason = "the figures are what this program is for")]

use std::{
    env,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use gudgeon::{
    Error,
    server::{Expect, MemoryStore, RedisStore, SqliteStore, Store},
};

const TIME: Duration = Duration::from_secs(3);
const TTL: Duration = Duration::from_secs(60);

#[tokio::main]
async fn main() -> Result<(), Error> {
    let mut arguments = env::args().skip(1);
    let folder = arguments.next().ok_or_else(|| Error::misuse("a folder is missing"))?;
    let mut stores: Vec<(&str, Arc<dyn Store>)> = vec![
        ("memory", Arc::new(MemoryStore::default())),
        ("SQLite", Arc::new(SqliteStore::open(Path::new(&folder).join("store"))?)),
    ];
    if let Some(url) = arguments.next() {
        stores.push(("Redis", Arc::new(RedisStore::connect(&url)?)));
    }
    println!("{:8} {:>12} {:>12}", "", "1 in flight", "32 in flight");
    for (name, store) in stores {
        let (one, many) = (measure(&store, 1).await?, measure(&store, 32).await?);
        println!("{name:8} {one:>10}/s {many:>10}/s");
    }
    Ok(())
}

/// Returns the operations in a second.
async fn measure(store: &Arc<dyn Store>, in_flight: usize) -> Result<usize, Error> {
    let done = Arc::new(AtomicUsize::new(0));
    let begun = Instant::now();
    let tasks = (0..in_flight).map(|number| {
        let (store, done) = (Arc::clone(store), Arc::clone(&done));
        tokio::spawn(async move {
            let key = format!("bench:{number}");
            while begun.elapsed() < TIME {
                store.put(key.clone(), vec![7; 200], TTL, Expect::Any).await?;
                store.get(key.clone()).await?;
                done.fetch_add(2, Ordering::Relaxed);
            }
            Ok::<_, Error>(())
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.map_err(|error| Error::misuse(error.to_string()))??;
    }
    Ok(done.load(Ordering::Relaxed) * 1000
        / usize::try_from(begun.elapsed().as_millis()).unwrap_or(1))
}
