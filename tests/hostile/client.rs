//! Connects to evil servers, as client.py does. The argument is the URL of an honest one.
#![allow(clippy::print_stdout)] // its output is what it is for

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use gudgeon::{
    Client,
    bindings::client_runtime,
    client::{ClientBuilder, Target},
    error::{Error, ErrorKind},
    protocol::{ElicitAction, ElicitResult, Tool},
    transport::Command,
};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, BufReader, stdin},
    time::sleep,
};

#[derive(Deserialize)]
struct Job {
    target: JobTarget,
    action: String,
    changes: bool,
    timeout: f64,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum JobTarget {
    Url(String),
    Command(Vec<String>),
}

pub(crate) fn run(
    mut words: impl Iterator<Item = String>,
) -> Result<(), Box<dyn std::error::Error>> {
    let url = words.next().ok_or("hostile client URL")?;
    // That of the bindings' clients, so that all rows run on what Python and Node have.
    client_runtime::start()?.block_on(run_all(&url))
}

async fn run_all(url: &str) -> Result<(), Box<dyn std::error::Error>> {
    let honest = Client::connect(Target::url(url)?).await?;
    let mut lines = BufReader::new(stdin()).lines();
    while let Some(line) = lines.next_line().await? {
        println!("{}", attempt(&honest, serde_json::from_str(&line)?).await);
    }
    Ok(())
}

async fn attempt(honest: &Client, job: Job) -> Value {
    let stop = Arc::new(AtomicBool::new(false));
    let pings = tokio::spawn(longest_ping(honest.clone(), Arc::clone(&stop)));
    sleep(Duration::from_millis(20)).await;
    let began = Instant::now();
    let (client, outcome) = match connect(&job).await {
        Ok(client) => {
            let outcome = act(&client, &job.action).await;
            (Some(client), outcome)
        }
        Err(error) => (None, Err(error)),
    };
    let took = began.elapsed();
    if let Some(client) = client {
        client.close().await;
    }
    let closed = began.elapsed().saturating_sub(took);
    stop.store(true, Ordering::Relaxed);
    let ping = pings.await.map_or(f64::MAX, |time| time.as_secs_f64() * 1000.0);
    let (outcome, detail) = match outcome {
        Ok(text) => (text, String::new()),
        Err(error) => (error.kind.to_string(), error.to_string().chars().take(300).collect()),
    };
    let (took, closed) = (took.as_secs_f64(), closed.as_secs_f64());
    json!({ "outcome": outcome, "detail": detail, "took": took, "closed": closed, "ping": ping })
}

async fn connect(job: &Job) -> Result<Client, Error> {
    let mut headers = Vec::new();
    let target = match &job.target {
        JobTarget::Url(url) => {
            headers.push(("authorization".into(), "Bearer secret".into()));
            Target::url(url)?
        }
        JobTarget::Command(words) => Command::new(&words[0]).args(&words[1..]).into(),
    };
    let mut builder: ClientBuilder = Client::builder(target)
        .options(|options| {
            options.timeout = Some(Duration::from_secs_f64(job.timeout));
            options.max_timeout = Some(Duration::from_secs_f64(2.0 * job.timeout));
            options.headers = headers;
            options.validate = job.action == "validate";
        })
        .on_log(|_| ())
        .on_progress(|_| ())
        .on_elicit(|_| async { Ok(ElicitResult::new(ElicitAction::Accept, None)) });
    if job.changes {
        builder = builder.on_list_changed(|_| ());
    }
    builder.connect().await
}

async fn act(client: &Client, action: &str) -> Result<String, Error> {
    match action {
        "connect" => return Ok("connected".into()),
        "list" => return Ok(client.list::<Tool>().await?.len().to_string()),
        "list and call" => drop(client.list::<Tool>().await?),
        "list and call first" => {
            let tools = client.list::<Tool>().await?;
            let arguments = json!({ "a": "x\r\nx-evil: 1" });
            return client.call_tool(&tools[0].name, arguments).await.map(|result| result.text());
        }
        "call twice" => drop(client.call_tool("evil", ()).await?),
        "validate" => {
            let arguments = json!({ "n": "b".repeat(200_000) });
            return client.call_tool("evil", arguments).await.map(|result| result.text());
        }
        "push" => {
            let arguments = json!({ "text": "x".repeat(1 << 20) });
            let calls: Vec<_> = (0..8)
                .map(|_| {
                    let (client, arguments) = (client.clone(), arguments.clone());
                    tokio::spawn(async move { client.call_tool("evil", arguments).await })
                })
                .collect();
            let mut results = Vec::new();
            for call in calls {
                results.push(
                    call.await.map_err(|error| Error::new(ErrorKind::Misuse, error.to_string()))?,
                );
            }
            return results.swap_remove(0).map(|result| result.text());
        }
        _ => (),
    }
    client.call_tool("evil", ()).await.map(|result| result.text())
}

/// Returns the longest of pings, as client.py does.
async fn longest_ping(honest: Client, stop: Arc<AtomicBool>) -> Duration {
    let mut longest = Duration::ZERO;
    while !stop.load(Ordering::Relaxed) {
        let before = processor_time();
        let Ok(took) = honest.ping().await else { return Duration::MAX };
        let computed = processor_time().saturating_sub(before);
        longest = longest.max(if took.as_secs() >= 3 { took } else { took.min(computed) });
        sleep(Duration::from_millis(10)).await;
    }
    longest
}

/// Returns the time for which this process has computed, to a hundredth of a second.
fn processor_time() -> Duration {
    let status = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = status.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks = fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok());
    Duration::from_millis(10 * ticks.sum::<u64>())
}
