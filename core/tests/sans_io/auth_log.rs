//! Log messages that every unauthenticated request can cause, for example while an issuer hangs.

use gudgeon::auth::server::authenticator::{AuthInput, AuthOutput};

use super::support::{
    authenticator::{Fixture, introspection},
    logs::logged,
};

#[test]
fn authentications_that_take_too_long_are_one_line_in_ten_seconds() {
    let lines = logged(|| {
        let mut fixture = Fixture::from(vec![introspection()]);
        for _ in 0..3 {
            for number in 0..50 {
                fixture.pending(&format!("opaque{number}"));
            }
            fixture.pass(15);
            fixture.handle(AuthInput::Tick);
        }
    });
    let more = " (and 49 times more since the last such message)";
    let expected = ["", more, more].map(|end| format!("an authentication took too long{end}"));
    assert_eq!(lines, expected);
}

#[test]
fn an_introspection_endpoint_that_fails_is_one_line_in_ten_seconds() {
    let lines = logged(|| {
        let mut fixture = Fixture::from(vec![introspection()]);
        for number in 0..100 {
            fixture.pending(&format!("opaque{number}"));
            let (id, _) = fixture.fetch();
            fixture.answer(id, 500, "");
            assert!(matches!(fixture.machine.poll(), Some(AuthOutput::Decided(..))));
        }
    });
    assert_eq!(lines, ["a token could not be introspected"]);
}

#[test]
fn requests_beyond_the_limit_are_one_line_in_ten_seconds() {
    let lines = logged(|| {
        let mut fixture = Fixture::from(vec![introspection()]);
        for number in 0..1_500 {
            fixture.bearer(&format!("opaque{number}"));
        }
    });
    assert_eq!(lines, ["too many tokens are being introspected"]);
}
