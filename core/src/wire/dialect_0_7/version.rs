//! Negotiation of the semantic version.

use std::fmt;

use crate::{
    error::{Fault, FaultKind},
    protocol::{Params, json},
};

const LOWEST: Version = Version([0, 1, 0]);
const HIGHEST: Version = Version([0, 7, 0]);

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Version([u32; 3]);

impl Version {
    /// Parses `0.7.0`; omitted trailing parts are 0.
    fn parse(text: &str) -> Option<Self> {
        let mut numbers = [0; 3];
        let mut parts = text.split('.');
        for number in &mut numbers {
            let Some(part) = parts.next() else { break };
            let is_number = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
            *number = part.parse().ok().filter(|_| is_number)?;
        }
        parts.next().is_none().then_some(Self(numbers))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.0;
        write!(f, "{major}.{minor}.{patch}")
    }
}

/// Returns `true` if this JSON text is a semantic version rather than a date.
pub(super) fn is_semantic(json: &str) -> bool {
    let text: Option<String> = serde_json::from_str(json).ok();
    text.is_some_and(|text| text.starts_with("0.") && Version::parse(&text).is_some())
}

/// Returns `true` if a server's version belongs to this dialect.
pub(super) fn is_spoken(text: &str) -> bool {
    Version::parse(text).is_some_and(|version| (LOWEST..=HIGHEST).contains(&version))
}

/// The range of versions that our client accepts.
pub(super) fn range() -> (String, String) {
    (LOWEST.to_string(), HIGHEST.to_string())
}

/// Returns the highest version that both sides accept.
pub(super) fn agree(params: &Params<'_>) -> Result<String, Fault> {
    let read = |name: &str| match params.get(name) {
        None => Ok(None),
        Some(raw) => {
            let text: Option<String> = serde_json::from_str(raw.get()).ok();
            text.and_then(|text| Version::parse(&text)).map(Some).ok_or_else(|| {
                Fault::invalid_params(format!("params.{name} must be a version such as \"0.7.0\""))
            })
        }
    };
    let exact = read("version")?.or(read("protocolVersion")?);
    let (low, high) = match exact {
        Some(version) => (Some(version), Some(version)),
        None => (read("minVersion")?, read("maxVersion")?),
    };
    let asked = match (low, high) {
        (Some(low), Some(high)) if low == high => low.to_string(),
        (Some(low), Some(high)) => format!("{low} to {high}"),
        (Some(low), None) => format!("{low} or later"),
        (None, high) => format!("up to {}", high.unwrap_or(HIGHEST)),
    };
    let (low, high) = (low.unwrap_or(LOWEST), high.unwrap_or(HIGHEST));
    let best = high.min(HIGHEST);
    if best >= low.max(LOWEST) {
        return Ok(best.to_string());
    }
    let message =
        format!("no version in common: this server takes {LOWEST} to {HIGHEST}, not {asked}");
    let data = serde_json::json!({
        "minVersion": LOWEST.to_string(), "maxVersion": HIGHEST.to_string(), "requested": asked,
    });
    Err(Fault::new(FaultKind::UnsupportedRevision, message).with_data(Some(json::to_raw(&data))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agreed(params: &str) -> Result<String, String> {
        agree(&serde_json::from_str(params).expect("JSON")).map_err(|error| error.message)
    }

    #[test]
    fn the_highest_that_both_take() {
        for (params, version) in [
            ("{}", "0.7.0"),
            (r#"{"version":"0.7.0"}"#, "0.7.0"),
            (r#"{"version":"0.3.0"}"#, "0.3.0"),
            (r#"{"version":"0.6.2"}"#, "0.6.2"),
            (r#"{"protocolVersion":"0.5.0"}"#, "0.5.0"),
            (r#"{"minVersion":"0.2.0","maxVersion":"0.5.0"}"#, "0.5.0"),
            (r#"{"minVersion":"0.2.0","maxVersion":"1.5.0"}"#, "0.7.0"),
            (r#"{"minVersion":"0.0.1","maxVersion":"0.1.0"}"#, "0.1.0"),
            (r#"{"minVersion":"0.4.0"}"#, "0.7.0"),
            (r#"{"maxVersion":"0.4"}"#, "0.4.0"),
        ] {
            assert_eq!(agreed(params).as_deref(), Ok(version), "{params}");
        }
    }

    #[test]
    fn none_in_common_names_the_range() {
        for params in [
            r#"{"version":"0.8.0"}"#,
            r#"{"version":"1.0.0"}"#,
            r#"{"version":"0.0.9"}"#,
            r#"{"minVersion":"0.7.1"}"#,
            r#"{"minVersion":"0.5.0","maxVersion":"0.4.0"}"#,
        ] {
            let problem = agreed(params).unwrap_err();
            assert!(problem.contains("0.1.0 to 0.7.0"), "{params}: {problem}");
        }
        for params in [r#"{"version":7}"#, r#"{"minVersion":"x"}"#, r#"{"version":"0.7.0.1"}"#] {
            assert!(agreed(params).unwrap_err().contains("must be a version"), "{params}");
        }
    }

    #[test]
    fn dates_are_no_semantic_versions() {
        for (json, expected) in [
            (r#""0.7.0""#, true),
            (r#""0.9""#, true),
            (r#""2024-11-05""#, false),
            (r#""2.0""#, false),
            ("7", false),
        ] {
            assert_eq!(is_semantic(json), expected, "{json}");
        }
    }
}
