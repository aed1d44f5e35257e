//! Modules depend on lower layers only. Change `LAYERS` and ARCHITECTURE.md together.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Lowest first: a module may use itself and anything before it.
const LAYERS: &[&str] = &[
    "error",
    "protocol",
    "metrics",
    "log_events",
    "replier",
    "wire",
    "framing",
    "schema",
    "store",
    "auth",
    "session",
    "router",
    "engine",
    "http",
    "peer",
    "service",
    "test_pair",
    "driver",
    "stores",
    "transport",
    "server",
    "client",
    "upstream",
];

/// Modules outside the layers: the low-level public items, and logic that only the bindings share.
const SURFACE: &[&str] = &["bindings", "sans_io", "testing"];

/// Layers below this one know nothing of the outside world.
const FIRST_WITH_IO: &str = "driver";

/// Uses of I/O, clocks, locks, tasks or randomness. They are allowed in tests.
const OUTSIDE: &[&str] = &[
    "tokio::",
    "std::net",
    "std::fs",
    "std::io::",
    "std::thread",
    "std::process",
    "crate::clock",
    "Instant::now",
    "SystemTime::now",
    "Mutex",
    "RwLock",
    "std::env",
    "rustix::",
];

#[test]
fn modules_depend_downwards() {
    for (rank, layer) in LAYERS.iter().enumerate() {
        for path in files(layer) {
            let source = code(&path);
            for above in &LAYERS[rank + 1..] {
                let crosses = [format!("crate::{above}::"), format!("crate::{above}}}")]
                    .iter()
                    .any(|spelling| source.contains(spelling))
                    || imports(&source).iter().any(|module| module == above);
                assert!(!crosses, "{} uses {above}, a layer above its own", path.display());
            }
        }
    }
}

#[test]
fn the_library_lists_its_modules_in_this_order() {
    let source = fs::read_to_string(root().join("lib.rs")).unwrap();
    let listed = source
        .lines()
        .filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'))
        .filter(|name| !SURFACE.contains(name));
    assert_eq!(listed.collect::<Vec<_>>(), LAYERS);
}

#[test]
fn layers_below_the_drivers_have_no_io_clock_or_randomness() {
    for layer in LAYERS.iter().take_while(|layer| **layer != FIRST_WITH_IO) {
        for path in files(layer) {
            let source = code(&path);
            for outside in OUTSIDE {
                assert!(!source.contains(outside), "{} uses {outside}", path.display());
            }
        }
    }
}

#[test]
fn only_wire_and_session_know_that_revisions_differ() {
    for layer in LAYERS.iter().filter(|layer| !["protocol", "wire", "session"].contains(layer)) {
        for path in files(layer) {
            let comparisons = ["revision>", "revision<", "revision==", "Revision::V20", ".era()"];
            assert_has_none(&path, &comparisons);
        }
    }
}

#[test]
fn bindings_do_not_know_that_revisions_differ() {
    for (folder, ending) in [
        ("bindings-python/src", "rs"),
        ("bindings-python/python/gudgeon", "py"),
        ("bindings-node/src", "rs"),
        ("bindings-node/ts", "ts"),
    ] {
        let mut found = Vec::new();
        collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(folder), ending, &mut found);
        assert!(found.len() > 10, "{folder} is where the binding was");
        for path in found {
            let comparisons =
                ["==\"20", "!=\"20", "revision>=", "revision<=", "Revision::V20", ".era()"];
            assert_has_none(&path, &comparisons);
        }
    }
}

fn assert_has_none(path: &Path, words: &[&str]) {
    let source = code(path);
    for word in words {
        assert!(!source.contains(word), "{} has {word}", path.display());
    }
}

/// The names in the first segment of `use crate::{a::…, b::{…}}`, without white space.
fn imports(source: &str) -> Vec<String> {
    let mut names = Vec::new();
    for block in source.split("usecrate::{").skip(1) {
        let (mut depth, mut name) = (0, String::new());
        for letter in block.chars() {
            match letter {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => names.push(std::mem::take(&mut name)),
                letter if depth == 0 => name.push(letter),
                _ => (),
            }
        }
        names.push(name);
    }
    names.into_iter().map(|name| name.split("::").next().unwrap_or_default().to_owned()).collect()
}

/// A file's code without comments, white space and unit tests.
fn code(path: &Path) -> String {
    let source = fs::read_to_string(path).unwrap();
    let source = source.split("#[cfg(test)]\nmod tests {").next().unwrap();
    let source = source.split("#[cfg(all(test").next().unwrap();
    let lines = source.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.flat_map(str::chars).filter(|letter| !letter.is_whitespace()).collect()
}

fn files(layer: &str) -> Vec<PathBuf> {
    let (folder, file) = (root().join(layer), root().join(format!("{layer}.rs")));
    let mut found = Vec::new();
    if file.exists() {
        found.push(file);
    }
    collect(&folder, "rs", &mut found);
    found
}

/// Finds the files with this ending, except unit tests and what these share.
fn collect(folder: &Path, ending: &str, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.map(|entry| entry.unwrap().path()) {
        if path.ends_with("tests") || path.ends_with("tests.rs") {
            continue;
        }
        if path.is_dir() {
            collect(&path, ending, found);
        } else if path.extension().is_some_and(|extension| extension == ending) {
            found.push(path);
        }
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}
