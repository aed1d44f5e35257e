//! docsearch's index in Rust against the cases that all three languages share.
#![allow(clippy::unwrap_used)] // a panic is how a test fails

use std::fs;
use std::os::unix::{ffi::OsStrExt, fs::symlink};
use std::path::{Path, PathBuf};

use docsearch_index::{Heading, Index};
use serde_json::{Value, json};

/// A folder of one test, removed when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("docsearch-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn of_cases(name: &str) -> Self {
        let base = Self::new(name);
        let root = base.0.join("docs");
        for (path, lines) in cases()["documents"].as_object().unwrap() {
            let file = root.join(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, texts(lines).join("\n")).unwrap();
        }
        fs::write(base.0.join("outside.md"), "# Outside pelican").unwrap();
        symlink(base.0.join("outside.md"), root.join("outside.md")).unwrap();
        symlink(root.join("README.md"), root.join("link.md")).unwrap();
        symlink(root.join("guide"), root.join("linked")).unwrap();
        base
    }

    fn index(&self) -> Index {
        Index::new(&self.0.join("docs"), |_, _, _| {}).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn cases() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/examples/cases.json");
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

fn texts(list: &Value) -> Vec<String> {
    list.as_array().unwrap().iter().map(|item| item.as_str().unwrap().to_owned()).collect()
}

#[test]
fn indexes_the_markdown_files_of_the_folder() {
    let folder = Folder::of_cases("files");
    let index = folder.index();
    assert!(index.documents.keys().eq(&texts(&cases()["paths"])));
    assert_eq!(json!(index.sections), cases()["sections"]);
}

#[test]
fn reports_each_file_of_a_small_folder() {
    let folder = Folder::of_cases("small");
    let mut seen = Vec::new();
    Index::new(&folder.0.join("docs"), |done, total, path| {
        seen.push((done, total, path.to_owned()));
    })
    .unwrap();
    let paths = texts(&cases()["paths"]);
    let expected: Vec<_> =
        (1..).zip(&paths).map(|(done, path)| (done, paths.len(), path.clone())).collect();
    assert_eq!(seen, expected);
}

#[test]
fn reports_a_large_folder_about_a_hundred_times() {
    let folder = Folder::new("large");
    for number in 0..250 {
        fs::write(folder.0.join(format!("{number}.md")), "# x").unwrap();
    }
    let mut seen = Vec::new();
    Index::new(&folder.0, |done, _, _| seen.push(done)).unwrap();
    assert!(seen.into_iter().eq((2..251).step_by(2)));
}

#[test]
fn search() {
    let folder = Folder::of_cases("search");
    let index = folder.index();
    for case in cases()["searches"].as_array().unwrap() {
        let limit = case["limit"].as_u64().map_or(10, |limit| limit.try_into().unwrap());
        let hits = index.search(case["query"].as_str().unwrap(), limit).unwrap();
        let found: Vec<_> = hits.iter().map(|hit| json!([hit.path, hit.title, hit.line])).collect();
        assert_eq!(json!(found), case["hits"], "{case}");
        assert!(hits.is_sorted_by(|a, b| a.score >= b.score), "{case}");
        for hit in hits {
            assert!(hit.score > 0.0, "{case}");
            assert!(hit.snippet.contains(case["snippet"].as_str().unwrap_or("")), "{case}");
            assert!((1..=24).contains(&hit.snippet.split(' ').count()), "{case}");
        }
    }
}

#[test]
fn any_text_is_a_valid_query() {
    let folder = Folder::of_cases("hostile");
    let index = folder.index();
    let numbers: Vec<_> = (0..10_000).map(|number| number.to_string()).collect();
    let long = ["word ".repeat(10_000), "w".repeat(100_000), numbers.join(" ")];
    for query in texts(&cases()["hostile_queries"]).iter().chain(&long) {
        index.search(query, 10).unwrap();
    }
}

#[test]
fn only_indexed_documents_can_be_read() {
    let folder = Folder::of_cases("unknown");
    let index = folder.index();
    for path in texts(&cases()["unknown_paths"]) {
        assert!(
            index.read(&path).unwrap_err().to_string().starts_with("There is no document"),
            "{path}"
        );
        assert!(index.outline(&path).is_err(), "{path}");
    }
    assert_eq!(index.read("guide/café.md").unwrap(), "# Das Café\nEin Ort für Kaffee.");
}

#[test]
fn outline() {
    let folder = Folder::of_cases("outline");
    let index = folder.index();
    for (path, headings) in cases()["outlines"].as_object().unwrap() {
        let found: Vec<Heading> = index.outline(path).unwrap();
        assert_eq!(json!(found), *headings, "{path}");
    }
}

#[test]
fn complete() {
    let folder = Folder::of_cases("complete");
    let index = folder.index();
    for case in cases()["completions"].as_array().unwrap() {
        assert_eq!(json!(index.complete(case["typed"].as_str().unwrap())), case["paths"], "{case}");
    }
}

#[test]
fn bytes_that_are_no_text() {
    let folder = Folder::new("bytes");
    fs::write(folder.0.join("bad.md"), b"# Ibis \xff\nnest").unwrap();
    fs::create_dir(folder.0.join("folder.md")).unwrap();
    let unnamed = folder.0.join(std::ffi::OsStr::from_bytes(b"\xff"));
    fs::create_dir(&unnamed).unwrap();
    fs::write(unnamed.join("unnamed.md"), "# Ibis").unwrap();
    let index = Index::new(&folder.0, |_, _, _| {}).unwrap();
    let titles: Vec<_> =
        index.search("ibis", 10).unwrap().into_iter().map(|hit| hit.title).collect();
    assert_eq!(titles, ["Ibis \u{fffd}"]);
    assert!(index.documents.keys().eq(["bad.md"]));
}
