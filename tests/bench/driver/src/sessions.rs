//! Many streams at once, each on its own connection: the GET stream of a legacy session, or a modern subscription.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::thread;

use crate::http::{HttpConnection, PATH, post, session_headers, status_of};
use crate::{META, misused, number};

/// The number of threads that open connections, so that the server does not wait for the driver.
const OPENERS: usize = 8;

pub(crate) struct Many {
    at: SocketAddr,
    count: usize,
    is_modern: bool,
}

impl Many {
    pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let (mut at, mut count, mut is_modern) = (None, None, false);
        while let Some(word) = words.next() {
            let value = words.next().ok_or_else(|| misused(&format!("{word} wants a value")))?;
            match word.as_str() {
                "--at" => at = Some(number(&word, &value)?),
                "--era" if value == "legacy" || value == "modern" => is_modern = value == "modern",
                "--count" => count = Some(number(&word, &value)?),
                _ => return Err(misused(&format!("unknown: {word} {value}"))),
            }
        }
        let (at, count) = at.zip(count).ok_or_else(|| misused("--at and --count are needed"))?;
        Ok(Self { at, count, is_modern })
    }

    /// Opens the streams, reports that, and holds them until standard input ends.
    pub(crate) fn hold(&self) -> Result<String, String> {
        let opened = thread::scope(|scope| {
            let openers: Vec<_> = (0..OPENERS)
                .map(|number| {
                    let share = (self.count + number) / OPENERS;
                    scope.spawn(move || {
                        (0..share).map(|_| self.open()).collect::<Result<Vec<_>, String>>()
                    })
                })
                .collect();
            openers
                .into_iter()
                .map(|opener| opener.join().map_err(|_| "an opener panicked".to_owned())?)
                .collect::<Result<Vec<_>, String>>()
        })?;
        let mut stdout = std::io::stdout();
        writeln!(stdout, "open")
            .and_then(|()| stdout.flush())
            .map_err(|error| error.to_string())?;
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        Ok(format!("{{\"held\":{}}}", opened.iter().map(Vec::len).sum::<usize>()))
    }

    fn open(&self) -> Result<HttpConnection, String> {
        let at = self.at;
        let mut wire = HttpConnection::connect(at)?;
        let request = if self.is_modern {
            listen(at)
        } else {
            let session = wire.open_session()?.ok_or("the server gives no session ids")?;
            let headers = session_headers(&session);
            format!(
                "GET {PATH} HTTP/1.1\r\nHost: {at}\r\nAccept: text/event-stream\r\n{headers}\r\n"
            )
            .into_bytes()
        };
        wire.send(&request)?;
        loop {
            if let Some((head, _)) = wire.head() {
                return match status_of(&head)? {
                    200 => Ok(wire),
                    _ => Err(format!("the stream was refused: {head}")),
                };
            }
            wire.fill()?;
        }
    }
}

fn listen(at: SocketAddr) -> Vec<u8> {
    let headers = "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: subscriptions/listen\r\n";
    let body = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"subscriptions/listen\",\"params\":{{{META},\"notifications\":{{\"toolsListChanged\":true}}}}}}"
    );
    post(at, headers, &body)
}
