//! The tables of each revision: method names, vocabulary and error codes.
//!
//! A method is removed from a revision by deleting its line in that revision's table. No layer above this one compares
//! revisions.

mod classify;
mod client;
mod dialect_0_7;
mod dialect_bare;
mod envelope;
mod fault;
pub mod headers;
mod json_text;
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
pub use client::{ClientEnvelope, Stamp, answer_frame, initialize_params, request_frame, stamped};
pub use components::describes_object;
pub use dialect_0_7::{
    initialize_params as semantic_initialize_params, introduction, is_own as is_semantic,
    lift_error, lift_result, read_initialize as read_semantic_initialize,
};
pub use dialect_bare::{notification as bare_notification, pong};
pub use envelope::{
    Claim, Envelope, Unchecked, claim, missing as missing_envelope, whole as whole_envelope,
};
pub use fault::{Lowered, lift_invalid_arguments, lower as lower_fault, status};
pub use headers::{McpHeaders, check_standard};
pub use json_text::json_text;
pub use lift::request as lift_request;
pub use lower::{error_frame, notification_frame, plain_result, result_frame};
pub use param_headers::{ParamHeader, check_params, inexpressible, mirror};
pub use question::{lower as lower_question, lower_answer};

use crate::protocol::{Dialect, Method, MethodName, Revision};

/// One revision of the protocol, as data.
#[derive(Debug)]
pub struct Wire {
    /// For a dialect: the revision with the most similar vocabulary.
    pub revision: Revision,
    pub dialect: Option<Dialect>,
    /// Method names that differ from the standard; the first name of a method is the one that is sent.
    pub words: &'static [(&'static str, Method)],
    pub client_requests: &'static [Method],
    pub client_notifications: &'static [Method],
    pub server_requests: &'static [Method],
    pub server_notifications: &'static [Method],
    /// The questions that a server can put into an `input_required` result.
    pub input_requests: &'static [Method],
    pub vocabulary: Vocabulary,
    pub codes: Codes,
}

/// The features that a revision supports.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an independent feature of a revision's vocabulary"
)]
pub struct Vocabulary {
    /// Batches: arrays of messages.
    pub batches: bool,
    /// An HTTP stream begins with an event that contains only an id, so that it can be resumed from its start.
    pub primed_streams: bool,
    /// `title` beside `name`, and `_meta` on components.
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
    /// `resultType`, cache hints and the server's name in every result.
    pub stamped_results: bool,
    /// Forms with multiple choice, titled values, and defaults of every type.
    pub rich_forms: bool,
    /// Sampling messages with several content blocks.
    pub sampled_lists: bool,
    /// `id` is omitted from an error without a readable request id, instead of null.
    pub absent_error_id: bool,
}

/// The values that a tool's structured content can have.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum StructuredContent {
    Absent,
    /// Objects; other values are wrapped in an object.
    Object,
    Any,
}

/// The error codes that differ between revisions.
#[derive(Clone, Copy, Debug)]
pub struct Codes {
    pub resource_not_found: i64,
    /// Invalid arguments are reported as a tool error, which the model can correct, instead of a protocol error.
    pub invalid_arguments_are_results: bool,
    /// Error -32021 is defined.
    pub missing_capability: bool,
    /// Handlers must not send codes reserved by the specification.
    pub keeps_reserved: bool,
}

impl Wire {
    /// Returns the tables of a revision.
    pub fn for_revision(revision: Revision) -> &'static Self {
        match revision {
            Revision::V2024_11_05 => &rev_2024_11_05::WIRE,
            Revision::V2025_03_26 => &rev_2025_03_26::WIRE,
            Revision::V2025_06_18 => &rev_2025_06_18::WIRE,
            Revision::V2025_11_25 => &rev_2025_11_25::WIRE,
            Revision::V2026_07_28 => &rev_2026_07_28::WIRE,
        }
    }

    /// Returns the tables of a dialect; `nearest` is the revision negotiated by the session, where the dialect has
    /// several.
    pub fn spelled(nearest: Revision, dialect: Option<Dialect>) -> &'static Self {
        match dialect {
            None => Self::for_revision(nearest),
            Some(Dialect::V0_7) => &dialect_0_7::WIRE,
            Some(Dialect::Bare) => dialect_bare::for_revision(nearest),
        }
    }

    /// Returns the name of the revision or dialect.
    pub fn name(&self) -> &'static str {
        self.dialect.map_or(self.revision.as_str(), Dialect::as_str)
    }

    /// Returns `true` if URL elicitation and tools in sampling are supported; both were added in the same revision.
    pub fn has_pages_and_tools(&self) -> bool {
        self.server_notifications.contains(&Method::ElicitationComplete)
            || self.input_requests.contains(&Method::Elicit)
    }

    /// Returns the method with this name.
    pub fn method(&self, name: &str) -> Option<Method> {
        let own = self.words.iter().find(|(word, _)| *word == name);
        own.map(|(_, method)| *method).or_else(|| Method::parse(name))
    }

    /// Returns the name of a standard method.
    pub fn word(&self, method: Method) -> &'static str {
        let own = self.words.iter().find(|(_, known)| *known == method);
        own.map_or(method.as_str(), |(word, _)| word)
    }

    /// Returns the name of any method.
    pub fn word_of<'a>(&self, method: &'a MethodName) -> &'a str {
        match method {
            MethodName::Standard(method) => self.word(*method),
            MethodName::Vendor(name) => name,
        }
    }
}
