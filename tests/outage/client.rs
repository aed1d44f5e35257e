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

use gudgeon::{
    Client, Error, Revision,
    client::{ClientGroup, Target, ToolResult},
    protocol::Tool,
};
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
    failed: BTreeMap<String, Vec<usize>>,
    lists: Vec<Vec<String>>,
    unexpected: Vec<String>,
    memory: Vec<usize>,
}

/// One server, or several as a group.
#[derive(Clone)]
enum Servers {
    One(Client),
    Group(ClientGroup, usize),
}

impl Servers {
    async fn call(&self, number: usize) -> Result<ToolResult, Error> {
        let tool = if number.is_multiple_of(2) { "read" } else { "count" };
        let arguments = json!({ "number": number });
        match self {
            Self::One(client) => client.call_tool(tool, arguments).await,
            Self::Group(group, size) => {
                let name = format!("s{}_{tool}", number / 2 % size);
                group.call_tool(&name, arguments).await
            }
        }
    }

    /// Lists the tools; returns their names in a group.
    async fn list(&self) -> Result<Option<Vec<String>>, Error> {
        match self {
            Self::One(client) => client.list::<Tool>().await.map(|_| None),
            Self::Group(group, _) => {
                let tools = group.list::<Tool>().await?;
                Ok(Some(tools.into_iter().map(|tool| tool.name).collect()))
            }
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn StdError>> {
    let arguments: Vec<_> = env::args().skip(1).collect();
    let [urls, revision, calls] = &arguments[..] else {
        return Err("usage: outage-client URL[,URL…] REVISION CALLS".into());
    };
    let (revision, calls) = (Revision::parse(revision), calls.parse()?);
    let mut builders = Vec::new();
    for url in urls.split(',') {
        builders.push(Client::builder(Target::url(url)?).options(|options| {
            options.revisions = revision.into_iter().collect();
            options.timeout = Some(Duration::from_secs(20));
        }));
    }
    let client = match builders.len() {
        1 => Servers::One(builders.remove(0).connect().await?),
        size => {
            let named =
                builders.into_iter().enumerate().map(|(at, builder)| (format!("s{at}"), builder));
            Servers::Group(ClientGroup::connect(named).await?, size)
        }
    };
    client.list().await?;
    let (report, next) = (Arc::new(Mutex::new(Report::default())), Arc::new(AtomicUsize::new(0)));
    let workers: Vec<_> = (0..AT_ONCE)
        .map(|_| tokio::spawn(work(client.clone(), calls, Arc::clone(&next), Arc::clone(&report))))
        .collect();
    for worker in workers {
        worker.await?;
    }
    match client {
        Servers::One(client) => client.close().await,
        Servers::Group(group, _) => group.close().await,
    }
    println!("{}", json!(&*report.lock().unwrap_or_else(PoisonError::into_inner)));
    Ok(())
}

async fn work(client: Servers, calls: usize, next: Arc<AtomicUsize>, report: Arc<Mutex<Report>>) {
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= calls {
            return;
        }
        let is_read = number.is_multiple_of(2);
        let outcome = client.call(number).await.and_then(|result| result.data::<usize>());
        let is_hundredth = number.is_multiple_of(100);
        let list = if is_hundredth { client.list().await } else { Ok(None) };
        let mut report = report.lock().unwrap_or_else(PoisonError::into_inner);
        match outcome {
            Ok(data) if data != number => {
                report.unexpected.push(format!("call {number} returned {data}"));
            }
            Ok(_) if is_read => report.reads += 1,
            Ok(_) => report.counted.push(number),
            Err(error) => {
                report.failed.entry(error.kind.to_string()).or_default().push(number);
                if is_read {
                    report.unexpected.push(format!("read {number}: {error}"));
                }
            }
        }
        match list {
            Ok(list) => report.lists.extend(list),
            Err(error) => report.unexpected.push(format!("list: {error}")),
        }
        if is_hundredth {
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
    pages.split(' ').nth(1).and_then(|count| count.parse::<usize>().ok()).unwrap_or_default() * PAGE
}
