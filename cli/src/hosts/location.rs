//! The places of hosts' configurations, by platform.

use std::{
    env, fmt,
    path::{Path, PathBuf},
};

use crate::failure::{Failure, FailureKind};

/// The place of a user's file.
#[derive(Debug)]
pub struct Location {
    base: Base,
    path: &'static str,
    moved: Option<Moved>,
}

#[derive(Clone, Copy, Debug)]
enum Base {
    /// The home folder.
    Home,
    /// The folder of settings of desktop applications.
    Applications,
    /// The folder of settings of desktop applications, but `~/.config` on macOS.
    Configuration,
}

/// An environment variable that moves the file.
#[derive(Clone, Copy, Debug)]
struct Moved {
    variable: &'static str,
    /// The path below the folder that the variable names; `None` if it names the file.
    below: Option<&'static str>,
}

/// Returns the value of an environment variable.
type Variable = dyn Fn(&str) -> Option<String>;

/// The platform, the environment variables and the current folder.
pub struct Environment {
    platform: Platform,
    variables: Box<Variable>,
    pub folder: PathBuf,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Platform {
    Linux,
    Macos,
    Windows,
}

impl Location {
    pub const fn home(path: &'static str) -> Self {
        Self { base: Base::Home, path, moved: None }
    }

    pub const fn application(path: &'static str) -> Self {
        Self { base: Base::Applications, path, moved: None }
    }

    pub const fn configuration(path: &'static str) -> Self {
        Self { base: Base::Configuration, path, moved: None }
    }

    /// Names the environment variable for the file's folder, in which the file has the path `below`.
    pub const fn or_folder(mut self, variable: &'static str, below: &'static str) -> Self {
        self.moved = Some(Moved { variable, below: Some(below) });
        self
    }

    /// Names the environment variable for the file's path.
    pub const fn or_file(mut self, variable: &'static str) -> Self {
        self.moved = Some(Moved { variable, below: None });
        self
    }

    /// Returns the path of the file. Errors if the environment names no home folder.
    pub fn resolve(&self, environment: &Environment) -> Result<PathBuf, Failure> {
        if let Some(Moved { variable, below }) = self.moved
            && let Some(path) = environment.variable(variable)
        {
            let path = environment.folder.join(path);
            return Ok(below.map_or_else(|| path.clone(), |below| path.join(below)));
        }
        let base = match (self.base, environment.platform) {
            (Base::Home, _) => environment.home()?,
            (_, Platform::Windows) => match environment.variable("APPDATA") {
                Some(folder) => folder.into(),
                None => environment.home()?.join("AppData/Roaming"),
            },
            (Base::Applications, Platform::Macos) => {
                environment.home()?.join("Library/Application Support")
            }
            (Base::Configuration, Platform::Macos) => environment.home()?.join(".config"),
            (_, Platform::Linux) => match environment.variable("XDG_CONFIG_HOME") {
                Some(folder) if Path::new(&folder).is_absolute() => folder.into(),
                _ => environment.home()?.join(".config"),
            },
        };
        Ok(base.join(self.path))
    }
}

impl Environment {
    /// Returns the environment of this process.
    pub fn of_process() -> Result<Self, Failure> {
        let folder = env::current_dir().map_err(|error| {
            Failure::new(FailureKind::File, format!("the current folder cannot be read: {error}"))
        })?;
        let platform = match env::consts::OS {
            "windows" => Platform::Windows,
            "macos" => Platform::Macos,
            _ => Platform::Linux,
        };
        Ok(Self { platform, variables: Box::new(|name| env::var(name).ok()), folder })
    }

    /// Returns the value of an environment variable; `None` if it is empty.
    pub fn variable(&self, name: &str) -> Option<String> {
        (self.variables)(name).filter(|value| !value.is_empty())
    }

    /// Returns the value of an environment variable.
    pub fn variable_or_empty(&self, name: &str) -> Option<String> {
        (self.variables)(name)
    }

    /// Returns the home folder. Errors if the environment does not name it.
    pub fn home(&self) -> Result<PathBuf, Failure> {
        let name = if self.platform == Platform::Windows { "USERPROFILE" } else { "HOME" };
        self.variable(name).map(PathBuf::from).ok_or_else(|| {
            Failure::new(FailureKind::File, format!("the environment variable {name} is not set"))
                .with_hint("set it to your home folder, which holds the configuration of hosts")
        })
    }

