//! Calls over HTTP/1.1 from one thread, with one connection per pending call.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};

use crate::measure::{Latencies, cpu_seconds, json, resident_megabytes};
use crate::{META, is_success, misused, number, text_of};

pub(crate) const PATH: &str = "/mcp";
pub(crate) const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#;
pub(crate) const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
/// Ids have a fixed width, so that the length of a request is constant.
const FIRST_ID: u64 = 1_000_000_000;

pub(crate) struct Load {
    at: SocketAddr,
    modern: bool,
    in_flight: usize,
    seconds: f64,
    calls: Option<usize>,
    lots: usize,
    warmup: f64,
    tool: String,
    arguments: String,
    pid: Option<u32>,
}

impl Load {
    pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut at = None;
        let mut load = Self {
            at: SocketAddr::from(([127, 0, 0, 1], 0)),
            modern: false,
            in_flight: 16,
            seconds: 2.0,
            calls: None,
            lots: 1,
            warmup: 0.5,
            tool: String::new(),
            arguments: "{}".into(),
            pid: None,
        };
        while let Some(word) = words.next() {
            let value = words.next().ok_or_else(|| misused(&format!("{word} wants a value")))?;
            match word.as_str() {
                "--at" => at = Some(number(&word, &value)?),
                "--era" if value == "legacy" || value == "modern" => {
                    load.modern = value == "modern";
                }
                "--in-flight" => load.in_flight = number(&word, &value)?,
                "--seconds" => load.seconds = number(&word, &value)?,
                "--calls" => load.calls = Some(number(&word, &value)?),
                "--lots" => load.lots = number(&word, &value)?,
                "--warmup" => load.warmup = number(&word, &value)?,
                "--tool" => load.tool = value,
                "--arguments" => load.arguments = value,
                "--text" => load.arguments = text_of(number(&word, &value)?),
                "--pid" => load.pid = Some(number(&word, &value)?),
                _ => return Err(misused(&format!("unknown: {word} {value}"))),
            }
        }
        load.at = at.ok_or_else(|| misused("--at is needed"))?;
        if load.tool.is_empty() || load.in_flight == 0 || load.lots == 0 {
            return Err(misused("a --tool, something in flight and a lot are needed"));
        }
        Ok(load)
    }

    pub(crate) fn run(&self) -> Result<String, String> {
        let mut lines = Vec::with_capacity(self.in_flight);
        for number in 0..self.in_flight {
            lines.push(Line::open(self, number)?);
        }
        let mut latencies = Latencies::default();
        if self.calls.is_none() {
            keep_in_flight(&mut lines, self.warmup, None, &mut |_| {})?;
        }
        let cpu = self.pid.and_then(cpu_seconds);
        let start = Instant::now();
        for lot in 0..self.lots {
            if lot > 0 {
                pause()?;
            }
            keep_in_flight(&mut lines, self.seconds, self.calls, &mut |took| latencies.add(took))?;
        }
        let seconds = start.elapsed().as_secs_f64();
        let count = latencies.count();
        let after = self.pid.and_then(cpu_seconds);
        let per_call = cpu.zip(after).map(|(from, to)| (to - from) * 1e6 / count);
        Ok(format!(
            "{{\"calls_per_second\":{:.1},{},\"cpu_us\":{},\"rss_mb\":{}}}",
            count / seconds,
            latencies.json()?,
            json(per_call),
            json(self.pid.and_then(resident_megabytes))
        ))
    }
}

/// Reports that a lot is done, and waits for a line on standard input.
fn pause() -> Result<(), String> {
    let mut stdout = std::io::stdout();
    writeln!(stdout, "paused").and_then(|()| stdout.flush()).map_err(|error| error.to_string())?;
    let read = std::io::stdin().read_line(&mut String::new()).map_err(|error| error.to_string())?;
    if read == 0 { Err("nobody says to go on".into()) } else { Ok(()) }
}

