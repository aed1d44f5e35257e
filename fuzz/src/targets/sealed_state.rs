//! Sealed state: `requestState` and cursors open where they were sealed, unchanged, and nowhere else.
//!
//! `t` and `g` are the tool and its arguments, `k` the key, `j` an answer in the journal, `b` a bit to change, `o` a string to
//! open, `i` the bytes of a state as base64, `n` a place in a list and `l` the list.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use gudgeon::{
    engine::{
        key_ring::KeyRing,
        request_state::{Binding, RoundId, open, seal},
    },
    protocol::{Inputs, Method, Principal, Question, Request, json},
    router::Cursors,
    session::asking::Journal,
};
use serde_json::value::RawValue;

use crate::script::{json_or_string, number, steps};

pub(super) const SEEDS: &[&str] = &[
    "t book\ng {\"id\":1}\nk secret\nj {\"roots\":[]}\nb 7\nb 300\no AAAA\nn 7\nl tool",
    "t \u{1}\u{e9}\ng [1e0]\nk \nj {\"roots\":[{\"uri\":\"file:///a\"}]}\nj 1\nb 0\no \nn 999999999\nl prompt",
];

const MAX: usize = 4_096;
const EXPIRES: u64 = 1_000;

pub(super) fn run(input: &[u8]) {
    let mut script =
        Script { key: b"key", name: String::new(), arguments: None, journal: Journal::default() };
    let (mut place, mut list) = (0, "tool".to_owned());
    let mut attacks = Vec::new();
    for (count, (operation, argument)) in steps(input).enumerate() {
        let text = || String::from_utf8_lossy(argument).into_owned();
        match operation {
            b't' => script.name = text(),
            b'g' => script.arguments = serde_json::from_slice::<Box<RawValue>>(argument).ok(),
            b'k' => script.key = argument,
            b'j' => script.journal.answered(&question(count), json::raw(json_or_string(argument))),
            b's' => script.journal.done(&text(), json::raw("1".into())),
            b'n' => place = number(argument).0 as u64,
            b'l' => list = text(),
            b'b' | b'o' if attacks.len() < 50 => attacks.push((operation, argument)),
            _ => (),
        }
    }
    cursors(script.key, &list, place, &attacks);
    script.check(&attacks);
}

struct Script<'a> {
    key: &'a [u8],
    name: String,
    arguments: Option<Box<RawValue>>,
    journal: Journal,
}

fn question(count: usize) -> Question {
    Question { key: format!("k{count}"), method: Method::ListRoots, params: json::raw("{}".into()) }
}

fn inputs(state: String) -> Inputs {
    Inputs { responses: None, state: Some(state) }
}

impl Script<'_> {
    fn binding(&self, name: &str, principal: Option<&Principal>) -> Binding {
        let request = Request::CallTool {
            name: name.into(),
            arguments: self.arguments.clone(),
            inputs: Inputs::default(),
        };
        Binding::from_request(&request, principal).unwrap()
    }

    fn check(&self, attacks: &[(u8, &[u8])]) {
        let keys = KeyRing::new([self.key]);
        let own = self.binding(&self.name, None);
        let round = Some(RoundId([3; 16]));
        let contents = (round, self.journal.clone());
        let sealed = seal(&keys, EXPIRES, own.clone(), contents, [7; 24], MAX).unwrap();
        let state = sealed.state;
        let opens = |keys: &KeyRing, now: u64, binding: &Binding, state: &str| {
            open(keys, now, binding, &inputs(state.to_owned()), MAX).map_err(|error| {
                assert_eq!(error.fault.message, "Invalid or expired requestState");
                assert!(error.fault.data.is_none(), "callers are told no reason");
            })
        };
        let opened = opens(&keys, 1, &own, &state).expect("it opens where it was sealed");
        assert_eq!(opened.round, round);
        assert!(opens(&keys, EXPIRES, &own, &state).is_err(), "it expired");
        let other = self.binding(&format!("{}x", self.name), None);
        assert!(opens(&keys, 1, &other, &state).is_err(), "another tool");
        let ada = self.binding(&self.name, Some(&Principal::new("ada")));
        assert!(opens(&keys, 1, &ada, &state).is_err(), "somebody else");
        let others = KeyRing::new([[self.key, b"x"].concat()]);
        assert!(opens(&others, 1, &own, &state).is_err(), "another key");
        let both = KeyRing::new([[self.key, b"x"].concat(), self.key.to_vec()]);
        assert!(opens(&both, 1, &own, &state).is_ok(), "an older key of the ring");
        for changed in changes(&state, attacks) {
            assert!(opens(&keys, 1, &own, &changed).is_err(), "changed, and opened: {changed}");
        }
    }
}

fn cursors(key: &[u8], list: &str, place: u64, attacks: &[(u8, &[u8])]) {
    let keys = KeyRing::new([key]);
    let cursor = keys.seal(list, place);
    assert_eq!(keys.open(list, &cursor), Some(place));
    assert_eq!(keys.open(&format!("{list}x"), &cursor), None, "another list");
    assert_eq!(KeyRing::new([[key, b"x"].concat()]).open(list, &cursor), None, "another key");
    for changed in changes(&cursor, attacks) {
        assert_eq!(keys.open(list, &changed), None, "changed, and opened: {changed}");
    }
}

/// Returns texts other than the sealed one: some with one bit changed, as bytes and as text, and some of the script's.
fn changes(sealed: &str, attacks: &[(u8, &[u8])]) -> Vec<String> {
    let bytes = URL_SAFE_NO_PAD.decode(sealed).unwrap();
    let mut changed = Vec::new();
    for (operation, argument) in attacks {
        if *operation == b'o' {
            changed.push(String::from_utf8_lossy(argument).into_owned());
            continue;
        }
        let bit = number(argument).0;
        let mut other = bytes.clone();
        let at = bit / 8 % other.len();
        other[at] ^= 1 << (bit % 8);
        changed.push(URL_SAFE_NO_PAD.encode(&other));
        let mut text = sealed.as_bytes().to_vec();
        let at = bit / 8 % text.len();
        text[at] ^= 1 << (bit % 7);
        changed.push(String::from_utf8_lossy(&text).into_owned());
        changed.push(sealed[..bit % sealed.len()].to_owned());
        changed.push(format!("{sealed}{}", char::from(b'A' + u8::try_from(bit % 26).unwrap())));
    }
    changed.retain(|text| text != sealed);
    changed
}
