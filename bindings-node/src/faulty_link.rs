//! The faults of a test's connection.

use gudgeon::bindings::faulty_link::{Delivery, Faults, FaultyLink};
use napi_derive::napi;

use crate::error::misuse;

/// The effects of a message, in this order.
#[napi(object)]
#[derive(Debug)]
pub struct NativeDelivery {
    pub restarts_server: bool,
    pub to_server: Vec<String>,
    pub to_client: Vec<String>,
}

/// Drops, repeats or delivers each message between a test's client and its server.
#[napi]
#[derive(Debug)]
pub struct NativeFaultyLink(FaultyLink);

#[napi]
impl NativeFaultyLink {
    #[napi(constructor, catch_unwind)]
    pub fn new(
        seed: i64,
        drop: f64,
        duplicate: f64,
        restart_between_rounds: bool,
    ) -> napi::Result<Self> {
        let faults = Faults { seed, drop, duplicate, restart_between_rounds };
        FaultyLink::new(faults).map(Self).map_err(misuse)
    }

    /// Returns the delivery of a message of the client.
    #[napi(catch_unwind)]
    pub fn sent_by_client(&mut self, message: String) -> NativeDelivery {
        self.0.sent_by_client(&message).into()
    }

    /// Returns the delivery of a message of the server.
    #[napi(catch_unwind)]
    pub fn sent_by_server(&mut self, message: String) -> NativeDelivery {
        self.0.sent_by_server(&message).into()
    }
}

impl From<Delivery> for NativeDelivery {
    fn from(Delivery { restarts_server, to_server, to_client }: Delivery) -> Self {
        Self { restarts_server, to_server, to_client }
    }
}
