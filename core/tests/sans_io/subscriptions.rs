//! The state machine of a client's subscriptions, with a manual clock and a scripted server.

use std::time::Duration;

use gudgeon::{
    error::{Error, ErrorKind},
    peer::subscriptions::{Input, Interests, Output, SubscriptionSettings},
    protocol::{Method, Revision, SubscriptionFilter},
    session::client::{Change, ListKind, RequestKey},
};

use crate::support::subscriber::{Scripted, TIMEOUT, done, everything, lost, updated};

#[test]
fn since_2026_07_28_each_subscription_is_one_long_request() {
    let mut client = Scripted::modern();
    let key = client.open(&everything());
    let (request, params) = client.asked(Method::Listen);
    assert_eq!(
        params,
        r#"{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["a:/b","a:/c"]}}"#
    );
    client.silent();
    client.feed(Input::Acknowledged(request, everything()));
    assert!(matches!(client.rest.pop_front(), Some(Output::Opened(opened)) if opened == key));
    assert_eq!(client.machine.deadline(), None, "it may be silent for as long as it likes");

    let other = client.open(&SubscriptionFilter::default().tools());
    let theirs = client.asked(Method::Listen).0;
    client.feed(Input::Changed(Some(request), updated("a:/c")));
    client.feed(Input::Changed(Some(theirs), Change::List(ListKind::Tools)));
    let notified = [(key, updated("a:/c")), (other, Change::List(ListKind::Tools))];
    assert_eq!(client.changes(), notified);
    client.feed(Input::Changed(Some(theirs), updated("a:/c")));
    client.feed(Input::Changed(Some(request), Change::List(ListKind::Prompts)));
    client.feed(Input::Changed(Some(RequestKey(77)), updated("a:/c")));
    client.silent();

    client.feed(Input::Close(key));
    assert!(
        matches!(client.rest.pop_front(), Some(Output::Cancel(cancelled)) if cancelled == request)
    );
    client.feed(Input::Changed(Some(request), updated("a:/c")));
    client.silent();
}

#[test]
fn a_notification_without_an_id_reaches_all_matching_subscriptions() {
    let mut client = Scripted::modern();
    let (key, _) = client.listening(SubscriptionSettings::default());
    client.open(&SubscriptionFilter::default().tools());
    client.requests.clear();
    client.feed(Input::Changed(None, updated("a:/b")));
    assert_eq!(client.changes(), [(key, updated("a:/b"))]);
}

#[test]
fn unacknowledged_parts_are_named_in_the_error() {
    for (kept, message) in [
        (SubscriptionFilter::default().uri("a:/b").uri("a:/c"), "when its tools change"),
        (SubscriptionFilter::default().tools().uri("a:/b"), "when a:/c is updated"),
        (SubscriptionFilter::default(), "when its tools change, nor when a:/b, a:/c is updated"),
    ] {
        let mut client = Scripted::modern();
        let key = client.open(&everything());
        let request = client.asked(Method::Listen).0;
        client.feed(Input::Acknowledged(request, kept));
        assert!(
            matches!(client.rest.pop_front(), Some(Output::Cancel(cancelled)) if cancelled == request)
        );
        let (ended, why) = client.ended();
        let why = why.unwrap();
        assert_eq!((ended, why.kind), (key, ErrorKind::Unsupported));
        assert!(why.message.contains(message), "{why}");
        client.silent();
    }
}

#[test]
fn many_uris_that_are_not_acknowledged_are_counted() {
    let mut client = Scripted::modern();
    let filter =
        (0..9).fold(SubscriptionFilter::default(), |filter, n| filter.uri(format!("a:{n}")));
    client.open(&filter);
    let request = client.asked(Method::Listen).0;
    client.feed(Input::Acknowledged(request, SubscriptionFilter::default()));
    client.rest.pop_front();
    let why = client.ended().1.unwrap();
    assert!(why.message.contains("a:0, a:1, a:2 is updated (and 6 more)"), "{why}");
}

