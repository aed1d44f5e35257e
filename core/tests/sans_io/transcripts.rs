//! Replays every `tests/transcripts/**/*.txt` over each of its transports: `>` is sent, `<` must be received, in order.
//! `UPDATE_TRANSCRIPTS=1` rewrites the `<` lines that differ.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use gudgeon::protocol::Dialect;
use serde_json::Value;

use crate::support::{
    conformance, fixture,
    player::{Player, TransportKind},
    spec,
};

#[test]
fn every_transcript_holds() {
    let mut files = Vec::new();
    collect(&folder(), &mut files);
    assert!(files.len() > 20, "only {} transcripts found", files.len());
    let mut wrong = Vec::new();
    for path in files {
        let mut expected = fs::read_to_string(&path).unwrap();
        for wire in wires(&expected) {
            let actual = replay(&expected, wire);
            if actual == expected {
                continue;
            }
            if env::var_os("UPDATE_TRANSCRIPTS").is_some() {
                fs::write(&path, &actual).unwrap();
                expected = actual;
                continue;
            }
            wrong.push(format!(
                "{} over {wire:?}\n--- expected\n{expected}\n--- actual\n{actual}",
                path.display()
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// The transcript with what came out; a frame that equals the expected one keeps its spelling.
fn replay(transcript: &str, wire: TransportKind) -> String {
    let components = match header(transcript, "middleware").is_some() {
        true => fixture::components_behind_middleware(),
        false => fixture::components_in(dialects(transcript)),
    };
    let limit = header(transcript, "limit").map(|value| value.parse().unwrap());
    let mut player = Player::new(wire, components, limit);
    if let Some((name, value)) =
        header(transcript, "header").and_then(|value| value.split_once(": "))
    {
        player = player.with_header(name, value);
    }
    let mut actual = String::new();
    let mut state = String::new();
    let mut lines = transcript.lines().peekable();
    while let Some(line) = lines.next() {
        actual += line;
        actual.push('\n');
        if !line.starts_with("> ") && !line.starts_with("~ ") {
            continue;
        }
        let mut expected = Vec::new();
        while let Some(line) = lines.next_if(|line| line.starts_with("< ")) {
            expected.push(&line[2..]);
        }
        let sent = match line.split_at(2) {
            ("> ", frame) => player.exchange(&frame.replace("<state>", &state), expected.len()),
            (_, happens) if happens.starts_with("idle") => player.idle(),
            (_, happens) => {
                assert!(happens.starts_with("restart"), "what is meant by {line:?}?");
                player.restart();
                Vec::new()
            }
        };
        for (index, mut sent) in sent.into_iter().enumerate() {
            if let Some((before, rest)) = sent.split_once(r#""requestState":""#) {
                let (found, after) = rest.split_once('"').unwrap();
                found.clone_into(&mut state);
                sent = format!(r#"{before}"requestState":"<state>"{after}"#);
            }
            let same = expected.get(index).filter(|frame| matches(frame, &sent));
            actual += "< ";
            actual += same.map_or(sent.as_str(), |frame| frame);
            actual.push('\n');
        }
    }
    actual
}

/// Every message of ours that the transcripts show, against the published schema of its revision.
#[test]
fn every_frame_fits_its_revisions_schema() {
    if !spec::available() {
        return;
    }
    let mut files = Vec::new();
    collect(&folder(), &mut files);
    let mut checked = 0;
    let mut wrong = Vec::new();
    for path in files {
        let transcript = fs::read_to_string(&path).unwrap();
        if !dialects(&transcript).is_empty() {
            continue;
        }
        let mut conversation = conformance::Conversation::default();
        for line in transcript.lines() {
            if let Some(frame) = line.strip_prefix("> ") {
                conversation.receive(frame);
            } else if let Some(frame) = line.strip_prefix("< ") {
                let frame = serde_json::from_str(frame).unwrap();
                let (count, failures) = conversation.send(&frame);
                checked += count;
                wrong.extend(
                    failures.into_iter().map(|failure| format!("{}: {failure}", path.display())),
                );
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(checked > 200, "only {checked} frames were checked");
}

/// Equal as JSON; `"<any>"` and `"<state>"` stand for any string.
fn matches(expected: &str, actual: &str) -> bool {
    match (serde_json::from_str(expected), serde_json::from_str(actual)) {
        (Ok(expected), Ok(actual)) => equal(&expected, &actual),
        _ => false,
    }
}

fn equal(expected: &Value, actual: &Value) -> bool {
    match (expected, actual) {
        (Value::String(any), Value::String(_)) if any == "<any>" || any == "<state>" => true,
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len()
                && left.iter().zip(right).all(|(left, right)| equal(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .all(|(key, value)| right.get(key).is_some_and(|other| equal(value, other)))
        }
        _ => expected == actual,
    }
}

/// Returns the value of a line `name: …`.
fn header<'a>(transcript: &'a str, name: &str) -> Option<&'a str> {
    transcript.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

fn dialects(transcript: &str) -> Vec<Dialect> {
    let named = header(transcript, "dialects").unwrap_or_default();
    named.split(',').filter(|name| !name.is_empty()).map(|name| name.parse().unwrap()).collect()
}

fn wires(transcript: &str) -> Vec<TransportKind> {
    let named = header(transcript, "wires").unwrap_or("stdio");
    named.split(',').map(|name| TransportKind::named(name.trim())).collect()
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/transcripts")
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "txt") {
            files.push(path);
        }
    }
}
