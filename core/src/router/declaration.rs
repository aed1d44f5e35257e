//! Servers and components as the bindings declare them: JSON of the newest revision, plus options of this library.

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, de::DeserializeOwned};

use super::{
    ComponentOptions, Components, Definition, Handler, List, RegisteredTool, RoundLimits,
    ServerFacts, names,
};
use crate::{
    error::Error,
    protocol::{
        CacheScope, Implementation, Prompt, Resource, ResourceTemplate, Revision, Tool, json,
    },
    schema,
};

/// The upper bound for durations, so that adding one to the current time never overflows.
const CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// Durations are in milliseconds.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Server {
    instructions: Option<String>,
    revisions: Option<Vec<String>>,
    #[serde(default)]
    dialects: Vec<String>,
    page_size: Option<usize>,
    list_ttl_ms: Option<f64>,
    #[serde(default)]
    debug: bool,
    max_request_state: Option<usize>,
    state_ttl_ms: Option<f64>,
    suspended_limit: Option<usize>,
    suspended_threads: Option<usize>,
    suspended_ttl_ms: Option<f64>,
    #[serde(default)]
    scope_implies: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    hide_unauthorized: bool,
    #[serde(default = "yes")]
    convert_arguments: bool,
}

/// Durations are in milliseconds.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "each is a member of the declaration")]
struct Options {
    #[serde(default)]
    tags: Vec<String>,
    #[serde(default = "yes")]
    enabled: bool,
    timeout_ms: Option<f64>,
    concurrency: Option<usize>,
    /// `"forbid"`; other values have no effect.
    replay: Option<String>,
    ttl_ms: Option<f64>,
    cache_scope: Option<CacheScope>,
    #[serde(default)]
    paths: Vec<String>,
    #[serde(default)]
    unchecked_paths: Vec<String>,
    /// `true` if a tool rejects arguments that its input schema does not name.
    #[serde(default)]
    closed: bool,
    /// `true` if the numbers of a tool's handler are doubles, so that larger integers are refused.
    #[serde(default)]
    has_doubles_only: bool,
    /// `false` if a tool refuses arguments that a model quoted by mistake. Default: as its server.
    convert_arguments: Option<bool>,
    /// `true` if a tool's handler validates its arguments itself.
    #[serde(default)]
    validates: bool,
    /// The time that the server caches a read result for, in milliseconds.
    cache_ms: Option<f64>,
    /// `true` if a visibility filter decides who sees the component.
    #[serde(default)]
    guarded: bool,
    #[serde(default)]
    scopes: Vec<String>,
}

impl ServerFacts {
    /// Reads a server declaration. Keys that seal request states are passed separately.
    pub fn declared(declaration: &[u8]) -> Result<Self, Error> {
        let usual = Self::from(parse::<Implementation>("server", declaration)?);
        names::check_server(&usual.info.name)?;
        let server: Server = parse("server", declaration)?;
        let mut facts = Self {
            rounds: server.rounds(),
            instructions: server.instructions,
            dialects: server.dialects.iter().map(|name| name.parse()).collect::<Result<_, _>>()?,
            page_size: server.page_size.unwrap_or(usual.page_size).max(1),
            list_ttl: server.list_ttl_ms.map(duration).unwrap_or_default(),
            debug: server.debug,
            scope_implies: server.scope_implies,
            hide_unauthorized: server.hide_unauthorized,
            convert_arguments: server.convert_arguments,
            own: parse("server", declaration)?,
            ..usual
        };
        facts.own.check()?;
        if let Some(dates) = &server.revisions {
            facts.set_revisions(Revision::named(dates)?)?;
        }
        Ok(facts)
    }
}

impl Server {
    fn rounds(&self) -> RoundLimits {
        let usual = RoundLimits::default();
        RoundLimits {
            max_state: self.max_request_state.unwrap_or(usual.max_state),
            state_ttl: self.state_ttl_ms.map_or(usual.state_ttl, duration),
            suspended_limit: self.suspended_limit.unwrap_or(usual.suspended_limit),
            suspended_threads: self.suspended_threads.unwrap_or(usual.suspended_threads),
            suspended_ttl: self.suspended_ttl_ms.map_or(usual.suspended_ttl, duration),
        }
    }
}

