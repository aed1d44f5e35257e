//! The table of all metrics. docs/metrics.md lists them.

/// The kind of a metric.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub enum MetricKind {
    /// A number that only grows while the process runs.
    Counter,
    /// A number that grows and shrinks.
    Gauge,
    /// Durations, counted by ranges.
    Histogram,
}

/// The properties of a metric that do not change.
#[derive(Debug)]
pub struct Family {
    /// The name in Prometheus.
    pub name: &'static str,
    pub kind: MetricKind,
    pub labels: &'static [&'static str],
    /// The sentence that documents it.
    pub help: &'static str,
    /// The name in OpenTelemetry, and the unit; `None` if another metric has its numbers there.
    pub telemetry: Option<(&'static str, &'static str)>,
}

macro_rules! families {
    ($($(#[doc = $help:literal])+ $constant:ident: $name:literal, $kind:ident, [$($label:literal),*] $(, $telemetry:literal, $unit:literal)?;)*) => {
        $(pub(super) const $constant: &Family = &Family {
            name: $name,
            kind: MetricKind::$kind,
            labels: &[$($label),*],
            help: concat!($($help),+).trim_ascii(),
            telemetry: families!(@telemetry $($telemetry, $unit)?),
        };)*

        impl Family {
            /// All metrics, in the order in which they are written.
            pub const ALL: &[&Self] = &[$($constant),*];
        }
    };
    (@telemetry) => { None };
    (@telemetry $name:literal, $unit:literal) => { Some(($name, $unit)) };
}

families! {
    /// Requests that were answered or cancelled, by their outcome.
    CALLS: "gudgeon_calls_total", Counter, ["method", "name", "outcome", "revision"];
    /// The time from the arrival of a request to its answer.
    CALL_DURATION: "gudgeon_call_duration_seconds", Histogram, ["method", "name", "outcome"],
        "mcp.server.operation.duration", "s";
    /// Requests that were refused before they reached a handler.
    REFUSALS: "gudgeon_refusals_total", Counter, ["reason"], "gudgeon.refusals", "{request}";
    /// Sessions that hold something in memory.
    SESSIONS: "gudgeon_sessions", Gauge, [], "gudgeon.sessions", "{session}";
    /// The maximum number of such sessions: max_sessions.
    SESSIONS_LIMIT: "gudgeon_sessions_limit", Gauge, [], "gudgeon.sessions.limit", "{session}";
    /// Open streams over HTTP: those of sessions, and subscriptions.
    STREAMS: "gudgeon_streams", Gauge, [], "gudgeon.streams", "{stream}";
    /// Requests that are not answered yet.
    IN_FLIGHT: "gudgeon_in_flight", Gauge, [], "gudgeon.in_flight", "{request}";
    /// The maximum number of such requests: max_in_flight.
    IN_FLIGHT_LIMIT: "gudgeon_in_flight_limit", Gauge, [], "gudgeon.in_flight.limit", "{request}";
    /// Handlers that wait for a later request with the answers of their client.
    SUSPENDED: "gudgeon_suspended", Gauge, [], "gudgeon.suspended", "{handler}";
    /// The maximum number of such handlers: suspended_limit.
    SUSPENDED_LIMIT: "gudgeon_suspended_limit", Gauge, [], "gudgeon.suspended.limit", "{handler}";
    /// Connections that the server itself has accepted.
    CONNECTIONS: "gudgeon_connections", Gauge, [], "gudgeon.connections", "{connection}";
    /// The maximum number of such connections.
    CONNECTIONS_LIMIT: "gudgeon_connections_limit", Gauge, [], "gudgeon.connections.limit", "{connection}";
    /// Bytes that clients make the server hold, by their purpose.
    HELD: "gudgeon_held_bytes", Gauge, ["purpose"], "gudgeon.held", "By";
    /// The maximum number of such bytes.
    HELD_LIMIT: "gudgeon_held_limit_bytes", Gauge, ["purpose"], "gudgeon.held.limit", "By";
    /// The time that the store took for an operation.
    STORE: "gudgeon_store_duration_seconds", Histogram, ["operation", "outcome"], "gudgeon.store.duration", "s";
    /// The time since the keys of an issuer of access tokens were fetched.
    KEY_SETS: "gudgeon_key_set_age_seconds", Gauge, ["issuer"], "gudgeon.key_set.age", "s";
    /// The number of processes that serve the address together and whose numbers are added up here.
    WORKERS: "gudgeon_workers", Gauge, [];
    /// 1 for each process that did not answer in time: its counters are those of its last answer, and its gauges are left out.
    WORKERS_MISSING: "gudgeon_workers_missing", Gauge, ["worker"];
}
