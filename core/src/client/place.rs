//! Targets of clients that are given as data: URLs, commands, and entries of `mcpServers` in a host's configuration.

use std::fmt;

use serde_json::{Map, Value};

use super::{ClientBuilder, Target};
use crate::{
    error::{Error, Language, given::Problem},
    protocol::json,
    transport::{Command, Scheme, Url, url::without_secrets},
};

/// The files that interpreters run; as a string they are probably meant as paths.
const SCRIPTS: [&str; 6] = [".py", ".js", ".mjs", ".cjs", ".ts", ".mts"];

const NO_HEADERS: &str = "headers can be sent to http, https, ws and wss URLs only";

/// The address or the command of a server, with the headers for it.
#[derive(Clone)]
pub struct Place {
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

impl fmt::Debug for Place {
    /// Leaves out the values of headers, which may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
        f.debug_struct("Place")
            .field("server", &self.server)
            .field("headers", &names)
            .field("restarts", &self.restarts)
            .finish()
    }
}

/// The language whose notation errors use.
#[derive(Clone, Copy)]
struct Reader(Language);

impl Place {
    /// Reads a URL or an entry of `mcpServers`, and the headers of the client's options, given as JSON.
    ///
    /// An entry with `command` is a command, with `args`, `env` (null leaves a variable out; `"inherit"` passes all
    /// variables of this process), `cwd` and `restart`; else `url` is an address, with `headers`. The client's headers
    /// replace those of the entry. Other members are for the host and ignored.
    pub fn read(language: Language, given: &[u8], headers: &[u8]) -> Result<Self, Problem> {
        let reader = Reader(language);
        let own = reader.headers(&parse(headers)?)?;
        let mut read = reader.read(&parse(given)?)?;
        read.headers.retain(|(name, _)| !own.iter().any(|(it, _)| it.eq_ignore_ascii_case(name)));
        read.headers.extend(own);
        read.checked()
    }

