//! Drives an MCP server and prints the measurements as a JSON line. It uses no SDK, because its own overhead is part of
//! every number.
#![forbid(unsafe_code)]

mod http;
mod measure;
mod sessions;
mod stdio;

use std::io::Write;
use std::process::ExitCode;

const USAGE: &str = "\
bench-driver [--era legacy|modern] [--in-flight 32] [--seconds 2] [--warmup 0.5]
             --tool NAME [--arguments JSON] [--mix NAME=JSON] [--stderr] -- COMMAND…
bench-driver --coldstart TIMES [--stderr] -- COMMAND…
bench-driver http --at HOST:PORT [--era legacy|modern] [--in-flight 16] [--seconds 2 | --calls N] [--warmup 0.5]
             --tool NAME [--arguments JSON] [--pid PID] [--lots N]
bench-driver sessions --at HOST:PORT [--era legacy|modern] --count N

--mix       keeps one call of that tool in flight beside the others, and measures the others without it and with it
--coldstart measures spawn to first reply, TIMES times
--stderr    shows what the server writes there
http        calls a server that listens, on as many connections as are in flight; --pid is the server's, for its costs;
            between lots it says `paused` and waits for a line on its standard input
sessions    opens so many streams, each on its own connection, says `open`, and holds them until its standard input ends:
            GET streams of legacy sessions, or modern subscriptions";

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}"#;

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1).peekable();
    let told = match words.peek().map(String::as_str) {
        Some("http") => http::Load::parse(words.skip(1)).and_then(|load| load.run()),
        Some("sessions") => sessions::Many::parse(words.skip(1)).and_then(|many| many.hold()),
        _ => stdio::Options::parse(words).and_then(|options| options.run()),
    };
    match told
        .and_then(|line| writeln!(std::io::stdout(), "{line}").map_err(|error| error.to_string()))
    {
        Ok(()) => ExitCode::SUCCESS,
        Err(wrong) => {
            let _ = writeln!(std::io::stderr(), "bench-driver: {wrong}");
            ExitCode::FAILURE
        }
    }
}

/// The error for a wrong command line, with the usage.
fn misused(wrong: &str) -> String {
    format!("{wrong}\n\n{USAGE}")
}

fn number<T: std::str::FromStr>(option: &str, value: &str) -> Result<T, String> {
    value.parse().map_err(|_| misused(&format!("{option} can't be {value}")))
}

fn is_success(line: &[u8]) -> bool {
    contains(line, "\"result\":") && !contains(line, "\"isError\":true")
}

fn contains(line: &[u8], text: &str) -> bool {
    std::str::from_utf8(line).is_ok_and(|line| line.contains(text))
}
