//! Targets of clients that are given as data: URLs, commands, and entries of `mcpServers` in a host's configuration.

use std::{fmt, path::PathBuf};

use serde_json::Value;

use super::{
    ClientBuilder, Target,
    configuration::{Entry, NO_HEADERS, Notation, Resolver, object_of},
};
use crate::{
    error::{Error, Language, given::Problem},
    protocol::json,
    transport::{Command, Scheme, Url, url::without_secrets},
};

/// The files that interpreters run; as a string they are probably meant as paths.
const SCRIPTS: [&str; 6] = [".py", ".js", ".mjs", ".cjs", ".ts", ".mts"];

/// The address or the command of a server, with the headers for it.
#[derive(Clone)]
pub struct ConfiguredTarget {
    server: Server,
    headers: Vec<(String, String)>,
    /// `true` if the command is started again after it ended.
    restarts: bool,
}

#[derive(Clone, Debug)]
enum Server {
    Url(Url),
    Command(Command),
}

impl fmt::Debug for ConfiguredTarget {
    /// Leaves out the values of headers, which may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
        f.debug_struct("ConfiguredTarget")
            .field("server", &self.server)
            .field("headers", &names)
            .field("restarts", &self.restarts)
            .finish()
    }
}

/// The language whose notation errors use.
#[derive(Clone, Copy)]
struct Reader(Language);

impl ConfiguredTarget {
    /// Reads a URL or an entry of `mcpServers`, and the headers of the client's options, given as JSON.
    ///
    /// An entry is one of [`Entry`]; its strings are used as they are. The client's headers replace those of the entry.
    pub fn read(language: Language, given: &[u8], headers: &[u8]) -> Result<Self, Problem> {
        let reader = Reader(language);
        let own = reader.headers(&parse(headers)?)?;
        let mut read = reader.read(&parse(given)?)?;
        read.headers
            .retain(|(name, _)| !own.iter().any(|(other, _)| other.eq_ignore_ascii_case(name)));
        read.headers.extend(own);
        read.checked()
    }

    /// Returns the target of an entry without references. Errors if it has an invalid URL, a NUL character, or headers for an
    /// address that takes none.
    pub fn from_entry(language: Language, entry: &Entry) -> Result<Self, Problem> {
        Reader(language).entry(entry)?.checked()
    }

    fn checked(self) -> Result<Self, Problem> {
        match self.headers.is_empty() || self.target().takes_headers() {
            true => Ok(self),
            false => Err(Problem::not_allowed(NO_HEADERS)),
        }
    }

    /// Checks the headers of the client's options for a target that is not data, and so takes none.
    pub fn check_headers(language: Language, headers: &[u8]) -> Result<(), Problem> {
        let reader = Reader(language);
        match reader.headers(&parse(headers)?)?.is_empty() {
            true => Ok(()),
            false => Err(Problem::not_allowed(NO_HEADERS)),
        }
    }

    /// Returns the server's name in errors; a URL without its query, which may be a secret.
    pub fn name(&self) -> String {
        self.target().to_string()
    }

    /// Returns a builder of a client for this server.
    pub fn builder(&self) -> ClientBuilder {
        self.configure(ClientBuilder::new(self.target()))
    }

    /// Sets the options of a client that belong to this server.
    pub(crate) fn configure(&self, builder: ClientBuilder) -> ClientBuilder {
        builder.options(|options| {
            options.headers.clone_from(&self.headers);
            options.restart = self.restarts;
        })
    }

    pub(crate) fn target(&self) -> Target {
        match self.server.clone() {
            Server::Url(url) => url.into(),
            Server::Command(command) => command.into(),
        }
    }
}

impl Reader {
    fn read(self, given: &Value) -> Result<ConfiguredTarget, Problem> {
        match given {
            Value::String(url) => self.address(url, Vec::new()),
            Value::Object(_) => {
                let resolver = Resolver::of_process(Notation::None, PathBuf::new());
                let entry = Entry::read(self.0, given)?.resolve(&resolver);
                self.entry(&entry.map_err(Problem::not_allowed)?)
            }
            _ => Err(Problem::wrong_type(format!("{given} is not a target"))),
        }
    }