impl Components {
    /// Registers the declared component. Returns warnings about properties that known hosts reject.
    pub fn declare(
        &mut self,
        list: List,
        declaration: &[u8],
        handler: Handler,
    ) -> Result<Vec<String>, Error> {
        let options: Options = parse("component", declaration)?;
        let ours = ComponentOptions {
            tags: options.tags,
            timeout: options.timeout_ms.map(duration),
            is_guarded: options.guarded,
            concurrency: options.concurrency,
            forbids_replay: options.replay.as_deref() == Some("forbid"),
            cache_ttl: options.ttl_ms.map(duration).unwrap_or_default(),
            cache_scope: options.cache_scope,
            paths: options.paths,
            unchecked_paths: options.unchecked_paths,
            keep: options.cache_ms.map(duration).filter(|duration| !duration.is_zero()),
            scopes: options.scopes,
        };
        let definition = match list {
            List::Tools => {
                let mut tool = parse::<Tool>("tool", declaration)?;
                // Before it is closed: the core itself refuses unknown arguments.
                let validated = options.validates.then(|| tool.input_schema.clone());
                if options.closed {
                    tool.input_schema = schema::closed(tool.input_schema);
                }
                let mut component = RegisteredTool::new(tool, handler)?;
                if options.has_doubles_only {
                    component.refuse_beyond_doubles();
                }
                if let Some(schema) = &validated {
                    component.validated_by_handler(schema)?;
                }
                component.converts_arguments =
                    options.convert_arguments.unwrap_or(self.server.convert_arguments);
                component.options = ours;
                return self.tools.add(component, options.enabled);
            }
            List::Resources => {
                Definition::Resource(parse::<Resource>("resource", declaration)?, ours)
            }
            List::Templates => {
                let template = parse::<ResourceTemplate>("resource template", declaration)?;
                Definition::Template(template, ours)
            }
            List::Prompts => Definition::Prompt(parse::<Prompt>("prompt", declaration)?, ours),
        };
        self.register(definition, handler, options.enabled)
    }
}

fn parse<T: DeserializeOwned>(what: &str, declaration: &[u8]) -> Result<T, Error> {
    json::from_bytes(declaration).map_err(|error| {
        Error::misuse(format!("the declaration of this {what} can't be read: {error}"))
    })
}

fn duration(milliseconds: f64) -> Duration {
    let given = Duration::try_from_secs_f64((milliseconds / 1000.0).max(0.0));
    given.map_or(CENTURY, |duration| duration.min(CENTURY))
}