/// Keeps a call pending on each connection for that long or for that many calls, then waits for the last responses.
fn keep_in_flight(
    lines: &mut [Line],
    seconds: f64,
    calls: Option<usize>,
    answered: &mut dyn FnMut(Duration),
) -> Result<(), String> {
    let start = Instant::now();
    let end = start + Duration::from_secs_f64(seconds);
    let mut left = calls.unwrap_or(usize::MAX);
    let mut in_flight = 0;
    for line in &mut *lines {
        if left > 0 {
            line.call(start)?;
            left -= 1;
            in_flight += 1;
        }
    }
    while in_flight > 0 {
        for at in readable(lines)? {
            let line = &mut lines[at];
            let Some(took) = line.receive()? else { continue };
            answered(took);
            let now = Instant::now();
            if left > 0 && (calls.is_some() || now < end) {
                line.call(now)?;
                left -= 1;
            } else {
                in_flight -= 1;
            }
        }
    }
    Ok(())
}

fn readable(lines: &[Line]) -> Result<Vec<usize>, String> {
    let mut waiting: Vec<_> =
        lines.iter().map(|line| PollFd::new(&line.wire.stream, PollFlags::IN)).collect();
    poll(&mut waiting, None).map_err(|error| error.to_string())?;
    let ready = waiting.iter().enumerate().filter(|(_, one)| !one.revents().is_empty());
    Ok(ready.map(|(at, _)| at).collect())
}

/// A connection with at most one pending call.
struct Line {
    wire: HttpConnection,
    request: Vec<u8>,
    /// The offset of the id in the request.
    id_at: usize,
    id: u64,
    sent: Instant,
}

impl Line {
    fn open(load: &Load, number: usize) -> Result<Self, String> {
        let mut wire = HttpConnection::connect(load.at)?;
        let mut headers = String::new();
        if load.modern {
            headers = format!(
                "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {}\r\n",
                load.tool
            );
        } else if let Some(session) = wire.open_session()? {
            headers = session_headers(&session);
        } else {
            headers.push_str("MCP-Protocol-Version: 2025-11-25\r\n");
        }
        let meta = if load.modern { format!(",{META}") } else { String::new() };
        let body = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{FIRST_ID},\"method\":\"tools/call\",\"params\":{{\"name\":\"{}\",\"arguments\":{}{meta}}}}}",
            load.tool, load.arguments
        );
        let request = post(load.at, &headers, &body);
        let id_at = request.len() - body.len() + "{\"jsonrpc\":\"2.0\",\"id\":".len();
        wire.stream.set_nonblocking(true).map_err(|error| error.to_string())?;
        let id = FIRST_ID + number as u64;
        Ok(Self { wire, request, id_at, id, sent: Instant::now() })
    }

    fn call(&mut self, now: Instant) -> Result<(), String> {
        self.id += 1;
        let digits = self.id.to_string();
        self.request[self.id_at..self.id_at + digits.len()].copy_from_slice(digits.as_bytes());
        self.sent = now;
        self.wire.send(&self.request)
    }

    /// Returns the duration of the call once its response is complete.
    fn receive(&mut self) -> Result<Option<Duration>, String> {
        self.wire.fill()?;
        let Some(response) = self.wire.response()? else { return Ok(None) };
        if response.status != 200 || !is_success(&response.body) {
            return Err(response.unwelcome());
        }
        Ok(Some(self.sent.elapsed()))
    }
}

pub(crate) fn session_headers(session: &str) -> String {
    format!("MCP-Protocol-Version: 2025-11-25\r\nMcp-Session-Id: {session}\r\n")
}

pub(crate) fn post(at: SocketAddr, headers: &str, body: &str) -> Vec<u8> {
    format!(
        "POST {PATH} HTTP/1.1\r\nHost: {at}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\n{headers}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

// ── HTTP/1.1, as much of it as servers answer with ──────────────────────────────────────────────────

pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) session: Option<String>,
    pub(crate) body: Vec<u8>,
}

impl Response {
    pub(crate) fn unwelcome(&self) -> String {
        format!("status {}: {}", self.status, String::from_utf8_lossy(&self.body))
    }
}

