//! Sessions and requests in flight of several clients: none of them locks the others out.

use std::{net::IpAddr, sync::Arc, time::Duration};

use gudgeon::{http::EndpointConfig, protocol::Principal};
use serde_json::{Value, json};

use crate::support::{fixture, visitor::Visitor};

fn with(config: EndpointConfig) -> Visitor {
    Visitor::new(fixture::components(), config)
}

fn ping(id: u64) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "ping"})
}

fn at(last: u8) -> IpAddr {
    IpAddr::from([192, 0, 2, last])
}

/// Sends `initialize`; returns the session's id, or `None` if it is refused with 503.
fn initialize(visitor: &mut Visitor, padding: usize) -> Option<String> {
    let info = json!({"name": "x".repeat(padding), "version": "1"});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
    let id = visitor.legacy("", &body);
    let reply = visitor.reply(id);
    assert!(matches!(reply.status, 200 | 503), "{reply:?}");
    (reply.status == 200).then(|| reply.header("mcp-session-id").to_owned())
}

fn is_open(visitor: &mut Visitor, session: &str) -> bool {
    let id = visitor.legacy(session, &ping(1));
    visitor.reply(id).status == 200
}

#[test]
fn sessions_that_were_never_used_end_first_when_the_table_is_full() {
    let mut visitor = with(EndpointConfig { max_sessions: 3, ..EndpointConfig::default() });
    let open = |visitor: &mut Visitor| initialize(visitor, 1).unwrap();
    let used = open(&mut visitor);
    assert!(is_open(&mut visitor, &used));
    let flood: Vec<String> = (0..10).map(|_| open(&mut visitor)).collect();
    let (ended, two) = flood.split_at(8);
    assert!(!ended.iter().any(|session| is_open(&mut visitor, session)));
    assert!(two.iter().all(|session| is_open(&mut visitor, session)), "the newest two");
    visitor.now += Duration::from_secs(1);
    assert!(is_open(&mut visitor, &used));
    // All three have been used now, `used` last.
    let newest = open(&mut visitor);
    let left = [&used, &two[0], &two[1]].map(|session| is_open(&mut visitor, session));
    assert_eq!((left, is_open(&mut visitor, &newest)), ([true, false, true], true));
}

/// Ways to tell clients apart: each function makes the visitor client `n`.
const CLIENTS: [fn(&mut Visitor, u8); 2] = [
    |visitor, n| visitor.remote = Some(at(n)),
    |visitor, n| {
        visitor.remote = Some(at(1));
        visitor.principal = Some(Arc::new(Principal::new(n.to_string())));
    },
];

#[test]
fn a_full_table_of_one_client_leaves_room_to_others() {
    for become_client in CLIENTS {
        check_shares_of_sessions(become_client);
    }
}

fn check_shares_of_sessions(become_client: fn(&mut Visitor, u8)) {
    let mut visitor = with(EndpointConfig { max_sessions: 4, ..EndpointConfig::default() });
    become_client(&mut visitor, 1);
    let greedy: Vec<String> = (0..4).filter_map(|_| initialize(&mut visitor, 1)).collect();
    for session in &greedy {
        assert!(is_open(&mut visitor, session));
        visitor.now += Duration::from_secs(1);
    }
    become_client(&mut visitor, 2);
    let mut open = || {
        visitor.now += Duration::from_secs(1);
        let session = initialize(&mut visitor, 1).expect("one of the other or of its own ends");
        assert!(is_open(&mut visitor, &session));
        session
    };
    let own = [open(), open(), open()];
    let left = own.map(|session| is_open(&mut visitor, &session));
    assert_eq!(left, [false, true, true], "half of them is its share");
    become_client(&mut visitor, 1);
    let left: Vec<bool> = greedy.iter().map(|session| is_open(&mut visitor, session)).collect();
    assert_eq!(left, [false, false, true, true], "those idle for longest have ended");
}

/// Opens sessions with a stream each.
fn connect(visitor: &mut Visitor, count: usize) -> Vec<String> {
    let open = |_| {
        let session = initialize(visitor, 1).unwrap();
        assert!(is_open(visitor, &session));
        visitor.now += Duration::from_secs(1);
        let stream = visitor.get(&session, "");
        assert_eq!(visitor.replies[&stream].status, 200);
        session
    };
    (0..count).map(open).collect()
}

#[test]
fn a_client_whose_sessions_are_all_connected_does_not_lock_others_out() {
    for become_client in CLIENTS {
        let mut visitor = with(EndpointConfig { max_sessions: 6, ..EndpointConfig::default() });
        become_client(&mut visitor, 1);
        let greedy = connect(&mut visitor, 4);
        become_client(&mut visitor, 2);
        let idle: Vec<String> = (0..2).map(|_| initialize(&mut visitor, 1).unwrap()).collect();
        assert!(idle.iter().all(|session| is_open(&mut visitor, session)));
        become_client(&mut visitor, 3);
        let third = initialize(&mut visitor, 1).expect("another client has an idle session");
        assert!(is_open(&mut visitor, &third));
        become_client(&mut visitor, 2);
        let left: Vec<bool> = idle.iter().map(|session| is_open(&mut visitor, session)).collect();
        assert_eq!(left, [false, true]);
        become_client(&mut visitor, 4);
        assert!(initialize(&mut visitor, 1).is_some(), "the largest has no idle one");
        become_client(&mut visitor, 1);
        let left: Vec<bool> = greedy.iter().map(|session| is_open(&mut visitor, session)).collect();
        assert_eq!(left, [false, true, true, true]);
    }
}

#[test]
fn sessions_are_limited_by_the_bytes_that_their_clients_say_about_themselves() {
    let mut visitor = with(EndpointConfig::default());
    let open: Vec<Option<String>> = (0..1_200).map(|_| initialize(&mut visitor, 60_000)).collect();
    assert!(open.iter().all(Option::is_some));
    let open = open.iter().flatten().filter(|session| is_open(&mut visitor, session)).count();
    assert!((1_000..1_150).contains(&open), "{open}");
}

#[test]
fn slots_of_one_client_leave_room_to_others() {
    for become_client in CLIENTS {
        check_shares_of_slots(become_client);
    }
}

fn check_shares_of_slots(become_client: fn(&mut Visitor, u8)) {
    let config = EndpointConfig { max_in_flight: 4, ..EndpointConfig::default() };
    let mut visitor = with(config);
    let call = |visitor: &mut Visitor| {
        let id = visitor.modern("tools/call", json!({"name": "wait", "arguments": {}}));
        visitor.replies.get(&id).map_or(0, |reply| reply.status)
    };
    become_client(&mut visitor, 1);
    let statuses = [0; 6].map(|_| call(&mut visitor));
    assert_eq!(statuses, [0, 0, 0, 0, 503, 503]);
    become_client(&mut visitor, 2);
    assert_eq!([0; 3].map(|_| call(&mut visitor)), [0, 0, 503], "half of all is its share");
    become_client(&mut visitor, 3);
    assert_eq!([0; 2].map(|_| call(&mut visitor)), [0, 503], "a third of all is its share");
    for last in 4..100 {
        become_client(&mut visitor, last);
        call(&mut visitor);
    }
    assert_eq!(visitor.endpoint.load().requests, 8, "never more than twice the limit");
    become_client(&mut visitor, 1);
    assert_eq!(call(&mut visitor), 503);
    (visitor.remote, visitor.principal) = (None, None);
    assert_eq!(call(&mut visitor), 503);
}
