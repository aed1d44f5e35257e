//! Stands in for the background process on systems without Unix sockets, where no connection is kept.

#[path = "values.rs"]
mod values;

use std::time::Duration;

use serde_json::value::RawValue;

pub use self::values::{CallParams, ConnectionState, Outcome, QuestionShown, ToolReply};
use crate::{
    connection::ConnectionArguments,
    failure::{Failure, FailureKind},
    interaction::Interaction,
    target::Target,
};

/// No connection can be saved.
pub enum Saved {}

/// No call can be kept.
pub enum Keeper {}

#[expect(dead_code, reason = "the process that has these limits does not start")]
pub struct Limits {
    pub idle: Duration,
    pub question_time: Duration,
    pub questions: usize,
}

impl Saved {
    pub fn new(
        _: &Target,
        _: Option<&str>,
        _: &ConnectionArguments,
        _: Vec<String>,
    ) -> Result<Self, Failure> {
        Err(absent())
    }
}

impl Keeper {
    pub fn for_call(
        _: &Target,
        _: &ConnectionArguments,
        _: &Interaction,
        is_detached: bool,
    ) -> Result<Option<Self>, Failure> {
        if is_detached { Err(absent()) } else { Ok(None) }
    }
}

pub fn is_connection(_: &str) -> bool {
    false
}

pub fn check_name(_: &str) -> Result<(), Failure> {
    Err(absent())
}

pub fn failure_in(_: &RawValue) -> Option<Failure> {
    None
}

#[expect(clippy::unused_async, reason = "as where there is a background process")]
pub async fn run(_: Limits) -> Result<(), Failure> {
    Err(absent())
}

fn absent() -> Failure {
    let message = "named connections and kept questions need Unix sockets, which this system lacks";
    Failure::new(FailureKind::Unsupported, message)
}

#[expect(clippy::unused_async, reason = "as where there is a background process")]
pub mod client {
    use gudgeon::{client::ClientBuilder, protocol::Raw};

    use super::{
        CallParams, ConnectionState, Failure, Keeper, Outcome, QuestionShown, Saved, absent,
    };
    use crate::notices::Notices;

    pub fn open(_: &str) -> Result<ClientBuilder, Failure> {
        Err(absent())
    }

    pub async fn connect(_: &str, saved: Saved) -> Result<ConnectionState, Failure> {
        match saved {}
    }

    pub async fn disconnect(_: &str) -> Result<(), Failure> {
        Err(absent())
    }

    pub async fn connections() -> Result<Vec<ConnectionState>, Failure> {
        Err(absent())
    }

    pub async fn call(keeper: Keeper, _: CallParams, _: &Notices) -> Result<Outcome, Failure> {
        match keeper {}
    }

    pub async fn answer(_: &str, _: Raw, _: &Notices) -> Result<Outcome, Failure> {
        Err(absent())
    }

    pub async fn question(_: &str) -> Result<QuestionShown, Failure> {
        Err(absent())
    }

    pub async fn questions() -> Result<Vec<QuestionShown>, Failure> {
        Err(absent())
    }
}