pub(crate) struct HttpConnection {
    pub(crate) stream: TcpStream,
    at: SocketAddr,
    buffer: Vec<u8>,
}

impl HttpConnection {
    pub(crate) fn connect(at: SocketAddr) -> Result<Self, String> {
        let stream = TcpStream::connect(at).map_err(|error| format!("{at}: {error}"))?;
        stream.set_nodelay(true).map_err(|error| error.to_string())?;
        Ok(Self { stream, at, buffer: Vec::new() })
    }

    /// Performs the handshake; returns the session's id, if the server assigns one.
    pub(crate) fn open_session(&mut self) -> Result<Option<String>, String> {
        let opened = self.ask(&post(self.at, "", INITIALIZE))?;
        if opened.status != 200 || !is_success(&opened.body) {
            return Err(opened.unwelcome());
        }
        if let Some(session) = &opened.session {
            let told = self.ask(&post(self.at, &session_headers(session), INITIALIZED))?;
            if told.status != 202 {
                return Err(told.unwelcome());
            }
        }
        Ok(opened.session)
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.stream.write_all(bytes).map_err(|error| format!("writing: {error}"))
    }

    fn ask(&mut self, request: &[u8]) -> Result<Response, String> {
        self.send(request)?;
        loop {
            if let Some(response) = self.response()? {
                return Ok(response);
            }
            self.fill()?;
        }
    }

    /// Reads the available bytes once.
    pub(crate) fn fill(&mut self) -> Result<(), String> {
        let mut chunk = [0; 16 * 1024];
        match self.stream.read(&mut chunk) {
            Ok(0) => Err("the server closed the connection".into()),
            Ok(count) => {
                self.buffer.extend_from_slice(&chunk[..count]);
                Ok(())
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(format!("reading: {error}")),
        }
    }

    /// Returns the text and the length of the next head once it is complete.
    pub(crate) fn head(&self) -> Option<(String, usize)> {
        let end = self.buffer.windows(4).position(|four| four == b"\r\n\r\n")?;
        Some((String::from_utf8_lossy(&self.buffer[..end]).into_owned(), end + 4))
    }

    fn response(&mut self) -> Result<Option<Response>, String> {
        let Some((head, length)) = self.head() else { return Ok(None) };
        let status = status_of(&head)?;
        let rest = &self.buffer[length..];
        let (body, taken) = if field(&head, "transfer-encoding") == Some("chunked") {
            let Some(whole) = unchunked(rest)? else { return Ok(None) };
            whole
        } else {
            let size = field(&head, "content-length").map_or(Ok(0), str::parse);
            let size: usize = size.map_err(|_| format!("a bad content-length in {head}"))?;
            if rest.len() < size {
                return Ok(None);
            }
            (rest[..size].to_vec(), size)
        };
        self.buffer.drain(..length + taken);
        let session = field(&head, "mcp-session-id").map(ToOwned::to_owned);
        Ok(Some(Response { status, session, body }))
    }
}

pub(crate) fn status_of(head: &str) -> Result<u16, String> {
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    status.ok_or_else(|| format!("no status in {head}"))
}

fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().skip(1).find_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

/// Returns a chunked body and its encoded length once it is complete.
fn unchunked(bytes: &[u8]) -> Result<Option<(Vec<u8>, usize)>, String> {
    let (mut body, mut at) = (Vec::new(), 0);
    loop {
        let rest = &bytes[at..];
        let Some(end) = rest.windows(2).position(|two| two == b"\r\n") else { return Ok(None) };
        let size = std::str::from_utf8(&rest[..end]).ok();
        let size = size.and_then(|size| usize::from_str_radix(size, 16).ok());
        let size = size.ok_or("a chunk without a size")?;
        let start = end + 2;
        if rest.len() < start + size + 2 {
            return Ok(None);
        }
        body.extend_from_slice(&rest[start..start + size]);
        at += start + size + 2;
        if size == 0 {
            return Ok(Some((body, at)));
        }
    }
}
