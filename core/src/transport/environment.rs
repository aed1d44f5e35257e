//! The environment of a server that runs as a child process.

use std::{env, ffi::OsString};

/// The variables of this process that a child inherits: those that the official SDKs pass. Others may be secrets.
#[cfg(not(windows))]
const INHERITED: &[&str] = &["HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"];
#[cfg(windows)]
const INHERITED: &[&str] = &[
    "APPDATA",
    "HOMEDRIVE",
    "HOMEPATH",
    "LOCALAPPDATA",
    "PATH",
    "PATHEXT",
    "PROCESSOR_ARCHITECTURE",
    "PROGRAMFILES",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "USERNAME",
    "USERPROFILE",
];

/// Returns the variables that a child inherits. Functions of a shell are left out, because the child's shell would run
/// them.
pub(super) fn inherited() -> impl Iterator<Item = (&'static str, OsString)> {
    let value = |name: &&'static str| env::var_os(name).map(|value| (*name, value));
    INHERITED
        .iter()
        .filter_map(value)
        .filter(|(_, value)| !value.as_encoded_bytes().starts_with(b"()"))
}
