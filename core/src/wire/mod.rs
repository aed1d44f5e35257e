//! How each revision spells the neutral model. A revision is data: method tables, a vocabulary and error codes.
//!
//! Deleting a method from a revision means deleting its line from that revision's table. Nothing above this layer
//! compares revisions.

mod classify;
mod client;
mod dialect_0_7;
mod dialect_bare;
mod envelope;
mod fault;
pub mod headers;
mod lift;
mod lower;
mod components;
mod param_headers;
mod question;
mod rev_2024_11_05;
mod rev_2025_03_26;
mod rev_2025_06_18;
mod rev_2025_11_25;
mod rev_2026_07_28;

pub use classify::{
    RequestEra, check_notification, check_version, classify, has_envelope, has_sessions, spoken_by,
};
pub use client::{
    Stamp, answer_frame, envelope_members, initialize_params, request_frame, stamped,
};
pub use components::describes_object;
pub use dialect_0_7::{
    initialize_params as semantic_initialize_params, introduction, is_own as is_semantic,
    lift_error, lift_result, read_initialize as read_semantic_initialize,
};
pub use dialect_bare::{notification as bare_notification, pong};
pub use envelope::{
    Claim, Envelope, Unchecked, claim, missing as missing_envelope, whole as whole_envelope,
};
pub use fault::{Lowered, lower as lower_fault, status};
pub use headers::{McpHeaders, check_standard};
pub use lift::request as lift_request;
pub use lower::{error_frame, notification_frame, plain_result, result_frame};
pub use param_headers::{ParamHeader, check_params, mirror, unsayable};
pub use question::{lower as lower_question, lower_answer};

use crate::protocol::{Dialect, Method, MethodName, Revision};

/// One revision of the protocol, as data.
#[derive(Debug)]
pub struct Wire {
    /// With a dialect: the revision whose vocabulary comes nearest.
    pub revision: Revision,
    pub dialect: Option<Dialect>,
    /// Its own names for methods, where they differ; of two for one method the first is said.
    pub words: &'static [(&'static str, Method)],
    pub client_requests: &'static [Method],
    pub client_notifications: &'static [Method],
    pub server_requests: &'static [Method],
    pub server_notifications: &'static [Method],
    /// What a server asks inside an `input_required` result.
    pub input_requests: &'static [Method],
    pub vocabulary: Vocabulary,
    pub codes: Codes,
}

/// What a revision has words for.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an independent feature of a revision's vocabulary"
)]
pub struct Vocabulary {
    /// Arrays of messages.
    pub batches: bool,
    /// A stream over HTTP begins with an event that carries only an id, so that it can be resumed from its start.
    pub primed_streams: bool,
    /// `title` beside `name`, and `_meta` on what is offered.
    pub titles: bool,
    pub icons: bool,
    pub tool_annotations: bool,
    pub structured_content: StructuredContent,
    pub audio: bool,
    pub resource_links: bool,
    /// The `completions` capability.
    pub completions_capability: bool,
    /// `message` in progress notifications.
    pub progress_messages: bool,
    /// `resultType`, cache hints and the server's name on every result.
    pub stamped_results: bool,
    /// Forms with lists of choices, titles beside their values, and defaults of every type.
    pub rich_forms: bool,
    /// Messages to a model that hold several blocks of content.
    pub sampled_lists: bool,
    /// An error without a readable request id leaves `id` out, rather than saying null.
    pub absent_error_id: bool,
}

/// What a tool's structured value may be.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum StructuredContent {
    Absent,
    /// An object; anything else is wrapped in one.
    Object,
    Any,
}

/// How a revision reports what it reports in its own way.
#[derive(Clone, Copy, Debug)]
pub struct Codes {
    pub resource_not_found: i64,
    /// Arguments that fail the schema are a tool's error, which the model can mend, rather than a protocol error.
    pub invalid_arguments_are_results: bool,
    /// -32021 exists.
    pub missing_capability: bool,
    /// Codes that the specification keeps to itself must not be sent.
    pub keeps_reserved: bool,
}

impl Wire {
    /// The tables of a revision.
    pub fn of(revision: Revision) -> &'static Self {
        match revision {
            Revision::V2024_11_05 => &rev_2024_11_05::WIRE,
            Revision::V2025_03_26 => &rev_2025_03_26::WIRE,
            Revision::V2025_06_18 => &rev_2025_06_18::WIRE,
            Revision::V2025_11_25 => &rev_2025_11_25::WIRE,
            Revision::V2026_07_28 => &rev_2026_07_28::WIRE,
        }
    }

    /// The tables of a dialect; `nearest` is the revision that a session agreed on, where the dialect has several.
    pub fn spelled(nearest: Revision, dialect: Option<Dialect>) -> &'static Self {
        match dialect {
            None => Self::of(nearest),
            Some(Dialect::V0_7) => &dialect_0_7::WIRE,
            Some(Dialect::Bare) => dialect_bare::of(nearest),
        }
    }

    /// What is spoken: a revision's date, or a dialect's name.
    pub fn name(&self) -> &'static str {
        self.dialect.map_or(self.revision.as_str(), Dialect::as_str)
    }

    /// Whether a client can be sent to a page, and its model be given tools: these came together.
    pub fn has_pages_and_tools(&self) -> bool {
        self.server_notifications.contains(&Method::ElicitationComplete)
            || self.input_requests.contains(&Method::Elicit)
    }

    /// The method that this name means here.
    pub fn method(&self, name: &str) -> Option<Method> {
        let own = self.words.iter().find(|(word, _)| *word == name);
        own.map(|(_, method)| *method).or_else(|| Method::parse(name))
    }

    /// The name of a method here.
    pub fn word(&self, method: Method) -> &'static str {
        let own = self.words.iter().find(|(_, it)| *it == method);
        own.map_or(method.as_str(), |(word, _)| word)
    }

    /// The name of any method here.
    pub fn word_of<'a>(&self, method: &'a MethodName) -> &'a str {
        match method {
            MethodName::Standard(method) => self.word(*method),
            MethodName::Vendor(name) => name,
        }
    }
}
