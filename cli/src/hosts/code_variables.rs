//! The environment variables that decide which code a program runs, whatever its command line says.

/// Without regard to case, because npm reads its own in lower case.
const NAMES: [&str; 25] = [
    "BASH_ENV",
    "CLASSPATH",
    "DOTNET_STARTUP_HOOKS",
    "ENV",
    "GIT_EXEC_PATH",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "NODE_OPTIONS",
    "NODE_PATH",
    "PATH",
    "PERL5DB",
    "PERL5LIB",
    "PERL5OPT",
    "PYTHONBREAKPOINT",
    "PYTHONEXECUTABLE",
    "PYTHONHOME",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "PYTHONUSERBASE",
    "PYTHONWARNINGS",
    "RUBYLIB",
    "RUBYOPT",
    "_JAVA_OPTIONS",
];
/// The loaders of programs, and the installers that many servers are started by.
const BEGINNINGS: [&str; 5] = ["DYLD_", "LD_", "NPM_CONFIG_", "PIP_", "UV_"];

/// Returns whether a variable decides which code a program runs.
pub fn decides_code(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    NAMES.contains(&name.as_str()) || BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_compared_whole_and_without_regard_to_case() {
        for name in ["PATH", "Path", "LD_PRELOAD", "npm_config_registry", "UV_INDEX_URL"] {
            assert!(decides_code(name), "{name}");
        }
        for name in ["API_KEY", "PATHS", "MY_PATH", "PYTHONUNBUFFERED", "LD", "ENVIRONMENT"] {
            assert!(!decides_code(name), "{name}");
        }
    }
}
