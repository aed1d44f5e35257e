//! A server process and the lines on its standard streams.

use std::time::Duration;

use gudgeon::{
    framing::{Frame, LineDecoder},
    transport::{Command, Process},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    sync::mpsc::{self, UnboundedReceiver},
    time::{Instant, timeout_at},
};

use super::Message;
use crate::failure::Failure;

/// A longer line is reported as such and not read further.
const MAX_LINE: usize = 64 * 1024 * 1024;
/// The time for a write; a server that does not read blocks it.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// A running server. It is killed when this is dropped.
#[derive(Debug)]
pub struct ProcessWire {
    process: Process,
    input: Option<Input>,
    lines: UnboundedReceiver<Message>,
}

/// The standard input of the server.
struct Input(Box<dyn AsyncWrite + Send + Unpin>);

impl std::fmt::Debug for Input {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Input")
    }
}

impl ProcessWire {
    pub fn start(command: &Command) -> Result<Self, Failure> {
        let (link, mut process) = command.start()?;
        process.forget_input();
        let (mut output, input) = link.into_halves();
        let (sender, lines) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            let mut decoder = LineDecoder::new(MAX_LINE);
            let mut buffer = vec![0; 64 * 1024];
            while let Ok(read @ 1..) = output.read(&mut buffer).await {
                let mut chunk = &buffer[..read];
                while let Some(frame) = decoder.next(&mut chunk) {
                    if sender.send(message(&frame)).is_err() {
                        return;
                    }
                }
            }
            if let Some(frame) = decoder.finish() {
                let _ = sender.send(message(&frame));
            }
        });
        Ok(Self { process, input: Some(Input(input)), lines })
    }

    /// Writes a line. Errors if the server does not read any more.
    pub async fn send(&mut self, text: &str) -> Result<(), String> {
        let Some(Input(input)) = &mut self.input else { return Err("stdin is closed".into()) };
        let write = async {
            input.write_all(text.as_bytes()).await?;
            input.write_all(b"\n").await?;
            input.flush().await
        };
        match tokio::time::timeout(WRITE_TIMEOUT, write).await {
            Ok(written) => written.map_err(|error| error.to_string()),
            Err(_) => Err("the server does not read its stdin".into()),
        }
    }

    /// Returns the next message until a time: `Ok(None)` after it, and `Err` once the server closed its output.
    pub async fn next(&mut self, until: Instant) -> Result<Option<Message>, ()> {
        match timeout_at(until, self.lines.recv()).await {
            Ok(Some(message)) => Ok(Some(message)),
            Ok(None) => Err(()),
            Err(_) => Ok(None),
        }
    }

    /// Closes the standard input of the server; returns whether it exited within the limit, and what it still wrote.
    pub async fn close(mut self, limit: Duration) -> (bool, Vec<Message>) {
        self.input = None;
        let exited = self.process.exits_within(limit).await;
        let mut rest = Vec::new();
        let until = Instant::now() + Duration::from_millis(100);
        while let Ok(Some(message)) = self.next(until).await {
            rest.push(message);
        }
        self.process.kill().await;
        (exited, rest)
    }

    /// Ends the server at once.
    pub async fn kill(mut self) {
        self.process.kill().await;
    }

    /// Returns the last lines of its standard error.
    pub fn stderr(&self) -> String {
        self.process.stderr()
    }
}

fn message(frame: &Frame<'_>) -> Message {
    match frame {
        Frame::Line(line) => Message::new(String::from_utf8_lossy(line).into_owned()),
        Frame::TooLong(_) => Message::new(format!("(a line of more than {MAX_LINE} bytes)")),
    }
}
