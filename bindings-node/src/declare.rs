//! Declarations in JSON, the newest revision's vocabulary and our own options, made into offers.

use std::{sync::Arc, time::Duration};

use gudgeon::{
    driver::state_keys,
    error::Error,
    framing::DEFAULT_LINE_LIMIT,
    protocol::{CacheHint, Implementation, Prompt, Resource, ResourceTemplate, Revision, Tool},
    router::{
        Handler, List, OfferOptions, Offers, PromptOffer, ResourceOffer, RoundLimits, ServerFacts,
        TemplateOffer, ToolOffer,
    },
};
use serde::{Deserialize, de::DeserializeOwned};

/// What a declaration may say beside what clients see.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Options {
    #[serde(default)]
    tags: Vec<String>,
    #[serde(default = "yes")]
    enabled: bool,
    timeout_ms: Option<f64>,
    concurrency: Option<usize>,
    ttl_ms: Option<f64>,
    cache_scope: Option<String>,
    cache_ms: Option<f64>,
    /// Not everybody sees it: the judge tells who does.
    #[serde(default)]
    guarded: bool,
    replay: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ServerOptions {
    instructions: Option<String>,
    revisions: Option<Vec<String>>,
    #[serde(default)]
    dialects: Vec<String>,
    page_size: Option<usize>,
    list_ttl_ms: Option<f64>,
    max_message: Option<usize>,
    #[serde(default)]
    debug: bool,
    /// Bytes of each.
    #[serde(default)]
    request_state_keys: Vec<Vec<u8>>,
    max_request_state: Option<usize>,
    state_ttl_ms: Option<f64>,
    park_limit: Option<usize>,
    park_ttl_ms: Option<f64>,
}

impl ServerOptions {
    fn rounds(&self) -> RoundLimits {
        let usual = RoundLimits::default();
        let time = |given: Option<f64>, usual| given.and_then(duration).unwrap_or(usual);
        RoundLimits {
            max_state: self.max_request_state.unwrap_or(usual.max_state),
            state_ttl: time(self.state_ttl_ms, usual.state_ttl),
            park_limit: self.park_limit.unwrap_or(usual.park_limit),
            park_ttl: time(self.park_ttl_ms, usual.park_ttl),
            ..usual
        }
    }
}

/// Which list JavaScript means.
pub(crate) fn list(kind: &str) -> Result<List, Error> {
    match kind {
        "tool" => Ok(List::Tools),
        "resource" => Ok(List::Resources),
        "resourceTemplate" => Ok(List::Templates),
        "prompt" => Ok(List::Prompts),
        _ => Err(Error::misuse(format!("{kind:?} is nothing that a server lists"))),
    }
}

/// A server's own declaration, and its limit for one message in bytes.
pub(crate) fn server(declaration: &str) -> Result<(ServerFacts, usize), Error> {
    let info: Implementation = parse("server", declaration)?;
    let options: ServerOptions = parse("server", declaration)?;
    let usual = ServerFacts::new(info);
    let mut facts = ServerFacts {
        rounds: options.rounds(),
        instructions: options.instructions,
        dialects: options.dialects.iter().map(|it| it.parse()).collect::<Result<_, _>>()?,
        page_size: options.page_size.unwrap_or(usual.page_size).max(1),
        list_ttl: options.list_ttl_ms.and_then(duration).unwrap_or_default(),
        debug: options.debug,
        request_state_keys: state_keys(options.request_state_keys)?,
        ..usual
    };
    if let Some(dates) = &options.revisions {
        facts.speak(Revision::named(dates)?)?;
    }
    Ok((facts, options.max_message.unwrap_or(DEFAULT_LINE_LIMIT)))
}

