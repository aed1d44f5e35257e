//! Paths that clients give, resolved inside a folder, by the table that all languages share.

use std::{fs, io, os::unix::fs::symlink};

use gudgeon::{bindings, server::resolve_inside};
use serde_json::Value;

#[test]
fn paths_resolve_inside_the_folder_or_are_refused() {
    let table = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/paths_in_folder.json");
    let table: Value = serde_json::from_str(&fs::read_to_string(table).unwrap()).unwrap();
    let root = std::env::temp_dir().join(format!("gudgeon-inside-{}", std::process::id()));
    fs::create_dir_all(&root).unwrap();
    let real = root.canonicalize().unwrap();
    for file in table["files"].as_array().unwrap() {
        let file = real.join(file.as_str().unwrap());
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, "").unwrap();
    }
    for (link, target) in table["links"].as_object().unwrap() {
        symlink(target.as_str().unwrap(), real.join(link)).unwrap();
    }
    for (path, inside) in table["resolves"].as_object().unwrap() {
        let resolved = resolve_inside(&root, path).unwrap();
        assert_eq!(
            resolved.components().as_path(),
            real.join(inside.as_str().unwrap()).components().as_path(),
            "{path:?}"
        );
    }
    for (problem, paths) in table["refuses"].as_object().unwrap() {
        for path in paths.as_array().unwrap() {
            let path = path.as_str().unwrap();
            let error = resolve_inside(&root, path).unwrap_err().to_string();
            assert!(error.starts_with(&format!("path {path:?} {problem}")), "{error}");
        }
    }
    let of_root =
        |root: std::path::PathBuf| bindings::resolve_inside(&root, "a").unwrap_err().kind();
    assert_eq!(of_root(root.join("missing")), io::ErrorKind::NotFound);
    assert_eq!(of_root(root.join("a/b.txt")), io::ErrorKind::NotADirectory);
    fs::remove_dir_all(root).unwrap();
}
