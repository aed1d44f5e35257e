//! A connection of tests that loses and repeats messages, and restarts its server.

use std::collections::{HashMap, HashSet};

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::error::Error;

/// Messages of the handshake always arrive once.
const HANDSHAKE: [&str; 3] = ["initialize", "notifications/initialized", "server/discover"];

/// The faults of a connection. The same seed gives the same faults.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    pub seed: i64,
    /// The share of messages that are lost.
    pub drop: f64,
    /// The share of messages that arrive twice.
    pub duplicate: f64,
    /// `true` to restart the server for each round of answers.
    pub restart_between_rounds: bool,
}

/// Drops, repeats or delivers each message between a client and a server. Carries none itself.
#[derive(Debug)]
pub struct FaultyLink {
    faults: Faults,
    // Each direction has its own random numbers, because the order between the two is not fixed.
    to_server: Direction,
    to_client: Direction,
    /// The ids of the client's requests of the handshake.
    opening: HashSet<String>,
}

/// The effects of a message, in this order.
#[derive(Debug, Default, Eq, PartialEq)]
pub struct Delivery {
    pub restarts_server: bool,
    /// Messages for the server.
    pub to_server: Vec<String>,
    /// Messages for the client.
    pub to_client: Vec<String>,
}

#[derive(Debug)]
struct Direction {
    seed: u64,
    /// The random numbers of messages without an id.
    others: Random,
    /// Copies of requests by their ids, which arrive after the answer, because an id in use would be rejected.
    late: HashMap<String, String>,
}

/// The generator `SplitMix64`.
#[derive(Debug)]
struct Random(u64);

/// The members of a message that decide its delivery; a batch has none.
#[derive(Debug, Default, Deserialize)]
struct Frame<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: Option<String>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

impl Faults {
    fn check(&self) -> Result<(), Error> {
        for (name, share) in [("drop", self.drop), ("duplicate", self.duplicate)] {
            if !(0.0..=1.0).contains(&share) {
                return Err(Error::misuse(format!(
                    "{name} must be a share from 0 to 1, not {share}"
                )));
            }
        }
        Ok(())
    }
}

impl FaultyLink {
    /// Errors if a share is not between 0 and 1.
    pub fn new(faults: Faults) -> Result<Self, Error> {
        faults.check()?;
        let direction = |name| {
            let seed = hash(&[&faults.seed.to_le_bytes(), name]);
            Direction { seed, others: Random(seed), late: HashMap::new() }
        };
        let (to_server, to_client) = (direction(b">"), direction(b"<"));
        Ok(Self { faults, to_server, to_client, opening: HashSet::new() })
    }

    /// Returns the delivery of a message of the client.
    pub fn sent_by_client(&mut self, message: &str) -> Delivery {
        let frame = Frame::read(message);
        let restarts_server = self.faults.restart_between_rounds && frame.is_round();
        let mut delivery = Delivery { restarts_server, ..Delivery::default() };
        if frame.method.as_deref().is_some_and(|method| HANDSHAKE.contains(&method)) {
            self.opening.extend(frame.id());
            delivery.to_server.push(message.to_owned());
            return delivery;
        }
        delivery.to_server = self.to_server.copies(&frame, message, &self.faults);
        if let Some(answered) = frame.answered() {
            delivery.to_client.extend(self.to_client.late.remove(&answered));
        }
        delivery
    }

    /// Returns the delivery of a message of the server.
    pub fn sent_by_server(&mut self, message: &str) -> Delivery {
        let frame = Frame::read(message);
        let mut delivery = Delivery::default();
        let answered = frame.answered();
        if let Some(answered) = &answered {
            delivery.to_server.extend(self.to_server.late.remove(answered));
        }
        delivery.to_client = if answered.is_some_and(|id| self.opening.contains(&id)) {
            vec![message.to_owned()]
        } else {
            self.to_client.copies(&frame, message, &self.faults)
        };
        delivery
    }
}

impl Direction {
    /// Returns the copies of a message that arrive now. The decision depends on the message's id, if it has one, because
    /// the order of messages is not fixed.
    fn copies(&mut self, frame: &Frame<'_>, message: &str, faults: &Faults) -> Vec<String> {
        let id = frame.id();
        let mut of_id =
            id.as_ref().map(|id| Random(hash(&[&self.seed.to_le_bytes(), id.as_bytes()])));
        let random = of_id.as_mut().unwrap_or(&mut self.others);
        if random.next() < faults.drop {
            return Vec::new();
        }
        let mut copies = vec![message.to_owned()];
        if random.next() < faults.duplicate {
            match id.filter(|_| frame.method.is_some()) {
                Some(request) => drop(self.late.insert(request, message.to_owned())),
                None => copies.push(message.to_owned()),
            }
        }
        copies
    }
}

