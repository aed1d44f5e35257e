//! A small HTTP proxy that leads every host to one server, and records what it receives.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, copy, copy_bidirectional, split},
    net::{TcpListener, TcpStream},
};
use tokio_rustls::TlsAcceptor;

/// The answer of the proxy to the head of a request.
#[derive(Clone, Debug)]
pub(crate) enum Behaviour {
    /// Connects to this server, whatever the host.
    Relay(SocketAddr),
    /// Answers and closes the connection.
    Say(&'static str),
    /// Repeats the text until the client disconnects, after the first one.
    Repeat(&'static str, &'static str),
    /// Answers nothing.
    Silent,
}

pub(crate) struct TestProxy {
    pub(crate) port: u16,
    /// The bytes that each connection received: of a tunnel the head only.
    received: Arc<Mutex<Vec<String>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for TestProxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl TestProxy {
    pub(crate) async fn start(behaviour: Behaviour, tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let received = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&received);
        let task = tokio::spawn(async move {
            let mut served = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (behaviour, tls, log) = (behaviour.clone(), tls.clone(), Arc::clone(&log));
                served.spawn(async move {
                    match tls {
                        Some(tls) => serve(tls.accept(stream).await?, behaviour, &log).await,
                        None => serve(stream, behaviour, &log).await,
                    }
                });
            }
        });
        Self { port, received, task }
    }

    pub(crate) fn received(&self) -> Vec<String> {
        self.received.lock().expect("no panic").clone()
    }
}

async fn serve(
    mut client: impl AsyncRead + AsyncWrite + Unpin,
    behaviour: Behaviour,
    log: &Mutex<Vec<String>>,
) -> std::io::Result<()> {
    let mut head = Vec::new();
    // A client that begins a TLS handshake sends no head.
    while !head.ends_with(b"\r\n\r\n") && !head.starts_with(&[0x16]) {
        head.push(client.read_u8().await?);
    }
    let is_tunnel = head.starts_with(b"CONNECT ");
    let number = {
        let mut log = log.lock().expect("no panic");
        log.push(String::from_utf8_lossy(&head).into_owned());
        log.len() - 1
    };
    match behaviour {
        Behaviour::Relay(address) => {
            let mut server = TcpStream::connect(address).await?;
            if is_tunnel {
                client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
                copy_bidirectional(&mut client, &mut server).await?;
                return Ok(());
            }
            // Servers take the absolute form as well, so the bytes are passed on as they are.
            server.write_all(&head).await?;
            let (mut input, mut output) = split(client);
            let (mut from_server, mut to_server) = server.into_split();
            let back = async { copy(&mut from_server, &mut output).await.map(drop) };
            let forth = async {
                let mut piece = vec![0; 64 * 1024];
                loop {
                    let count = input.read(&mut piece).await?;
                    if count == 0 {
                        return to_server.shutdown().await;
                    }
                    let text = String::from_utf8_lossy(&piece[..count]).into_owned();
                    log.lock().expect("no panic")[number].push_str(&text);
                    to_server.write_all(&piece[..count]).await?;
                }
            };
            tokio::try_join!(back, forth)?;
        }
        Behaviour::Say(text) => client.write_all(text.as_bytes()).await?,
        Behaviour::Repeat(first, text) => {
            client.write_all(first.as_bytes()).await?;
            loop {
                client.write_all(text.as_bytes()).await?;
            }
        }
        Behaviour::Silent => while client.read_u8().await.is_ok() {},
    }
    Ok(())
}
