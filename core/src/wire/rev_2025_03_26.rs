//! 2025-03-26: tool annotations, audio, completions as a capability, messages in progress.

use super::{Vocabulary, Wire, rev_2024_11_05 as before};
use crate::protocol::Revision;

pub(super) const VOCABULARY: Vocabulary = Vocabulary {
    tool_annotations: true,
    audio: true,
    completions_capability: true,
    progress_messages: true,
    ..before::VOCABULARY
};

pub(super) static WIRE: Wire = Wire {
    revision: Revision::V2025_03_26,
    dialect: None,
    words: &[],
    client_requests: before::CLIENT_REQUESTS,
    client_notifications: before::CLIENT_NOTIFICATIONS,
    server_requests: before::SERVER_REQUESTS,
    server_notifications: before::SERVER_NOTIFICATIONS,
    input_requests: &[],
    vocabulary: VOCABULARY,
    codes: before::CODES,
};