    fn entry(self, entry: &Entry) -> Result<ConfiguredTarget, Problem> {
        let (program, arguments, environment, inherits, folder, restarts) = match entry {
            Entry::Url { url, headers } => return self.address(url, headers.clone()),
            Entry::Command {
                program, arguments, environment, inherits, folder, restarts, ..
            } => (program, arguments, environment, *inherits, folder, *restarts),
        };
        let arguments = arguments.iter().map(|argument| word(argument));
        let mut command =
            Command::new(word(program)?).args(arguments.collect::<Result<Vec<_>, _>>()?);
        if inherits {
            command.extend(std::env::vars_os());
        }
        for (name, value) in environment {
            command = command.env(name, value);
        }
        if let Some(folder) = folder {
            command = command.cwd(word(folder)?);
        }
        Ok(ConfiguredTarget { server: Server::Command(command), headers: Vec::new(), restarts })
    }

    fn address(
        self,
        url: &str,
        headers: Vec<(String, String)>,
    ) -> Result<ConfiguredTarget, Problem> {
        let url = Url::parse(url).map_err(|error| self.no_url(url, &error))?;
        Ok(ConfiguredTarget { server: Server::Url(url), headers, restarts: false })
    }

    /// Errors never show a value, since it may be a secret.
    fn headers(self, given: &Value) -> Result<Vec<(String, String)>, Problem> {
        let Value::Object(headers) = given else {
            let problem = format!("headers must be {} of names and values", object_of(self.0));
            return if given.is_null() {
                Ok(Vec::new())
            } else {
                Err(Problem::wrong_type(problem))
            };
        };
        let read = |(name, value): (&String, &Value)| match value {
            Value::String(value) => Ok((name.clone(), value.clone())),
            _ => Err(Problem::wrong_type(format!("the header {name:?} must be a string"))),
        };
        headers.iter().map(read).collect()
    }

    fn no_url(self, text: &str, error: &Error) -> Problem {
        if Scheme::from_url(text).is_some() {
            return Problem::not_allowed(error);
        }
        let text = &*without_secrets(text);
        let is_script = !text.contains(' ') && SCRIPTS.iter().any(|ending| text.ends_with(ending));
        let fix = if self.is_python() && is_script {
            format!("to run that file, write Path({})", quoted(text))
        } else if let Some(url) = Url::with_scheme(text) {
            format!("write {}", self.quote(&url))
        } else if self.is_python() {
            format!("a command is a list of words: {}", self.words(text))
        } else {
            let words = text.trim();
            let (program, args) = words.split_once(char::is_whitespace).unwrap_or((words, ""));
            let args = self.words(args);
            match self.0 {
                Language::Rust => {
                    format!("for a command write {{\"command\": {program:?}, \"args\": {args}}}")
                }
                _ => format!("for a command write {{ command: {program:?}, args: {args} }}"),
            }
        };
        Problem::not_allowed(format!("{text:?} must be a URL ({}); {fix}", Scheme::names()))
    }

    /// Returns the words of a string as a list of the language.
    fn words(self, text: &str) -> String {
        let words: Vec<_> = text.split_whitespace().map(|word| self.quote(word)).collect();
        format!("[{}]", words.join(if self.is_python() { ", " } else { "," }))
    }

    /// Returns a string literal of the language.
    fn quote(self, text: &str) -> String {
        if self.is_python() { quoted(text) } else { format!("{text:?}") }
    }

    fn is_python(self) -> bool {
        self.0 == Language::Python
    }
}

fn parse(json: &[u8]) -> Result<Value, Problem> {
    json::from_bytes(json).map_err(Problem::wrong_type)
}

fn word(word: &str) -> Result<&str, Problem> {
    match word.contains('\0') {
        true => {
            Err(Problem::not_allowed(format!("a command can't hold a NUL character: {word:?}")))
        }
        false => Ok(word),
    }
}

