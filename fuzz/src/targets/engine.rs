//! An endpoint with one connection, as over stdio.
//!
//! `>` a frame, `T` a frame over the limit, `+` milliseconds, `~` idle or restart as in transcripts, `L` lagging,
//! `C` cut subscriptions, `P` a page is done, and the operations of [`Host`].

use std::{fmt::Write as _, time::Instant};

use gudgeon::{
    engine::Load,
    framing::{Frame, LineDecoder, TooLong, encode_line},
    service::{Input, Output, Service},
};

use crate::{
    script::{Ledger, check_frame, epoch, span, steps},
    server::{Host, HostInput, SUSPENDED_LIMIT, SUSPENDED_THREADS, components},
};

pub(super) const SEEDS: &[&str] = &[
    r#"> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{},"roots":{}},"clientInfo":{"name":"c","version":"1"}}}
> {"jsonrpc":"2.0","method":"notifications/initialized"}
> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait","arguments":{},"_meta":{"progressToken":"t"}}}
p0 half
?0 elicit-1
w0
> {"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":{"value":true}}}
! 0 tdone
> {"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"fixture://about"}}
u fixture://about
c1"#,
    r#"> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"drop","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}}
h0 1
?0 elicit-1
w0 b
> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"drop","arguments":{},"inputResponses":{"elicit-1":{"action":"accept","content":{"value":true}}},"requestState":"<state>","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}}
h0 1
!0 tx
> {"jsonrpc":"2.0","id":3,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["fixture://about"]},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}
c1
u fixture://about
> {"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"slow","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}
> {"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"slow","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}
+ 5000
> {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}"#,
];

/// Runs a script twice, with the same outcome.
pub(super) fn run(input: &[u8]) {
    let first = Run::new().all(input);
    let again = Run::new().all(input);
    assert!(first == again, "another outcome of the same input:\n{first}\n--- again\n{again}");
    lines(input);
}

struct Run {
    service: Service,
    now: Instant,
    host: Host,
    ledger: Ledger,
    /// The `requestState` that came last.
    state: String,
    /// The bytes of all frames so far.
    sent: usize,
    frames: usize,
    trace: String,
}

impl Run {
    fn new() -> Self {
        Self {
            service: Service::new(components(), &gudgeon::test_pair::start(epoch())),
            now: epoch(),
            host: Host::default(),
            ledger: Ledger::default(),
            state: String::new(),
            sent: 0,
            frames: 0,
            trace: String::new(),
        }
    }

    fn all(mut self, input: &[u8]) -> String {
        for (name, argument) in steps(input) {
            self.perform(name, argument);
        }
        self.settle();
        self.trace
    }

    fn perform(&mut self, name: u8, argument: &[u8]) {
        match name {
            b'>' => {
                let frame = String::from_utf8_lossy(argument).replace("<state>", &self.state);
                let bytes = if frame.contains('\u{fffd}') { argument } else { frame.as_bytes() };
                self.ledger.sent(bytes);
                self.sent += bytes.len();
                self.frames += 1;
                self.handle(Input::Frame(bytes));
            }
            b'T' => {
                self.ledger.sent(b"");
                self.handle(Input::TooLong(TooLong::unread(9)));
            }
            b'+' => self.advance(argument),
            b'~' if argument.starts_with(b"idle") => self.advance(b"3600000"),
            b'~' => self.restart(),
            b'L' => self.handle(Input::Lagging(argument.first() == Some(&b'1'))),
            b'C' => self.handle(Input::CutSubscriptions),
            b'P' => self.handle(Input::PageDone(&String::from_utf8_lossy(argument))),
            _ => self.host.perform(name, argument),
        }
        self.carry();
        self.check_load();
    }

    /// Holds what is kept against what was sent and against the limits.
    fn check_load(&self) {
        let Load { requests, bytes, suspended, suspended_threads, notifications, .. } =
            self.service.load();
        assert!(
            requests + notifications <= self.sent,
            "{requests} requests, {notifications} notifications"
        );
        assert!(bytes <= self.sent + 1_000 * self.frames, "{bytes} bytes of {} sent", self.sent);
        assert!(suspended <= SUSPENDED_LIMIT, "{suspended} suspended");
        assert!(
            suspended_threads <= SUSPENDED_THREADS,
            "{suspended_threads} threads of suspended handlers"
        );
    }

