//! The `requestState` of an `input_required` result, sealed so that a client can't change it.
//!
//! The state contains the request that it belongs to, its expiry and the [`Journal`] of answers. Time and random bytes are
//! arguments.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::key_ring::{KeyRing, NONCE};
use crate::{
    error::{Fault, option_name},
    protocol::{Inputs, Principal, Request, canonical::canonical, json},
    session::asking::{Answers, Journal},
};

/// Names the kind and layout of the sealed bytes.
const KIND: &str = "gudgeon requestState 1";
/// The maximum size of a state in bytes, without its journal and the names in it.
const BASE_STATE: usize = 2 * 1024;

/// The request that a state belongs to. The state is refused with any other.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Binding {
    #[serde(rename = "m")]
    method: String,
    /// The tool, the prompt or the URI.
    #[serde(rename = "t")]
    target: String,
    /// SHA-256 of the arguments in canonical form.
    #[serde(rename = "a")]
    arguments: [u8; 32],
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    principal: Option<String>,
}

/// The refusal of a state: an error for the client, which is always the same, and a line for the log.
#[derive(Debug)]
pub struct Refused {
    pub fault: Fault,
    pub report: String,
}

/// The state that a client is to send back.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Sealed {
    pub state: String,
    /// `true` if answers or steps of earlier rounds were left out because they are too long.
    pub is_cut: bool,
}

/// The name of a round of questions whose handler waits for the answers.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Hash, PartialEq, Serialize)]
pub struct RoundId(pub [u8; 16]);

impl RoundId {
    /// Returns the number of the process in which the handler waits.
    pub(super) fn process(&self) -> u64 {
        let mut number = [0; 8];
        number.copy_from_slice(&self.0[..8]);
        u64::from_le_bytes(number)
    }
}

/// The content of a state that a client sent back.
#[derive(Clone, Debug)]
pub struct Opened {
    pub answers: Answers,
    pub round: Option<RoundId>,
}

/// The sealed content.
#[derive(Deserialize, Serialize)]
struct Contents {
    /// Seconds since 1970.
    #[serde(rename = "e")]
    expires: u64,
    #[serde(rename = "b")]
    binding: Binding,
    #[serde(rename = "r", default, skip_serializing_if = "Option::is_none")]
    round: Option<RoundId>,
    #[serde(rename = "j", default)]
    journal: Journal,
}

impl Binding {
    /// Returns `None` for requests that are never answered with questions. `principal` is the caller, if identified.
    pub fn from_request(request: &Request, principal: Option<&Principal>) -> Option<Self> {
        let (target, arguments) = match request {
            Request::CallTool { name, arguments, .. } => {
                (name, digest(arguments.as_ref().map_or("{}", |arguments| arguments.get())))
            }
            Request::GetPrompt { name, arguments, .. } => {
                let arguments =
                    arguments.iter().map(|(name, value)| (name.clone(), value.clone().into()));
                (name, digest_of(&Value::Object(arguments.collect())))
            }
            Request::ReadResource { uri, .. } => (uri, digest("{}")),
            _ => return None,
        };
        Some(Self {
            method: request.method().as_str().to_owned(),
            target: target.clone(),
            arguments,
            principal: principal.map(Principal::identity),
        })
    }

    /// Returns the request's method and target, for logs.
    pub fn name(&self) -> String {
        format!("{} {:?}", self.method, self.target)
    }
}

/// Seals a state that is valid until `expires`, in seconds since 1970. If it were longer than `max` bytes, the journal is
/// left out: a handler that no longer waits will ask the questions of earlier rounds again. Returns `None` without a key.
///
/// `nonce` must be random and never be used twice.
pub fn seal(
    keys: &KeyRing,
    expires: u64,
    binding: Binding,
    (round, journal): (Option<RoundId>, Journal),
    nonce: [u8; NONCE],
    max: usize,
) -> Option<Sealed> {
    let sealed = |contents: &Contents| {
        let text = serde_json::to_vec(contents).ok()?;
        Some(URL_SAFE_NO_PAD.encode(keys.seal(KIND, &nonce, &text)?))
    };
    let mut contents = Contents { expires, binding, round, journal };
    let state = sealed(&contents)?;
    if state.len() <= max {
        return Some(Sealed { state, is_cut: false });
    }
    let is_cut = contents.journal.knows();
    contents.journal = Journal::default();
    sealed(&contents).map(|state| Sealed { state, is_cut })
}

