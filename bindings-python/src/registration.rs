//! What Python describes as JSON, made into the core's offers.

use std::{sync::Arc, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use gudgeon::{
    driver::state_keys,
    error::Error,
    protocol::{CacheHint, Implementation, Prompt, Resource, ResourceTemplate, Revision, Tool},
    router::{
        Changes, Handler, List, OfferOptions, Offers, PromptOffer, ResourceOffer, RoundLimits,
        ServerFacts, TemplateOffer, ToolOffer,
    },
};
use serde::{Deserialize, de::DeserializeOwned};

/// What is ours in an offer's JSON, beside what the protocol says.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Options {
    tags: Vec<String>,
    enabled: Option<bool>,
    timeout_ms: Option<u64>,
    concurrency: Option<usize>,
    ttl_ms: u64,
    cache_scope: Option<String>,
    forbids_replay: bool,
    /// How long the server itself keeps what was read.
    keep_ms: Option<u64>,
    /// Not everybody sees it: the judge tells who does.
    guarded: bool,
}

/// A server's own facts.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Facts {
    instructions: Option<String>,
    revisions: Option<Vec<String>>,
    #[serde(default)]
    dialects: Vec<String>,
    page_size: Option<usize>,
    list_ttl_ms: Option<u64>,
    #[serde(default)]
    debug: bool,
    pub(crate) max_message: Option<usize>,
    pub(crate) threads: Option<usize>,
    pub(crate) io_threads: Option<usize>,
    #[serde(flatten)]
    rounds: Rounds,
}

/// What questions that travel in results may cost. Keys are in base64.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Rounds {
    max_request_state: Option<usize>,
    state_ttl_ms: Option<u64>,
    park_limit: Option<usize>,
    park_threads: Option<usize>,
    park_ttl_ms: Option<u64>,
    request_state_keys: Vec<String>,
}

pub(crate) fn facts(text: &[u8]) -> Result<(ServerFacts, Facts), Error> {
    let info: Implementation = parse(text)?;
    let mut facts: Facts = parse(text)?;
    let usual = ServerFacts::new(info);
    let mut server = ServerFacts {
        instructions: facts.instructions.take(),
        dialects: facts.dialects.iter().map(|it| it.parse()).collect::<Result<_, _>>()?,
        page_size: facts.page_size.unwrap_or(usual.page_size).max(1),
        list_ttl: Duration::from_millis(facts.list_ttl_ms.unwrap_or(0)),
        debug: facts.debug,
        request_state_keys: facts.rounds.keys()?,
        rounds: facts.rounds.limits(),
        ..usual
    };
    if let Some(dates) = &facts.revisions {
        server.speak(Revision::named(dates)?)?;
    }
    Ok((server, facts))
}

impl Rounds {
    fn keys(&self) -> Result<Vec<Vec<u8>>, Error> {
        let keys = self.request_state_keys.iter().map(|it| STANDARD.decode(it));
        let keys = keys.collect::<Result<_, _>>().map_err(|it| Error::misuse(it.to_string()))?;
        state_keys(keys)
    }

    fn limits(&self) -> RoundLimits {
        let usual = RoundLimits::default();
        let duration = |given: Option<u64>, usual| given.map_or(usual, Duration::from_millis);
        RoundLimits {
            max_state: self.max_request_state.unwrap_or(usual.max_state),
            state_ttl: duration(self.state_ttl_ms, usual.state_ttl),
            park_limit: self.park_limit.unwrap_or(usual.park_limit),
            park_threads: self.park_threads.unwrap_or(usual.park_threads),
            park_ttl: duration(self.park_ttl_ms, usual.park_ttl),
        }
    }
}

/// Which list Python means.
pub(crate) fn list(name: &str) -> Result<List, Error> {
    Ok(match name {
        "tools" => List::Tools,
        "resources" => List::Resources,
        "templates" => List::Templates,
        "prompts" => List::Prompts,
        _ => return Err(Error::misuse(format!("{name:?} is no kind of offer"))),
    })
}

/// Gives back what known hosts will not take.
pub(crate) fn add(
    list: List,
    to: &mut Offers,
    text: &[u8],
    handler: Handler,
) -> Result<Vec<String>, Error> {
    let options: Options = parse(text)?;
    let enabled = options.enabled.unwrap_or(true);
    let ours = OfferOptions {
        tags: options.tags,
        timeout: options.timeout_ms.map(Duration::from_millis),
        visible: options.guarded.then(|| Arc::new(()) as Handler),
    };
    let keep = options.keep_ms.map(Duration::from_millis);
    let cache = CacheHint {
        ttl_ms: options.ttl_ms,
        private: options.cache_scope.as_deref() == Some("private"),
    };
    match list {
        List::Tools => {
            let mut offer = ToolOffer::new(parse::<Tool>(text)?, handler)?;
            offer.options = ours;
            offer.concurrency = options.concurrency;
            offer.forbids_replay = options.forbids_replay;
            to.tools.add(offer, enabled)
        }
        List::Resources => {
            let mut offer = ResourceOffer::new(parse::<Resource>(text)?, handler)?;
            (offer.options, offer.keep, offer.cache) = (ours, keep, cache);
            to.resources.add(offer, enabled)
        }
        List::Templates => {
            let mut offer = TemplateOffer::new(parse::<ResourceTemplate>(text)?, handler)?;
            (offer.options, offer.keep, offer.cache) = (ours, keep, cache);
            to.templates.add(offer, enabled)
        }
        List::Prompts => {
            let mut offer = PromptOffer::new(parse::<Prompt>(text)?, handler)?;
            offer.options = ours;
            to.prompts.add(offer, enabled)
        }
    }
}

pub(crate) fn changes(text: &[u8]) -> Result<Changes, Error> {
    parse(text)
}

fn parse<T: DeserializeOwned>(text: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(text).map_err(|it| Error::misuse(it.to_string()))
}
