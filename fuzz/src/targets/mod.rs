//! One file for each target.

mod client;
mod dialects;
mod endpoint;
mod engine;
mod schema;
mod sealed_state;
mod sse;
mod uri_template;

/// A function under test.
pub struct Target {
    pub name: &'static str,
    pub run: fn(&[u8]),
    /// The bytes that it may hold at a time, for any input.
    pub base_memory: usize,
    /// The bytes that it may hold for each byte of input, beyond those.
    pub memory_per_byte: usize,
    /// Inputs beside those from the transcripts.
    pub seeds: &'static [&'static str],
    /// The transcripts that its inputs begin with, a folder in `tests`.
    pub transcripts: Option<&'static str>,
}

const MIB: usize = 1024 * 1024;

pub const TARGETS: &[Target] = &[
    Target {
        name: "engine",
        run: engine::run,
        base_memory: 8 * MIB,
        memory_per_byte: 400,
        seeds: engine::SEEDS,
        transcripts: Some("transcripts"),
    },
    Target {
        name: "endpoint",
        run: endpoint::run,
        base_memory: 8 * MIB,
        memory_per_byte: 400,
        seeds: endpoint::SEEDS,
        transcripts: Some("transcripts"),
    },
    Target {
        name: "client",
        run: client::run,
        base_memory: 2 * MIB,
        memory_per_byte: 400,
        seeds: client::SEEDS,
        transcripts: Some("client_transcripts"),
    },
    Target {
        name: "sse",
        run: sse::run,
        base_memory: MIB,
        memory_per_byte: 200,
        seeds: sse::SEEDS,
        transcripts: None,
    },
    Target {
        name: "uri_template",
        run: uri_template::run,
        base_memory: 4 * MIB,
        memory_per_byte: 400,
        seeds: uri_template::SEEDS,
        transcripts: None,
    },
    Target {
        name: "schema",
        run: schema::run,
        // Compiled patterns may take 256 MiB (docs/design/limits.md), each in up to four validators.
        base_memory: 1024 * MIB,
        memory_per_byte: 4_000,
        seeds: schema::SEEDS,
        transcripts: None,
    },
    Target {
        name: "sealed_state",
        run: sealed_state::run,
        base_memory: MIB,
        memory_per_byte: 100,
        seeds: sealed_state::SEEDS,
        transcripts: None,
    },
    Target {
        name: "dialects",
        run: dialects::run,
        base_memory: 8 * MIB,
        memory_per_byte: 1_000,
        seeds: dialects::SEEDS,
        transcripts: Some("transcripts"),
    },
];
