//! The queue of changes of a subscription: equal changes are merged, a flood is bounded, and nothing is lost.

use std::task::Poll;

use gudgeon::{
    peer::subscriptions::{Changes, Interests},
    session::client::{Change, ListKind},
};

use crate::support::subscriber::{everything, lost, updated};

fn take(changes: &mut Changes) -> Vec<Change> {
    let mut taken = Vec::new();
    while let Poll::Ready(Some(Ok(change))) = changes.take() {
        taken.push(change);
    }
    taken
}

#[test]
fn repeated_changes_are_merged_until_they_are_taken() {
    let mut changes = Changes::new(Interests::from_filter(&everything()).unwrap());
    for _ in 0..1_000 {
        changes.push(updated("a:/c"));
        changes.push(Change::List(ListKind::Tools));
        changes.push(updated("a:/b"));
    }
    let all = [updated("a:/c"), Change::List(ListKind::Tools), updated("a:/b")];
    assert_eq!(take(&mut changes), all);
    assert!(changes.take().is_pending());
    changes.push(updated("a:/c"));
    assert_eq!(take(&mut changes), [updated("a:/c")]);
}

#[test]
fn a_flood_of_parts_is_bounded_and_loses_nothing() {
    let mut changes = Changes::new(Interests::from_filter(&everything()).unwrap());
    for n in 0..100_000 {
        changes.push(updated(&format!("a:/b/{n}")));
    }
    let taken = take(&mut changes);
    assert!(taken.len() < 2_000, "{}", taken.len());
    assert_eq!(taken.last(), Some(&updated("a:/b")), "the rest");
    for n in 0..100_000 {
        changes.push(updated(&format!("elsewhere:/{n}")));
    }
    let taken = take(&mut changes);
    assert!(taken.len() < 2_000, "{}", taken.len());
    assert_eq!(taken[taken.len() - 2..], [updated("a:/b"), updated("a:/c")]);
}

#[test]
fn pending_changes_precede_the_end_and_the_error_is_returned_once() {
    let mut changes = Changes::new(Interests::from_filter(&everything()).unwrap());
    changes.push(updated("a:/b"));
    changes.end(Some(lost()));
    changes.end(None);
    changes.push(updated("a:/c"));
    assert!(changes.is_ready());
    assert_eq!(take(&mut changes), [updated("a:/b")]);
    let mut changes = Changes::new(Interests::from_filter(&everything()).unwrap());
    changes.end(Some(lost()));
    assert!(matches!(changes.take(), Poll::Ready(Some(Err(error))) if error.message == "it broke"));
    assert!(matches!(changes.take(), Poll::Ready(None)));
}