#[test]
fn undeclared_notifications_are_not_requested() {
    for revision in Revision::ALL {
        let mut client = Scripted::new(revision);
        let key = client.open(&SubscriptionFilter::default().prompts());
        let (ended, why) = client.ended();
        let why = why.unwrap();
        assert_eq!((ended, why.kind), (key, ErrorKind::Unsupported));
        assert!(why.message.contains("it did not declare prompts.listChanged"), "{why}");
        client.silent();
    }
    assert!(Interests::from_filter(&SubscriptionFilter::default()).is_err());
}

#[test]
fn an_acknowledgment_that_does_not_come_is_a_timeout() {
    let mut client = Scripted::modern();
    let key = client.open(&everything());
    let request = client.asked(Method::Listen).0;
    client.advance(TIMEOUT);
    assert!(
        matches!(client.rest.pop_front(), Some(Output::Cancel(cancelled)) if cancelled == request)
    );
    let (ended, why) = client.ended();
    assert_eq!((ended, why.unwrap().kind), (key, ErrorKind::Timeout));
    client.silent();
}

#[test]
fn a_graceful_end_and_one_with_a_reason_are_told_apart() {
    let mut client = Scripted::modern();
    let (key, request) = client.listening(SubscriptionSettings::default());
    client.answer(request, Ok(done()));
    let (ended, why) = client.ended();
    assert!(ended == key && why.is_none());
    client.silent();

    let (key, request) = client.listening(SubscriptionSettings::default());
    client.answer(request, Err(Error::new(ErrorKind::Cancelled, "too many")));
    let (ended, why) = client.ended();
    assert_eq!((ended, why.unwrap().message.as_str()), (key, "too many"));
    client.silent();
}

#[test]
fn a_subscription_that_ends_before_its_acknowledgement_counts_as_opened() {
    let mut client = Scripted::modern();
    let key = client.open(&everything());
    let request = client.asked(Method::Listen).0;
    client.answer(request, Ok(done()));
    assert!(matches!(client.rest.pop_front(), Some(Output::Opened(opened)) if opened == key));
    assert!(client.ended().1.is_none());
}

#[test]
fn a_broken_subscription_is_re_established_and_reports_everything_as_changed() {
    let mut client = Scripted::modern();
    let (key, request) = client.listening(SubscriptionSettings::default());
    client.answer(request, Err(lost()));
    client.silent();
    client.advance(Duration::from_millis(499));
    client.silent();
    client.advance(Duration::from_millis(1));
    let request = client.asked(Method::Listen).0;
    client.answer(request, Err(Error::new(ErrorKind::Connect, "refused")));
    client.advance(Duration::from_millis(999));
    client.silent();
    client.advance(Duration::from_millis(1));
    let request = client.asked(Method::Listen).0;
    client.feed(Input::Acknowledged(request, everything()));
    let all = [Change::List(ListKind::Tools), updated("a:/b"), updated("a:/c")];
    assert_eq!(client.changes(), all.map(|change| (key, change)));
}

#[test]
fn a_repeatedly_broken_subscription_is_given_up() {
    let mut client = Scripted::modern();
    let (key, mut request) = client.listening(SubscriptionSettings::default());
    let start = client.now;
    for _ in 0..10 {
        client.answer(request, Err(lost()));
        client.advance(Duration::from_secs(30));
        request = client.asked(Method::Listen).0;
    }
    client.answer(request, Err(lost()));
    let (ended, why) = client.ended();
    let why = why.unwrap();
    assert_eq!((ended, why.kind), (key, ErrorKind::Lost));
    assert!(why.message.contains("could not be re-established: it broke"), "{why}");
    client.advance(Duration::from_secs(3600));
    client.silent();
    assert!(client.now - start < Duration::from_secs(4000));
}

#[test]
fn a_long_lived_subscription_resets_the_attempts() {
    let mut client = Scripted::modern();
    let (_, mut request) = client.listening(SubscriptionSettings::default());
    for _ in 0..100 {
        client.advance(Duration::from_secs(5));
        client.answer(request, Err(lost()));
        client.advance(Duration::from_millis(500));
        request = client.asked(Method::Listen).0;
        client.feed(Input::Acknowledged(request, everything()));
        assert_eq!(client.changes().len(), 3);
    }
}

