//! The connection for operations.

use std::{
    sync::{Arc, PoisonError},
    time::Instant,
};

use redis::{AsyncConnectionConfig, RedisError, aio::MultiplexedConnection};
use tokio::{sync::Mutex, time::timeout};

use super::{Place, commands, reason};
use crate::{
    clock,
    store::{StoreOperation, StoreReply},
    stores::backoff::Backoff,
};

/// A connection that all operations share, and that is made again after it was lost.
pub(super) struct Connection {
    place: Arc<Place>,
    state: Mutex<State>,
    health: std::sync::Mutex<Health>,
}

#[derive(Default)]
struct State {
    current: Option<MultiplexedConnection>,
    /// Counts the connections.
    number: u64,
    backoff: Backoff,
    /// The time before which nobody connects, and the reason.
    away: Option<(Instant, String)>,
}

#[derive(Clone, Copy, Default, Eq, PartialEq)]
enum Health {
    #[default]
    Unknown,
    Connected,
    Away,
}

impl Connection {
    pub(super) fn new(place: Arc<Place>) -> Self {
        Self { place, state: Mutex::default(), health: std::sync::Mutex::default() }
    }

    pub(super) async fn run(&self, operation: StoreOperation) -> StoreReply {
        let deadline = self.place.deadline;
        let mut used = None;
        let done = timeout(deadline, async {
            let (mut connection, number) = self.get().await?;
            used = Some(number);
            commands::run(&mut connection, operation).await.map_err(|error| {
                let is_lost = error.is_unrecoverable_error() || error.is_io_error();
                (reason(&error), is_lost)
            })
        })
        .await;
        let (reason, is_lost) = match done {
            Ok(Ok(reply)) => {
                self.is_now(Health::Connected, "");
                return reply;
            }
            Ok(Err(failed)) => failed,
            Err(_) => (format!("no reply within {deadline:?}"), true),
        };
        if is_lost {
            self.lost(used, &reason).await;
        }
        self.place.failed(&reason)
    }

    /// Returns the connection and its number. Errors with the reason why there is none; soon after a failed attempt at once.
    async fn get(&self) -> Result<(MultiplexedConnection, u64), (String, bool)> {
        let mut state = self.state.lock().await;
        if let Some(connection) = &state.current {
            return Ok((connection.clone(), state.number));
        }
        if let Some((end, reason)) = &state.away
            && clock::now() < *end
        {
            return Err((reason.clone(), false));
        }
        // Shorter than an operation, which can say then that there is no connection.
        let limit = self.place.deadline * 3 / 5;
        let config =
            AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
        let connect = self.place.client.get_multiplexed_async_connection_with_config(&config);
        let failed = match timeout(limit, connect).await {
            Ok(Ok(connection)) => {
                state.number += 1;
                state.current = Some(connection.clone());
                state.backoff = Backoff::default();
                state.away = None;
                return Ok((connection, state.number));
            }
            Ok(Err(error)) => connecting_failed(&error),
            Err(_) => format!("no connection within {limit:?}"),
        };
        let end = clock::now() + state.backoff.next();
        state.away = Some((end, failed.clone()));
        drop(state);
        self.is_now(Health::Away, &failed);
        Err((failed, false))
    }

    /// Gives a connection up, unless there is a newer one.
    async fn lost(&self, number: Option<u64>, reason: &str) {
        let mut state = self.state.lock().await;
        if number == Some(state.number) && state.current.take().is_some() {
            drop(state);
            self.is_now(Health::Away, reason);
        }
    }

    /// Logs that the server is away, or here again, once.
    fn is_now(&self, health: Health, reason: &str) {
        let mut current = self.health.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *current, health);
        drop(current);
        let name = &self.place.name;
        match (before, health) {
            (Health::Away, Health::Connected) => {
                tracing::info!("the store at {name} is here again");
            }
            (Health::Unknown | Health::Connected, Health::Away) => {
                tracing::error!(
                    "the store at {name} is away, and requests that need it fail until it is back: {reason}"
                );
            }
            _ => {}
        }
    }
}

fn connecting_failed(error: &RedisError) -> String {
    format!("no connection: {}", reason(error))
}
