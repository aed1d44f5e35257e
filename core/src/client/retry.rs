//! Repeating requests after an outage: how often, for how long, and which errors mean one.

use std::{
    hash::{BuildHasher as _, Hasher as _, RandomState},
    io,
    time::{Duration, Instant},
};

use crate::{
    clock,
    error::{Error, ErrorKind},
};

/// The delay before the first repetition; each further one is [`GROWTH`] times as long, up to [`MAX_DELAY`].
const FIRST_DELAY: Duration = Duration::from_millis(100);
const GROWTH: u32 = 3;
const MAX_DELAY: Duration = Duration::from_secs(5);

/// The limits for repeating a request that failed because the connection was lost or the server could not be reached.
///
/// ```
/// # use gudgeon::{Client, Server};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), gudgeon::Error> {
/// # let server = Server::new("shelf");
/// let client = Client::builder(&server).options(|options| options.retry.attempts = 10).connect().await?;
/// # client.close().await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub struct Retry {
    /// The number of attempts, the first one included; 1 repeats nothing. Default: 5.
    pub attempts: u32,
    /// The time after which no further attempt begins; `None` means no limit. Default: 30 s.
    pub deadline: Option<Duration>,
    /// If true, only requests are repeated that may be sent twice: reads, lists, and calls of tools that the server
    /// marks as read-only or idempotent. Default: true.
    pub only_safe: bool,
}

impl Default for Retry {
    fn default() -> Self {
        Self { attempts: 5, deadline: Some(Duration::from_secs(30)), only_safe: true }
    }
}

/// The attempts of one request.
#[derive(Debug)]
pub(super) struct Attempts {
    number: u32,
    limits: Retry,
    began: Instant,
}

impl Attempts {
    pub(super) fn new(limits: Retry) -> Self {
        Self { number: 1, limits, began: clock::now() }
    }

    /// Returns the number of the current attempt, from 1.
    pub(super) fn number(&self) -> u32 {
        self.number
    }

    /// Advances to the next attempt and returns the time to wait for it; `None` if the attempts or the time are used
    /// up.
    pub(super) fn next(&mut self) -> Option<Duration> {
        let wait = with_jitter(delay(self.number));
        let is_over =
            self.limits.deadline.is_some_and(|limit| clock::since(self.began) + wait > limit);
        if self.number >= self.limits.attempts || is_over {
            return None;
        }
        self.number += 1;
        Some(wait)
    }
}

/// Changes a delay at random by up to a fifth, so that clients that lost the same server do not return at the same moment.
pub(super) fn with_jitter(delay: Duration) -> Duration {
    jittered(delay, random())
}

/// Returns whether an error means that the server is away for a while, so that the request may succeed later.
pub(super) fn is_outage(error: &Error) -> bool {
    match (error.kind, error.http_status) {
        (ErrorKind::Lost, None) => true,
        // Too many requests, a gateway without its server, a server that starts or stops.
        (ErrorKind::Lost, Some(status)) => matches!(status, 408 | 429 | 502..=504),
        (ErrorKind::Connect, None) => is_unreachable(error),
        _ => false,
    }
}

/// Returns whether a connection failed in a way that waiting may help against, unlike a redirect or a bad certificate.
fn is_unreachable(error: &Error) -> bool {
    let Some(source) = error.source.as_deref() else { return false };
    // The error of a connection to a proxy is that of the proxy's address.
    if let Some(cause) = source.downcast_ref::<Error>() {
        return is_unreachable(cause);
    }
    match source.downcast_ref::<io::Error>() {
        Some(source) => !matches!(
            source.kind(),
            io::ErrorKind::InvalidData
                | io::ErrorKind::InvalidInput
                | io::ErrorKind::PermissionDenied
        ),
        None => source.is::<hyper::Error>(),
    }
}

fn delay(repetitions: u32) -> Duration {
    let growth = GROWTH.saturating_pow(repetitions.saturating_sub(1));
    FIRST_DELAY.saturating_mul(growth).min(MAX_DELAY)
}

fn jittered(delay: Duration, random: u64) -> Duration {
    let share = u32::try_from(random % 401).unwrap_or_default();
    delay * (800 + share) / 1000
}

/// Returns a number that differs between clients; it need not be unpredictable.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_end_with_their_number_or_their_time() {
        for (limits, attempts) in [
            (Retry::default(), 5),
            (Retry { attempts: 1, ..Retry::default() }, 1),
            (Retry { attempts: 0, ..Retry::default() }, 1),
            (Retry { attempts: 40, deadline: Some(Duration::ZERO), only_safe: true }, 1),
            (Retry { attempts: 40, deadline: None, only_safe: true }, 40),
        ] {
            let mut tries = Attempts::new(limits);
            while tries.next().is_some() {}
            assert_eq!(tries.number(), attempts, "{limits:?}");
        }
    }

    #[test]
    fn delays_grow_to_a_maximum_and_differ_by_a_fifth() {
        let delays: Vec<_> = (1..=6).map(|attempt| delay(attempt).as_millis()).collect();
        assert_eq!(delays, [100, 300, 900, 2700, 5000, 5000]);
        assert_eq!(delay(u32::MAX), MAX_DELAY);
        let second = Duration::from_secs(1);
        assert_eq!(jittered(second, 0), Duration::from_millis(800));
        assert_eq!(jittered(second, 400), Duration::from_millis(1200));
        assert!((0..10).any(|_| random() != random()));
    }

    #[test]
    fn an_outage_is_a_loss_a_closed_port_or_a_gateway_without_its_server() {
        let error =
            |kind, status| Error::new(kind, "m").with(|details| details.http_status = status);
        let io = |kind: io::ErrorKind| {
            Error::new(ErrorKind::Connect, "m").caused_by(io::Error::from(kind))
        };
        let through_proxy =
            |cause: Error| Error::new(ErrorKind::Connect, "the proxy").caused_by(cause);
        for (error, expected) in [
            (error(ErrorKind::Lost, None), true),
            (error(ErrorKind::Lost, Some(503)), true),
            (error(ErrorKind::Lost, Some(500)), false),
            (error(ErrorKind::Connect, None), false), // a redirect to another origin
            (error(ErrorKind::Timeout, None), false),
            (error(ErrorKind::Protocol, Some(404)), false),
            (io(io::ErrorKind::ConnectionRefused), true),
            (io(io::ErrorKind::NotFound), true),
            (io(io::ErrorKind::InvalidData), false), // a certificate
            (through_proxy(io(io::ErrorKind::ConnectionRefused)), true),
            (through_proxy(io(io::ErrorKind::InvalidData)), false),
        ] {
            assert_eq!(is_outage(&error), expected, "{error:?}");
        }
    }
}
