//! Stands in for the background process on systems without Unix sockets, where no connection is kept.

#[path = "values.rs"]
mod values;

use std::time::Duration;

use gudgeon::client::ClientBuilder;
use serde_json::value::RawValue;

pub use self::values::{CallParams, ConnectionState, Outcome, QuestionShown};
use crate::{
    connection::ConnectionArguments,
    failure::{Failure, FailureKind},
    target::Target,
};

pub struct Definition;

pub struct Keeper;

pub struct Limits {
    pub idle: Duration,
    pub question_time: Duration,
    pub questions: usize,
}

impl Definition {
    pub fn of(_: ClientBuilder) -> Result<Self, Failure> {
        Err(absent())
    }
}

impl Keeper {
    pub fn of(
        _: &Target,
        _: &ConnectionArguments,
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

pub async fn run(_: Limits) -> Result<(), Failure> {
    Err(absent())
}

fn absent() -> Failure {
    let message = "named connections and kept questions need Unix sockets, which this system lacks";
    Failure::new(FailureKind::Unsupported, message)
}

pub mod client {
    use gudgeon::{client, protocol::Raw};

    use super::{
        CallParams, ConnectionState, Definition, Failure, Keeper, Outcome, QuestionShown, absent,
    };

    pub fn open(_: &str) -> Result<client::Target, Failure> {
        Err(absent())
    }

    pub async fn connect(_: &str, _: Definition) -> Result<ConnectionState, Failure> {
        Err(absent())
    }

    pub async fn disconnect(_: &str) -> Result<(), Failure> {
        Err(absent())
    }

    pub async fn connections() -> Result<Vec<ConnectionState>, Failure> {
        Err(absent())
    }

    pub async fn call(_: Keeper, _: CallParams) -> Result<Outcome, Failure> {
        Err(absent())
    }

    pub async fn answer(_: &str, _: Raw) -> Result<Outcome, Failure> {
        Err(absent())
    }

    pub async fn question(_: &str) -> Result<QuestionShown, Failure> {
        Err(absent())
    }

    pub async fn questions() -> Result<Vec<QuestionShown>, Failure> {
        Err(absent())
    }
}
