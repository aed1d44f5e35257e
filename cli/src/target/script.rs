//! Scripts of Python whose dependencies are in a comment of the file (PEP 723).

use std::{
    ffi::OsString,
    path::Path,
    process::{Command, Stdio},
};

use super::interpreter;
use crate::{
    failure::{Failure, FailureKind},
    files::read,
    hosts::document::toml,
};

/// The interpreter of a script.
pub struct Interpreter {
    /// The words that start it.
    pub words: Vec<OsString>,
    /// The dependencies that the runner has to look for, because nothing installed them.
    pub unchecked: Vec<String>,
}

/// Returns whether a file has the comment.
pub fn is_script(path: &Path) -> bool {
    metadata(path).is_some()
}

/// Returns the interpreter of a script: that of the environment that `uv run --script` uses, made first if need be, else
/// that of the project. `None` if the file is not a script. Errors if uv cannot make the environment, or if the comment cannot
/// be read.
pub fn interpreter(path: &Path, folder: &Path) -> Result<Option<Interpreter>, Failure> {
    let Some(metadata) = metadata(path) else { return Ok(None) };
    if let Some(uv) = interpreter::uv() {
        let words = vec![synced(&uv, path)?];
        return Ok(Some(Interpreter { words, unchecked: Vec::new() }));
    }
    let unchecked = dependencies(&metadata).map_err(|error| {
        Failure::new(FailureKind::File, format!("{}: {error}", path.display()))
            .with_hint("correct the comment that begins with `# /// script`")
    })?;
    Ok(Some(Interpreter { words: interpreter::python(folder), unchecked }))
}

/// Returns the interpreter of a script's environment, brought up to date.
fn synced(uv: &Path, path: &Path) -> Result<OsString, Failure> {
    let run = |words: &[&str]| {
        let mut command = Command::new(uv);
        // Another environment that is active is not meant, and uv would warn of it.
        command.args(words).arg("--script").arg(path).env_remove("VIRTUAL_ENV");
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        command
    };
    let failed = |error: &dyn std::fmt::Display| {
        let message = format!("{}: uv cannot install what the script declares", path.display());
        Failure::new(FailureKind::Connect, format!("{message}: {error}"))
            .with_hint(format!("`uv sync --script {}` shows why", path.display()))
    };
    // An environment that is up to date needs no network and no messages.
    let quiet = run(&["sync", "--offline", "--quiet"]).stderr(Stdio::null()).status();
    if !quiet.map_err(|error| failed(&error))?.success() {
        let status = run(&["sync"]).status().map_err(|error| failed(&error))?;
        if !status.success() {
            return Err(failed(&"its message is above"));
        }
    }
    let found = run(&["python", "find"]).output().map_err(|error| failed(&error))?;
    let python = String::from_utf8_lossy(&found.stdout).trim().to_owned();
    match found.status.success() && !python.is_empty() {
        true => Ok(python.into()),
        false => Err(failed(&"`uv python find` does not find its interpreter")),
    }
}

/// Returns the TOML of a script's comment, `None` if the file has no such comment. Everything else is replaced by blanks, so that
/// errors have the lines and columns of the file.
fn metadata(path: &Path) -> Option<String> {
    let text = String::from_utf8(read::small(path).ok()?).ok()?;
    let lines: Vec<_> = text.lines().map(str::trim_end).collect();
    let start = lines.iter().position(|line| *line == "# /// script")?;
    let is_inside = |line: &&&str| **line == "#" || line.starts_with("# ");
    let length = lines[start + 1..].iter().take_while(is_inside).count();
    let comment = &lines[start + 1..=start + length];
    let end = comment.iter().rposition(|line| *line == "# ///")?;
    let mut toml = "\n".repeat(start + 1);
    for line in &comment[..end] {
        toml.push_str(&line.replacen('#', " ", 1));
        toml.push('\n');
    }
    Some(toml)
}

/// Returns the dependencies in the metadata of a script. Errors with the line and the column, or with what is wrong.
fn dependencies(metadata: &str) -> Result<Vec<String>, String> {
    let metadata = toml::read(metadata)?;
    let Some(dependencies) = metadata.get("dependencies") else { return Ok(Vec::new()) };
    let texts = dependencies.as_array().and_then(|items| {
        items.iter().map(|item| item.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>()
    });
    texts.ok_or_else(|| "\"dependencies\" must be a list of strings".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<Result<Vec<String>, String>> {
        let folder = std::env::temp_dir();
        let path = folder.join(format!("gudgeon-script-{}-{}.py", std::process::id(), text.len()));
        std::fs::write(&path, text).unwrap();
        let read = metadata(&path);
        std::fs::remove_file(&path).unwrap();
        read.map(|metadata| dependencies(&metadata))
    }

    #[test]
    fn the_comment_is_found_as_the_standard_says() {
        for text in
            ["import os\n", "# /// script\n# dependencies = []\n", "# /// other\n#\n# ///\n"]
        {
            assert_eq!(read(text), None, "{text}");
        }
        let text = "#!/usr/bin/env python\n# /// script\r\n#\n# dependencies = [\n#   \"a>=1\", # ///\n# ]\n# ///\n";
        assert_eq!(read(text), Some(Ok(vec!["a>=1".to_owned()])));
        assert_eq!(
            read("# /// script\n# requires-python = \">=3.9\"\n# ///\n"),
            Some(Ok(Vec::new()))
        );
    }

    #[test]
    fn an_error_has_the_place_in_the_file() {
        let error = read("# a\n# /// script\n# dependencies = [\"a\",,]\n# ///\n").unwrap();
        assert!(error.is_err_and(|message| message.starts_with("line 3, column 23: ")));
        let error = read("# /// script\n# dependencies = [1]\n# ///\n").unwrap();
        assert!(error.is_err_and(|message| message.contains("list of strings")));
    }
}