    fn advance(&mut self, argument: &[u8]) {
        let end = self.now + span(argument);
        while let Some(due) = self.service.deadline().filter(|deadline| *deadline <= end) {
            self.now = self.now.max(due);
            self.handle(Input::Tick);
            self.carry();
            assert!(
                self.service.deadline().is_none_or(|deadline| deadline > self.now),
                "a deadline was missed"
            );
        }
        self.now = end;
    }

    /// Another process goes on in the place of this one.
    fn restart(&mut self) {
        self.handle(Input::Closed);
        let fresh = Self::new();
        *self = Self {
            now: self.now,
            state: std::mem::take(&mut self.state),
            trace: std::mem::take(&mut self.trace),
            ..fresh
        };
    }

    /// Ends the input and all that is under way: then nothing is left of it.
    fn settle(&mut self) {
        self.handle(Input::EndOfInput);
        // Subscriptions end with their result.
        self.handle(Input::ShutDown);
        self.carry();
        for _ in 0..16 {
            let had_work = self.host.finish_all();
            self.carry();
            self.advance(b"600000");
            if !had_work {
                break;
            }
        }
        assert_eq!(self.host.running(), 0, "handlers still run");
        self.ledger.settle();
        assert_eq!(self.service.load(), Load::default(), "something is kept");
        self.handle(Input::Closed);
        assert_eq!(self.service.in_flight(), 0);
    }

    /// Passes on what the host has for the service, until it has nothing.
    fn carry(&mut self) {
        for _ in 0..10_000 {
            let Some(next) = self.host.next.pop_front() else { return };
            self.handle(match next {
                HostInput::Handler(run, event) => Input::Handler(run, event),
                HostInput::Host(ticket, reply) => Input::Host(ticket, reply),
                HostInput::Computed(job) => Input::Computed(job.run()),
                HostInput::Components(components, kinds) => Input::Components(components, kinds),
                HostInput::Updated(ref uri) => Input::Updated(uri),
            });
        }
        panic!("the service never comes to rest");
    }

    fn handle(&mut self, input: Input<'_>) {
        self.service.handle(self.now, input);
        while let Some(output) = self.service.poll() {
            match output {
                Output::Send(frame) | Output::Change(frame) => {
                    let text = check_frame(&frame);
                    if let Some((_, state)) = text.split_once(r#""requestState":""#) {
                        state.split('"').next().unwrap_or_default().clone_into(&mut self.state);
                    }
                    self.ledger.received(text);
                    let _ = writeln!(self.trace, "{text}");
                }
                Output::Effect(effect) => {
                    let _ = writeln!(self.trace, "{effect:?}");
                    self.host.take(effect);
                }
                Output::Compute(computation) => self.host.compute(*computation),
            }
        }
    }
}

/// Lines are the same however their bytes are cut, and what was written as a line is read as one.
fn lines(input: &[u8]) {
    let (limit, size) = (usize::from(input.first().copied().unwrap_or(9)), input.len() % 7 + 1);
    let read = |size: usize| {
        let mut decoder = LineDecoder::new(limit);
        let mut lines = Vec::new();
        let mut note = |frame: Frame<'_>| {
            lines.push(match frame {
                Frame::Line(line) => Some(line.to_vec()),
                Frame::TooLong(_) => None,
            });
        };
        for mut chunk in input.chunks(size) {
            while let Some(frame) = decoder.next(&mut chunk) {
                note(frame);
            }
        }
        if let Some(frame) = decoder.finish() {
            note(frame);
        }
        lines
    };
    let whole = read(input.len().max(1));
    assert_eq!(read(size), whole);
    assert_eq!(read(1), whole);
    let mut out = Vec::new();
    encode_line(input, &mut out);
    assert_eq!(out.iter().position(|byte| *byte == b'\n'), Some(out.len() - 1), "one line");
}