#[test]
fn a_refusal_is_not_tried_again() {
    let mut client = Scripted::modern();
    let (_, request) = client.listening(SubscriptionSettings::default());
    client.answer(request, Err(lost()));
    client.advance(Duration::from_secs(1));
    let request = client.asked(Method::Listen).0;
    client.answer(request, Err(Error::new(ErrorKind::Auth, "HTTP 401")));
    assert_eq!(client.ended().1.unwrap().kind, ErrorKind::Auth);
    client.advance(Duration::from_secs(3600));
    client.silent();
}

#[test]
fn a_subscription_that_outlives_its_end_is_always_re_established() {
    let settings = SubscriptionSettings { outlives_end: true, ..SubscriptionSettings::default() };
    let ends = [Ok(done()), Err(Error::new(ErrorKind::Cancelled, "bye")), Err(lost())];
    for end in ends {
        let mut client = Scripted::modern();
        let (_, request) = client.listening(settings);
        client.answer(request, end);
        client.advance(Duration::from_secs(1));
        client.asked(Method::Listen);
        client.silent();
    }
    let mut client = Scripted::modern();
    let key = client.open_with(&everything(), settings);
    let request = client.asked(Method::Listen).0;
    client.answer(request, Err(lost()));
    client.advance(Duration::from_secs(1));
    let request = client.asked(Method::Listen).0;
    client.feed(Input::Acknowledged(request, everything()));
    assert!(matches!(client.rest.pop_front(), Some(Output::Opened(opened)) if opened == key));
    assert_eq!(client.changes().len(), 3, "the first attempt came to nothing");
}

#[test]
fn a_replacing_subscription_reports_everything_as_changed() {
    let mut client = Scripted::modern();
    let settings =
        SubscriptionSettings { may_have_missed: true, ..SubscriptionSettings::default() };
    client.listening(settings);
    assert_eq!(client.changes().len(), 3);
}

