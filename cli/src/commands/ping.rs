//! `gudgeon ping`: measures round trips.

use std::{num::NonZeroU32, process::ExitCode, time::Duration};

use clap::Args;
use serde_json::json;

use crate::{
    connection::{ConnectionArguments, seconds},
    escape,
    failure::Failure,
    interaction::InteractionArguments,
    output, session,
};

const EXAMPLES: &str = "\
Examples:
  gudgeon ping http://127.0.0.1:8000/mcp
  gudgeon ping --count 10 --interval 0.5 http://127.0.0.1:8000/mcp
  gudgeon ping -- python server.py";

#[derive(Args, Debug)]
#[command(
    after_help = EXAMPLES,
    override_usage = "gudgeon ping [OPTIONS] TARGET\n       gudgeon ping [OPTIONS] -- COMMAND..."
)]
pub struct Arguments {
    /// The server
    #[arg(value_name = "TARGET")]
    words: Vec<String>,
    /// The number of round trips
    #[arg(long, short, value_name = "NUMBER", default_value = "1")]
    count: NonZeroU32,
    /// The time between two round trips, in seconds
    #[arg(long, short, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    interval: Duration,
    /// Print JSON: the server, the revision, and the times in milliseconds
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connection: ConnectionArguments,
    #[command(flatten)]
    interaction: InteractionArguments,
}

pub async fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    let (target, words) = arguments.connection.target(arguments.words)?;
    if let Some(word) = words.first() {
        return Err(Failure::usage(format!("unexpected argument {word:?}")));
    }
    let interaction = arguments.interaction.read()?;
    session::run(&arguments.connection, &interaction, &target, async |client| {
        let server = client.server();
        let revision = server.spoken().name();
        let mut times = Vec::new();
        for number in 0..arguments.count.get() {
            if number > 0 {
                tokio::time::sleep(arguments.interval).await;
            }
            let time = client.ping().await?.as_secs_f64() * 1e3;
            times.push(time);
            if !arguments.json {
                output::line(format_args!("{target} ({revision}): {time:.1} ms"))?;
            }
        }
        let statistics = Statistics::new(&times);
        if arguments.json {
            let server = json!({ "name": server.info.name, "version": server.info.version });
            output::json(&json!({
                "server": server,
                "revision": revision,
                "times": times,
                "minimum": statistics.minimum,
                "average": statistics.average,
                "maximum": statistics.maximum,
            }))?;
        } else if times.len() > 1 {
            let Statistics { minimum, average, maximum } = statistics;
            output::line(format_args!(
                "{}: {} round trips, minimum {minimum:.1} ms, average {average:.1} ms, maximum {maximum:.1} ms",
                escape::server(&server.info.name, &server.info.version),
                times.len(),
            ))?;
        }
        Ok(ExitCode::SUCCESS)
    })
    .await
}

/// Statistics of times in milliseconds.
struct Statistics {
    minimum: f64,
    average: f64,
    maximum: f64,
}

impl Statistics {
    fn new(times: &[f64]) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "a number of pings")]
        let count = times.len().max(1) as f64;
        Self {
            minimum: times.iter().copied().fold(f64::INFINITY, f64::min),
            average: times.iter().sum::<f64>() / count,
            maximum: times.iter().copied().fold(0.0, f64::max),
        }
    }
}