/// Returns a string as Python shows it.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LANGUAGES: [Language; 3] = [Language::Python, Language::TypeScript, Language::Rust];

    fn read(
        language: Language,
        given: &str,
        headers: Option<&str>,
    ) -> Result<ConfiguredTarget, Problem> {
        let headers = headers.unwrap_or("null");
        ConfiguredTarget::read(language, given.as_bytes(), headers.as_bytes())
    }

    #[test]
    fn entries_are_commands_or_addresses() {
        let entry = r#"{"type":"stdio","command":"npx","args":["-y","a b"],"env":{"A":"1","B":null},
            "cwd":"/srv","restart":true,"url":"http://a/","headers":{},"disabled":false}"#;
        let place = read(Language::Python, entry, None).unwrap();
        assert_eq!((place.name().as_str(), place.restarts), (r#"npx -y "a b""#, true));
        let command = Command::new("npx").args(["-y", "a b"]).env("A", "1").cwd("/srv");
        let Server::Command(read_command) = place.server else { panic!("{place:?}") };
        assert_eq!(read_command, command);
        let place = read(Language::Python, r#"{"type":"http","url":"http://a/mcp?key=1"}"#, None);
        assert_eq!(place.unwrap().name(), "http://a/mcp?…");
        assert_eq!(
            read(Language::TypeScript, r#""ws://a/mcp""#, None).unwrap().name(),
            "ws://a/mcp"
        );
    }

    #[test]
    fn headers_of_the_options_replace_those_of_the_entry() {
        let entry = r#"{"url":"http://a/","headers":{"X-Tenant":"a","authorization":"old"}}"#;
        let place = read(Language::Python, entry, Some(r#"{"Authorization":"new"}"#)).unwrap();
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(place.headers, [pair("X-Tenant", "a"), pair("Authorization", "new")]);
        let shown = format!("{place:?}");
        assert!(shown.contains("Authorization") && !shown.contains("new"), "{shown}");
        let own = r#"{"A":"b"}"#;
        let refused = [
            read(Language::Python, r#"{"command":"a"}"#, Some(own)).unwrap_err(),
            read(Language::Python, r#"{"url":"tcp://a:1","headers":{"A":"b"}}"#, None).unwrap_err(),
            read(Language::Python, r#"{"command":"a","headers":{"A":"b"}}"#, None).unwrap_err(),
            ConfiguredTarget::check_headers(Language::Python, own.as_bytes()).unwrap_err(),
        ];
        for problem in refused {
            assert!(problem.is_range && problem.message.contains("http, https, ws and wss"));
        }
        assert_eq!(ConfiguredTarget::check_headers(Language::Python, b"{}"), Ok(()));
    }

    #[test]
    fn an_error_names_the_member_and_the_fix() {
        for (given, is_range, text) in [
            (r#"{"mcpServers":{}}"#, true, "a configuration of several servers; "),
            (r#"{"command":""}"#, false, "command must be a program's name or path"),
            (r#"{"command":"a","type":"http"}"#, true, r#"must be "stdio", not "http""#),
            (r#"{"command":"a\u0000"}"#, true, "NUL"),
            (r#"{"url":"nonsense"}"#, true, r#""nonsense" must be a URL (http, https, ws"#),
            (r#""tcp://a""#, true, "tcp://host:port"),
            (r#""ftp://me:secret@a/b?secret""#, true, r#""ftp://…@a/b" must be a URL"#),
            (r#""http:/me:secret@a""#, true, "two slashes"),
        ] {
            for language in LANGUAGES {
                let problem = read(language, given, None).unwrap_err();
                assert!(problem.message.contains(text), "{}", problem.message);
                assert!(
                    problem.is_range == is_range && !problem.message.contains("secret"),
                    "{given}"
                );
            }
        }
    }

    #[test]
    fn a_command_in_a_string_gets_the_notation_of_the_language() {
        for (language, given, fix) in [
            (Language::Python, "uvx a", "a command is a list of words: ['uvx', 'a']"),
            (
                Language::Python,
                "localhost:8000/mcp",
                "wss, tcp, unix, http+unix); write 'http://localhost:8000/mcp'",
            ),
            (Language::TypeScript, "a.example/mcp", r#"; write "https://a.example/mcp""#),
            (Language::Python, "server.py", "to run that file, write Path('server.py')"),
            (Language::TypeScript, "npx -y a", r#"write { command: "npx", args: ["-y","a"] }"#),
            (Language::Rust, "npx -y a", r#"write {"command": "npx", "args": ["-y","a"]}"#),
        ] {
            let problem = read(language, &format!("{given:?}"), None).unwrap_err();
            assert!(problem.message.ends_with(fix), "{}", problem.message);
        }
    }
}
