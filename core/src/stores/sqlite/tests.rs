#![allow(clippy::unwrap_used, reason = "a test that fails here says where")]

use std::{fs, sync::Mutex};

use rusqlite::Connection;

use super::*;
use crate::{
    store::StoreEvent,
    stores::tests::{
        Folder, failure, get, lease, message, next, publish, put, release, renew, run, subscribe,
    },
    testing::check_store,
};

const SOON: Duration = Duration::from_millis(50);

#[tokio::test]
async fn it_keeps_the_rules() {
    let folder = Folder::new();
    check_store(Arc::new(SqliteStore::open(folder.path("store")).unwrap())).await.unwrap();
}

#[test]
fn processes_with_the_same_file_share_values_and_messages() {
    let folder = Folder::new();
    let open = || SqliteStore::open(folder.path("store")).unwrap();
    let (one, two) = (open(), open());
    let (_subscription, events) = subscribe(&one);
    assert_eq!(next(&events), StoreEvent::Lost);
    for number in 0..100 {
        assert_eq!(run(&two, publish(&[number])), StoreReply::Published);
    }
    for number in 0..100 {
        assert_eq!(next(&events), message(&[number]));
    }
    let StoreReply::Stored(version) = run(&one, put("a")) else { panic!() };
    assert!(matches!(run(&two, lease("one")), StoreReply::Leased(token) if token > version));
    drop((one, two));
    let reopened = open();
    assert_eq!(run(&reopened, get("a")), StoreReply::Found(Some((b"1".into(), version))));
    assert_eq!(run(&reopened, lease("two")), StoreReply::Held);
    #[cfg(unix)]
    for name in ["store", "store-wal", "store-shm"] {
        let mode = fs::metadata(folder.path(name)).unwrap().permissions();
        assert_eq!(std::os::unix::fs::PermissionsExt::mode(&mode) & 0o777, 0o600, "{name}");
    }
}

#[test]
fn a_file_that_can_not_be_a_store_is_refused_with_its_reason() {
    let folder = Folder::new();
    fs::write(folder.path("text"), "some text, which is longer than the head of a file ".repeat(9))
        .unwrap();
    let other = Connection::open(folder.path("other")).unwrap();
    other.execute_batch("CREATE TABLE books (title TEXT)").unwrap();
    drop(SqliteStore::open(folder.path("newer")).unwrap());
    let newer = Connection::open(folder.path("newer")).unwrap();
    newer.execute_batch("PRAGMA user_version = 2").unwrap();
    drop(SqliteStore::open(folder.path("read-only")).unwrap());
    let mut permissions = fs::metadata(folder.path("read-only")).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(folder.path("read-only"), permissions).unwrap();
    for (name, wanted) in [
        ("missing/store", "its folder does not exist; create it first"),
        (".", "this is a folder"),
        ("text", "the file is not a store"),
        ("other", "the file is the database of another program"),
        ("newer", "the file was written by a newer version"),
        ("read-only", "the file is read-only"),
    ] {
        let path = folder.path(name);
        let error = SqliteStore::open(&path).unwrap_err().to_string();
        assert!(error.contains(wanted) && error.contains(path.to_str().unwrap()), "{error}");
    }
}

#[test]
fn a_file_that_is_locked_fails_what_writes_until_it_is_free() {
    let folder = Folder::new();
    let path = folder.path("store");
    let store = SqliteStore::with_deadline(&path, SOON).unwrap();
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let reason = failure(&store, put("a"));
    assert!(reason.ends_with("store: the file is locked by another process"), "{reason}");
    assert_eq!(run(&store, get("a")), StoreReply::Found(None));
    other.execute_batch("COMMIT").unwrap();
    assert!(matches!(run(&store, put("a")), StoreReply::Stored(_)));
}

#[test]
fn a_clock_that_jumps_ends_leases_early_or_late_and_never_repeats_a_number() {
    let folder = Folder::new();
    let mut file = file::open(&folder.path("store"), SOON).unwrap();
    let mut run = |now, operation| operations::run(&mut file, now, operation).unwrap();
    let (hour, now) = (3_600_000, 1_000_000_000_000);
    let StoreReply::Leased(old) = run(now, lease("one")) else { panic!() };
    assert_eq!(run(now - hour, lease("two")), StoreReply::Held);
    let StoreReply::Stored(version) = run(now - hour, put("a")) else { panic!() };
    assert!(version > old, "{version} after {old}");
    let found = StoreReply::Found(Some((b"1".into(), version)));
    assert_eq!(run(now - hour, get("a")), found);
    // Its owner does not know yet that the lease is over.
    let StoreReply::Leased(new) = run(now + hour, lease("two")) else { panic!() };
    assert!(new > version, "{new} after {version}");
    for late in [renew("one"), lease("one")] {
        assert_eq!(run(now, late), StoreReply::Held);
    }
    assert_eq!(run(now, release("one")), StoreReply::Released);
    assert_eq!(run(now, renew("two")), StoreReply::Leased(new));
    let StoreReply::Stored(last) = run(now, put("a")) else { panic!() };
    assert!(last > new, "{last} after {new}");
}

#[test]
fn a_process_that_fell_behind_learns_that_it_lost_messages() {
    let folder = Folder::new();
    let mut file = file::open(&folder.path("store"), SOON).unwrap();
    let topics = Topics::new(|| ());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let events = Arc::clone(&seen);
    let listener = Arc::new(move |event| events.lock().unwrap().push(event));
    let _subscription = topics.subscribe(vec!["topic".into()], listener);
    let mut messages = Messages::default();
    let mut send = |now, message: &[u8]| {
        let sent = operations::run(&mut file, now, publish(message)).unwrap();
        assert_eq!(sent, StoreReply::Published);
    };
    let now = 1_000_000;
    send(now, b"0");
    let reader = file::open(&folder.path("store"), SOON).unwrap();
    messages.look(&reader, &topics).unwrap();
    send(now, b"1");
    messages.look(&reader, &topics).unwrap();
    send(now, b"2");
    // Those before are removed.
    send(now + 61_000, b"3");
    messages.look(&reader, &topics).unwrap();
    let expected = [StoreEvent::Lost, message(b"1"), StoreEvent::Lost, message(b"3")];
    assert_eq!(*seen.lock().unwrap(), expected);
}