/// Adds what is declared. Gives back what known hosts will not take of it.
pub(crate) fn add(
    offers: &mut Offers,
    list: List,
    declaration: &str,
    handler: Handler,
) -> Result<Vec<String>, Error> {
    let options: Options = parse("offer", declaration)?;
    let ours = OfferOptions {
        tags: options.tags,
        timeout: options.timeout_ms.and_then(duration),
        visible: options.guarded.then(|| Arc::new(()) as Handler),
    };
    let keep = options.cache_ms.and_then(duration).filter(|it| !it.is_zero());
    let cache = CacheHint {
        ttl_ms: options
            .ttl_ms
            .and_then(duration)
            .map_or(0, |it| u64::try_from(it.as_millis()).unwrap_or(u64::MAX)),
        private: options.cache_scope.as_deref() == Some("private"),
    };
    match list {
        List::Tools => {
            let mut offer = ToolOffer::new(parse::<Tool>("tool", declaration)?, handler)?;
            offer.options = ours;
            offer.concurrency = options.concurrency;
            offer.forbids_replay = options.replay.as_deref() == Some("forbid");
            offers.tools.add(offer, options.enabled)
        }
        List::Resources => {
            let resource = parse::<Resource>("resource", declaration)?;
            let mut offer = ResourceOffer::new(resource, handler)?;
            (offer.options, offer.keep, offer.cache) = (ours, keep, cache);
            offers.resources.add(offer, options.enabled)
        }
        List::Templates => {
            let template = parse::<ResourceTemplate>("resource template", declaration)?;
            let mut offer = TemplateOffer::new(template, handler)?;
            (offer.options, offer.keep, offer.cache) = (ours, keep, cache);
            offers.templates.add(offer, options.enabled)
        }
        List::Prompts => {
            let mut offer = PromptOffer::new(parse::<Prompt>("prompt", declaration)?, handler)?;
            offer.options = ours;
            offers.prompts.add(offer, options.enabled)
        }
    }
}

fn parse<T: DeserializeOwned>(what: &str, json: &str) -> Result<T, Error> {
    serde_json::from_str(json)
        .map_err(|it| Error::misuse(format!("the declaration of this {what} can't be read: {it}")))
}

fn duration(milliseconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(milliseconds / 1000.0).ok()
}

fn yes() -> bool {
    true
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn offers() -> Offers {
        Offers::new(server(r#"{"name":"t"}"#).unwrap().0)
    }

    #[test]
    fn a_tool_keeps_its_options() {
        let mut offers = offers();
        let declaration = r#"{"name":"a","inputSchema":{"type":"object"},"tags":["x"],"timeoutMs":1500,"concurrency":2,"replay":"forbid","enabled":false}"#;
        add(&mut offers, List::Tools, declaration, Arc::new(())).unwrap();
        assert!(offers.tools.get("a").is_none());
        let offer = offers.tools.find("a").unwrap();
        assert_eq!(offer.options.timeout, Some(Duration::from_millis(1500)));
        assert_eq!((offer.concurrency, &offer.options.tags[..]), (Some(2), &["x".to_owned()][..]));
        assert!(offer.forbids_replay);
    }

    #[test]
    fn what_questions_may_cost_is_the_users_to_say() {
        let declaration = r#"{"name":"t","parkLimit":0,"parkTtlMs":1500,"stateTtlMs":60000,"requestStateKeys":[[1,255],[2]]}"#;
        let (facts, _) = server(declaration).unwrap();
        let (given, usual) = (facts.rounds, RoundLimits::default());
        assert_eq!((given.park_limit, given.park_threads), (0, usual.park_threads));
        assert_eq!(given.park_ttl, Duration::from_millis(1500));
        assert_eq!((given.state_ttl, given.max_state), (Duration::from_mins(1), usual.max_state));
        assert_eq!(facts.request_state_keys, [vec![1, 255], vec![2]]);
    }

    #[test]
    fn a_server_speaks_the_revisions_that_are_named() {
        let (facts, limit) =
            server(r#"{"name":"t","revisions":["2025-06-18","2026-07-28"],"maxMessage":99}"#)
                .unwrap();
        assert_eq!(facts.revisions, [Revision::V2026_07_28, Revision::V2025_06_18]);
        assert_eq!(limit, 99);
        assert!(server(r#"{"name":"t","revisions":[]}"#).is_err());
    }

    #[test]
    fn what_is_declared_twice_or_wrongly_is_refused() {
        let mut offers = offers();
        let prompt = r#"{"name":"p","arguments":[]}"#;
        add(&mut offers, List::Prompts, prompt, Arc::new(())).unwrap();
        assert!(add(&mut offers, List::Prompts, prompt, Arc::new(())).is_err());
        assert!(
            add(
                &mut offers,
                List::Templates,
                r#"{"uriTemplate":"a://{","name":"x"}"#,
                Arc::new(())
            )
            .is_err()
        );
        assert!(add(&mut offers, List::Tools, "{}", Arc::new(())).is_err());
    }
}
