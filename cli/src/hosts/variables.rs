//! References to variables in the strings of an entry: `${env:TOKEN}`, `${TOKEN:-none}`, `${workspaceFolder}`.

use std::path::{MAIN_SEPARATOR_STR, Path};

use super::Environment;

/// The notation of a host.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Variables {
    /// Strings are used as they are.
    None,
    /// `${env:NAME}`, `${workspaceFolder}`, `${workspaceFolderBasename}`, `${userHome}`, `${pathSeparator}` and `${/}`.
    Editor,
    /// `${NAME}` and `${NAME:-default}`.
    Shell,
    /// Both.
    All,
}

/// Names that stand for folders and not for environment variables.
const FOLDERS: [&str; 4] =
    ["workspaceFolder", "workspaceFolderBasename", "userHome", "pathSeparator"];

/// Replaces the references to variables in a string. `workspace` is the folder of the project. Errors with the reference
/// that has no value.
pub fn resolve(
    variables: Variables,
    text: &str,
    workspace: &Path,
    environment: &Environment,
) -> Result<String, String> {
    if variables == Variables::None {
        return Ok(text.to_owned());
    }
    let mut resolved = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        resolved.push_str(&rest[..start]);
        let reference = &rest[start + 2..];
        let Some(end) = reference.find('}') else {
            return Err(format!("{:?} has no closing brace", &rest[start..]));
        };
        resolved.push_str(&value(variables, &reference[..end], workspace, environment)?);
        rest = &reference[end + 1..];
    }
    resolved.push_str(rest);
    Ok(resolved)
}

/// Returns whether a string consists of one reference and so holds no secret itself.
pub fn is_reference(text: &str) -> bool {
    let name = text.strip_prefix("${").and_then(|it| it.strip_suffix('}'));
    name.is_some_and(|it| !it.contains(['}', '$']) && !it.contains(":-"))
}

/// Returns the names of the environment variables whose values a string gets, in any notation.
pub fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split("${").skip(1).filter_map(|rest| {
        let reference = rest.split('}').next()?;
        let name = reference.strip_prefix("env:").unwrap_or(reference);
        let name = name.split_once(":-").map_or(name, |(name, _)| name);
        let is_name = !name.is_empty()
            && name.chars().all(|each| each.is_ascii_alphanumeric() || each == '_');
        (is_name && !FOLDERS.contains(&name)).then_some(name)
    })
}

fn value(
    variables: Variables,
    name: &str,
    workspace: &Path,
    environment: &Environment,
) -> Result<String, String> {
    let set = |name: &str| {
        environment.variable(name).ok_or_else(|| {
            format!("the environment variable {name} is not set; set it before the command")
        })
    };
    if variables != Variables::Shell {
        if let Some(name) = name.strip_prefix("env:") {
            return set(name);
        }
        match name {
            "workspaceFolder" => return Ok(workspace.display().to_string()),
            "workspaceFolderBasename" => {
                let name = workspace.file_name().unwrap_or_default();
                return Ok(name.to_string_lossy().into_owned());
            }
            "userHome" => {
                return environment
                    .home()
                    .map(|it| it.display().to_string())
                    .map_err(|_| "${userHome} has no value, since HOME is not set".to_owned());
            }
            "pathSeparator" | "/" => return Ok(MAIN_SEPARATOR_STR.to_owned()),
            _ => (),
        }
        if name.starts_with("input:") {
            return Err(format!(
                "\"${{{name}}}\" is a value that the host asks its user for; give the command after `--` instead"
            ));
        }
    }
    if variables != Variables::Editor {
        let (name, default) = name.split_once(":-").map_or((name, None), |it| (it.0, Some(it.1)));
        if !name.is_empty() && name.chars().all(|it| it.is_ascii_alphanumeric() || it == '_') {
            return match (environment.variable(name), default) {
                (Some(value), _) => Ok(value),
                (None, Some(default)) => Ok(default.to_owned()),
                (None, None) => set(name),
            };
        }
    }
    Err(format!("\"${{{name}}}\" is a variable that only the host knows"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hosts::location::{Platform, tests::environment};

    fn read(variables: Variables, text: &str) -> Result<String, String> {
        let environment = environment(Platform::Linux, &[("HOME", "/home/ada"), ("TOKEN", "t")]);
        resolve(variables, text, Path::new("/home/ada/shelf"), &environment)
    }

    #[test]
    fn references_are_replaced_in_the_notation_of_the_host() {
        for (variables, text, expected) in [
            (Variables::Editor, "Bearer ${env:TOKEN}", "Bearer t"),
            (
                Variables::Editor,
                "${workspaceFolder}/a ${workspaceFolderBasename}",
                "/home/ada/shelf/a shelf",
            ),
            (Variables::Editor, "${userHome}${/}x", "/home/ada/x"),
            (Variables::Shell, "${TOKEN}:${NONE:-n}:$TOKEN", "t:n:$TOKEN"),
            (Variables::All, "${env:TOKEN}${TOKEN}", "tt"),
            (Variables::None, "${env:TOKEN}", "${env:TOKEN}"),
        ] {
            assert_eq!(read(variables, text).as_deref(), Ok(expected));
        }
    }

    #[test]
    fn a_reference_without_value_is_an_error_that_names_it() {
        for (variables, text, expected) in [
            (Variables::Editor, "${env:GONE}", "GONE is not set"),
            (Variables::Shell, "${GONE}", "GONE is not set"),
            (Variables::Editor, "${input:token}", "asks its user for"),
            (Variables::Editor, "${config:x}", "only the host knows"),
            (Variables::Shell, "${file:/etc/x}", "only the host knows"),
            (Variables::All, "a${TOKEN", "no closing brace"),
        ] {
            let error = read(variables, text).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn a_default_may_be_a_secret_and_a_reference_is_none() {
        assert!(is_reference("${env:TOKEN}") && is_reference("${TOKEN}"));
        assert!(!is_reference("${TOKEN:-secret}") && !is_reference("x${TOKEN}"));
        assert!(!is_reference("${A}secret${B}"));
    }
}
