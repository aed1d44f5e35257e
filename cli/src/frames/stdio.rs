//! The host's side over this program's own standard streams.

use std::{
    io::{self, Read as _, Write as _},
    process::ExitCode,
    thread,
};

use gudgeon::framing::{Frame, LineDecoder, TooLong, encode_line};
use tokio::sync::mpsc;

use super::{Connection, Ended, MAX_FRAME, MAX_WAITING, process::warn_too_long};

const CHUNK: usize = 64 * 1024;

/// A host that started this program as its server.
struct Host {
    input: mpsc::UnboundedReceiver<Vec<u8>>,
    output: mpsc::Sender<Vec<u8>>,
    /// Yields `None` once all messages are written.
    written: mpsc::Receiver<()>,
}

/// Passes messages on between the host and a server until one of them is gone, or a signal comes. Returns the exit code
/// of the server.
pub async fn serve(connection: Connection) -> ExitCode {
    let Connection { to_server, mut from_server, ended } = connection;
    let Host { input: mut from_host, output: to_host, mut written } = Host::open();
    let mut to_server = Some(to_server);
    let mut stopping = std::pin::pin!(stop_signal());
    let mut stopped = None;
    loop {
        tokio::select! {
            frame = from_host.recv(), if to_server.is_some() => match (frame, &to_server) {
                (Some(frame), Some(sender)) => {
                    // A server that is gone is noticed by its output.
                    let _ = sender.send(frame);
                }
                // The server's input ends with the host's.
                _ => to_server = None,
            },
            frame = from_server.recv() => {
                let Some(frame) = frame else { break };
                if to_host.send(frame).await.is_err() {
                    break;
                }
            }
            code = &mut stopping, if stopped.is_none() => {
                stopped = Some(code);
                to_server = None;
            }
        }
    }
    drop((to_server, to_host));
    let Ended { code, .. } = ended.await.unwrap_or_default();
    written.recv().await;
    ExitCode::from(code.or(stopped).unwrap_or_default())
}

impl Host {
    /// Starts the threads that read and write. They are not tasks, because a read of standard input can't be cancelled.
    fn open() -> Self {
        let (sender, input) = mpsc::unbounded_channel();
        let (output, frames) = mpsc::channel(MAX_WAITING);
        let (writing, written) = mpsc::channel(1);
        thread::spawn(move || read(&sender));
        thread::spawn(move || {
            write(frames);
            drop(writing);
        });
        Self { input, output, written }
    }
}

fn read(frames: &mpsc::UnboundedSender<Vec<u8>>) {
    let mut decoder = LineDecoder::new(MAX_FRAME);
    let mut buffer = vec![0; CHUNK];
    let mut input = io::stdin().lock();
    loop {
        let read = match input.read(&mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Ok(0) | Err(_) => break,
            Ok(read) => read,
        };
        let mut chunk = &buffer[..read];
        while let Some(frame) = decoder.next(&mut chunk) {
            match frame {
                Frame::Line(line) if frames.send(line.to_vec()).is_err() => return,
                Frame::Line(_) => (),
                Frame::TooLong(TooLong { limit, .. }) => warn_too_long("the host", limit),
            }
        }
    }
    if let Some(Frame::Line(line)) = decoder.finish() {
        let _ = frames.send(line.to_vec());
    }
}

fn write(mut frames: mpsc::Receiver<Vec<u8>>) {
    let mut output = io::stdout().lock();
    let mut line = Vec::new();
    while let Some(frame) = frames.blocking_recv() {
        line.clear();
        encode_line(&frame, &mut line);
        line.shrink_to(CHUNK);
        if output.write_all(&line).and_then(|()| output.flush()).is_err() {
            // The host is gone.
            return;
        }
    }
}

/// Waits for Ctrl-C or SIGTERM; returns the exit code that belongs to it.
pub async fn stop_signal() -> u8 {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};

        if let Ok(mut terminated) = signal(SignalKind::terminate()) {
            return tokio::select! {
                _ = tokio::signal::ctrl_c() => 130,
                _ = terminated.recv() => 143,
            };
        }
    }
    let _ = tokio::signal::ctrl_c().await;
    130
}
