//! Many legacy sessions at once, each with a GET stream on the connection it was opened on.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::thread;

use crate::http::{PATH, Wire, session_headers, status_of};
use crate::{misused, number};

/// The number of threads that open connections, so that the server does not wait for the driver.
const OPENERS: usize = 8;

pub(crate) struct Many {
    at: SocketAddr,
    count: usize,
}

impl Many {
    pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let (mut at, mut count) = (None, None);
        while let Some(word) = words.next() {
            let value = words.next().ok_or_else(|| misused(&format!("{word} wants a value")))?;
            match word.as_str() {
                "--at" => at = Some(number(&word, &value)?),
                "--count" => count = Some(number(&word, &value)?),
                _ => return Err(misused(&format!("unknown: {word} {value}"))),
            }
        }
        let (at, count) = at.zip(count).ok_or_else(|| misused("--at and --count are needed"))?;
        Ok(Self { at, count })
    }

    /// Opens the sessions, reports that, and holds them until standard input ends.
    pub(crate) fn hold(&self) -> Result<String, String> {
        let opened = thread::scope(|scope| {
            let openers: Vec<_> = (0..OPENERS)
                .map(|number| {
                    let share = (self.count + number) / OPENERS;
                    scope.spawn(move || {
                        (0..share).map(|_| open(self.at)).collect::<Result<Vec<_>, String>>()
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
}

fn open(at: SocketAddr) -> Result<Wire, String> {
    let mut wire = Wire::connect(at)?;
    let session = wire.open_session()?.ok_or("the server gives no session ids")?;
    let headers = session_headers(&session);
    let get =
        format!("GET {PATH} HTTP/1.1\r\nHost: {at}\r\nAccept: text/event-stream\r\n{headers}\r\n");
    wire.send(get.as_bytes())?;
    loop {
        if let Some((head, _)) = wire.head() {
            return match status_of(&head)? {
                200 => Ok(wire),
                _ => Err(format!("the GET stream was refused: {head}")),
            };
        }
        wire.fill()?;
    }
}
