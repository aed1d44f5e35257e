//! A listener on this machine to which the browser is redirected after the user signed in.

use std::{
    collections::VecDeque,
    io,
    net::Ipv4Addr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::oneshot,
    task::{AbortHandle, JoinSet},
};

use crate::{
    auth::{Secret, is_equal, page},
    clock,
    driver::boxed,
};

/// The path of the redirect URL.
pub(super) const PATH: &str = "/callback";
/// The maximum size of the head of a request, in bytes.
const MAX_HEAD: usize = 16 * 1024;
const READ_TIME: Duration = Duration::from_secs(10);
/// The maximum number of connections whose request is read at the same time. Browsers open some that they don't use. A new one
/// ends the oldest, so that nobody can keep the browser out.
const MAX_READING: usize = 32;
/// The time after which the browser gets a page although the sign-in goes on.
const PAGE_TIME: Duration = Duration::from_secs(30);
/// The time limit for a port to become free, and the time between two attempts.
const PORT_TIME: Duration = Duration::from_secs(3);
const PORT_PAUSE: Duration = Duration::from_millis(50);
/// The last sentence of a page after which the browser is not needed.
const RETURN: &str = "You can close this window and return to the program.";

/// A listener. Dropping it closes it.
#[derive(Debug)]
pub(super) struct Listener {
    port: u16,
    shared: Arc<Shared>,
    /// Accepts connections until it is dropped.
    _tasks: JoinSet<()>,
}

#[derive(Debug, Default)]
struct Shared {
    expected: Mutex<Option<(Secret, oneshot::Sender<String>)>>,
    /// The outcome that the browser's page shows.
    page: Mutex<Option<oneshot::Receiver<Result<(), String>>>>,
    ended: Mutex<Option<oneshot::Sender<Result<(), String>>>>,
}

impl Listener {
    /// Listens at a port of 127.0.0.1: `port` unless it is 0, or else `preferred` if it is free, or else any.
    pub(super) async fn bind(port: u16, preferred: Option<u16>) -> io::Result<Self> {
        let bind = |port| TcpListener::bind((Ipv4Addr::LOCALHOST, port));
        let listener = match (port, preferred) {
            (0, Some(preferred)) => match bind(preferred).await {
                Ok(listener) => listener,
                Err(_) => bind(0).await?,
            },
            (0, None) => bind(0).await?,
            (port, _) => bind_soon(port).await?,
        };
        let port = listener.local_addr()?.port();
        let (ended, page) = oneshot::channel();
        let shared = Arc::new(Shared {
            expected: Mutex::default(),
            page: Mutex::new(Some(page)),
            ended: Mutex::new(Some(ended)),
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(boxed(accept(listener, Arc::clone(&shared))));
        Ok(Self { port, shared, _tasks: tasks })
    }

    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}{PATH}", self.port)
    }

    /// Returns the URL of the request with this `state`. Others are answered with an error page.
    pub(super) fn redirected(&self, state: Secret) -> oneshot::Receiver<String> {
        let (sender, receiver) = oneshot::channel();
        *lock(&self.shared.expected) = Some((state, sender));
        receiver
    }

    /// Shows the outcome in the browser, and closes the listener.
    pub(super) fn end(self, outcome: Result<(), String>) {
        if let Some(ended) = lock(&self.shared.ended).take() {
            let _ = ended.send(outcome);
        }
        // The page is written before the listener is dropped.
        let Self { _tasks: mut tasks, .. } = self;
        tokio::spawn(boxed(async move {
            tokio::time::sleep(Duration::from_secs(2)).await;
            tasks.abort_all();
        }));
    }
}

/// Waits for a port that is in use: the listener of the sign-in before this one may still show its page.
async fn bind_soon(port: u16) -> io::Result<TcpListener> {
    let end = clock::now() + PORT_TIME;
    loop {
        match TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && clock::now() < end => {
                tokio::time::sleep(PORT_PAUSE).await;
            }
            bound => return bound,
        }
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    // The connections whose request is read, oldest first.
    let mut reading: VecDeque<(AbortHandle, Arc<AtomicBool>)> = VecDeque::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Too many open files, for example.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        while connections.try_join_next().is_some() {}
        reading.retain(|(task, is_read)| !task.is_finished() && !is_read.load(Ordering::Relaxed));
        if reading.len() == MAX_READING
            && let Some((oldest, _)) = reading.pop_front()
        {
            oldest.abort();
        }
        let is_read = Arc::new(AtomicBool::new(false));
        let served = serve(stream, Arc::clone(&shared), Arc::clone(&is_read));
        reading.push_back((connections.spawn(boxed(served)), is_read));
    }
}

