//! Servers that are given as a file, or as a module and a variable: `server.py`, `server.py:app`, `package.module:app`,
//! `server.ts`, `server.mjs:admin`.

use std::{
    env,
    ffi::OsString,
    fmt,
    path::{Path, PathBuf},
};

use gudgeon::transport;

use super::{interpreter, module, script};
use crate::{failure::Failure, files::read};

/// Starts the text in a variable, because a command line with all of the text would fill each error message. What the text imports
/// never comes from the current folder, which may be another's project.
const PYTHON_START: &str = "import sys; sys.path[:] = filter(None, sys.path); import os; exec(os.environ['GUDGEON_RUNNER'])";
const PYTHON_RUNNER: &str = include_str!("runners/run.py");
const NODE_RUNNER: &str = include_str!("runners/run.mjs");

/// The kinds of files that can be started.
const SUFFIXES: &str = ".py, .ts, .mts, .cts, .js, .mjs or .cjs";

/// A file of a server, or a module of Python.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FileTarget {
    source: Source,
    /// The variable that holds the server, where several do.
    name: Option<String>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
enum Source {
    File(PathBuf, Language),
    Module(String),
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Language {
    Python,
    JavaScript,
    TypeScript,
}

/// A program with its arguments, additional environment variables, and the folder in which it runs, if that is not the
/// current one.
#[derive(Clone, Debug)]
pub struct Launch {
    pub program: OsString,
    pub arguments: Vec<OsString>,
    pub environment: Vec<(OsString, OsString)>,
    pub folder: Option<PathBuf>,
}

impl FileTarget {
    /// Reads a target; `None` if it looks like neither a file nor a module. Errors if it looks like a file, and there is
    /// none.
    pub fn parse(text: &str) -> Result<Option<Self>, Failure> {
        if Path::new(text).is_file() {
            return Ok(Some(Self { source: Source::file(text)?, name: None }));
        }
        let (place, name) = match text.rsplit_once(':') {
            Some((place, name)) if is_dotted(name) => (place, Some(name.to_owned())),
            _ => (text, None),
        };
        if name.is_some() && Path::new(place).is_file() {
            return Ok(Some(Self { source: Source::file(place)?, name }));
        }
        let looks_like_file =
            Language::from_path(Path::new(place)).is_some() || place.contains('/');
        if looks_like_file {
            let message = match Path::new(place).is_dir() {
                true => format!("{place:?} is a folder; give a file of a server"),
                false => format!("there is no file {place:?}"),
            };
            let folder = env::current_dir().unwrap_or_default();
            let hint = super::url_hint(text).unwrap_or_else(|| {
                format!("check the path; the current folder is {}", folder.display())
            });
            return Err(Failure::usage(message).with_hint(hint));
        }
        match name {
            Some(name) if is_dotted(place) => {
                Ok(Some(Self { source: Source::Module(place.to_owned()), name: Some(name) }))
            }
            _ => Ok(None),
        }
    }

    /// Returns the file, or for a module the current folder.
    pub fn path(&self) -> &Path {
        match &self.source {
            Source::File(path, _) => path,
            Source::Module(_) => Path::new("."),
        }
    }

    /// Returns the variable that holds the server, if it was named.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Returns whether this is a module of Python, whose place depends on the current folder.
    pub fn is_module(&self) -> bool {
        matches!(self.source, Source::Module(_))
    }

    /// Returns whether Python runs the server.
    pub fn is_python(&self) -> bool {
        matches!(self.source, Source::Module(_) | Source::File(_, Language::Python))
    }

    /// Errors if this is a module that is neither in the current folder nor installed. Nothing of the project is run.
    pub fn find_module(&self) -> Result<(), Failure> {
        match &self.source {
            Source::Module(name) => module::find(name),
            Source::File(..) => Ok(()),
        }
    }

    /// Returns whether the source says that it uses this library, so that its servers can listen at an address themselves.
    pub fn uses_gudgeon(&self) -> bool {
        match &self.source {
            Source::File(path, language) => {
                let text = read::small(path).unwrap_or_default();
                let text = String::from_utf8_lossy(&text);
                match language {
                    Language::Python => text.lines().any(|line| {
                        let mut words = line.split([' ', '.', ',']);
                        matches!(words.next(), Some("import" | "from"))
                            && words.any(|word| word == "gudgeon")
                    }),
                    _ => text.contains("\"gudgeon\"") || text.contains("'gudgeon'"),
                }
            }
            Source::Module(_) => false,
        }
    }

