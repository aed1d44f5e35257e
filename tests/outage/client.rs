//! Calls a server that is killed again and again, as client.py does.
#![allow(clippy::print_stdout)] // its output is what it is for

use std::{
    collections::BTreeMap,
    env,
    error::Error as StdError,
    fs,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use gudgeon::{Client, Revision, client::Target};
use serde::Serialize;
use serde_json::json;

const AT_ONCE: usize = 16;
/// The number of calls before memory is measured for the first time.
const WARM: usize = 1_000;
const PAGE: usize = 4_096;

#[derive(Default, Serialize)]
struct Report {
    reads: usize,
    counted: Vec<usize>,
    failed: BTreeMap<String, usize>,
    unexpected: Vec<String>,
    memory: Vec<usize>,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn StdError>> {
    let arguments: Vec<_> = env::args().skip(1).collect();
    let [url, revision, calls] = &arguments[..] else {
        return Err("usage: outage-client URL REVISION CALLS".into());
    };
    let (revision, calls) = (Revision::parse(revision), calls.parse()?);
    let builder = Client::builder(Target::url(url)?).options(|it| {
        it.revisions = revision.into_iter().collect();
        it.timeout = Some(Duration::from_secs(20));
    });
    let client = builder.connect().await?;
    client.list_tools().await?;
    let (report, next) = (Arc::new(Mutex::new(Report::default())), Arc::new(AtomicUsize::new(0)));
    let workers: Vec<_> = (0..AT_ONCE)
        .map(|_| tokio::spawn(work(client.clone(), calls, Arc::clone(&next), Arc::clone(&report))))
        .collect();
    for worker in workers {
        worker.await?;
    }
    client.close().await;
    println!("{}", json!(&*report.lock().unwrap_or_else(PoisonError::into_inner)));
    Ok(())
}

async fn work(client: Client, calls: usize, next: Arc<AtomicUsize>, report: Arc<Mutex<Report>>) {
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= calls {
            return;
        }
        let is_read = number.is_multiple_of(2);
        let tool = if is_read { "read" } else { "count" };
        let outcome = client.call_tool(tool, json!({ "number": number })).await;
        let outcome = outcome.and_then(|it| it.data::<usize>());
        let mut report = report.lock().unwrap_or_else(PoisonError::into_inner);
        match outcome {
            Ok(data) if data != number => {
                report.unexpected.push(format!("call {number} returned {data}"));
            }
            Ok(_) if is_read => report.reads += 1,
            Ok(_) => report.counted.push(number),
            Err(error) => {
                *report.failed.entry(error.kind.to_string()).or_default() += 1;
                if is_read {
                    report.unexpected.push(format!("read {number}: {error}"));
                }
            }
        }
        if number.is_multiple_of(100) {
            println!("{number}");
        }
        if number == WARM || number == calls - 1 {
            report.memory.push(memory());
        }
    }
}

/// Returns the resident memory of this process in bytes.
fn memory() -> usize {
    let pages = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    pages.split(' ').nth(1).and_then(|it| it.parse::<usize>().ok()).unwrap_or_default() * PAGE
}