impl<'a> Frame<'a> {
    fn read(message: &'a str) -> Self {
        serde_json::from_str(message).unwrap_or_default()
    }

    fn id(&self) -> Option<String> {
        self.id.map(|id| id.get().to_owned())
    }

    /// Returns the id of the request that this message answers.
    fn answered(&self) -> Option<String> {
        self.id().filter(|_| self.method.is_none())
    }

    /// Returns `true` if the message continues a call with answers.
    fn is_round(&self) -> bool {
        #[derive(Deserialize)]
        struct Round {
            #[serde(rename = "requestState")]
            _state: serde::de::IgnoredAny,
        }
        self.params.is_some_and(|params| serde_json::from_str::<Round>(params.get()).is_ok())
    }
}

impl Random {
    /// Returns a number from 0 to 1, without 1.
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let upper = u32::try_from((mixed ^ (mixed >> 31)) >> 32).unwrap_or_default();
        f64::from(upper) / (f64::from(u32::MAX) + 1.0)
    }
}

/// Hashes bytes with FNV-1a.
fn hash(parts: &[&[u8]]) -> u64 {
    let bytes = parts.iter().copied().flatten();
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that fails here says where")]

    use super::*;

    fn request(id: u32) -> String {
        format!(r#"{{"id":{id},"method":"tools/call","params":{{"requestState":null}}}}"#)
    }

    fn twice() -> FaultyLink {
        FaultyLink::new(Faults { duplicate: 1.0, ..Faults::default() }).unwrap()
    }

    #[test]
    fn without_faults_each_message_arrives_once() {
        let mut link = FaultyLink::new(Faults::default()).unwrap();
        for message in [&request(1), r#"{"method":"notifications/x"}"#, r#"[{"id":1}]"#] {
            let to_server = vec![message.to_owned()];
            assert_eq!(link.sent_by_client(message), Delivery { to_server, ..Delivery::default() });
            let to_client = vec![message.to_owned()];
            assert_eq!(link.sent_by_server(message), Delivery { to_client, ..Delivery::default() });
        }
    }

    #[test]
    fn the_copy_of_a_request_arrives_after_its_answer() {
        let mut link = twice();
        let answer = r#"{"id":1,"result":{}}"#;
        assert_eq!(link.sent_by_client(&request(1)).to_server, [request(1)]);
        let answered = link.sent_by_server(answer);
        assert_eq!(answered.to_server, [request(1)]);
        assert_eq!(answered.to_client, [answer, answer]);
        assert!(link.sent_by_server(answer).to_server.is_empty());
        assert_eq!(link.sent_by_server(&request(1)).to_client, [request(1)]);
        let answered = link.sent_by_client(answer);
        assert_eq!(answered.to_server, [answer, answer]);
        assert_eq!(answered.to_client, [request(1)]);
    }

    #[test]
    fn the_handshake_has_no_faults() {
        let mut link = FaultyLink::new(Faults { drop: 1.0, ..Faults::default() }).unwrap();
        let (opens, answer) = (r#"{"id":0,"method":"initialize"}"#, r#"{"id":0,"result":{}}"#);
        assert_eq!(link.sent_by_client(opens).to_server, [opens]);
        assert_eq!(link.sent_by_server(answer).to_client, [answer]);
        assert!(link.sent_by_server(r#"{"id":1,"result":{}}"#).to_client.is_empty());
    }

    #[test]
    fn a_seed_decides_by_the_id() {
        let lost = |seed, ids: &mut dyn Iterator<Item = u32>| {
            let faults = Faults { seed, drop: 0.4, ..Faults::default() };
            let mut link = FaultyLink::new(faults).unwrap();
            let mut lost: Vec<_> =
                ids.filter(|id| link.sent_by_client(&request(*id)).to_server.is_empty()).collect();
            lost.sort_unstable();
            lost
        };
        let first = lost(1, &mut (0..1000));
        assert_eq!(first, lost(1, &mut (0..1000).rev()));
        assert_ne!(first, lost(2, &mut (0..1000)));
        assert!((300..500).contains(&first.len()), "{}", first.len());
    }

    #[test]
    fn the_server_is_restarted_for_a_round() {
        let faults = Faults { restart_between_rounds: true, ..Faults::default() };
        let mut link = FaultyLink::new(faults).unwrap();
        assert!(link.sent_by_client(&request(1)).restarts_server);
        assert!(!link.sent_by_client(r#"{"id":2,"method":"x","params":{}}"#).restarts_server);
    }

    #[test]
    fn shares_are_between_0_and_1() {
        for drop in [-0.1, 1.1, f64::NAN] {
            FaultyLink::new(Faults { drop, ..Faults::default() }).unwrap_err();
        }
    }
}