/// Serves a connection; `is_read` becomes true once its request was read.
async fn serve(mut stream: TcpStream, shared: Arc<Shared>, is_read: Arc<AtomicBool>) {
    let target = tokio::time::timeout(READ_TIME, read_target(&mut stream)).await;
    is_read.store(true, Ordering::Relaxed);
    let Ok(Some(target)) = target else { return };
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    if path != PATH {
        return write(&mut stream, "404 Not Found", "Not found", "There is nothing here.").await;
    }
    // The value has no character that is percent-encoded.
    let state = query.split('&').find_map(|field| field.strip_prefix("state=")).unwrap_or_default();
    let found = {
        let mut expected = lock(&shared.expected);
        let is_ours = expected
            .as_ref()
            .is_some_and(|(secret, _)| is_equal(secret.expose().as_bytes(), state.as_bytes()));
        if is_ours { expected.take() } else { None }
    };
    let Some((_, found)) = found else {
        let text = "This page does not belong to a sign-in that is in progress.";
        return write(&mut stream, "400 Bad Request", "Not signed in", text).await;
    };
    let page = lock(&shared.page).take();
    let _ = found.send(target);
    let outcome = match page {
        Some(page) => tokio::time::timeout(PAGE_TIME, page).await.ok().and_then(Result::ok),
        None => None,
    };
    match outcome {
        Some(Ok(())) => write(&mut stream, "200 OK", "You are signed in", RETURN).await,
        Some(Err(problem)) => {
            let text = format!("{}\n{RETURN}", sentence(&problem));
            write(&mut stream, "400 Bad Request", "The sign-in failed", &text).await;
        }
        None => {
            let text = "Return to the program to see whether you are signed in.";
            write(&mut stream, "200 OK", "Almost done", text).await;
        }
    }
}

/// Reads the head of a request. Returns the target of a GET.
async fn read_target(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    let mut chunk = [0; 2048];
    while !head.windows(4).any(|window| window == b"\r\n\r\n") {
        let read = stream.read(&mut chunk).await.ok().filter(|count| *count > 0)?;
        head.extend_from_slice(&chunk[..read]);
        if head.len() > MAX_HEAD {
            return None;
        }
    }
    let line = head.split(|byte| *byte == b'\r').next()?;
    let mut words = std::str::from_utf8(line).ok()?.split(' ');
    match (words.next()?, words.next()?) {
        ("GET", target) => Some(target.to_owned()),
        _ => Some("/".to_owned()),
    }
}

/// Writes a response with a page. The lines of the text become paragraphs.
async fn write(stream: &mut TcpStream, status: &str, title: &str, text: &str) {
    let body = page::html(title, &format!("<p>{}", page::escape(text).replace('\n', "<p>")));
    let (length, policy) = (body.len(), page::POLICY);
    // The URL of the page contains the authorization code.
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {length}\r\n\
         cache-control: no-store\r\nreferrer-policy: no-referrer\r\nx-content-type-options: nosniff\r\n\
         content-security-policy: {policy}\r\nconnection: close\r\n\r\n"
    );
    // The browser may be gone.
    let _ = stream.write_all(format!("{head}{body}").as_bytes()).await;
    let _ = stream.shutdown().await;
}

/// Returns the text of an error as a sentence.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", letters.as_str().trim_end_matches('.'))
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn get(port: u16, request: &str) -> String {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
        stream.write_all(format!("{request}\r\nhost: x\r\n\r\n").as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn only_the_redirect_of_this_sign_in_is_taken() {
        let listener = Listener::bind(0, None).await.unwrap();
        let port = listener.port;
        // A connection that sends nothing holds up no other.
        let _silent = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
        let redirected = listener.redirected("s3cret".into());
        for (request, status) in [
            ("GET /favicon.ico HTTP/1.1", "404"),
            ("GET / HTTP/1.1", "404"),
            ("POST /callback?state=s3cret&code=c HTTP/1.1", "404"),
            ("GET /callback?code=c HTTP/1.1", "400"),
            ("GET /callback?state=other&code=c HTTP/1.1", "400"),
            ("GET /callback?error=%3Cscript%3E HTTP/1.1", "400"),
        ] {
            let answer = get(port, request).await;
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
            assert!(!answer.contains("script>"), "{answer}");
        }
        let page =
            tokio::spawn(
                async move { get(port, "GET /callback?code=c&state=s3cret HTTP/1.1").await },
            );
        assert_eq!(redirected.await.unwrap(), "/callback?code=c&state=s3cret");
        listener.end(Err("no <b>access</b>".into()));
        let page = page.await.unwrap();
        assert!(page.contains("The sign-in failed"), "{page}");
        assert!(page.contains("<p>No &lt;b&gt;access&lt;/b&gt;.<p>"), "{page}");
    }

    #[tokio::test]
    async fn connections_that_send_nothing_do_not_keep_the_browser_out() {
        let listener = Listener::bind(0, None).await.unwrap();
        let port = listener.port;
        let mut silent = Vec::new();
        for _ in 0..2 * MAX_READING {
            silent.push(TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap());
        }
        let redirected = listener.redirected("s3cret".into());
        let page =
            tokio::spawn(
                async move { get(port, "GET /callback?code=c&state=s3cret HTTP/1.1").await },
            );
        assert_eq!(redirected.await.unwrap(), "/callback?code=c&state=s3cret");
        // The page is waited for, so newer connections do not end this one.
        for _ in 0..2 * MAX_READING {
            silent.push(TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap());
        }
        listener.end(Ok(()));
        assert!(page.await.unwrap().contains("You are signed in"));
    }

    #[tokio::test(start_paused = true)]
    async fn the_port_of_the_registration_is_preferred() {
        let first = Listener::bind(0, None).await.unwrap();
        let taken = Listener::bind(0, Some(first.port)).await.unwrap();
        assert_ne!(first.port, taken.port);
        assert!(Listener::bind(first.port, None).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn the_next_sign_in_gets_the_same_port() {
        let first = Listener::bind(0, None).await.unwrap();
        let port = first.port;
        first.end(Ok(()));
        assert_eq!(Listener::bind(port, None).await.unwrap().port, port);
    }
}
