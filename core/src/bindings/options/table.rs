//! The table: each option with its values and the functions that take it.

use super::{Kind, Least, Taker};
use crate::error::Language;

/// An option.
#[derive(Debug)]
pub struct Row {
    /// The name in Python; TypeScript writes it in camel case, durations with `Ms` behind it.
    pub name: &'static str,
    pub kind: Kind,
    takers: &'static [Taker],
    /// The one language that has it; `None`: both.
    language: Option<Language>,
    /// Its member in a declaration for the core if that is not its name in TypeScript.
    member: Option<&'static str>,
    /// `true` if only the language reads it.
    is_local: bool,
}

impl Row {
    /// Returns the option with this name.
    pub fn find(language: Language, taker: Taker, name: &str) -> Option<&'static Self> {
        Self::all(language, taker).find(|row| match language {
            Language::TypeScript => row.name_in(language) == name,
            Language::Rust | Language::Python => row.name == name,
        })
    }

    /// Returns the options of a function, in the order in which errors list them.
    pub fn all(language: Language, taker: Taker) -> impl Iterator<Item = &'static Self> {
        ROWS.iter().filter(move |row| {
            row.takers.contains(&taker) && row.language.is_none_or(|own| own == language)
        })
    }

    /// Returns the option's name in this language.
    pub fn name_in(&self, language: Language) -> String {
        language.option(self.name)
    }

    /// Returns the member that holds the option in a declaration; `None` if only the language reads it.
    pub fn member(&self) -> Option<String> {
        if self.is_local || matches!(self.kind, Kind::Checked | Kind::Function(_)) {
            return None;
        }
        Some(self.member.map_or_else(|| self.name_in(Language::TypeScript), str::to_owned))
    }

    /// Returns `true` for a duration for which "no limit" can be given.
    pub fn is_time_limit(&self) -> bool {
        self.kind == TIME_LIMIT
    }

    const fn python(mut self) -> Self {
        self.language = Some(Language::Python);
        self
    }

    const fn typescript(mut self) -> Self {
        self.language = Some(Language::TypeScript);
        self
    }

    const fn member_named(mut self, member: &'static str) -> Self {
        self.member = Some(member);
        self
    }

    const fn local(mut self) -> Self {
        self.is_local = true;
        self
    }
}

const fn row(name: &'static str, kind: Kind, takers: &'static [Taker]) -> Row {
    Row { name, kind, takers, language: None, member: None, is_local: false }
}

const SERVER: &[Taker] = &[Taker::Server];
const TOOL: &[Taker] = &[Taker::Tool];
const RESOURCE: &[Taker] = &[Taker::Resource];
const PROMPT: &[Taker] = &[Taker::Prompt];
const COMPONENT: &[Taker] = &[Taker::Tool, Taker::Resource, Taker::Prompt];
const CLIENT: &[Taker] = &[Taker::Client];
const CALL: &[Taker] = &[Taker::Call, Taker::CallRound, Taker::ReadResource];
const REQUEST: &[Taker] =
    &[Taker::Call, Taker::CallRound, Taker::ReadResource, Taker::Complete, Taker::Request];
const SUBSCRIBE: &[Taker] = &[Taker::Subscribe];
const RETRY: &[Taker] = &[Taker::Retry];
const HTTP: &[Taker] = &[Taker::Http];

const DURATION: Kind = Kind::Duration(Least::Zero);
const DURATION_ABOVE_ZERO: Kind = Kind::Duration(Least::AboveZero);
const TIME_LIMIT: Kind = Kind::Duration(Least::AboveZeroOrNoLimit);

const EXTENSIONS: Kind = Kind::Object(" of objects such as { \"com.example/search\": {} }");
const EXPERIMENTAL: Kind = Kind::Object(" of objects such as { search: {} }");