/// Opens the client's state. Returns its answers: `inputResponses`, added to those in the state.
///
/// `max` is the limit given to [`seal`]. A much longer text is refused without being decoded.
pub fn open(
    keys: &KeyRing,
    now: u64,
    binding: &Binding,
    inputs: &Inputs,
    max: usize,
) -> Result<Opened, Refused> {
    let (round, journal) = match &inputs.state {
        None => (None, Journal::default()),
        Some(state) if state.len() > longest(binding, max) => {
            return Err(Refused::new(&format!(
                "it is longer than any state (option {})",
                option_name("max_request_state")
            )));
        }
        Some(state) => unseal(keys, now, binding, state).map_err(Refused::new)?,
    };
    Ok(Opened { answers: Answers::new(inputs.responses.as_ref(), journal), round })
}

/// Returns the bytes of the longest possible state of this request. Its names can make it longer than `max`.
fn longest(binding: &Binding, max: usize) -> usize {
    // Escapes make six bytes of one, and base64 four of three.
    let named = binding.target.len() + binding.principal.as_ref().map_or(0, String::len);
    max.max(BASE_STATE + 8 * named)
}

fn unseal(
    keys: &KeyRing,
    now: u64,
    binding: &Binding,
    state: &str,
) -> Result<(Option<RoundId>, Journal), &'static str> {
    let bytes = URL_SAFE_NO_PAD.decode(state).map_err(|_| "it is not valid base64url")?;
    let text = keys.open(KIND, &bytes).ok_or(
        "no key opens it: it was changed, is of a server with another name, or was sealed with a key that is not in the ring",
    )?;
    let contents: Contents =
        json::from_bytes(&text).map_err(|_| "its contents are of another version")?;
    let bound = &contents.binding;
    if contents.expires <= now {
        Err("it has expired")
    } else if bound.principal != binding.principal {
        Err("it belongs to another principal")
    } else if (&bound.method, &bound.target) != (&binding.method, &binding.target) {
        Err("it belongs to another method, tool, prompt or URI")
    } else if bound.arguments != binding.arguments {
        Err("it belongs to a call with other arguments")
    } else {
        Ok((contents.round, contents.journal))
    }
}

impl Refused {
    pub(crate) fn new(reason: &str) -> Self {
        Self {
            fault: Fault::invalid_params("Invalid or expired requestState"),
            report: format!("a requestState was refused: {reason}"),
        }
    }
}

/// Returns the digest of arguments. Text that is not JSON is hashed as it is.
fn digest(arguments: &str) -> [u8; 32] {
    match serde_json::from_str(arguments) {
        Ok(value) => digest_of(&value),
        Err(_) => Sha256::digest(arguments).into(),
    }
}

