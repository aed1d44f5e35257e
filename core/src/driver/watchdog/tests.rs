use super::*;

const TERMINATE: i32 = 15;
const INTERRUPT: i32 = 2;
const LIMIT: Duration = Duration::from_secs(5);

fn started(now: Instant) -> Shutdown {
    let mut shutdown = Shutdown::new(Duration::ZERO);
    shutdown.started(now, LIMIT);
    shutdown
}

#[test]
fn a_lock_that_another_thread_keeps_is_not_waited_for() {
    let state = Mutex::new(1);
    assert_eq!(lock_soon(&state).as_deref(), Some(&1));
    let _kept = state.lock();
    assert!(lock_soon(&state).is_none());
}

#[test]
fn the_process_ends_with_the_status_of_its_cause_after_the_limit() {
    let now = Instant::now();
    let causes: [(Option<i32>, i32); 3] =
        [(None, 1), (Some(TERMINATE), 143), (Some(INTERRUPT), 130)];
    for (signal, status) in causes {
        let mut shutdown = started(now);
        match signal {
            None => shutdown.end_of_input(now),
            Some(number) => assert!(shutdown.signal(now, number, 1)),
        }
        assert_eq!(shutdown.expired(now), None);
        assert_eq!(shutdown.expired(now + LIMIT), Some(status));
    }
}

#[test]
fn handlers_that_end_in_time_end_the_deadline() {
    let now = Instant::now();
    let mut shutdown = started(now);
    shutdown.end_of_input(now);
    shutdown.handlers_ended();
    shutdown.end_of_input(now);
    assert_eq!(shutdown.expired(now + 2 * LIMIT), None);
}

#[test]
fn a_second_signal_ends_the_process_at_once_also_after_the_handlers() {
    let now = Instant::now();
    for has_ended in [false, true] {
        let mut shutdown = started(now);
        assert!(shutdown.signal(now, INTERRUPT, 1));
        if has_ended {
            shutdown.handlers_ended();
        }
        assert!(!shutdown.signal(now, TERMINATE, 2));
        assert_eq!(shutdown.expired(now), Some(143));
        assert_eq!(shutdown.message(&[]), None);
    }
}

#[test]
fn the_first_signal_says_once_what_is_waited_for() {
    let now = Instant::now();
    let running = ["tool \"slow\"".to_owned()];
    let mut shutdown = started(now);
    assert_eq!(shutdown.announcement(&running), None);
    assert!(shutdown.signal(now, INTERRUPT, 1));
    assert_eq!(shutdown.announcement(&[]), None);
    let message = shutdown.announcement(&running).unwrap();
    assert!(message.contains("waiting up to 2 s for tool \"slow\"; a second Ctrl-C"), "{message}");
    assert_eq!(shutdown.announcement(&running), None);
    let mut shutdown = started(now);
    shutdown.end_of_input(now);
    assert_eq!(shutdown.announcement(&running), None);
    let mut shutdown = started(now);
    shutdown.signal(now, INTERRUPT, 1);
    shutdown.handlers_ended();
    assert_eq!(shutdown.announcement(&running), None);
}

#[test]
fn a_signal_after_the_end_of_the_input_decides_the_status_and_not_the_time() {
    let now = Instant::now();
    let mut shutdown = started(now);
    shutdown.end_of_input(now);
    shutdown.signal(now + LIMIT / 2, TERMINATE, 1);
    assert_eq!(shutdown.expired(now + LIMIT), Some(143));
}

#[test]
fn a_report_of_the_same_signal_counts_once() {
    let now = Instant::now();
    let mut shutdown = started(now);
    shutdown.signal(now, TERMINATE, 1);
    shutdown.signal(now, TERMINATE, 1);
    assert_eq!(shutdown.expired(now), None);
}

#[test]
fn a_signal_before_the_server_runs_counts_from_its_start() {
    let now = Instant::now();
    let mut shutdown = Shutdown::new(Duration::ZERO);
    shutdown.signal(now, TERMINATE, 1);
    assert_eq!(shutdown.expired(now + LIMIT), None);
    shutdown.started(now + LIMIT, LIMIT);
    assert_eq!(shutdown.expired(now + 2 * LIMIT), Some(143));
}

#[test]
fn the_message_names_what_runs_and_the_status() {
    let now = Instant::now();
    let mut shutdown = started(now);
    shutdown.end_of_input(now);
    let message = shutdown.message(&["tool \"spin\"".to_owned()]).unwrap_or_default();
    assert!(
        message.contains("5 s after the client disconnected (tool \"spin\")")
            && message.contains("status 1"),
        "{message}"
    );
}

#[test]
fn nothing_ends_the_process_once_it_is_over() {
    let now = Instant::now();
    let mut shutdown = started(now);
    shutdown.end_of_input(now);
    shutdown.over();
    shutdown.signal(now, TERMINATE, 1);
    shutdown.signal(now, TERMINATE, 2);
    assert_eq!(shutdown.expired(now + 2 * LIMIT), None);
}