const ROWS: &[Row] = &[
    row("name", Kind::Checked, &[Taker::Server, Taker::Tool, Taker::Prompt]).python(),
    row("version", Kind::Text, SERVER),
    row("name", Kind::Text, RESOURCE).local(),
    row("title", Kind::Text, &[Taker::Server, Taker::Tool, Taker::Resource, Taker::Prompt]),
    row("description", Kind::Text, COMPONENT),
    row("instructions", Kind::Text, SERVER),
    row("auth", Kind::Checked, SERVER),
    row("scope_implies", Kind::Checked, SERVER),
    row("hide_unauthorized", Kind::Boolean, SERVER),
    row("store", Kind::Store, SERVER).local(),
    row("website_url", Kind::Url("https://example.org", false), SERVER),
    row("icons", Kind::Converted, &[Taker::Server, Taker::Tool, Taker::Resource, Taker::Prompt]),
    row("meta", Kind::Object(""), COMPONENT).member_named("_meta"),
    row("tags", Kind::Texts("[\"work\"]"), COMPONENT),
    row("lifespan", Kind::Checked, SERVER).python(),
    row("lifespan", Kind::Function(" that returns { value, close }"), SERVER).typescript(),
    row("extensions", EXTENSIONS, SERVER),
    row("experimental", EXPERIMENTAL, SERVER),
    row("page_size", Kind::Count(1), SERVER),
    row("debug", Kind::Boolean, SERVER),
    row("dialects", Kind::Texts("\"0.7\" and \"bare\""), SERVER),
    row("revisions", Kind::Texts("\"2025-11-25\""), SERVER),
    row("schema_profile", Kind::Choice(&["portable", "full"]), &[Taker::Server, Taker::Tool])
        .local(),
    row("convert_arguments", Kind::Boolean, &[Taker::Server, Taker::Tool]),
    row("list_ttl", DURATION, SERVER),
    row("max_message", Kind::Bytes(1), SERVER),
    row("threads", Kind::Count(1), SERVER).python(),
    row("io_threads", Kind::Count(1), SERVER),
    row("logger", Kind::Checked, SERVER).typescript(),
    row("http", Kind::Object(" of options such as { maxBody: 65536 }"), SERVER)
        .typescript()
        .local(),
    row("request_state_keys", Kind::Checked, SERVER),
    row("request_state_keys_file", Kind::Checked, SERVER),
    row("max_request_state", Kind::Bytes(1), SERVER),
    row("state_ttl", DURATION_ABOVE_ZERO, SERVER),
    row("suspended_limit", Kind::Count(0), SERVER),
    row("suspended_threads", Kind::Count(0), SERVER).python(),
    row("suspended_ttl", DURATION_ABOVE_ZERO, SERVER),
    row("input", Kind::Checked, TOOL),
    row("input_schema", Kind::Checked, TOOL).typescript(),
    row("output", Kind::Checked, TOOL),
    row("args", Kind::Checked, PROMPT).typescript(),
    row("unknown_arguments", Kind::Choice(&["refuse", "ignore"]), TOOL).local(),
    row("annotations", Kind::Converted, &[Taker::Tool, Taker::Resource]),
    row("concurrency", Kind::Count(1), TOOL),
    row("replay", Kind::Choice(&["allow", "forbid"]), TOOL),
    row("mime_type", Kind::Text, RESOURCE),
    row("size", Kind::Bytes(0), RESOURCE),
    row("ttl", DURATION, RESOURCE),
    row("cache_scope", Kind::Choice(&["public", "private"]), RESOURCE),
    row("cache", DURATION, RESOURCE),
    row("paths", Kind::Texts("[\"path\"]"), RESOURCE),
    row("unchecked_paths", Kind::Texts("[\"path\"]"), RESOURCE),
    row("timeout", DURATION, COMPONENT),
    row("thread", Kind::Boolean, COMPONENT).python().local(),
    row("visible", Kind::Function(" of the principal (None for an unknown caller)"), COMPONENT)
        .python(),
    row("visible", Kind::Function(" of the principal (undefined without one)"), COMPONENT)
        .typescript(),
    row("scopes", Kind::Texts("[\"books:write\"]"), COMPONENT),
    row("enabled", Kind::Boolean, COMPONENT),
    row("expose_errors", Kind::Checked, &[Taker::Server, Taker::Tool]),
    row("revision", Kind::Revisions, CLIENT),
    row("validate", Kind::Boolean, CLIENT),
    row("cache_results", Kind::Boolean, CLIENT),
    row("middleware", Kind::Checked, CLIENT),
    row("retry", Kind::Retry, CLIENT),
    row("timeout", TIME_LIMIT, CLIENT),
    row("max_timeout", TIME_LIMIT, CLIENT),
    row("connect_timeout", TIME_LIMIT, CLIENT),
    row("headers", Kind::Checked, CLIENT),
    row("ca", Kind::Pem, CLIENT),
    row("certificate", Kind::PemPair, CLIENT),
    row("fetch", Kind::Function(" such as fetch"), CLIENT).typescript(),
    row("auth", Kind::Converted, CLIENT),
    row("client_info", Kind::Converted, CLIENT).python(),
    row("client_info", Kind::Object(" such as { name: \"host\", version: \"1.0\" }"), CLIENT)
        .typescript(),
    row("extensions", EXTENSIONS, CLIENT),
    row("experimental", EXPERIMENTAL, CLIENT),
    row("roots", Kind::Checked, CLIENT),
    row("on_elicit", Kind::Function(""), CLIENT),
    row("on_sample", Kind::Function(""), CLIENT),
    row("on_url_done", Kind::Function(""), CLIENT),
    row("on_log", Kind::Function(""), CLIENT),
    row("on_progress", Kind::Function(""), CLIENT),
    row("on_list_changed", Kind::Function(""), CLIENT),
    row("on_reconnect", Kind::Function(""), CLIENT),
    row("logger", Kind::Checked, CLIENT).typescript(),
    row("max_rounds", Kind::Count(1), CLIENT),
    row("allowed_url_schemes", Kind::Texts("\"https\""), CLIENT),
    row("max_message", Kind::Bytes(1), CLIENT),
    row("returns", Kind::Checked, CALL).python(),
    row("output", Kind::Checked, CALL).typescript(),
    row("signal", Kind::Checked, REQUEST).typescript(),
    row("timeout", TIME_LIMIT, REQUEST),
    row("on_progress", Kind::Function(""), CALL),
    row("raise_on_error", Kind::Boolean, CALL).python().member_named("throwOnError"),
    row("throw_on_error", Kind::Boolean, CALL).typescript(),
    row("meta", Kind::Object(""), CALL),
    row("answers", Kind::Checked, &[Taker::CallRound]).typescript(),
    row("state", Kind::Checked, &[Taker::CallRound]).typescript(),
    row("variables", Kind::Checked, &[Taker::ReadResource]).typescript(),
    row("arguments", Kind::Checked, &[Taker::Complete]).typescript(),
    row("uris", Kind::Texts("\"file:///shelf\""), SUBSCRIBE),
    row("tools", Kind::Boolean, SUBSCRIBE),
    row("prompts", Kind::Boolean, SUBSCRIBE),
    row("resources", Kind::Boolean, SUBSCRIBE),
    row("attempts", Kind::Count(1), RETRY),
    row("deadline", TIME_LIMIT, RETRY),
    row("only_safe", Kind::Boolean, RETRY).python(),
    row("public_url", Kind::Url("https://example.org/mcp", true), HTTP),
    row("allowed_origins", Kind::Texts("\"https://example.org\""), HTTP),
    row("allowed_hosts", Kind::Texts("\"example.org\" or \"example.org:8443\""), HTTP),
    row("cors", Kind::Origins, HTTP),
    row("legacy_sse", Kind::Boolean, HTTP),
    row("health", Kind::Text, HTTP),
    row("ready", Kind::Text, HTTP),
    row("metrics", Kind::Text, HTTP),
    row("max_body", Kind::Bytes(1), HTTP),
    row("sessions", Kind::Choice(&["sealed", "none"]), HTTP),
    row("max_sessions", Kind::Count(1), HTTP),
    row("max_streams", Kind::Count(1), HTTP),
    row("max_in_flight", Kind::Count(1), HTTP),
    row("max_headers", Kind::Bytes(1), HTTP),
    row("header_timeout", DURATION_ABOVE_ZERO, HTTP),
    row("idle_timeout", DURATION_ABOVE_ZERO, HTTP),
    row("body_timeout", DURATION_ABOVE_ZERO, HTTP),
    row("session_idle", DURATION_ABOVE_ZERO, HTTP),
    row("keep_alive", DURATION_ABOVE_ZERO, HTTP),
    row("event_store", Kind::Boolean, HTTP),
    row("tls", Kind::KeyPair, HTTP),
    row("trusted_proxies", Kind::Texts("\"10.0.0.0/8\""), HTTP),
    row("proxy_protocol", Kind::Boolean, HTTP),
    row("shutdown_grace", DURATION, HTTP),
    row("drain_delay", DURATION, HTTP),
];
