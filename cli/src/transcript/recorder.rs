//! Recordings of the messages that pass.

use std::{
    fs::File,
    future::Future,
    io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _},
    path::{Path, PathBuf},
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::{Instant, SystemTime},
};

use serde_json::value::RawValue;
use tokio::sync::mpsc;

use super::{Header, Line, Side, first_line};
use crate::{
    failure::{Failure, FailureKind},
    files::write,
    frames::{Connection, MAX_WAITING, Upstream},
    output,
    target::Target,
};

/// The maximum size of a header, in bytes.
const MAX_HEADER: u64 = 64 << 10;

/// A transcript that is being written. Each line is written at once, so that the file is complete when the process is
/// killed.
pub struct Recorder {
    path: PathBuf,
    started: Instant,
    /// `None` once a write has failed.
    file: Mutex<Option<File>>,
    connections: AtomicU32,
}

impl Recorder {
    /// Opens a file and writes the header. A recording is added to a transcript that exists, because hosts start their
    /// servers often. Errors if the file can't be written, or is something else.
    pub fn create(path: &Path, target: &Target) -> Result<Arc<Self>, Failure> {
        let failed = |why: String| {
            Failure::new(FailureKind::File, format!("{} can't be written: {why}", path.display()))
        };
        let opened = write::appended(path).and_then(|file| Ok((ends(&file)?, file)));
        let (ends, mut file) = opened.map_err(|error| failed(error.to_string()))?;
        let mut line = first_line(SystemTime::now(), Some(target));
        if let Some((first, last)) = ends {
            if serde_json::from_slice::<Header>(&first).is_err() {
                let why = "the file exists, and is not a transcript".to_owned();
                return Err(failed(why).with_hint("give another file; nothing was changed"));
            }
            // The last line of a process that was killed may be incomplete.
            if last != b'\n' {
                line.insert(0, '\n');
            }
        }
        file.write_all(line.as_bytes()).map_err(|error| failed(error.to_string()))?;
        Ok(Arc::new(Self {
            path: path.to_owned(),
            started: Instant::now(),
            file: Mutex::new(Some(file)),
            connections: AtomicU32::new(0),
        }))
    }

    /// Writes a message.
    fn write(&self, connection: u32, from: Side, frame: &[u8]) {
        let message = serde_json::from_slice::<&RawValue>(frame).ok();
        let text = message.is_none().then(|| String::from_utf8_lossy(frame).into_owned());
        let time = (self.started.elapsed().as_secs_f64() * 1e6).round() / 1e6;
        let line = Line { time, from, connection, message, text };
        let Ok(mut line) = serde_json::to_vec(&line) else { return };
        line.push(b'\n');
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(open) = file.as_mut() else { return };
        if let Err(error) = open.write_all(&line) {
            let path = self.path.display();
            output::note(format_args!("error: {path} can't be written any more: {error}"));
            // The session goes on without.
            *file = None;
        }
    }
}

/// A server whose messages are recorded.
pub struct Recorded<U> {
    pub server: U,
    pub recorder: Arc<Recorder>,
}

impl<U: Upstream> Upstream for Recorded<U> {
    fn open(&self) -> Pin<Box<dyn Future<Output = Result<Connection, Failure>> + Send + '_>> {
        Box::pin(async {
            let opened = self.server.open().await?;
            Ok(record(Arc::clone(&self.recorder), opened))
        })
    }
}

/// Returns the first line of a file, of which a header is a part at least, and its last byte. `None` if it is empty.
fn ends(mut file: &File) -> io::Result<Option<(Vec<u8>, u8)>> {
    let mut first = Vec::new();
    BufReader::new(file.take(MAX_HEADER)).read_until(b'\n', &mut first)?;
    if first.is_empty() {
        return Ok(None);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(Some((first, last[0])))
}

fn record(recorder: Arc<Recorder>, opened: Connection) -> Connection {
    let number = recorder.connections.fetch_add(1, Ordering::Relaxed) + 1;
    let Connection { to_server, mut from_server, ended } = opened;
    let (sender, mut from_client) = mpsc::unbounded_channel::<Vec<u8>>();
    let (to_client, receiver) = mpsc::channel(MAX_WAITING);
    let other = Arc::clone(&recorder);
    tokio::spawn(async move {
        while let Some(frame) = from_client.recv().await {
            other.write(number, Side::Client, &frame);
            // A server that is gone is noticed by its output.
            let _ = to_server.send(frame);
        }
    });
    tokio::spawn(async move {
        while let Some(frame) = from_server.recv().await {
            recorder.write(number, Side::Server, &frame);
            if to_client.send(frame).await.is_err() {
                return;
            }
        }
    });
    Connection { to_server: sender, from_server: receiver, ended }
}
