//! References to variables in the strings of an entry: `${TOKEN}`, `${TOKEN:-default}`, `${env:TOKEN}`, `${workspaceFolder}`.
//!
//! A reference stands for a variable of this process's environment, never for another member of the configuration. Its value is
//! used as it is: references in it are not replaced, so that there are no cycles, and it is never read as JSON. Only a default
//! may hold references, and only the default that is used needs values for them. A `$` without a brace stands for itself.

use std::{
    cell::Cell,
    fmt,
    path::{MAIN_SEPARATOR_STR, Path, PathBuf},
};

/// The number of defaults in defaults that are read.
const MAX_DEPTH: usize = 16;

/// The size that the values in one configuration may have together, in bytes.
const MAX_INSERTED: usize = 4 << 20;

/// Names that stand for folders and not for environment variables.
const FOLDERS: [&str; 4] =
    ["workspaceFolder", "workspaceFolderBasename", "userHome", "pathSeparator"];

/// The notation of a host.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Notation {
    /// Strings are used as they are.
    None,
    /// `${env:NAME}`, `${workspaceFolder}`, `${workspaceFolderBasename}`, `${userHome}`, `${pathSeparator}` and `${/}`.
    Editor,
    /// `${NAME}`.
    Shell,
    /// Both.
    All,
    /// `${env:NAME}` in headers only, as `Entry::read` writes members of Codex that name variables.
    Headers,
}

/// Returns the value of an environment variable.
type Variable<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// Replaces references by the values that they have in one place.
pub struct Resolver<'a> {
    notation: Notation,
    variable: Box<Variable<'a>>,
    workspace: PathBuf,
    home: Option<PathBuf>,
    /// The bytes that were inserted until now.
    inserted: Cell<usize>,
}

impl<'a> Resolver<'a> {
    /// Creates a resolver for a configuration whose host opens the folder `workspace`.
    pub fn new(
        notation: Notation,
        workspace: PathBuf,
        home: Option<PathBuf>,
        variable: impl Fn(&str) -> Option<String> + 'a,
    ) -> Self {
        Self { notation, variable: Box::new(variable), workspace, home, inserted: Cell::new(0) }
    }

    /// Creates a resolver with the environment of this process.
    pub(in crate::client) fn of_process(notation: Notation, workspace: PathBuf) -> Self {
        let home = std::env::var_os(if cfg!(windows) { "USERPROFILE" } else { "HOME" });
        let home = home.filter(|home| !home.is_empty()).map(PathBuf::from);
        Self::new(notation, workspace, home, |name| std::env::var(name).ok())
    }

    /// Replaces the references in a string. Errors if one has no value, is not closed, or belongs to another notation, if
    /// defaults are nested deeper than 16 levels, and if all values that this resolver inserted are larger than 4 MiB
    /// together. Errors show the names of variables, and no defaults or values, which may be secret.
    pub fn resolve(&self, text: &str) -> Result<String, String> {
        match self.notation {
            Notation::None | Notation::Headers => Ok(text.to_owned()),
            notation => Reading { resolver: self, notation, rest: text }.text(0, true),
        }
    }

    /// Replaces the references in the value of a header.
    pub(super) fn resolve_header(&self, text: &str) -> Result<String, String> {
        match self.notation {
            Notation::Headers => {
                Reading { resolver: self, notation: Notation::Editor, rest: text }.text(0, true)
            }
            _ => self.resolve(text),
        }
    }

    /// Returns the folder that a host would open.
    pub fn workspace(&self) -> &Path {
        &self.workspace
    }
}

impl fmt::Debug for Resolver<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resolver").field("notation", &self.notation).finish_non_exhaustive()
    }
}

/// Returns the names of the environment variables whose values a string may get, in any notation.
pub fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split("${").skip(1).filter_map(|rest| {
        let reference = rest.split('}').next()?;
        let name = reference.strip_prefix("env:").unwrap_or(reference);
        let name = name.split_once(":-").map_or(name, |(name, _)| name);
        (is_name(name) && !FOLDERS.contains(&name)).then_some(name)
    })
}

/// A string that is read from its start to its end.
struct Reading<'a> {
    resolver: &'a Resolver<'a>,
    notation: Notation,
    rest: &'a str,
}

