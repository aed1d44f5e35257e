//! Configured hosts and origins: what an entry matches, and which entries are refused.

use super::{Cors, GuardConfig, Host, Origin, TrustedProxies, cut_path};
use crate::error::{Error, option_name};

/// An entry of `allowed_hosts`.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum HostPattern {
    /// `*`: every host.
    Any,
    /// `*.example.com`: every host below this one.
    Below(Host),
    Exactly(Host),
}

/// An entry of `allowed_origins` or `cors`.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum OriginPattern {
    /// `*`: every origin but `null`.
    Any,
    /// `https://*.example.com`: every origin of this scheme and port below this host.
    Below(String, Host),
    /// In its normal form; `null` as well.
    Exactly(String),
}

impl HostPattern {
    /// Reads an entry, or returns what is wrong with it and how to fix it.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text == "*" {
            return Ok(Self::Any);
        }
        let alone = text.split_once("://").map_or(text, |(_, rest)| rest);
        let alone = alone.split(['/', '?', '#']).next().unwrap_or_default();
        let (pattern, is_below) = match alone.strip_prefix("*.") {
            Some(rest) => (rest, true),
            None => (alone, false),
        };
        let host = Host::parse(pattern).filter(|host| !host.name.contains('*'));
        match host {
            None => Err(match text.parse::<core::net::Ipv6Addr>() {
                Ok(_) => {
                    format!("{text:?} is an IPv6 address without brackets; write \"[{text}]\"")
                }
                Err(_) => format!(
                    "{text:?} matches no host; write a host with or without a port, such as \"example.com\" or \
                     \"example.com:8443\", \"*.example.com\" for all hosts below it, or \"*\" for all hosts"
                ),
            }),
            Some(_) if alone != text => {
                Err(format!("{text:?} is more than a host; write {alone:?}"))
            }
            Some(host) if is_below => Ok(Self::Below(host.without_default_port())),
            Some(host) => Ok(Self::Exactly(host.without_default_port())),
        }
    }

    #[cfg(feature = "auth")]
    pub(super) fn is_any(&self) -> bool {
        *self == Self::Any
    }

    pub(super) fn matches(&self, host: &Host) -> bool {
        match self {
            Self::Any => true,
            Self::Below(parent) => is_below(host, parent),
            Self::Exactly(own) => own == host,
        }
    }
}

impl OriginPattern {
    /// Reads an entry, or returns what is wrong with it and how to fix it.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        // People write origins with a slash at the end, or whole URLs.
        let origin = cut_path(text.trim());
        match origin {
            "*" => return Ok(Self::Any),
            "null" => return Ok(Self::Exactly("null".to_owned())),
            _ => (),
        }
        let Some((scheme, host)) = origin.split_once("://") else {
            let host = HostPattern::parse(origin).is_ok();
            return Err(match host {
                true => format!("{text:?} has no scheme; write \"https://{origin}\""),
                false => no_origin(text),
            });
        };
        let (pattern, is_below) = match host.strip_prefix("*.") {
            Some(rest) => (rest, true),
            None => (host, false),
        };
        let parsed = Origin::parse(&format!("{scheme}://{pattern}"));
        match parsed.filter(|origin| !origin.host.name.contains('*')) {
            None => Err(no_origin(text)),
            Some(origin) if is_below => Ok(Self::Below(origin.scheme, origin.host)),
            Some(origin) => Ok(Self::Exactly(origin.to_string())),
        }
    }

    /// `normal` is the normal form of a request's `Origin`, which is `origin` where it can be read.
    pub(super) fn matches(&self, normal: &str, origin: Option<&Origin>) -> bool {
        match self {
            Self::Any => origin.is_some(),
            Self::Below(scheme, parent) => origin
                .is_some_and(|origin| origin.scheme == *scheme && is_below(&origin.host, parent)),
            Self::Exactly(own) => own == normal,
        }
    }
}

impl GuardConfig {
    /// Errors if an entry can match no request, or is not what its option takes; the message names the option and the fix.
    pub fn check(&self) -> Result<(), Error> {
        let wrong = |option: &str, problem: String| {
            Err(Error::misuse(format!("{}: {problem}", option_name(option))))
        };
        for text in &self.allowed_hosts {
            if let Err(problem) = HostPattern::parse(text) {
                return wrong("allowed_hosts", problem);
            }
        }
        let listed = match &self.cors {
            Cors::Origins(origins) => &origins[..],
            Cors::Off | Cors::Any => &[],
        };
        let origins = self.allowed_origins.iter().map(|origin| ("allowed_origins", origin));
        for (option, text) in origins.chain(listed.iter().map(|origin| ("cors", origin))) {
            if let Err(problem) = OriginPattern::parse(text) {
                return wrong(option, problem);
            }
        }
        if let Err(problem) = TrustedProxies::parse(&self.trusted_proxies) {
            return wrong("trusted_proxies", problem);
        }
        match &self.public_url {
            Some(url) if Origin::parse(cut_path(url)).is_none() => wrong(
                "public_url",
                format!("{url:?} is not a URL; write one such as \"https://example.com/mcp\""),
            ),
            _ => Ok(()),
        }
    }
}

fn no_origin(text: &str) -> String {
    format!(
        "{text:?} matches no origin; write one such as \"https://example.com\", \"https://*.example.com\" for all hosts below \
         it, or \"*\" for all origins"
    )
}

fn is_below(host: &Host, parent: &Host) -> bool {
    let above = host.name.strip_suffix(&*parent.name).and_then(|rest| rest.strip_suffix('.'));
    host.port == parent.port && above.is_some_and(|name| !name.is_empty())
}
