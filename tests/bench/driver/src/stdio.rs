//! Calls over stdio to a spawned server.

use std::io::{ErrorKind, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};

use crate::measure::{Latencies, cpu_seconds, json, resident_megabytes};
use crate::{META, contains, is_success, misused, number, text_of};

/// The part of a first slow call that quick calls overlap, to show whether it stalls them.
const FIRST: Duration = Duration::from_millis(300);
/// The bytes that one read may bring: as much as a pipe holds.
const CHUNK: usize = 64 * 1024;

// ── the command line ────────────────────────────────────────────────────────────────────────────────

pub(crate) struct Options {
    modern: bool,
    in_flight: usize,
    seconds: f64,
    warmup: f64,
    tool: String,
    arguments: String,
    mix: Option<(String, String)>,
    coldstart: Option<usize>,
    stderr: bool,
    command: Vec<String>,
}

impl Options {
    pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self {
            modern: false,
            in_flight: 32,
            seconds: 2.0,
            warmup: 0.5,
            tool: String::new(),
            arguments: "{}".into(),
            mix: None,
            coldstart: None,
            stderr: false,
            command: Vec::new(),
        };
        while let Some(word) = words.next() {
            if word == "--" {
                options.command = words.by_ref().collect();
                break;
            }
            if word == "--stderr" {
                options.stderr = true;
                continue;
            }
            let value = words.next().ok_or_else(|| misused(&format!("{word} wants a value")))?;
            match word.as_str() {
                "--era" if value == "legacy" || value == "modern" => {
                    options.modern = value == "modern";
                }
                "--in-flight" => options.in_flight = number(&word, &value)?,
                "--seconds" => options.seconds = number(&word, &value)?,
                "--warmup" => options.warmup = number(&word, &value)?,
                "--coldstart" => options.coldstart = Some(number(&word, &value)?),
                "--tool" => options.tool = value,
                "--arguments" => options.arguments = value,
                "--text" => options.arguments = text_of(number(&word, &value)?),
                "--mix" => {
                    let (tool, arguments) =
                        value.split_once('=').ok_or_else(|| misused("--mix wants NAME=JSON"))?;
                    options.mix = Some((tool.into(), arguments.into()));
                }
                _ => return Err(misused(&format!("unknown: {word} {value}"))),
            }
        }
        let quick = options.in_flight.saturating_sub(usize::from(options.mix.is_some()));
        let possible =
            options.coldstart.map_or(quick > 0 && !options.tool.is_empty(), |times| times > 0);
        if options.command.is_empty() || !possible {
            return Err(misused(
                "a command after `--`, and a --tool with --in-flight enough or --coldstart, are needed",
            ));
        }
        Ok(options)
    }

    pub(crate) fn run(&self) -> Result<String, String> {
        match (self.coldstart, &self.mix) {
            (Some(times), _) => self.cold_start(times),
            (None, None) => self.load(),
            (None, Some((tool, arguments))) => self.mixed(tool, arguments),
        }
    }
}

// ── what is measured ────────────────────────────────────────────────────────────────────────────────

impl Options {
    fn cold_start(&self, times: usize) -> Result<String, String> {
        let mut took = Vec::with_capacity(times);
        for _ in 0..times {
            let start = Instant::now();
            let mut server = Server::spawn(self)?;
            server.out.extend_from_slice(INITIALIZE);
            server.wait_for(0)?;
            took.push(start.elapsed());
        }
        took.sort_unstable();
        let ms = |at: usize| took[at].as_secs_f64() * 1e3;
        Ok(format!(
            "{{\"median_ms\":{:.2},\"min_ms\":{:.2},\"max_ms\":{:.2}}}",
            ms(times / 2),
            ms(0),
            ms(times - 1)
        ))
    }

    fn load(&self) -> Result<String, String> {
        let mut server = Server::open(self)?;
        let mut calls = Calls::new(self, self.in_flight);
        calls.run(&mut server, self.warmup, &mut |_, _, _| {})?;
        let mut latencies = Latencies::default();
        let cpu = cpu_seconds(server.child.id());
        let start = Instant::now();
        calls.run(&mut server, self.seconds, &mut |_, sent, now| latencies.add(now - sent))?;
        let seconds = start.elapsed().as_secs_f64();
        let count = latencies.count();
        let per_call =
            cpu.zip(cpu_seconds(server.child.id())).map(|(from, to)| (to - from) * 1e6 / count);
        Ok(format!(
            "{{\"calls_per_second\":{:.1},{},\"cpu_us\":{},\"rss_mb\":{}}}",
            count / seconds,
            latencies.json()?,
            json(per_call),
            json(resident_megabytes(server.child.id()))
        ))
    }