impl<'a> Reading<'a> {
    /// Reads the string, or a default up to its closing brace. References in a default that is not `used` need no values.
    fn text(&mut self, depth: usize, is_used: bool) -> Result<String, String> {
        let mut text = String::new();
        loop {
            let end = self.rest.find('}').filter(|_| depth > 0);
            let start = self.rest.find("${").filter(|start| end.is_none_or(|end| *start < end));
            let Some(length) = start.or(end) else {
                text.push_str(self.rest);
                return Ok(text);
            };
            text.push_str(self.take(length));
            if start.is_none() {
                return Ok(text);
            }
            text.push_str(&self.reference(depth, is_used)?);
        }
    }

    /// Reads a reference.
    fn reference(&mut self, depth: usize, is_used: bool) -> Result<String, String> {
        self.take("${".len());
        let reference = self.rest;
        let ends = [reference.find('}'), reference.find(":-")];
        let Some(length) = ends.into_iter().flatten().min() else {
            return Err(not_closed(reference));
        };
        let name = self.take(length);
        if let Some((outer, _)) = name.split_once("${") {
            return Err(format!(
                "a reference begins in the name of {}; only a default may hold references",
                shown(outer)
            ));
        }
        let value = if is_used { self.value(name)? } else { None };
        if self.rest.starts_with('}') {
            self.take(1);
            return match value {
                Some(value) => self.insert(value),
                None if is_used => Err(not_set(name)),
                None => Ok(String::new()),
            };
        }
        if depth == MAX_DEPTH {
            return Err(format!("more than {MAX_DEPTH} defaults are nested in each other"));
        }
        self.take(":-".len());
        // As in a shell, an empty variable has its default.
        let value = value.filter(|value| !value.is_empty());
        let default = self.text(depth + 1, is_used && value.is_none())?;
        match self.rest.strip_prefix('}') {
            Some(rest) => self.rest = rest,
            None => return Err(not_closed(name)),
        }
        value.map_or(Ok(default), |value| self.insert(value))
    }

    /// Returns the value of a name; `None` if it is that of an environment variable that is not set.
    fn value(&self, name: &str) -> Result<Option<String>, String> {
        let resolver = self.resolver;
        if self.notation != Notation::Shell {
            if let Some(name) = name.strip_prefix("env:") {
                return match name {
                    "" => Err("\"${env:}\" names no variable".to_owned()),
                    name => Ok((resolver.variable)(name)),
                };
            }
            let folder = |path: &Path| Ok(Some(path.display().to_string()));
            match name {
                "workspaceFolder" => return folder(&resolver.workspace),
                "workspaceFolderBasename" => {
                    return folder(Path::new(resolver.workspace.file_name().unwrap_or_default()));
                }
                "userHome" => {
                    let home = resolver.home.as_deref();
                    return folder(home.ok_or("${userHome} has no value: HOME is not set")?);
                }
                "pathSeparator" | "/" => return Ok(Some(MAIN_SEPARATOR_STR.to_owned())),
                _ => (),
            }
            if name.starts_with("input:") {
                return Err(format!(
                    "\"${{{name}}}\" is a value that the host asks its user for; write a variable, such as ${{env:TOKEN}}"
                ));
            }
        }
        if self.notation != Notation::Editor && is_name(name) {
            return Ok((resolver.variable)(name));
        }
        Err(format!("{} is a variable that only the host knows", shown(name)))
    }

    fn insert(&self, value: String) -> Result<String, String> {
        let inserted = &self.resolver.inserted;
        inserted.set(inserted.get().saturating_add(value.len()));
        match inserted.get() > MAX_INSERTED {
            true => Err(format!(
                "the values of all variables are larger than {} MiB",
                MAX_INSERTED >> 20
            )),
            false => Ok(value),
        }
    }

    /// Takes the next bytes of the string.
    fn take(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        taken
    }
}

fn not_set(name: &str) -> String {
    let variable = name.strip_prefix("env:").unwrap_or(name);
    format!(
        "the environment variable {variable} is not set; set it, or write a default: ${{{name}:-…}}"
    )
}

fn not_closed(reference: &str) -> String {
    let end = reference.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    let name = &reference[..end.unwrap_or(reference.len())];
    format!("\"${{{name}\" has no closing brace")
}

