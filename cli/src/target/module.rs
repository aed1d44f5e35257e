//! Looks for a module of Python. Nothing of the project that it may belong to is run: not the module, not the project's interpreter,
//! and no file that an interpreter runs when it starts.

use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use super::interpreter::{self, Interpreter};
use crate::{
    failure::{Failure, FailureKind},
    files::read,
};

/// Looks for an installed module without running its packages. The interpreter is started so that it ignores the current folder.
const FIND_INSTALLED: &str = "\
import sys
from importlib import machinery, util
parts = sys.argv[1].split('.')
spec = util.find_spec(parts[0])
for end in range(2, len(parts) + 1):
    within = spec and spec.submodule_search_locations
    spec = within and machinery.PathFinder.find_spec('.'.join(parts[:end]), within)
sys.exit(not spec)
";

/// Errors if a module is neither in the current folder nor installed.
pub(super) fn find(name: &str) -> Result<(), Failure> {
    let folder = env::current_dir().unwrap_or_default();
    if is_in(&folder, name) {
        return Ok(());
    }
    let interpreter = interpreter::find(Path::new("."));
    let is_found = match &interpreter {
        Interpreter::OfProject(environment) => is_installed(environment, name),
        // It would build the project, whose packages may be anywhere in it.
        Interpreter::Uv(_) => true,
        Interpreter::OfUser(words) => knows(words, name)?,
    };
    if is_found {
        return Ok(());
    }
    let words = interpreter.words();
    let program = words.first().map(|word| word.to_string_lossy()).unwrap_or_default();
    let message =
        format!("there is no Python module {name:?} in {} or in {program}", folder.display());
    Err(Failure::usage(message)
        .with_hint("repeat the command in the folder of the project, or name the file"))
}

/// Returns whether a folder has a module: a file, or a folder of a package.
fn is_in(folder: &Path, name: &str) -> bool {
    let (parents, last) = name.rsplit_once('.').unwrap_or(("", name));
    let within = parents.split('.').fold(folder.to_owned(), |path, part| path.join(part));
    let Ok(entries) = fs::read_dir(&within) else { return false };
    entries.flatten().map(|entry| entry.path()).any(|path| {
        let is_named = |of: Option<&std::ffi::OsStr>| of.is_some_and(|text| text == last);
        match path.extension().and_then(|suffix| suffix.to_str()) {
            None => is_named(path.file_name()) && path.is_dir(),
            Some("py") => is_named(path.file_stem()),
            // An extension module, such as `name.cpython-311-x86_64-linux-gnu.so`.
            Some("so" | "pyd") => {
                let file = path.file_name().unwrap_or_default().to_string_lossy();
                file.split('.').next() == Some(last)
            }
            Some(_) => false,
        }
    })
}

/// Returns whether a module is installed in a virtual environment, or in a folder that this one names.
fn is_installed(environment: &Path, name: &str) -> bool {
    site_packages(environment).any(|folder| {
        is_in(&folder, name) || named_folders(&folder).iter().any(|folder| is_in(folder, name))
    })
}

/// Returns the folders of installed packages.
fn site_packages(environment: &Path) -> impl Iterator<Item = PathBuf> {
    let versions = fs::read_dir(environment.join("lib")).into_iter().flatten().flatten();
    let of_versions = versions.map(|entry| entry.path().join("site-packages"));
    of_versions.chain([environment.join("Lib").join("site-packages")])
}

/// Returns the folders that files with the suffix `.pth` name, as those of projects that are installed in place do.
fn named_folders(packages: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(packages).into_iter().flatten().flatten();
    let files = entries.map(|entry| entry.path());
    let files = files.filter(|path| path.extension().is_some_and(|suffix| suffix == "pth"));
    let texts = files.filter_map(|path| String::from_utf8(read::small(&path).ok()?).ok());
    let lines = texts.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>());
    // Lines of code are not run.
    let folders = lines.filter(|line| !line.starts_with("import")).map(|line| packages.join(line));
    folders.filter(|folder| folder.is_dir()).collect()
}

/// Returns whether an interpreter of the user's own has a module. It runs nothing of the current folder.
fn knows(words: &[OsString], name: &str) -> Result<bool, Failure> {
    let (program, rest) = words.split_first().ok_or_else(|| Failure::usage("no Python"))?;
    let output = Command::new(program).args(rest).args(["-I", "-c", FIND_INSTALLED, name]).output();
    let program = program.to_string_lossy();
    let output = output.map_err(|error| {
        Failure::new(FailureKind::Connect, format!("{program} could not be started: {error}"))
            .with_hint("install Python: https://www.python.org")
    })?;
    Ok(output.status.success())
}