    /// All but one of the calls are quick. The slow tool is not called at all before `alone` was measured, so that
    /// `first` is what a server does that never saw it.
    fn mixed(&self, tool: &str, arguments: &str) -> Result<String, String> {
        let mut server = Server::open(self)?;
        let mut calls = Calls::new(self, self.in_flight - 1);
        calls.run(&mut server, self.warmup, &mut |_, _, _| {})?;
        let (mut alone, mut first, mut beside) =
            (Latencies::default(), Latencies::default(), Latencies::default());
        calls.run(&mut server, self.seconds, &mut |_, sent, now| alone.add(now - sent))?;
        calls.add_slow(tool, arguments);
        let (slow, start) = (self.in_flight - 1, Instant::now());
        let mut slow_calls = 0;
        calls.run(&mut server, self.seconds, &mut |slot, sent, now| {
            if slot == slow {
                slow_calls += 1;
                return;
            }
            beside.add(now - sent);
            if sent < start + FIRST {
                first.add(now - sent);
            }
        })?;
        Ok(format!(
            "{{\"alone\":{{{}}},\"beside\":{{{}}},\"first\":{{{}}},\"slow_calls\":{slow_calls}}}",
            alone.json()?,
            beside.json()?,
            first.json()?
        ))
    }
}

// ── the calls in flight ─────────────────────────────────────────────────────────────────────────────

/// The text of a request before and after its id.
struct Template {
    before: Vec<u8>,
    after: Vec<u8>,
}

impl Template {
    fn call(modern: bool, tool: &str, arguments: &str) -> Self {
        let meta = if modern { format!(",{META}") } else { String::new() };
        Self {
            before: b"{\"jsonrpc\":\"2.0\",\"id\":".to_vec(),
            after: format!(
                ",\"method\":\"tools/call\",\"params\":{{\"name\":\"{tool}\",\"arguments\":{arguments}{meta}}}}}\n"
            )
            .into_bytes(),
        }
    }
}

/// The pending calls; a call's slot is its id modulo the number of slots.
struct Calls {
    modern: bool,
    templates: Vec<Template>,
    slots: Vec<Slot>,
    stride: u64,
}

struct Slot {
    template: usize,
    id: u64,
    sent: Option<Instant>,
}

impl Calls {
    fn new(options: &Options, quick: usize) -> Self {
        let slot = |_| Slot { template: 0, id: 0, sent: None };
        Self {
            modern: options.modern,
            templates: vec![Template::call(options.modern, &options.tool, &options.arguments)],
            slots: (0..quick).map(slot).collect(),
            stride: options.in_flight as u64,
        }
    }

    fn add_slow(&mut self, tool: &str, arguments: &str) {
        self.templates.push(Template::call(self.modern, tool, arguments));
        self.slots.push(Slot { template: 1, id: 0, sent: None });
    }

    /// Keeps a call pending in every slot for that long, then waits for the last responses.
    fn run(
        &mut self,
        server: &mut Server,
        seconds: f64,
        answered: &mut dyn FnMut(usize, Instant, Instant),
    ) -> Result<(), String> {
        let end = Instant::now() + Duration::from_secs_f64(seconds);
        let start = Instant::now();
        for slot in 0..self.slots.len() {
            self.queue(server, slot, start);
        }
        let mut in_flight = self.slots.len();
        while in_flight > 0 {
            server.exchange()?;
            let now = Instant::now();
            while let Some(line) = server.line() {
                let line = &server.buffer[line];
                let Some(id) = reply_id(line) else { continue };
                let slot = usize::try_from(id % self.stride).map_err(|error| error.to_string())?;
                let sent =
                    self.slots.get_mut(slot).filter(|at| at.id == id).and_then(|at| at.sent.take());
                let Some(sent) = sent.filter(|_| is_success(line)) else {
                    return Err(format!(
                        "not the reply to a call: {}",
                        String::from_utf8_lossy(line)
                    ));
                };
                answered(slot, sent, now);
                if now < end {
                    self.queue(server, slot, now);
                } else {
                    in_flight -= 1;
                }
            }
        }
        Ok(())
    }

    fn queue(&mut self, server: &mut Server, at: usize, now: Instant) {
        let slot = &mut self.slots[at];
        // Id 0 is used by the handshake; then each slot increases its id by the stride.
        slot.id = if slot.id == 0 { at as u64 + self.stride } else { slot.id + self.stride };
        slot.sent = Some(now);
        let template = &self.templates[slot.template];
        server.out.extend_from_slice(&template.before);
        server.out.extend_from_slice(slot.id.to_string().as_bytes());
        server.out.extend_from_slice(&template.after);
    }
}

/// Returns the number after `"id":`, `None` for a notification. If the id comes first, the result is not searched.
fn reply_id(line: &[u8]) -> Option<u64> {
    const USUAL: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":";
    let rest = if line.starts_with(USUAL) {
        &line[USUAL.len()..]
    } else {
        if contains(line, "\"method\":") {
            return None;
        }
        let at = line.windows(5).rposition(|five| five == b"\"id\":")?;
        line[at + 5..].trim_ascii_start()
    };
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit());
    digits.fold(None, |id, digit| Some(id.unwrap_or(0) * 10 + u64::from(digit - b'0')))
}

