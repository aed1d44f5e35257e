//! The interpreters of a project.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    failure::{Failure, FailureKind},
    files::trust,
};

#[cfg(windows)]
const PYTHON: [&str; 2] = ["Scripts", "python.exe"];
#[cfg(not(windows))]
const PYTHON: [&str; 2] = ["bin", "python"];

/// The files by which uv knows a project.
pub const UV_FILES: [&str; 2] = ["uv.lock", "pyproject.toml"];

/// An interpreter of Python.
pub enum Interpreter {
    /// The one of the virtual environment with this folder, which lies in the project.
    OfProject(PathBuf),
    /// These words have uv start one for the project.
    Uv(Vec<OsString>),
    /// These words start one that the user has chosen or installed.
    OfUser(Vec<OsString>),
}

impl Interpreter {
    /// Returns the words that start it.
    pub fn words(&self) -> Vec<OsString> {
        match self {
            Self::OfProject(environment) => {
                vec![PYTHON.iter().fold(environment.clone(), |path, part| path.join(part)).into()]
            }
            Self::Uv(words) | Self::OfUser(words) => words.clone(),
        }
    }
}

/// Returns the words that start the Python of the project that a folder belongs to.
pub fn python(folder: &Path) -> Vec<OsString> {
    find(folder).words()
}

/// Returns the Python of the project that a folder belongs to: the active virtual environment, else `.venv` in the folder or above,
/// else uv's where there is a lock file of it, else the one that this program was installed into, else the one on the path.
pub fn find(folder: &Path) -> Interpreter {
    if let Some(active) =
        env::var_os("VIRTUAL_ENV").and_then(|folder| in_environment(Path::new(&folder)))
    {
        return Interpreter::OfUser(vec![active.into()]);
    }
    // The folder of a file without one is empty.
    let folder =
        env::current_dir().map_or_else(|_| folder.to_owned(), |current| current.join(folder));
    let below = PYTHON.iter().fold(PathBuf::from(".venv"), |path, part| path.join(part));
    if let Some(found) = folder.ancestors().find(|folder| trust::has(folder, &[&below])) {
        return Interpreter::OfProject(found.join(".venv"));
    }
    let locked = folder.ancestors().find(|folder| trust::has(folder, &UV_FILES.map(Path::new)));
    if let (Some(project), Some(uv)) = (locked, uv()) {
        let words = ["run", "--project"].map(OsString::from);
        let words = [uv.into()].into_iter().chain(words);
        let words = words.chain([project.into(), OsString::from("python")]);
        return Interpreter::Uv(words.collect());
    }
    let beside =
        env::current_exe().ok().and_then(|program| Some(program.parent()?.join(PYTHON[1])));
    let found = beside.filter(|path| path.is_file()).or_else(|| on_path("python3"));
    let found = found.or_else(|| on_path("python"));
    Interpreter::OfUser(vec![found.map_or_else(|| "python3".into(), Into::into)])
}

/// Returns the program that runs a TypeScript file: Node where it removes types itself, else `tsx` of the project. Errors if
/// there is neither.
pub fn typescript(file: &Path) -> Result<OsString, Failure> {
    let version = node_version(Path::new("node"));
    if version.is_some_and(strips_types) {
        return Ok("node".into());
    }
    let file_path = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    let below = Path::new("node_modules/.bin/tsx");
    let local = file_path.ancestors().skip(1).find(|folder| trust::has(folder, &[below]));
    if let Some(tsx) = local.map(|folder| folder.join(below)).or_else(|| on_path("tsx")) {
        return Ok(tsx.into());
    }
    let found = version.map_or_else(
        || "there is no Node on the PATH".to_owned(),
        |(major, minor)| format!("this is Node {major}.{minor}"),
    );
    let message =
        format!("{}: TypeScript needs Node 22.18 or newer, or tsx; {found}", file.display());
    Err(Failure::new(FailureKind::Connect, message)
        .with_hint("install tsx in the project: npm install --save-dev tsx"))
}

/// Returns whether this version of Node runs TypeScript without an option.
pub fn strips_types((major, minor): (u32, u32)) -> bool {
    (major == 22 && minor >= 18) || (major == 23 && minor >= 6) || major > 23
}

/// Returns the version of a Node program, without the last number. `None` if it does not run.
pub fn node_version(node: &Path) -> Option<(u32, u32)> {
    let output = Command::new(node).arg("--version").output().ok()?;
    parsed_version(&String::from_utf8_lossy(&output.stdout))
}

/// Reads a version as Node prints it, such as `v22.18.0`.
fn parsed_version(text: &str) -> Option<(u32, u32)> {
    let mut parts = text.trim().trim_start_matches('v').split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

fn in_environment(environment: &Path) -> Option<PathBuf> {
    let python = environment.join(PYTHON[0]).join(PYTHON[1]);
    python.is_file().then_some(python)
}

/// Returns the path of uv, also in the folder of its installer, which is not on the path of programs that a desktop starts.
pub fn uv() -> Option<PathBuf> {
    let beside_others = || Some(PathBuf::from(env::var_os("HOME")?).join(".local/bin/uv"));
    on_path("uv").or_else(|| beside_others().filter(|path| path.is_file()))
}

/// Returns the path of a program that the shell would find.
fn on_path(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path)
        .flat_map(|folder| {
            [folder.join(name), folder.join(format!("{name}{}", env::consts::EXE_SUFFIX))]
        })
        .find(|program| program.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn node_removes_types_from_22_18_and_from_23_6_on() {
        let all = [(20, 20), (22, 17), (22, 18), (23, 5), (23, 6), (24, 0)];
        assert_eq!(all.map(strips_types), [false, false, true, false, true, true]);
        let does = |text: &str| parsed_version(text).is_some_and(strips_types);
        assert!(does("v22.18.0\n") && does("v23.6.1") && does("v24.0.0"));
        assert!(!does("v22.17.9") && !does("v23.5.0") && !does("v20.19.0") && !does(""));
    }
}
