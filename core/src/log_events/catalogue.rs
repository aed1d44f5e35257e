//! The table of all log events: name, logger, level and fields of each. docs/logs.md is made of it.

#[cfg(feature = "server")]
use super::fields::FieldValues;

/// The properties of a kind of event.
#[derive(Debug)]
pub struct Declaration {
    /// The stable name, such as `http.refused`.
    pub name: &'static str,
    /// The `tracing` target; with dots it is the name of Python's logger.
    pub target: &'static str,
    pub level: tracing::Level,
    /// `true` if anybody can cause it as often as they like, so that repetitions are summed up.
    pub is_limited: bool,
    /// The fields that it has where their values are known.
    pub fields: &'static [&'static str],
    /// The sentence that documents it.
    pub meaning: &'static str,
}

macro_rules! events {
    ($(
        $(#[doc = $meaning:literal])+
        $kind:ident: $name:literal, $target:literal, $level:ident $(, $limited:ident)?, [$($field:ident),*];
    )*) => {
        /// A kind of event of a running server.
        #[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
        pub enum EventKind {
            $($(#[doc = $meaning])+ $kind,)*
        }

        impl EventKind {
            /// All kinds, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$kind),*];

            /// Returns the properties of this kind.
            pub fn declaration(self) -> &'static Declaration {
                match self {
                    $(Self::$kind => &Declaration {
                        name: $name,
                        target: $target,
                        level: tracing::Level::$level,
                        is_limited: events!(@is_limited $($limited)?),
                        fields: &[$(stringify!($field)),*],
                        meaning: concat!($($meaning),+),
                    },)*
                }
            }

            /// Returns whether the program's subscriber wants such events.
            #[cfg(feature = "server")]
            pub(super) fn is_enabled(self) -> bool {
                match self {
                    $(Self::$kind => tracing::event_enabled!(target: $target, tracing::Level::$level),)*
                }
            }

            /// Gives an event to the program's subscriber.
            #[cfg(feature = "server")]
            pub(super) fn write(self, text: &str, fields: &FieldValues) {
                match self {
                    $(Self::$kind => tracing::event!(
                        target: $target,
                        tracing::Level::$level,
                        event = $name,
                        $($field = fields.$field.as_ref(),)*
                        "{text}"
                    ),)*
                }
            }
        }
    };
    (@is_limited) => { false };
    (@is_limited limited) => { true };
}

events! {
    /// A request was refused over HTTP before it reached a handler.
    HttpRefused: "http.refused", "gudgeon::http", INFO, limited,
        [reason, status, session, principal, remote, left_out];
    /// A request was refused over HTTP because a limit of the server was reached.
    HttpOverloaded: "http.overloaded", "gudgeon::http", WARN, limited,
        [limit, status, session, principal, remote, left_out];
    /// A client opened a session with `initialize` over HTTP.
    SessionOpened: "session.opened", "gudgeon::session", DEBUG, [session, client, principal, remote];
    /// A session that was not in memory was restored from its id.
    SessionRestored: "session.restored", "gudgeon::session", DEBUG, [session, client, principal, remote];
    /// A session ended.
    SessionEnded: "session.ended", "gudgeon::session", DEBUG, [reason, session, client];
    /// A session was ended to make room for another one.
    SessionEvicted: "session.evicted", "gudgeon::session", INFO, limited, [limit, session, client, left_out];
    /// The answer to a question was dropped, because another process has asked it, or this one before a restart.
    AnswerLost: "answer.lost", "gudgeon::session", WARN, limited, [session, client, principal, remote, left_out];
    /// A client opened a stream over HTTP: a GET of a session, or `subscriptions/listen`.
    StreamOpened: "stream.opened", "gudgeon::stream", DEBUG, [session, client, principal, remote];
    /// Such a stream was closed.
    StreamClosed: "stream.closed", "gudgeon::stream", DEBUG, [reason, session, client];
    /// A request was answered with an error because of its content, such as invalid arguments or an unknown name.
    CallRejected: "call.rejected", "gudgeon::call", DEBUG,
        [reason, request_id, tool, prompt, resource, session, client, principal, remote, duration_ms, trace_id, span_id];
    /// A handler failed. The text has the reference that the caller got, and the traceback.
    CallFailed: "call.failed", "gudgeon", ERROR,
        [request_id, tool, prompt, resource, reference, session, client, principal, remote, duration_ms, trace_id, span_id];
    /// A handler took longer than its timeout, or its client did not answer a question in time.
    CallTimedOut: "call.timed_out", "gudgeon::call", INFO,
        [request_id, tool, prompt, resource, session, client, principal, remote, duration_ms, trace_id, span_id];
    /// A client cancelled a request.
    CallCancelled: "call.cancelled", "gudgeon::call", DEBUG,
        [request_id, tool, prompt, resource, session, client, principal, remote, duration_ms, trace_id, span_id];
    /// A handler was stopped because its client left or the server stopped.
    CallCut: "call.cut", "gudgeon::call", DEBUG,
        [reason, tool, prompt, resource, session, client, principal, remote, duration_ms, trace_id, span_id];
    /// The middleware `Logging` saw a request. The text has its params if the middleware is to log them.
    RequestReceived: "request.received", "gudgeon::request", INFO,
        [method, request_id, tool, prompt, resource, session, client, principal, remote, trace_id, span_id];
    /// The middleware `Logging` saw the outcome of a request, `ok` or `error`.
    RequestDone: "request.done", "gudgeon::request", INFO,
        [outcome, method, request_id, tool, prompt, resource, session, client, principal, remote, duration_ms, trace_id, span_id];
    /// The middleware `Timing` measured a request.
    RequestTimed: "request.timed", "gudgeon::request", INFO,
        [method, request_id, tool, prompt, resource, session, client, principal, remote, duration_ms, trace_id, span_id];
    /// The store of a server carries no messages, so that it and the others with this store do not hear of each other.
    /// Written once, when the server starts.
    StoreWithoutMessages: "store.without_messages", "gudgeon::store", WARN, [];
    /// Messages came through the store that can't be opened: they were sealed with a key that this server does not have. Its
    /// clients were told that everything may have changed, at most once in a minute, with all messages of that time.
    StoreUnreadable: "store.unreadable", "gudgeon::store", WARN, [messages];
    /// Something in the server's own code or configuration is wrong.
    ServerProblem: "server.problem", "gudgeon", ERROR, [];
    /// A server listens at an address.
    ServerStarted: "server.started", "gudgeon::server", INFO, [server, url];
    /// A process of `run(url, workers=N)` (Python) ended and is replaced.
    WorkerEnded: "worker.ended", "gudgeon", WARN, [worker, exit_code];
    /// The shutdown of a server began.
    ServerStopping: "server.stopping", "gudgeon::server", INFO, [server, url, in_flight];
    /// A server does not listen any more.
    ServerStopped: "server.stopped", "gudgeon::server", INFO, [server, url];
}
