//! The inputs that fuzzing begins with: those of the target, the transcripts, and the files of `corpus`.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::Target;

/// Returns the folder of a target below this one: `corpus` or `failures`.
#[must_use]
pub fn folder(kind: &str, target: &Target) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(kind).join(target.name)
}

/// Returns all inputs of a target, with a name for each.
#[must_use]
pub fn inputs(target: &Target) -> Vec<(String, Vec<u8>)> {
    let seeds = target.seeds.iter().enumerate();
    let mut inputs: Vec<_> =
        seeds.map(|(at, seed)| (format!("seed {at}"), seed.as_bytes().to_vec())).collect();
    let mut files = Vec::new();
    if let Some(transcripts) = target.transcripts {
        collect(
            &Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests").join(transcripts),
            &mut files,
        );
        files.retain(|file| file.extension().is_some_and(|extension| extension == "txt"));
    }
    collect(&folder("corpus", target), &mut files);
    inputs.extend(
        files.into_iter().map(|file| (file.display().to_string(), fs::read(file).unwrap())),
    );
    inputs
}

/// Adds the files below a folder, in order; none if there is no folder.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut entries: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() { collect(&path, files) } else { files.push(path) }
    }
}
