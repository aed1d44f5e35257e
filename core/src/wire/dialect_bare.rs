//! Dialect "bare": 2024-11-05 with notification names without their prefix.

use super::{Vocabulary, Wire, rev_2024_11_05, rev_2025_03_26, rev_2025_06_18, rev_2025_11_25};
use crate::protocol::{Dialect, Method, Method::*, Raw, Revision, json};

const WORDS: &[(&str, Method)] = &[
    ("initialized", Initialized),
    ("progress", Progress),
    ("cancelled", Cancelled),
    ("resources/updated", ResourceUpdated),
    ("resources/list_changed", ResourceListChanged),
    ("tools/list_changed", ToolListChanged),
    ("prompts/list_changed", PromptListChanged),
    ("roots/list_changed", RootsListChanged),
    ("logging/message", LogMessage),
];

static AS_2024_11_05: Wire = bare(&rev_2024_11_05::WIRE);
static AS_2025_03_26: Wire = bare(&rev_2025_03_26::WIRE);
static AS_2025_06_18: Wire = bare(&rev_2025_06_18::WIRE);
static AS_2025_11_25: Wire = bare(&rev_2025_11_25::WIRE);

/// The dialect may be combined with any handshake revision, since the first notification reveals it only after the
/// handshake.
pub(super) fn for_revision(agreed: Revision) -> &'static Wire {
    match agreed {
        Revision::V2024_11_05 => &AS_2024_11_05,
        Revision::V2025_03_26 => &AS_2025_03_26,
        Revision::V2025_06_18 => &AS_2025_06_18,
        Revision::V2025_11_25 | Revision::V2026_07_28 => &AS_2025_11_25,
    }
}

/// Returns the notification with this name.
pub fn notification(name: &str) -> Option<Method> {
    WORDS.iter().find(|(word, _)| *word == name).map(|(_, method)| *method)
}

/// The result of `ping`.
pub fn pong(wire: &Wire) -> Raw {
    let pong = match wire.dialect {
        Some(Dialect::Bare) => r#"{"status":"ok"}"#,
        _ => "{}",
    };
    json::raw(pong.into())
}

const fn bare(wire: &Wire) -> Wire {
    Wire {
        revision: wire.revision,
        dialect: Some(Dialect::Bare),
        words: WORDS,
        client_requests: wire.client_requests,
        client_notifications: wire.client_notifications,
        server_requests: wire.server_requests,
        server_notifications: wire.server_notifications,
        input_requests: wire.input_requests,
        vocabulary: Vocabulary { batches: true, ..wire.vocabulary },
        codes: wire.codes,
    }
}