fn shown(name: &str) -> String {
    format!("\"${{{name}}}\"")
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(notation: Notation, text: &str) -> Result<String, String> {
        let variable = |name: &str| match name {
            "TOKEN" => Some("t".to_owned()),
            "EMPTY" => Some(String::new()),
            "CYCLE" => Some("${CYCLE}".to_owned()),
            "QUOTED" => Some("\", \"x\": \"}".to_owned()),
            "LARGE" => Some("x".repeat(1 << 20)),
            _ => None,
        };
        let resolver =
            Resolver::new(notation, "/home/ada/shelf".into(), Some("/home/ada".into()), variable);
        resolver.resolve(text)
    }

    #[test]
    fn references_are_replaced_in_the_notation_of_the_host() {
        for (notation, text, expected) in [
            (Notation::Editor, "Bearer ${env:TOKEN}", "Bearer t"),
            (
                Notation::Editor,
                "${workspaceFolder}/a ${workspaceFolderBasename}",
                "/home/ada/shelf/a shelf",
            ),
            (Notation::Editor, "${userHome}${/}x", "/home/ada/x"),
            (Notation::Shell, "${TOKEN}:${NONE:-n}:$TOKEN $} }{", "t:n:$TOKEN $} }{"),
            (Notation::All, "${env:TOKEN}${TOKEN}", "tt"),
            (Notation::None, "${env:TOKEN}", "${env:TOKEN}"),
            (Notation::All, "${NONE:-${env:GONE:-${TOKEN}}/é}!", "t/é!"),
            (Notation::All, "${EMPTY}${EMPTY:-e}${NONE:-}", "e"),
            (Notation::All, "${NONE:-a:-$b{}", "a:-$b{"),
        ] {
            assert_eq!(read(notation, text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn values_are_used_as_they_are() {
        assert_eq!(read(Notation::All, "${CYCLE}").as_deref(), Ok("${CYCLE}"));
        assert_eq!(read(Notation::All, "${NONE:-${CYCLE}}").as_deref(), Ok("${CYCLE}"));
        assert_eq!(read(Notation::All, "<${QUOTED}>").as_deref(), Ok("<\", \"x\": \"}>"));
    }

    #[test]
    fn only_the_default_that_is_used_needs_values() {
        assert_eq!(read(Notation::All, "${TOKEN:-${GONE}${input:x}}").as_deref(), Ok("t"));
        assert!(read(Notation::All, "${NONE:-${GONE}}").unwrap_err().contains("GONE is not set"));
    }

    #[test]
    fn a_reference_without_value_is_an_error_that_names_it() {
        for (notation, text, expected) in [
            (
                Notation::Editor,
                "${env:GONE}",
                "GONE is not set; set it, or write a default: ${env:GONE:-…}",
            ),
            (Notation::Shell, "${GONE}", "GONE is not set; set it, or write a default: ${GONE:-…}"),
            (Notation::Editor, "${input:token}", "asks its user for"),
            (
                Notation::Editor,
                "${config:x}",
                "\"${config:x}\" is a variable that only the host knows",
            ),
            (Notation::Editor, "${TOKEN}", "only the host knows"),
            (Notation::Shell, "${file:/etc/x}", "only the host knows"),
            (Notation::Shell, "${env:TOKEN}", "only the host knows"),
            (Notation::All, "${}", "only the host knows"),
            (Notation::All, "${env:}", "names no variable"),
            (Notation::All, "a${TOKEN", "\"${TOKEN\" has no closing brace"),
            (Notation::All, "a${", "\"${\" has no closing brace"),
            (Notation::All, "${TOKEN:-s3cret", "\"${TOKEN\" has no closing brace"),
            (Notation::All, "${NONE:-${TOKEN:-s3cret}", "\"${NONE\" has no closing brace"),
            (Notation::All, "${A${TOKEN}}", "in the name of \"${A}\""),
        ] {
            let error = read(notation, text).unwrap_err();
            assert!(error.contains(expected) && !error.contains("s3cret"), "{error}");
        }
    }

    #[test]
    fn defaults_and_values_are_limited() {
        let nested = |depth: usize| format!("{}x{}", "${NONE:-".repeat(depth), "}".repeat(depth));
        assert_eq!(read(Notation::All, &nested(MAX_DEPTH)).as_deref(), Ok("x"));
        for depth in [MAX_DEPTH + 1, 1 << 20] {
            let error = read(Notation::All, &nested(depth)).unwrap_err();
            assert_eq!(error, "more than 16 defaults are nested in each other");
        }
        assert_eq!(read(Notation::All, &"${LARGE}".repeat(4)).map(|text| text.len()), Ok(4 << 20));
        let error = read(Notation::All, &"${LARGE}".repeat(5)).unwrap_err();
        assert_eq!(error, "the values of all variables are larger than 4 MiB");
    }

    #[test]
    fn a_default_may_be_a_secret_and_a_reference_is_none() {}

    #[test]
    fn names_are_those_of_every_variable_that_a_string_may_get() {
        let text = "${A:-${env:B:-c}}${workspaceFolder}${input:d}${E";
        assert_eq!(names(text).collect::<Vec<_>>(), ["A", "B", "E"]);
    }
}