fn digest_of(arguments: &Value) -> [u8; 32] {
    Sha256::digest(canonical(arguments)).into()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that fails here says where")]

    use serde_json::json;

    use super::*;
    use crate::protocol::Raw;
    use crate::{
        error::FaultKind,
        protocol::{Method, Question, json::to_raw},
    };

    const MAX: usize = 256 * 1024;
    const ROOTS: &str = r#"{"roots":[{"uri":"file:///a"}]}"#;

    fn call(name: &str, arguments: &str) -> Request {
        let arguments = serde_json::from_str(arguments).unwrap();
        Request::CallTool {
            name: name.into(),
            arguments: Some(arguments),
            inputs: Inputs::default(),
        }
    }

    fn binding(name: &str, arguments: &str) -> Binding {
        Binding::from_request(&call(name, arguments), None).unwrap()
    }

    fn asked() -> Journal {
        let question =
            Question { key: "roots".into(), method: Method::ListRoots, params: to_raw(&json!({})) };
        Journal::default().asking(&[question])
    }

    fn sealed(keys: &KeyRing) -> String {
        let contents = (Some(RoundId([3; 16])), asked());
        seal(keys, 100, binding("a", r#"{"x":1}"#), contents, [7; 24], MAX).unwrap().state
    }

    fn brought(state: &str) -> Inputs {
        Inputs {
            responses: Some(to_raw(&json!({ "roots": { "roots": [] } }))),
            state: Some(state.into()),
        }
    }

    fn opened(keys: &KeyRing, now: u64, binding: &Binding, state: &str) -> Result<Opened, String> {
        open(keys, now, binding, &brought(state), MAX).map_err(|refused| {
            assert_eq!(refused.fault.kind, FaultKind::InvalidParams);
            assert_eq!(refused.fault.message, "Invalid or expired requestState");
            assert!(refused.fault.data.is_none());
            refused.report
        })
    }

    #[test]
    fn a_state_comes_back_to_its_own_request_only() {
        let keys = KeyRing::new(["secret"]);
        let state = sealed(&keys);
        let own = binding("a", r#"{"x":1.0}"#);
        let Opened { answers, round } = opened(&keys, 99, &own, &state).unwrap();
        assert_eq!(round, Some(RoundId([3; 16])));
        assert!(answers.get("roots", Method::ListRoots, "{}").is_some());
        assert!(answers.get("roots", Method::ListRoots, r#"{"other":1}"#).is_none());
        for (now, binding, reason) in [
            (100, own, "expired"),
            (1, binding("b", r#"{"x":1}"#), "another method"),
            (1, binding("a", r#"{"x":2}"#), "other arguments"),
            (
                1,
                Binding::from_request(&call("a", r#"{"x":1}"#), Some(&Principal::new("ada")))
                    .unwrap(),
                "another principal",
            ),
            (
                1,
                Binding::from_request(
                    &Request::ReadResource {
                        uri: "a".into(),
                        variables: None,
                        inputs: Inputs::default(),
                    },
                    None,
                )
                .unwrap(),
                "another method",
            ),
        ] {
            let report = opened(&keys, now, &binding, &state).unwrap_err();
            assert!(report.contains(reason), "{report}");
        }
    }

    #[test]
    fn the_order_of_arguments_and_how_numbers_are_written_make_no_difference() {
        assert_eq!(binding("a", r#"{"x":1,"y":[2e0]}"#), binding("a", r#"{ "y": [2], "x": 1.0 }"#));
        assert_ne!(binding("a", r#"{"x":[1,2]}"#), binding("a", r#"{"x":[2,1]}"#));
        let prompt = |arguments: &[(&str, &str)]| {
            let arguments = arguments.iter().map(|(a, b)| ((*a).into(), (*b).into())).collect();
            let prompt =
                Request::GetPrompt { name: "p".into(), arguments, inputs: Inputs::default() };
            Binding::from_request(&prompt, None).unwrap()
        };
        assert_eq!(prompt(&[("a", "1"), ("b", "2")]), prompt(&[("b", "2"), ("a", "1")]));
        assert_ne!(prompt(&[("a", "1")]), prompt(&[("a", "2")]));
        assert!(Binding::from_request(&Request::Ping, None).is_none());
    }

    #[test]
    fn what_was_changed_is_refused() {
        let keys = KeyRing::new(["secret"]);
        let own = binding("a", r#"{"x":1}"#);
        let state = sealed(&keys);
        let mut bytes = URL_SAFE_NO_PAD.decode(&state).unwrap();
        for at in 0..bytes.len() {
            bytes[at] ^= 1;
            let report = opened(&keys, 1, &own, &URL_SAFE_NO_PAD.encode(&bytes)).unwrap_err();
            assert!(report.contains("no key opens it"), "byte {at}: {report}");
            bytes[at] ^= 1;
        }
        for bad in
            ["", "AAAA", "é", &format!("{state}-TAMPERED"), &state[1..], &format!("{state}=")]
        {
            assert!(opened(&keys, 1, &own, bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_state_is_of_no_use_at_a_server_with_another_name() {
        let keys = |name| KeyRing::new(["secret"]).of_server(name);
        let (state, own) = (sealed(&keys("demo")), binding("a", r#"{"x":1}"#));
        assert!(opened(&keys("demo"), 1, &own, &state).is_ok());
        let report = opened(&keys("production"), 1, &own, &state).unwrap_err();
        assert!(report.contains("a server with another name"), "{report}");
    }

    #[test]
    fn keys_can_be_changed_while_states_are_under_way() {
        let old = KeyRing::new(["old"]);
        let state = sealed(&old);
        let own = binding("a", r#"{"x":1}"#);
        let both = KeyRing::new([&b"new"[..], b"old"]);
        assert!(opened(&both, 1, &own, &state).is_ok());
        let new = KeyRing::new(["new"]);
        assert!(opened(&new, 1, &own, &state).is_err());
        assert!(opened(&new, 1, &own, &sealed(&both)).is_ok(), "the first key seals");
        assert!(!format!("{both:?}").contains("new"));
    }

    #[test]
    fn a_journal_that_is_too_long_is_left_out() {
        let keys = KeyRing::new(["secret"]);
        let own = binding("a", "{}");
        let long = json!({"roots": [{"uri": format!("file:///{}", "x".repeat(4000))}]});
        let question =
            Question { key: "roots".into(), method: Method::ListRoots, params: to_raw(&json!({})) };
        let mut journal = Journal::default();
        journal.answered(&question, to_raw(&long));
        let round = Some(RoundId([3; 16]));
        let contents = || (round, journal.clone());
        let sealed = |max| seal(&keys, 100, own.clone(), contents(), [1; 24], max).unwrap();
        let state = |max| sealed(max).state;
        let without = |state: String| Inputs { responses: None, state: Some(state) };
        let kept = open(&keys, 1, &own, &without(state(8_000)), 8_000).unwrap();
        assert!(kept.answers.get("roots", Method::ListRoots, "{}").is_some());
        assert!(state(2_000).len() < 2_000);
        assert_eq!([8_000, 2_000].map(|max| sealed(max).is_cut), [false, true]);
        let dropped = open(&keys, 1, &own, &without(state(2_000)), 2_000).unwrap();
        assert!(dropped.answers.get("roots", Method::ListRoots, "{}").is_none());
        assert_eq!(dropped.round, round, "a handler that waits is found all the same");
    }

    #[test]
    fn what_is_longer_than_any_state_is_not_even_decoded() {
        let keys = KeyRing::new(["secret"]);
        let own = binding("a", "{}");
        let state = |length: usize| "A".repeat(length);
        assert!(opened(&keys, 1, &own, &state(MAX)).unwrap_err().contains("no key opens it"));
        for length in [MAX + 1, 1024 * 1024] {
            let report = opened(&keys, 1, &own, &state(length)).unwrap_err();
            assert!(
                report.contains("longer than any state (option max_request_state)"),
                "{report}"
            );
        }
        // Every state that was sealed is accepted again, however long the names in it are.
        for name in ["\u{1}".repeat(3_000), "ä\"".repeat(2_000), "a".into()] {
            let own = binding(&name, "{}");
            let contents = (Some(RoundId([3; 16])), asked());
            let Sealed { state, is_cut } =
                seal(&keys, 100, own.clone(), contents, [7; 24], 100).unwrap();
            assert!(!is_cut, "nothing was known");
            let inputs = Inputs { responses: None, state: Some(state) };
            assert!(open(&keys, 1, &own, &inputs, 100).is_ok(), "{name:?}");
        }
    }

    #[test]
    fn responses_count_without_a_state() {
        let responses: Raw =
            to_raw(&json!({ "roots": serde_json::from_str::<Value>(ROOTS).unwrap() }));
        let inputs = Inputs { responses: Some(responses), state: None };
        let answers = open(&KeyRing::new(["k"]), 1, &binding("a", "{}"), &inputs, MAX).unwrap();
        assert!(answers.answers.get("roots", Method::ListRoots, "{}").is_some());
    }
}
