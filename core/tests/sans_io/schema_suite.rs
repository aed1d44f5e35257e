//! The test suite of the JSON Schema organization (<https://github.com/json-schema-org/JSON-Schema-Test-Suite>), which
//! `make setup` downloads.

use std::{
    fs,
    path::{Path, PathBuf},
};

use gudgeon::schema::Schema;
use serde_json::{Value, json};

/// The suite's folders, and the dialect of each.
const DIALECTS: [(&str, &str); 5] = [
    ("draft4", "http://json-schema.org/draft-04/schema#"),
    ("draft6", "http://json-schema.org/draft-06/schema#"),
    ("draft7", "http://json-schema.org/draft-07/schema#"),
    ("draft2019-09", "https://json-schema.org/draft/2019-09/schema"),
    ("draft2020-12", "https://json-schema.org/draft/2020-12/schema"),
];

/// The files that are not for this validator: `format` and `contentEncoding` are annotations in every dialect.
const OTHERS: [&str; 2] = ["optional/format/", "optional/content.json"];

/// The files with schemas that refer to other documents, which are never fetched.
const REMOTE: [&str; 8] = [
    "defs.json",
    "definitions.json",
    "dynamicRef.json",
    "optional/cross-draft.json",
    "optional/format-assertion.json",
    "ref.json",
    "refRemote.json",
    "vocabulary.json",
];

#[test]
fn every_dialect_is_checked_as_its_suite_says() {
    let suite = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/json-schema-suite/tests");
    assert!(suite.is_dir(), "{} is missing; run `make setup`", suite.display());
    let (mut wrong, mut checks, mut refused) = (Vec::new(), 0, 0);
    for (folder, dialect) in DIALECTS {
        let folder = suite.join(folder);
        for path in files(&folder) {
            let file = path.strip_prefix(&folder).unwrap().to_str().unwrap();
            if OTHERS.iter().any(|other| file.starts_with(other)) {
                continue;
            }
            let groups: Vec<Value> = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
            for group in groups {
                let group = Group { group: &group, dialect };
                match group.run() {
                    Ok((count, failed)) => {
                        checks += count;
                        wrong
                            .extend(failed.into_iter().map(|problem| format!("{file}: {problem}")));
                    }
                    Err(Refused::Remote) if REMOTE.contains(&file) => refused += 1,
                    Err(problem) => wrong.push(format!("{file}: {}: {problem:?}", group.name())),
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(checks > 5_000 && refused < 100, "{checks} checks, {refused} schemas refused");
}

struct Group<'a> {
    group: &'a Value,
    dialect: &'a str,
}

#[derive(Debug)]
enum Refused {
    /// The schema refers to another document.
    Remote,
    #[expect(dead_code, reason = "it is printed")]
    Wrong(String),
}

impl Group<'_> {
    fn name(&self) -> String {
        format!("{} {}", self.dialect, self.group["description"])
    }

    /// Returns the number of checks, and those with another result than the suite says.
    fn run(&self) -> Result<(usize, Vec<String>), Refused> {
        let mut schema = self.group["schema"].clone();
        if let Value::Object(members) = &mut schema {
            members.entry("$schema").or_insert(json!(self.dialect));
        }
        let schema =
            Schema::compile(&schema.to_string()).map_err(|error| match error.is_foreign() {
                true => Refused::Remote,
                false => Refused::Wrong(error.to_string()),
            })?;
        let tests = self.group["tests"].as_array().unwrap();
        let mut wrong = Vec::new();
        for test in tests {
            let outcome = schema.check(&test["data"]);
            if json!(outcome.is_ok()) != test["valid"] {
                wrong.push(format!("{}: {}: {outcome:?}", self.name(), test["description"]));
            }
        }
        Ok((tests.len(), wrong))
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<_> =
        entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect();
    found.sort();
    found
}