    /// Returns the program that runs the server: over stdio, or at an address.
    pub fn launch(&self, at: Option<&str>) -> Result<Launch, Failure> {
        let mut environment = Vec::new();
        let mut set = |name: &str, value: OsString| environment.push((OsString::from(name), value));
        if let Some(name) = &self.name {
            set("GUDGEON_RUNNER_NAME", name.into());
        }
        if let Some(at) = at {
            set("GUDGEON_RUNNER_AT", at.into());
        }
        match &self.source {
            Source::Module(name) => {
                set("GUDGEON_RUNNER_MODULE", name.into());
                set("GUDGEON_RUNNER", PYTHON_RUNNER.into());
                Ok(Launch::python(interpreter::python(Path::new(".")), name.into(), environment))
            }
            Source::File(path, Language::Python) => {
                set("GUDGEON_RUNNER_FILE", path.into());
                set("GUDGEON_RUNNER", PYTHON_RUNNER.into());
                let folder = path.parent().unwrap_or(Path::new("."));
                let words = match script::interpreter(path, folder)? {
                    Some(script) => {
                        set("GUDGEON_RUNNER_NEEDS", script.unchecked.join("\n").into());
                        script.words
                    }
                    None => interpreter::python(folder),
                };
                Ok(Launch::python(words, path.into(), environment))
            }
            Source::File(path, language) => {
                let program = match language {
                    Language::TypeScript => interpreter::typescript(path)?,
                    _ => "node".into(),
                };
                let path = std::path::absolute(path)?;
                set("GUDGEON_RUNNER_FILE", path.clone().into());
                let before = env::var_os("NODE_OPTIONS").unwrap_or_default();
                let mut options = before.clone();
                if !options.is_empty() {
                    options.push(" ");
                }
                options.push("--import=data:text/javascript,");
                options.push(percent_encoded(NODE_RUNNER));
                set("NODE_OPTIONS", options);
                set("GUDGEON_RUNNER_NODE_OPTIONS", before);
                Ok(Launch { program, arguments: vec![path.into()], environment, folder: None })
            }
        }
    }
}

impl Source {
    fn file(path: &str) -> Result<Self, Failure> {
        let path = PathBuf::from(path);
        let Some(language) = Language::from_path(&path) else {
            let message =
                format!("{}: its suffix names no language that gudgeon runs", path.display());
            let hint = format!("a server is a file {SUFFIXES}; start any other program after `--`");
            return Err(Failure::usage(message).with_hint(hint));
        };
        Ok(Self::File(path, language))
    }
}

impl Language {
    fn from_path(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "py" => Some(Self::Python),
            "js" | "mjs" | "cjs" => Some(Self::JavaScript),
            "ts" | "mts" | "cts" => Some(Self::TypeScript),
            _ => None,
        }
    }
}

impl Launch {
    /// Returns the launch of a command line: the program, then its arguments.
    pub fn from_words(words: &[OsString]) -> Self {
        let mut words = words.iter().cloned();
        let program = words.next().unwrap_or_default();
        Self { program, arguments: words.collect(), environment: Vec::new(), folder: None }
    }

    /// Returns the launch of the runner in an interpreter, which `words` start.
    fn python(
        words: Vec<OsString>,
        source: OsString,
        environment: Vec<(OsString, OsString)>,
    ) -> Self {
        let mut words = words.into_iter();
        let program = words.next().unwrap_or_default();
        let mut arguments: Vec<OsString> = words.collect();
        arguments.extend(["-c".into(), PYTHON_START.into(), source]);
        Self { program, arguments, environment, folder: None }
    }

    /// Returns the command for a client of the core. The server is the user's own file, so that it gets all of the
    /// environment, as if it were started in the shell.
    pub fn into_command(self) -> transport::Command {
        let mut command = transport::Command::new(self.program).args(self.arguments);
        command.extend(env::vars_os());
        command.extend(self.environment);
        command
    }
}

impl fmt::Display for FileTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source {
            Source::File(path, _) => path.display().fmt(f)?,
            Source::Module(name) => f.write_str(name)?,
        }
        match &self.name {
            Some(name) => write!(f, ":{name}"),
            None => Ok(()),
        }
    }
}

/// Returns whether a string is a name in Python or JavaScript, or several with dots between them.
fn is_dotted(text: &str) -> bool {
    text.split('.').all(|part| {
        let mut chars = part.chars();
        chars.next().is_some_and(|letter| letter.is_alphabetic() || letter == '_' || letter == '$')
            && chars.all(|letter| letter.is_alphanumeric() || letter == '_' || letter == '$')
    })
}

/// Encodes a string for a URL. Lines that are comments are left out.
fn percent_encoded(text: &str) -> String {
    let mut encoded = String::new();
    for line in text.lines().filter(|line| !line.trim_start().starts_with("//")) {
        for byte in line.trim_start().bytes().chain([b'\n']) {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'(' | b')' => {
                    encoded.push(char::from(byte));
                }
                _ => {
                    encoded.push('%');
                    for digit in [byte >> 4, byte & 15] {
                        let digit = char::from_digit(u32::from(digit), 16).unwrap_or_default();
                        encoded.push(digit.to_ascii_uppercase());
                    }
                }
            }
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(name: &str, variable: &str) -> FileTarget {
        FileTarget { source: Source::Module(name.into()), name: Some(variable.into()) }
    }

    #[test]
    fn a_module_and_a_variable_are_a_target() {
        assert_eq!(
            FileTarget::parse("shop.server:app").ok(),
            Some(Some(module("shop.server", "app")))
        );
        assert_eq!(
            FileTarget::parse("server:app.mcp").ok(),
            Some(Some(module("server", "app.mcp")))
        );
    }

    #[test]
    fn a_plain_name_is_no_file() {
        for name in ["docs", "docs:", "my-server", "1:2"] {
            assert_eq!(FileTarget::parse(name).ok(), Some(None), "{name}");
        }
    }

    #[test]
    fn a_missing_file_is_an_error() {
        for name in ["nowhere.py", "nowhere.ts:app", "./nowhere", "a/b"] {
            let failure = FileTarget::parse(name).map_err(|error| error.to_string());
            assert!(failure.is_err_and(|message| message.contains("there is no file")), "{name}");
        }
    }

    #[test]
    fn the_runner_in_a_url_has_no_spaces() {
        assert_eq!(percent_encoded("// why\n  a + \"b\";\n"), "a%20%2B%20%22b%22%3B%0A");
        assert!(!percent_encoded(NODE_RUNNER).contains([' ', '"', '\\']));
    }
}
