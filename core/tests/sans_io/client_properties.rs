//! For any input from a server, a client session neither panics nor grows.

use std::time::Duration;

use gudgeon::{
    error::{Error, ErrorKind},
    framing::TooLong,
    protocol::{Method, Revision},
    session::client::{Input, RequestOptions},
};
use proptest::{collection::vec, prelude::*, sample::select};
use serde_json::{Value, json};

use crate::support::wire::Scripted;

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
        select(vec!["2026-07-28", "2025-11-25", "complete", "input_required", "tools", "2.0"])
            .prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        let key = prop_oneof![
            select(vec![
                "supportedVersions",
                "protocolVersion",
                "capabilities",
                "_meta",
                "resultType",
                "code",
                "message",
                "data",
                "supported",
                "progressToken",
                "progress",
                "requestId",
                "uri",
                "level",
            ])
            .prop_map(ToOwned::to_owned),
            ".{0,4}",
        ];
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::Array),
            vec((key, inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn any_message() -> impl Strategy<Value = Value> {
    let method = select(
        Method::ALL.iter().map(|method| method.as_str()).chain(["acme/x"]).collect::<Vec<_>>(),
    );
    let id = prop_oneof![(0u64..6).prop_map(Value::from), any_json()];
    prop_oneof![
        any_json(),
        (id.clone(), any_json())
            .prop_map(|(id, result)| json!({"jsonrpc": "2.0", "id": id, "result": result})),
        (id.clone(), any_json())
            .prop_map(|(id, error)| json!({"jsonrpc": "2.0", "id": id, "error": error})),
        (id, any::<i32>(), any_json())
            .prop_map(|(id, code, data)| json!({"jsonrpc": "2.0", "id": id,
            "error": {"code": code, "message": "no", "data": data}})),
        (method.clone(), any_json()).prop_map(
            |(method, params)| json!({"jsonrpc": "2.0", "method": method, "params": params})
        ),
        (method, 0u64..200, any_json()).prop_map(|(method, id, params)| {
            json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        }),
    ]
}

fn beginning() -> impl Strategy<Value = Vec<u8>> {
    (any_message(), 0_usize..80).prop_map(|(message, at)| {
        let mut beginning = message.to_string().into_bytes();
        beginning.truncate(at);
        beginning
    })
}

#[derive(Clone, Debug)]
enum ClientStep {
    Frame(Vec<u8>),
    LastLine(Vec<u8>),
    Response(u64, Vec<u8>),
    TooLong(Vec<u8>),
    Request(Method),
    Advance(u64),
    Closed,
    Start,
}

fn any_step() -> impl Strategy<Value = ClientStep> {
    prop_oneof![
        6 => any_message().prop_map(|message| ClientStep::Frame(message.to_string().into_bytes())),
        1 => vec(any_message(), 0..4).prop_map(|messages| ClientStep::Frame(Value::Array(messages).to_string().into_bytes())),
        1 => vec(any::<u8>(), 0..64).prop_map(ClientStep::Frame),
        2 => (0u64..60, any_message()).prop_map(|(id, message)| ClientStep::Response(id, message.to_string().into_bytes())),
        1 => beginning().prop_map(ClientStep::LastLine),
        1 => beginning().prop_map(ClientStep::TooLong),
        3 => select(Method::ALL.to_vec()).prop_map(ClientStep::Request),
        1 => (0u64..20).prop_map(ClientStep::Advance),
        1 => Just(ClientStep::Closed),
        1 => Just(ClientStep::Start),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn anything_goes(opening in 0u8..3, steps in vec(any_step(), 0..60)) {
        let mut client = match opening {
            0 => Scripted::legacy(),
            1 => Scripted::modern(),
            _ => Scripted::start(&Revision::ALL),
        };
        let mut requests = 0;
        for (number, step) in (0u64..).zip(steps) {
            match step {
                ClientStep::Frame(bytes) => client.feed(Input::Frame(&bytes)),
                ClientStep::LastLine(bytes) => client.feed(Input::LastLine(&bytes)),
                ClientStep::Response(id, bytes) => {
                    client.feed(Input::Response { id, frame: &bytes });
                    client.drain();
                    let in_flight = client.session.in_flight();
                    client.feed(Input::Failed { id, error: Error::new(ErrorKind::Lost, "again") });
                    prop_assert_eq!(client.session.in_flight(), in_flight, "it has ended");
                }
                ClientStep::TooLong(beginning) => client.feed(Input::TooLong(TooLong { limit: 9, beginning: &beginning, end: b"" })),
                ClientStep::Request(method) => {
                    requests += 1;
                    let options = RequestOptions { timeout: Some(Duration::from_secs(10)), ..RequestOptions::default() };
                    client.request(number, method, "{}", options);
                }
                ClientStep::Advance(seconds) => {
                    client.advance(Duration::from_secs(seconds));
                }
                ClientStep::Closed => client.feed(Input::Closed("gone")),
                ClientStep::Start => client.feed(Input::Start),
            }
            client.drain();
            prop_assert!(client.session.in_flight() <= requests);
        }
    }
}
