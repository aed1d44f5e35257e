//! The runtime of HTTP/2 connections, as hyper uses it: tasks of streams, and time.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use hyper::rt::{Executor, Sleep, Timer};

use super::{Http2Connection, Http2Stream};
use crate::{clock, driver::boxed};

tokio::task_local! {
    static STREAM: Arc<Http2Stream>;
}

/// Returns the stream whose task this is.
pub(super) fn current_stream() -> Arc<Http2Stream> {
    STREAM.get()
}

/// Starts the tasks of a connection's streams. A task whose watch expires is dropped, which resets its stream.
#[derive(Clone)]
pub(super) struct Streams(pub(super) Arc<Http2Connection>);

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for Streams {
    fn execute(&self, future: F) {
        let stream = Arc::new(Http2Stream::begin(Arc::clone(&self.0)));
        let watch = Arc::clone(&stream.watch);
        tokio::spawn(boxed(STREAM.scope(stream, async move {
            tokio::select! {
                biased;
                () = future => (),
                () = watch.expired() => (),
            }
        })));
    }
}

/// tokio's timers.
pub(super) struct TokioTimer;

struct TokioSleep(Pin<Box<tokio::time::Sleep>>);

impl Timer for TokioTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        Box::pin(TokioSleep(Box::pin(tokio::time::sleep(duration))))
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        Box::pin(TokioSleep(Box::pin(tokio::time::sleep_until(deadline.into()))))
    }

    fn now(&self) -> Instant {
        clock::now()
    }
}

impl Sleep for TokioSleep {}

impl Future for TokioSleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.0.as_mut().poll(context)
    }
}