    /// Reads a URL or an entry of `mcpServers`, as [`Self::read`] does.
    pub(super) fn of(language: Language, given: &Value) -> Result<Self, Problem> {
        Reader(language).read(given)?.checked()
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

    /// Sets the options of a client that belong to this server.
    pub(crate) fn configure(&self, builder: ClientBuilder) -> ClientBuilder {
        builder.options(|it| {
            it.headers.clone_from(&self.headers);
            it.restart = self.restarts;
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
    fn read(self, given: &Value) -> Result<Place, Problem> {
        match given {
            Value::String(url) => self.address(url, Vec::new()),
            Value::Object(entry) => self.entry(entry),
            _ => Err(Problem::wrong_type(format!("{given} is not a target"))),
        }
    }

    fn entry(self, entry: &Map<String, Value>) -> Result<Place, Problem> {
        let member = |name: &str| entry.get(name).filter(|it| !it.is_null());
        if let Some(command) = member("command") {
            return self.command(command, member);
        }
        match member("url") {
            Some(Value::String(url)) => {
                self.address(url, self.headers(entry.get("headers").unwrap_or(&Value::Null))?)
            }
            Some(other) => {
                Err(Problem::wrong_type(format!("\"url\" must be a string, not {other}")))
            }
            None if entry.contains_key("mcpServers") => Err(Problem::not_allowed(format!(
                "this is a configuration of several servers; {}",
                match self.0 {
                    Language::Python => "pass it to ClientGroup",
                    Language::TypeScript => "pass it to ClientGroup.connect()",
                    Language::Rust => "\"mcpServers\" belongs at the top",
                }
            ))),
            None => {
                let names: Vec<_> = entry.keys().map(String::as_str).collect();
                Err(Problem::not_allowed(format!(
                    "an entry of a host's configuration needs \"command\" or \"url\"; this one has {}",
                    if names.is_empty() { "no members".to_owned() } else { names.join(", ") }
                )))
            }
        }
    }

    fn command<'a>(
        self,
        program: &Value,
        member: impl Fn(&str) -> Option<&'a Value>,
    ) -> Result<Place, Problem> {
        let Some(program) = program.as_str().filter(|it| !it.is_empty()) else {
            let problem = format!("command must be a program's name or path, not {program}");
            return Err(Problem::wrong_type(problem));
        };
        if let Some(kind) = member("type").filter(|it| *it != "stdio") {
            return Err(Problem::not_allowed(format!(
                "the type of a command must be \"stdio\", not {kind}; an address is given as \"url\""
            )));
        }
        let mut command = Command::new(word(program)?);
        match member("args") {
            None => (),
            Some(Value::Array(args)) if args.iter().all(Value::is_string) => {
                let words = args.iter().filter_map(Value::as_str).map(word);
                command = command.args(words.collect::<Result<Vec<_>, _>>()?);
            }
            Some(args) => {
                let meant = args.as_str().map(|it| format!("; write {}", self.words(it)));
                let meant = meant.unwrap_or_default();
                return Err(Problem::wrong_type(format!(
                    "args must be a list of strings, not {args}{meant}"
                )));
            }
        }
        // The values may be secrets, so errors do not show them.
        match member("env") {
            None => (),
            Some(Value::String(it)) if it == "inherit" => command.extend(std::env::vars_os()),
            Some(Value::Object(env)) => {
                for (name, value) in env.iter().filter(|(_, it)| !it.is_null()) {
                    let value = value.as_str();
                    let value = value.ok_or_else(|| {
                        Problem::wrong_type(format!("env.{name} must be a string"))
                    })?;
                    command = command.env(name, value);
                }
            }
            Some(_) => {
                let object = self.object();
                return Err(Problem::wrong_type(format!(
                    "env must be {object} of strings, or \"inherit\""
                )));
            }
        }
        match member("cwd") {
            None => (),
            Some(Value::String(folder)) => command = command.cwd(word(folder)?),
            Some(other) => {
                return Err(Problem::wrong_type(format!("cwd must be a string, not {other}")));
            }
        }
        let restarts = match member("restart") {
            None => false,
            Some(Value::Bool(restarts)) => *restarts,
            Some(other) => {
                return Err(Problem::wrong_type(format!(
                    "restart must be true or false, not {other}"
                )));
            }
        };
        let headers = self.headers(member("headers").unwrap_or(&Value::Null))?;
        Ok(Place { server: Server::Command(command), headers, restarts })
    }

    fn address(self, url: &str, headers: Vec<(String, String)>) -> Result<Place, Problem> {
        let url = Url::parse(url).map_err(|error| self.no_url(url, &error))?;
        Ok(Place { server: Server::Url(url), headers, restarts: false })
    }

    /// Errors never show a value, since it may be a secret.
    fn headers(self, given: &Value) -> Result<Vec<(String, String)>, Problem> {
        let Value::Object(headers) = given else {
            let problem = format!("headers must be {} of names and values", self.object());
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
        if Scheme::of(text).is_some() {
            return Problem::not_allowed(error);
        }
        let text = &*without_secrets(text);
        let is_script = !text.contains(' ') && SCRIPTS.iter().any(|it| text.ends_with(it));
        let fix = if self.is_python() && is_script {
            format!("to run that file, write Path({})", quoted(text))
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
        let quote = |it: &str| if self.is_python() { quoted(it) } else { format!("{it:?}") };
        let words: Vec<_> = text.split_whitespace().map(quote).collect();
        format!("[{}]", words.join(if self.is_python() { ", " } else { "," }))
    }

    fn object(self) -> &'static str {
        if self.is_python() { "a mapping" } else { "an object" }
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

    fn read(language: Language, given: &str, headers: Option<&str>) -> Result<Place, Problem> {
        let headers = headers.unwrap_or("null");
        Place::read(language, given.as_bytes(), headers.as_bytes())
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
            Place::check_headers(Language::Python, own.as_bytes()).unwrap_err(),
        ];
        for problem in refused {
            assert!(problem.is_range && problem.message.contains("http, https, ws and wss"));
        }
        assert_eq!(Place::check_headers(Language::Python, b"{}"), Ok(()));
    }

    #[test]
    fn an_error_names_the_member_and_the_fix() {
        for (given, is_range, text) in [
            (r#"{"args":[]}"#, true, r#"needs "command" or "url"; this one has args"#),
            ("{}", true, "this one has no members"),
            (r#"{"mcpServers":{}}"#, true, "a configuration of several servers; "),
            (r#"{"command":""}"#, false, "command must be a program's name or path, not \"\""),
            (
                r#"{"command":"a","args":["b",3]}"#,
                false,
                r#"args must be a list of strings, not ["b",3]"#,
            ),
            (r#"{"command":"a","args":"b c"}"#, false, "; write ["),
            (r#"{"command":"a","env":{"B":3}}"#, false, "env.B must be a string"),
            (r#"{"command":"a","env":"secret"}"#, false, r#"of strings, or "inherit""#),
            (r#"{"command":"a","type":"http"}"#, true, r#"must be "stdio", not "http""#),
            (r#"{"command":"a\u0000"}"#, true, "NUL"),
            (r#"{"url":1}"#, false, r#""url" must be a string, not 1"#),
            (
                r#"{"url":"http://a","headers":{"A":["secret"]}}"#,
                false,
                r#"the header "A" must be a string"#,
            ),
            (r#"{"url":"http://a","headers":["secret"]}"#, false, "headers must be a"),
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
            (Language::Python, "server.py", "to run that file, write Path('server.py')"),
            (Language::TypeScript, "npx -y a", r#"write { command: "npx", args: ["-y","a"] }"#),
            (Language::Rust, "npx -y a", r#"write {"command": "npx", "args": ["-y","a"]}"#),
        ] {
            let problem = read(language, &format!("{given:?}"), None).unwrap_err();
            assert!(problem.message.ends_with(fix), "{}", problem.message);
        }
    }
}