// ── the server ──────────────────────────────────────────────────────────────────────────────────────

const INITIALIZE: &[u8] = br#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}
"#;
const INITIALIZED: &[u8] = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}
"#;

struct Server {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: ChildStdout,
    /// The bytes to send; those before `sent` are sent.
    out: Vec<u8>,
    sent: usize,
    /// The received bytes; those before `at` are processed, and those before `searched` contain no line end.
    buffer: Vec<u8>,
    at: usize,
    searched: usize,
}

impl Server {
    fn spawn(options: &Options) -> Result<Self, String> {
        let mut child = Command::new(&options.command[0])
            .args(&options.command[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(if options.stderr { Stdio::inherit() } else { Stdio::null() })
            .spawn()
            .map_err(|error| format!("{}: {error}", options.command[0]))?;
        let stdin = child.stdin.take().ok_or("no pipe to the server")?;
        let stdout = child.stdout.take().ok_or("no pipe from the server")?;
        // The server's end is another description, which stays as it is.
        rustix::io::ioctl_fionbio(&stdin, true).map_err(|error| error.to_string())?;
        let buffer = Vec::with_capacity(CHUNK);
        let (stdin, out) = (Some(stdin), Vec::new());
        Ok(Self { child, stdin, stdout, out, sent: 0, buffer, at: 0, searched: 0 })
    }

    /// Starts a server and performs the handshake.
    fn open(options: &Options) -> Result<Self, String> {
        let mut server = Self::spawn(options)?;
        if options.modern {
            let discover = format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"server/discover\",\"params\":{{{META}}}}}\n"
            );
            server.out.extend_from_slice(discover.as_bytes());
            server.wait_for(0)?;
        } else {
            server.out.extend_from_slice(INITIALIZE);
            server.wait_for(0)?;
            server.out.extend_from_slice(INITIALIZED);
        }
        Ok(server)
    }

    /// Sends what the server takes, and reads what is there, once. A server that writes before it has read everything
    /// is read from meanwhile.
    fn exchange(&mut self) -> Result<(), String> {
        self.send()?;
        while self.sent < self.out.len() {
            let stdin = self.stdin.as_ref().ok_or("stdin is closed")?;
            let mut both =
                [PollFd::new(&self.stdout, PollFlags::IN), PollFd::new(stdin, PollFlags::OUT)];
            poll(&mut both, None).map_err(|error| error.to_string())?;
            if !both[0].revents().is_empty() {
                break;
            }
            self.send()?;
        }
        self.fill()
    }

    fn send(&mut self) -> Result<(), String> {
        while self.sent < self.out.len() {
            let stdin = self.stdin.as_mut().ok_or("stdin is closed")?;
            match stdin.write(&self.out[self.sent..]) {
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(self.gone(&error.to_string())),
            }
        }
        self.out.clear();
        self.sent = 0;
        Ok(())
    }

    /// Reads the available bytes once.
    fn fill(&mut self) -> Result<(), String> {
        self.buffer.drain(..self.at);
        self.searched -= self.at;
        self.at = 0;
        let held = self.buffer.len();
        self.buffer.resize(held + CHUNK, 0);
        let read = self.stdout.read(&mut self.buffer[held..]);
        self.buffer.truncate(held + read.as_ref().map_or(0, |count| *count));
        match read {
            Ok(0) => Err(self.gone("end of its output")),
            Ok(_) => Ok(()),
            Err(error) => Err(self.gone(&error.to_string())),
        }
    }

    /// Returns the place of the next line in the buffer.
    fn line(&mut self) -> Option<std::ops::Range<usize>> {
        let start = self.at;
        let Some(end) = memchr::memchr(b'\n', &self.buffer[self.searched..]) else {
            self.searched = self.buffer.len();
            return None;
        };
        let end = self.searched + end;
        (self.at, self.searched) = (end + 1, end + 1);
        Some(start..end)
    }

    fn wait_for(&mut self, id: u64) -> Result<(), String> {
        loop {
            while let Some(line) = self.line() {
                let line = &self.buffer[line];
                if reply_id(line) == Some(id) {
                    let shown = String::from_utf8_lossy(line);
                    return if is_success(line) {
                        Ok(())
                    } else {
                        Err(format!("the handshake was refused: {shown}"))
                    };
                }
            }
            self.exchange()?;
        }
    }

    fn gone(&mut self, why: &str) -> String {
        self.stdin = None;
        let status =
            self.child.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
        format!("the server is gone ({why}; {status}); --stderr shows its last words")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stdin = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
