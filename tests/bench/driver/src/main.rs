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
             --tool NAME [--arguments JSON | --text BYTES] [--mix NAME=JSON] [--stderr] -- COMMAND…
bench-driver --coldstart TIMES [--stderr] -- COMMAND…
bench-driver http --at HOST:PORT [--era legacy|modern] [--in-flight 16] [--seconds 2 | --calls N] [--warmup 0.5]
             --tool NAME [--arguments JSON | --text BYTES] [--pid PID] [--lots N]
bench-driver sessions --at HOST:PORT [--era legacy|modern] --count N

--text      an argument `text` of that length instead of arguments
--mix       keeps one call of that tool in flight beside the others, and measures the others without it and with it
--coldstart measures spawn to first reply, TIMES times
--stderr    shows what the server writes there
http        calls a server that listens, on as many connections as are in flight; --pid is the server's, for its costs;
            between lots it says `paused` and waits for a line on its standard input
sessions    opens so many streams, each on its own connection, says `open`, and holds them until its standard input ends:
            GET streams of legacy sessions, or modern subscriptions";

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}"#;

/// The bytes at each end of a long response that are looked through.
const SEARCHED: usize = 512;

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

/// Returns arguments with a string of that many bytes.
fn text_of(bytes: usize) -> String {
    format!("{{\"text\":\"{}\"}}", "x".repeat(bytes))
}

/// Looks at both ends of a long response, because looking through all of it would take longer than some servers.
fn is_success(line: &[u8]) -> bool {
    let (start, end) = match line.len() > 4 * SEARCHED {
        true => (&line[..SEARCHED], &line[line.len() - SEARCHED..]),
        false => (line, &line[line.len()..]),
    };
    let contain = |text| contains(start, text) || contains(end, text);
    contain("\"result\":") && !contain("\"isError\":true")
}

fn contains(line: &[u8], text: &str) -> bool {
    memchr::memmem::find(line, text.as_bytes()).is_some()
}