#[test]
fn before_2026_07_28_a_uri_is_asked_for_once() {
    let mut client = Scripted::legacy();
    let first = client.open(&everything());
    let (b, params) = client.asked(Method::Subscribe);
    assert_eq!(params, r#"{"uri":"a:/b"}"#);
    let (c, _) = client.asked(Method::Subscribe);
    let second = client.open(&SubscriptionFilter::default().uri("a:/b"));
    client.silent();
    client.answer(b, Ok(done()));
    assert!(matches!(client.rest.pop_front(), Some(Output::Opened(opened)) if opened == second));
    client.answer(c, Ok(done()));
    assert!(matches!(client.rest.pop_front(), Some(Output::Opened(opened)) if opened == first));
    let third = client.open(&SubscriptionFilter::default().uri("a:/b"));
    assert!(matches!(client.rest.pop_front(), Some(Output::Opened(opened)) if opened == third));

    client.feed(Input::Changed(None, updated("a:/b")));
    let all = [first, second, third].map(|key| (key, updated("a:/b")));
    assert_eq!(client.changes(), all);
    client.feed(Input::Close(first));
    let (_, params) = client.asked(Method::Unsubscribe);
    assert_eq!(params, r#"{"uri":"a:/c"}"#, "others still want a:/b");
    client.feed(Input::Close(second));
    client.silent();
    client.feed(Input::Close(third));
    assert_eq!(client.asked(Method::Unsubscribe).1, r#"{"uri":"a:/b"}"#);
    client.silent();
}

#[test]
fn resubscribing_waits_for_the_unsubscribe_response() {
    let mut client = Scripted::legacy();
    let filter = SubscriptionFilter::default().uri("a:/b");
    let key = client.open(&filter);
    let request = client.asked(Method::Subscribe).0;
    client.feed(Input::Close(key));
    client.silent();
    client.answer(request, Ok(done()));
    let request = client.asked(Method::Unsubscribe).0;
    let key = client.open(&filter);
    client.silent();
    client.answer(request, Err(lost()));
    let request = client.asked(Method::Subscribe).0;
    client.answer(request, Ok(done()));
    assert!(matches!(client.rest.pop_front(), Some(Output::Opened(opened)) if opened == key));
}

#[test]
fn a_rejected_uri_ends_its_subscriptions_and_releases_their_other_uris() {
    let mut client = Scripted::legacy();
    let first = client.open(&everything());
    let second = client.open(&SubscriptionFilter::default().uri("a:/c"));
    let (b, c) = (client.asked(Method::Subscribe).0, client.asked(Method::Subscribe).0);
    client.answer(b, Ok(done()));
    client.answer(c, Err(Error::new(ErrorKind::NotFound, "no such resource")));
    for key in [first, second] {
        let (ended, why) = client.ended();
        assert_eq!((ended, why.unwrap().kind), (key, ErrorKind::NotFound));
    }
    assert_eq!(client.asked(Method::Unsubscribe).1, r#"{"uri":"a:/b"}"#);
    client.silent();
}

#[test]
fn a_new_session_subscribes_every_uri_again() {
    let mut client = Scripted::legacy();
    let key = client.open(&everything());
    for _ in 0..2 {
        let request = client.asked(Method::Subscribe).0;
        client.answer(request, Ok(done()));
    }
    client.rest.clear();
    client.feed(Input::Renewed);
    assert_eq!(client.changes(), [(key, Change::List(ListKind::Tools))]);
    for uri in ["a:/b", "a:/c"] {
        let request = client.asked(Method::Subscribe).0;
        client.answer(request, Ok(done()));
        assert_eq!(client.changes(), [(key, updated(uri))]);
    }
    client.silent();
    client.feed(Input::Renewed);
    client.rest.clear();
    let request = client.asked(Method::Subscribe).0;
    client.answer(request, Err(Error::new(ErrorKind::NotFound, "gone")));
    assert_eq!(client.ended().1.unwrap().kind, ErrorKind::NotFound);
}

#[test]
fn losing_notifications_ends_all_subscriptions() {
    let mut client = Scripted::legacy();
    let key = client.open(&SubscriptionFilter::default().tools());
    assert!(matches!(client.rest.pop_front(), Some(Output::Opened(opened)) if opened == key));
    client.feed(Input::StreamLost("the stream is lost"));
    let (ended, why) = client.ended();
    assert_eq!((ended, why.unwrap().message.as_str()), (key, "the stream is lost"));

    let mut client = Scripted::modern();
    client.listening(SubscriptionSettings::default());
    client.feed(Input::StreamLost("the stream is lost"));
    client.silent();
}

#[test]
fn closing_the_connection_ends_every_subscription() {
    for mut client in [Scripted::modern(), Scripted::legacy()] {
        let key = client.open(&everything());
        let (request, ..) = client.requests.pop_front().unwrap();
        client.requests.clear();
        client.feed(Input::Closed(Some("the server exited")));
        let (ended, why) = client.ended();
        let why = why.unwrap();
        assert_eq!((ended, why.kind, &*why.message), (key, ErrorKind::Lost, "the server exited"));
        client.answer(request, Err(lost()));
        client.silent();
        client.open(&SubscriptionFilter::default().tools());
        assert_eq!(client.ended().1.unwrap().kind, ErrorKind::Lost);
        client.silent();
    }
    let mut client = Scripted::modern();
    client.listening(SubscriptionSettings::default());
    client.feed(Input::Closed(None));
    assert!(client.ended().1.is_none(), "this side closed it");
}

#[test]
fn a_part_of_a_resource_belongs_to_it() {
    let mut client = Scripted::legacy();
    let key = client.open(&everything());
    client.requests.clear();
    for (uri, belongs) in [
        ("a:/b/x", true),
        ("a:/b#x", true),
        ("a:/b?x/y", true),
        ("a:/bx", false),
        ("a:/", false),
        ("b:/b", false),
    ] {
        client.feed(Input::Changed(None, updated(uri)));
        let notified = client.changes();
        assert_eq!(!notified.is_empty(), belongs, "{uri}");
        assert!(notified.iter().all(|change| *change == (key, updated(uri))));
    }
    let mut client = Scripted::modern();
    let (key, request) = client.listening(SubscriptionSettings::default());
    client.feed(Input::Changed(Some(request), updated("b:/elsewhere")));
    assert_eq!(client.changes(), [(key, updated("b:/elsewhere"))], "the server knows its parts");
}