fn yes() -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn components() -> Components {
        Components::new(ServerFacts::declared(br#"{"name":"t","version":""}"#).unwrap())
    }

    fn handler() -> Handler {
        std::sync::Arc::new(())
    }

    #[test]
    fn a_tool_keeps_its_options() {
        let mut components = components();
        let declaration = br#"{"name":"a","inputSchema":{"type":"object"},"tags":["x"],"timeoutMs":1500,"concurrency":2,"replay":"forbid","enabled":false}"#;
        components.declare(List::Tools, declaration, handler()).unwrap();
        assert!(components.tools.get("a").is_none());
        let component = components.tools.find("a").unwrap();
        assert_eq!(component.options.timeout, Some(Duration::from_millis(1500)));
        assert_eq!(
            (component.options.concurrency, &component.options.tags[..]),
            (Some(2), &["x".to_owned()][..])
        );
        assert!(component.options.forbids_replay);
    }

    #[test]
    fn a_closed_tool_lists_a_closed_schema() {
        let mut components = components();
        let declaration =
            br#"{"name":"a","inputSchema":{"type":"object","properties":{}},"closed":true}"#;
        components.declare(List::Tools, declaration, handler()).unwrap();
        assert_eq!(
            components.tools.find("a").unwrap().tool.input_schema.get(),
            r#"{"type":"object","properties":{},"additionalProperties":false}"#
        );
    }

    #[test]
    fn arguments_are_left_to_a_handler_that_validates_them() {
        let mut components = components();
        let declaration = br#"{"name":"a","inputSchema":{"type":"object","properties":{"n":{"type":"integer"}}},"closed":true,"validates":true}"#;
        components.declare(List::Tools, declaration, handler()).unwrap();
        let tool = components.tools.find("a").unwrap();
        assert!(tool.leaves_to_handler(r#"{"n":"x"}"#));
        for other in [r#"{"n":1,"more":1}"#, "[]", "{"] {
            assert!(!tool.leaves_to_handler(other), "{other}");
        }
    }

    #[test]
    fn quoted_arguments_are_decoded_unless_the_server_or_the_tool_says_otherwise() {
        let options = ["", r#","convertArguments":true"#, r#","convertArguments":false"#];
        for (on_server, server) in options.into_iter().enumerate() {
            for (on_tool, tool) in options.into_iter().enumerate() {
                let facts = format!(r#"{{"name":"t","version":""{server}}}"#);
                let mut components =
                    Components::new(ServerFacts::declared(facts.as_bytes()).unwrap());
                let schema = r#"{"type":"object","properties":{"n":{"items":{"type":"integer"}}}}"#;
                let declaration = format!(r#"{{"name":"a","inputSchema":{schema}{tool}}}"#);
                components.declare(List::Tools, declaration.as_bytes(), handler()).unwrap();
                let tool = components.tools.find("a").unwrap();
                let decoded = tool.check_arguments(r#"{"n":[" 3 "]}"#).is_ok();
                assert_eq!(
                    decoded,
                    on_tool == 1 || on_tool == 0 && on_server != 2,
                    "{on_server} {on_tool}"
                );
                assert!(tool.check_arguments(r#"{"n":[3]}"#).is_ok());
            }
        }
    }

    #[test]
    fn what_questions_may_cost_is_the_users_to_say() {
        let declaration =
            br#"{"name":"t","version":"","suspendedLimit":0,"suspendedTtlMs":1500,"stateTtlMs":60000}"#;
        let given = ServerFacts::declared(declaration).unwrap().rounds;
        let usual = RoundLimits::default();
        assert_eq!((given.suspended_limit, given.suspended_threads), (0, usual.suspended_threads));
        assert_eq!(given.suspended_ttl, Duration::from_millis(1500));
        assert_eq!((given.state_ttl, given.max_state), (Duration::from_secs(60), usual.max_state));
    }

    #[test]
    fn no_time_is_longer_than_a_clock_can_say() {
        let declaration = br#"{"name":"t","version":"","stateTtlMs":1e300,"suspendedTtlMs":-1}"#;
        let given = ServerFacts::declared(declaration).unwrap().rounds;
        assert_eq!((given.state_ttl, given.suspended_ttl), (CENTURY, Duration::ZERO));
        let mut components = components();
        let declaration = br#"{"name":"a","uri":"a://b","ttlMs":1e300,"cacheMs":0}"#;
        components.declare(List::Resources, declaration, handler()).unwrap();
        let component = components.resources.find("a://b").unwrap();
        assert_eq!((component.options.cache_ttl, component.options.keep), (CENTURY, None));
    }

    #[test]
    fn a_server_speaks_the_revisions_that_are_named() {
        let declared = |revisions: &str| {
            let text = format!(r#"{{"name":"t","version":"","revisions":{revisions}}}"#);
            ServerFacts::declared(text.as_bytes())
        };
        let facts = declared(r#"["2025-06-18","2026-07-28"]"#).unwrap();
        assert_eq!(facts.revisions, [Revision::V2026_07_28, Revision::V2025_06_18]);
        assert!(declared("[]").is_err());
    }

    #[test]
    fn what_is_declared_twice_or_wrongly_is_refused() {
        let mut components = components();
        let prompt = br#"{"name":"p","arguments":[]}"#;
        components.declare(List::Prompts, prompt, handler()).unwrap();
        assert!(components.declare(List::Prompts, prompt, handler()).is_err());
        let template = br#"{"uriTemplate":"a://{","name":"x"}"#;
        assert!(components.declare(List::Templates, template, handler()).is_err());
        let error = components.declare(List::Tools, b"{}", handler()).unwrap_err();
        assert!(error.message.starts_with("the declaration of this tool can't be read: "));
    }
}
