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

/// Sends `initialize`; returns the session's id, or `None` if it is refused with 503. The session holds memory, because its
/// log level is not the default.
fn initialize(visitor: &mut Visitor, padding: usize) -> Option<String> {
    let info = json!({"name": "x".repeat(padding), "version": "1"});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
    let id = visitor.legacy("", &body);
    let reply = visitor.reply(id);
    assert!(matches!(reply.status, 200 | 503), "{reply:?}");
    if reply.status == 503 {
        return None;
    }
    let session = reply.header("mcp-session-id").to_owned();
    let level = json!({"level": "debug"});
    let body = json!({"jsonrpc": "2.0", "id": 2, "method": "logging/setLevel", "params": level});
    let id = visitor.legacy(&session, &body);
    assert_eq!(visitor.reply(id).status, 200);
    Some(session)
}

/// Returns whether the memory of a session was kept.
fn is_held(visitor: &Visitor, session: &str) -> bool {
    visitor.endpoint.holds_session(session)
}

/// Sends a request in a session.
fn touch(visitor: &mut Visitor, session: &str) {
    let id = visitor.legacy(session, &ping(1));
    assert_eq!(visitor.reply(id).status, 200);
}

#[test]
fn the_session_that_is_idle_for_longest_is_evicted_also_within_one_client() {
    let mut visitor = with(EndpointConfig { max_sessions: 3, ..EndpointConfig::default() });
    let open = |visitor: &mut Visitor| {
        visitor.now += Duration::from_secs(1);
        initialize(visitor, 1).unwrap()
    };
    let used = open(&mut visitor);
    let others = [open(&mut visitor), open(&mut visitor)];
    visitor.now += Duration::from_secs(1);
    touch(&mut visitor, &used);
    let newest = open(&mut visitor);
    let held = [&used, &others[0], &others[1], &newest].map(|session| is_held(&visitor, session));
    assert_eq!(held, [true, false, true, true]);
    // The client of an evicted session goes on with it.
    touch(&mut visitor, &others[0]);
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
        touch(&mut visitor, session);
        visitor.now += Duration::from_secs(1);
    }
    become_client(&mut visitor, 2);
    let mut open = || {
        visitor.now += Duration::from_secs(1);
        initialize(&mut visitor, 1).expect("one of the other or of its own is evicted")
    };
    let own = [open(), open(), open()];
    let held = own.map(|session| is_held(&visitor, &session));
    assert_eq!(held, [false, true, true], "half of them is its share");
    let held: Vec<bool> = greedy.iter().map(|session| is_held(&visitor, session)).collect();
    assert_eq!(held, [false, false, true, true], "those idle for longest are evicted");
}

/// Opens sessions with a stream each.
fn connect(visitor: &mut Visitor, count: usize) -> Vec<String> {
    let open = |_| {
        let session = initialize(visitor, 1).unwrap();
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
        let idle: Vec<String> = (0..2)
            .map(|_| {
                visitor.now += Duration::from_secs(1);
                initialize(&mut visitor, 1).unwrap()
            })
            .collect();
        become_client(&mut visitor, 3);
        let third = initialize(&mut visitor, 1).expect("another client has an idle session");
        let held = [&idle[0], &idle[1], &third].map(|session| is_held(&visitor, session));
        assert_eq!(held, [false, true, true]);
        become_client(&mut visitor, 4);
        assert!(initialize(&mut visitor, 1).is_some(), "the largest has no idle one");
        let held: Vec<bool> = greedy.iter().map(|session| is_held(&visitor, session)).collect();
        assert_eq!(held, [false, true, true, true]);
    }
}

#[test]
fn sessions_are_limited_by_the_bytes_that_their_clients_say_about_themselves() {
    let mut visitor = with(EndpointConfig::default());
    let open: Vec<Option<String>> = (0..1_200).map(|_| initialize(&mut visitor, 60_000)).collect();
    assert!(open.iter().all(Option::is_some));
    let held = open.iter().flatten().filter(|session| is_held(&visitor, session)).count();
    assert!((1_000..1_150).contains(&held), "{held}");
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
