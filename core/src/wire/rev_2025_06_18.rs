//! 2025-06-18: structured output, elicitation, resource links, titles; batches are gone.

use super::{StructuredContent, Vocabulary, Wire, rev_2024_11_05, rev_2025_03_26 as before};
use crate::protocol::{Method, Method::*, Revision};

const SERVER_REQUESTS: &[Method] = &[Ping, CreateMessage, ListRoots, Elicit];

pub(super) const VOCABULARY: Vocabulary = Vocabulary {
    batches: false,
    titles: true,
    structured_content: StructuredContent::Object,
    resource_links: true,
    ..before::VOCABULARY
};

pub(super) static WIRE: Wire = Wire {
    revision: Revision::V2025_06_18,
    dialect: None,
    words: &[],
    client_requests: rev_2024_11_05::CLIENT_REQUESTS,
    client_notifications: rev_2024_11_05::CLIENT_NOTIFICATIONS,
    server_requests: SERVER_REQUESTS,
    server_notifications: rev_2024_11_05::SERVER_NOTIFICATIONS,
    input_requests: &[],
    vocabulary: VOCABULARY,
    codes: rev_2024_11_05::CODES,
};
