//! The fuzzer: `fuzz TARGET [SECONDS [SEED]]` runs a target on mutated inputs, `fuzz TARGET FILE…` on these files.
//!
//! The program stops at the first failure, writes a small input that fails as well to `failures`, and prints how to run it again.

#![allow(clippy::unwrap_used, reason = "it may stop at any problem")]
#![allow(clippy::print_stdout, reason = "its output is for people")]

use std::{
    env,
    fs::{self, File},
    hash::{DefaultHasher, Hash as _, Hasher as _},
    io::{Seek as _, SeekFrom, Write as _},
    panic::{self, AssertUnwindSafe},
    path::{Path, PathBuf},
    process::{self, ExitCode},
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use gudgeon_fuzz::{
    MAX_INPUT, TARGETS, Target, corpus,
    mutate::{Random, mutate},
    run,
};

/// An input that takes longer than this has failed.
const MAX_TIME: Duration = Duration::from_secs(20);

/// The number of inputs run so far.
static RUNS: AtomicU64 = AtomicU64::new(0);

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let target =
        arguments.first().and_then(|name| TARGETS.iter().find(|target| target.name == *name));
    let Some(target) = target else {
        let names: Vec<_> = TARGETS.iter().map(|target| target.name).collect();
        eprintln!(
            "usage: fuzz TARGET [SECONDS [SEED]] or fuzz TARGET FILE…; the targets are {}",
            names.join(", ")
        );
        return ExitCode::FAILURE;
    };
    let rest = &arguments[1..];
    match rest.first().map_or(Ok(60), |argument| argument.parse()) {
        Ok(seconds) => {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
            let seed =
                rest.get(1).map_or(now, |argument| argument.parse().expect("a seed is a number"));
            fuzz(target, Duration::from_secs(seconds), seed)
        }
        Err(_) => replay(target, rest),
    }
}

/// Runs files; a failure shows its message and backtrace.
fn replay(target: &Target, files: &[String]) -> ExitCode {
    for file in files {
        println!("{}: {file}", target.name);
        run(target, &fs::read(file).unwrap());
    }
    ExitCode::SUCCESS
}

fn fuzz(target: &'static Target, time: Duration, seed: u64) -> ExitCode {
    let failures = corpus::folder("failures", target);
    fs::create_dir_all(&failures).unwrap();
    // The input that runs is in this file, for failures that end the process.
    let current = Current::new(failures.join("running"));
    watch(target, current.path.clone());
    let begin = Instant::now();
    let mut random = Random::new(seed);
    let mut inputs = Vec::new();
    let mut reached = Reached::new();
    for (_, input) in corpus::inputs(target) {
        if let Some(failed) = attempt(target, &current, &input) {
            return report(target, &failures, &current, failed);
        }
        reached.add();
        inputs.push(input);
    }
    let initial = inputs.len();
    let mut shown = begin;
    while begin.elapsed() < time {
        let input = mutate(&mut random, &inputs);
        if let Some(failed) = attempt(target, &current, &input) {
            return report(target, &failures, &current, failed);
        }
        if reached.add() > 0 && input.len() <= MAX_INPUT / 4 {
            inputs.push(input);
        }
        if shown.elapsed() > Duration::from_secs(60) {
            shown = Instant::now();
            print_progress(target, begin, &inputs, initial, &reached);
        }
    }
    print_progress(target, begin, &inputs, initial, &reached);
    fs::remove_file(current.path).unwrap();
    ExitCode::SUCCESS
}

fn print_progress(
    target: &Target,
    begin: Instant,
    inputs: &[Vec<u8>],
    initial: usize,
    reached: &Reached,
) {
    println!(
        "{}: {} runs in {} s, {} inputs kept beside {initial}, {} edges reached",
        target.name,
        RUNS.load(Ordering::Relaxed),
        begin.elapsed().as_secs(),
        inputs.len() - initial,
        reached.edges(),
    );
}

/// A file that holds the input that runs.
struct Current {
    path: PathBuf,
    file: File,
}

impl Current {
    fn new(path: PathBuf) -> Self {
        let file = File::create(&path).unwrap();
        Self { path, file }
    }

    fn write(&self, input: &[u8]) {
        let mut file = &self.file;
        file.seek(SeekFrom::Start(0)).unwrap();
        file.write_all(input).unwrap();
        file.set_len(input.len() as u64).unwrap();
    }
}

/// Runs an input. Returns it if it fails.
fn attempt(target: &Target, current: &Current, input: &[u8]) -> Option<Vec<u8>> {
    current.write(input);
    RUNS.fetch_add(1, Ordering::Relaxed);
    fails(target, input).then(|| input.to_vec())
}

fn fails(target: &Target, input: &[u8]) -> bool {
    panic::catch_unwind(AssertUnwindSafe(|| run(target, input))).is_err()
}

/// Writes a failing input, made small, and says how to run it again.
fn report(target: &Target, failures: &Path, current: &Current, input: Vec<u8>) -> ExitCode {
    panic::set_hook(Box::new(|_| ()));
    let input = shrink(target, input);
    let _ = panic::take_hook();
    let mut hasher = DefaultHasher::new();
    input.hash(&mut hasher);
    let file = failures.join(format!("{:016x}", hasher.finish()));
    fs::write(&file, input).unwrap();
    fs::remove_file(&current.path).unwrap();
    tell(target, &file);
    ExitCode::FAILURE
}

fn tell(target: &Target, file: &Path) {
    eprintln!(
        "{} failed; once it is fixed, move the input to fuzz/corpus/{}:",
        target.name, target.name
    );
    eprintln!("  cargo run --release --package gudgeon-fuzz {} {}", target.name, file.display());
}

/// Leaves out lines, then bytes, while the input still fails, for a few seconds.
fn shrink(target: &Target, mut input: Vec<u8>) -> Vec<u8> {
    let begin = Instant::now();
    let is_late = || begin.elapsed() > Duration::from_secs(20);
    let mut size = input.len() / 2;
    while size > 0 && !is_late() {
        let mut at = 0;
        while at < input.len() && !is_late() {
            let mut shorter = input.clone();
            shorter.drain(at..(at + size).min(input.len()));
            if fails(target, &shorter) { input = shorter } else { at += size }
        }
        let mut at = 0;
        while at < input.split(|byte| *byte == b'\n').count() && !is_late() {
            let mut lines: Vec<_> = input.split(|byte| *byte == b'\n').collect();
            lines.remove(at);
            let shorter = lines.join(&b'\n');
            if fails(target, &shorter) { input = shorter } else { at += 1 }
        }
        size /= 2;
    }
    input
}

/// Ends the process if one input takes too long.
fn watch(target: &'static Target, current: PathBuf) {
    thread::spawn(move || {
        loop {
            let runs = RUNS.load(Ordering::Relaxed);
            thread::sleep(MAX_TIME);
            if RUNS.load(Ordering::Relaxed) == runs && runs > 0 && current.exists() {
                eprintln!("an input takes more than {} s", MAX_TIME.as_secs());
                tell(target, &current);
                process::exit(2);
            }
        }
    });
}

#[cfg(feature = "coverage")]
use gudgeon_fuzz::coverage::Reached;

/// Without instrumentation nothing is known of an input.
#[cfg(not(feature = "coverage"))]
struct Reached;

#[cfg(not(feature = "coverage"))]
impl Reached {
    fn new() -> Self {
        Self
    }

    #[expect(clippy::unused_self, reason = "as with instrumentation")]
    fn add(&mut self) -> usize {
        0
    }

    #[expect(clippy::unused_self, reason = "as with instrumentation")]
    fn edges(&self) -> usize {
        0
    }
}