    /// Returns the path of a program that is found in the folders of PATH, or that `name` names itself.
    pub fn program(&self, name: &str) -> Option<PathBuf> {
        let suffixes: &[&str] =
            if self.platform == Platform::Windows { &[".exe", ".cmd", ".bat"] } else { &[""] };
        let paths = self.variable("PATH")?;
        env::split_paths(&paths).filter(|folder| folder.is_absolute()).find_map(|folder| {
            suffixes
                .iter()
                .map(|suffix| folder.join(format!("{name}{suffix}")))
                .find(|path| is_program(path))
        })
    }

    /// Returns the path of the interpreter in a virtual environment of Python, if there is one.
    pub fn python_in(&self, folder: &Path) -> Option<PathBuf> {
        let below = match self.platform {
            Platform::Windows => "Scripts/python.exe",
            _ => "bin/python",
        };
        Some(folder.join(below)).filter(|path| is_program(path))
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment").field("platform", &self.platform).finish_non_exhaustive()
    }
}

#[cfg(unix)]
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata()
        .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(path: &Path) -> bool {
    path.is_file()
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::hosts::Host;

    pub fn environment(platform: Platform, variables: &'static [(&str, &str)]) -> Environment {
        let find = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        Environment { platform, variables: Box::new(find), folder: "/work".into() }
    }

    fn path(host: &str, platform: Platform, variables: &'static [(&str, &str)]) -> String {
        let path = Host::find(host).unwrap().user.resolve(&environment(platform, variables));
        path.unwrap().to_str().unwrap().replace('\\', "/")
    }

    #[test]
    fn files_are_where_the_platform_keeps_settings() {
        const HOME: &[(&str, &str)] = &[("HOME", "/home/ada")];
        const USER: &[(&str, &str)] = &[("USERPROFILE", "C:/Ada"), ("APPDATA", "C:/Ada/Roaming")];
        for (host, linux, macos, windows) in [
            (
                "claude-desktop",
                "/home/ada/.config/Claude/claude_desktop_config.json",
                "/home/ada/Library/Application Support/Claude/claude_desktop_config.json",
                "C:/Ada/Roaming/Claude/claude_desktop_config.json",
            ),
            (
                "cursor",
                "/home/ada/.cursor/mcp.json",
                "/home/ada/.cursor/mcp.json",
                "C:/Ada/.cursor/mcp.json",
            ),
            (
                "vscode",
                "/home/ada/.config/Code/User/mcp.json",
                "/home/ada/Library/Application Support/Code/User/mcp.json",
                "C:/Ada/Roaming/Code/User/mcp.json",
            ),
            (
                "zed",
                "/home/ada/.config/zed/settings.json",
                "/home/ada/.config/zed/settings.json",
                "C:/Ada/Roaming/zed/settings.json",
            ),
        ] {
            assert_eq!(path(host, Platform::Linux, HOME), linux);
            assert_eq!(path(host, Platform::Macos, HOME), macos);
            assert_eq!(path(host, Platform::Windows, USER), windows);
        }
    }

    #[test]
    fn variables_of_the_host_move_its_file() {
        for (host, variables, expected) in [
            ("codex", &[("HOME", "/h"), ("CODEX_HOME", "/c")] as &[_], "/c/config.toml"),
            ("claude-code", &[("HOME", "/h"), ("CLAUDE_CONFIG_DIR", "/c")], "/c/.claude.json"),
            ("cline-cli", &[("CLINE_MCP_SETTINGS_PATH", "/c/x.json")], "/c/x.json"),
            ("vscode", &[("HOME", "/h"), ("XDG_CONFIG_HOME", "/x")], "/x/Code/User/mcp.json"),
            (
                "vscode",
                &[("HOME", "/h"), ("XDG_CONFIG_HOME", "x")],
                "/h/.config/Code/User/mcp.json",
            ),
        ] {
            assert_eq!(path(host, Platform::Linux, variables), expected);
        }
        let homeless = environment(Platform::Linux, &[]);
        let error = Host::find("cursor").unwrap().user.resolve(&homeless).unwrap_err();
        assert!(error.to_string().contains("HOME is not set"));
    }
}
