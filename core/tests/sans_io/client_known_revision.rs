//! Negotiation with a server whose revision is known from an earlier connection.

use gudgeon::{
    error::{Error, ErrorKind},
    protocol::Revision,
    session::client::{ClientConfig, Input},
};
use serde_json::json;

use crate::{
    client_negotiation::{MODERN, NEWEST_LEGACY, expect_initialize, expect_legacy, expect_probe},
    support::wire::{Scripted, config, discover_result, error},
};

fn known(last: Revision, revisions: &[Revision]) -> Scripted {
    let mut client = Scripted::new(ClientConfig { last_revision: Some(last), ..config(revisions) });
    client.feed(Input::Start);
    client
}

/// "The era determination is a property of the server": it is not made again for each connection.
#[test]
fn a_server_that_was_legacy_is_not_probed_again() {
    let mut client = known(NEWEST_LEGACY, &[MODERN, NEWEST_LEGACY]);
    expect_legacy(&mut client, "2025-11-25");
    let mut client = known(MODERN, &[MODERN, NEWEST_LEGACY]);
    expect_probe(&mut client);
    let mut client = known(NEWEST_LEGACY, &[MODERN]);
    expect_probe(&mut client);
}

/// "… re-probing if the cached assumption later fails".
#[test]
fn a_server_that_is_not_legacy_any_more_is_probed() {
    let mut client = known(NEWEST_LEGACY, &[MODERN, NEWEST_LEGACY]);
    let id = expect_initialize(&mut client, "2025-11-25");
    client.receive(&error(id, -32022, Some(json!({"supported": ["2026-07-28"]}))));
    expect_probe(&mut client);
    client.receive(&discover_result(2, &["2026-07-28"]));
    assert_eq!(client.ready().revision, MODERN);

    let mut client = known(NEWEST_LEGACY, &[MODERN, NEWEST_LEGACY]);
    let id = expect_initialize(&mut client, "2025-11-25");
    let refusal =
        Error::new(ErrorKind::Protocol, "HTTP 400").with(|details| details.http_status = Some(400));
    client.feed(Input::Failed { id, error: refusal });
    expect_probe(&mut client);
    client.receive(&error(2, -32601, None));
    let id = expect_initialize(&mut client, "2025-11-25");
    client.receive(&error(id, -32601, None));
    assert_eq!(client.failed().code, Some(-32601), "no third attempt");

    let mut client = known(NEWEST_LEGACY, &[MODERN, NEWEST_LEGACY]);
    let id = expect_initialize(&mut client, "2025-11-25");
    client.feed(Input::Failed { id, error: Error::new(ErrorKind::Lost, "gone") });
    assert_eq!(client.failed().kind, ErrorKind::Lost, "no answer says nothing about the era");
}
