//! Replays every `tests/transcripts/**/*.txt`: `>` goes in, `<` must come out, in order.
//! A line `dialects: …` names those that the server speaks. `UPDATE_TRANSCRIPTS=1` rewrites the `<` lines that differ.

#![allow(clippy::unwrap_used, reason = "a test that fails here says where")]

#[path = "support/conformance.rs"]
mod conformance;
#[path = "support/fixture.rs"]
mod fixture;
use std::{
    env, fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Instant,
};

use conformance::spec;
use fixture::{Act, Then, Told};
use gudgeon::{
    protocol::{Dialect, LoggingLevel, Method, Question, json::to_raw},
    router::{Failure, Reply},
    service::{Effect, Input, Output, Run, Service},
    session::{CallId, asking::AskId, server::Progress},
};
use serde_json::{Value, json};

#[test]
fn every_transcript_holds() {
    let mut files = Vec::new();
    collect(&folder(), &mut files);
    assert!(files.len() > 20, "only {} transcripts found", files.len());
    let mut wrong = Vec::new();
    for path in files {
        let expected = fs::read_to_string(&path).unwrap();
        let actual = replay(&expected);
        if actual == expected {
            continue;
        }
        match env::var_os("UPDATE_TRANSCRIPTS") {
            Some(_) => fs::write(&path, actual).unwrap(),
            None => wrong.push(format!(
                "{}\n--- expected\n{expected}\n--- actual\n{actual}",
                path.display()
            )),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// The transcript with what came out; a frame that equals the expected one keeps its spelling.
fn replay(transcript: &str) -> String {
    let mut server = Server::new(dialects(transcript));
    let mut actual = String::new();
    let mut state = String::new();
    let mut lines = transcript.lines().peekable();
    while let Some(line) = lines.next() {
        actual += line;
        actual.push('\n');
        let Some(frame) = line.strip_prefix("> ") else { continue };
        let frame = frame.replace("<state>", &state);
        let mut expected = Vec::new();
        while let Some(line) = lines.next_if(|it| it.starts_with("< ")) {
            expected.push(&line[2..]);
        }
        for (index, sent) in server.exchange(frame.as_bytes()).into_iter().enumerate() {
            if let Some((_, rest)) = sent.split_once(r#""requestState":""#) {
                rest.split('"').next().unwrap().clone_into(&mut state);
            }
            let same = expected.get(index).filter(|it| matches(it, &sent));
            actual += "< ";
            actual += same.map_or(sent.as_str(), |it| it);
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
                conversation.hear(frame);
            } else if let Some(frame) = line.strip_prefix("< ") {
                let frame = serde_json::from_str(frame).unwrap();
                let (count, failures) = conversation.say(&frame);
                checked += count;
                wrong.extend(failures.into_iter().map(|it| format!("{}: {it}", path.display())));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(checked > 200, "only {checked} frames were checked");
}

struct Server {
    service: Service,
    /// What a handler makes of the answer that it waits for.
    waiting: Option<Then>,
    /// The handler of a notification that ran last.
    listener: Option<CallId>,
}

impl Server {
    fn new(dialects: Vec<Dialect>) -> Self {
        Self {
            service: Service::new(
                Arc::new(fixture::offers_in(dialects)),
                &gudgeon::testing::start(Instant::now()),
            ),
            waiting: None,
            listener: None,
        }
    }

    fn exchange(&mut self, frame: &[u8]) -> Vec<String> {
        let mut sent = Vec::new();
        self.service.handle(Instant::now(), Input::Frame(frame));
        while let Some(output) = self.service.poll() {
            match output {
                Output::Send(frame) | Output::Change(frame) => {
                    sent.push(String::from_utf8(frame).unwrap());
                }
                Output::Effect(Effect::Run(run)) => self.run(&run),
                Output::Effect(Effect::Answered { call, outcome, .. }) => {
                    let then = self.waiting.take().unwrap();
                    let reply = outcome
                        .map_err(Failure::from)
                        .and_then(|it| then(&serde_json::from_str(it.get()).unwrap()));
                    if self.listener == Some(call)
                        && let Ok(Reply::Text(text)) = &reply
                    {
                        let (level, data) = (LoggingLevel::Info, to_raw(text));
                        let logger = Some("fixture".into());
                        let log = Input::Log { call, level, logger, data };
                        self.service.handle(Instant::now(), log);
                    }
                    self.service.handle(Instant::now(), Input::Done(call, reply));
                }
                Output::Effect(_) => (),
            }
        }
        sent
    }

    fn run(&mut self, run: &Run) {
        let now = Instant::now();
        let act = run.handler.downcast_ref::<Act>().unwrap();
        let call = run.context.call;
        self.listener = run.is_notification.then_some(call).or(self.listener);
        let mut told = Vec::new();
        let outcome = act(&serde_json::from_str(&run.input).unwrap(), &mut told);
        for told in told {
            let input = match told {
                Told::Progress { progress, total, message } => Input::Progress(
                    call,
                    Progress { progress, total: Some(total), message: Some(message) },
                ),
                Told::Log { level, data } => Input::Log {
                    call,
                    level: LoggingLevel::parse(&level).unwrap(),
                    logger: Some("fixture".into()),
                    data: to_raw(&data),
                },
                Told::Ask { method, params, then } => {
                    self.waiting = Some(then);
                    let question =
                        Question { key: "asked".into(), method, params: to_raw(&params) };
                    Input::Ask { call, ask: AskId(0), question }
                }
                Told::Interview { questions } => Input::Done(call, interview(run, &questions)),
            };
            self.service.handle(now, input);
        }
        if let Some(outcome) = outcome {
            self.service.handle(now, Input::Done(call, outcome));
        }
    }
}

/// The first question that has no answer yet, or the answers.
fn interview(run: &Run, questions: &[(&str, Value); 2]) -> Result<Reply, Failure> {
    let mut answers = Vec::new();
    for (key, params) in questions {
        let found = run.context.answers.get(key, Method::Elicit, &params.to_string());
        let Some(found) = found else {
            let question = json!({"key": key, "method": "elicitation/create", "params": params});
            return Ok(Reply::Questions(json!([question]).to_string()));
        };
        let found: Value = serde_json::from_str(found.get()).unwrap();
        match found["content"]["value"].as_str() {
            Some(answer) => answers.push(answer.to_owned()),
            None => return Err(Failure::Declined(params["message"].as_str().unwrap().into())),
        }
    }
    Ok(Reply::Text(answers.join(" likes ")))
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
                && left.iter().all(|(key, value)| right.get(key).is_some_and(|it| equal(value, it)))
        }
        _ => expected == actual,
    }
}

fn dialects(transcript: &str) -> Vec<Dialect> {
    let named = transcript.lines().find_map(|it| it.strip_prefix("dialects: "));
    named.into_iter().flat_map(|it| it.split(',')).map(|it| it.parse().unwrap()).collect()
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/transcripts")
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = fs::read_dir(folder).unwrap().map(|it| it.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|it| it == "txt") {
            files.push(path);
        }
    }
}
