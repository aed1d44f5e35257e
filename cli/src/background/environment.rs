//! The environment variables that the background process needs; others may be secrets of the shell that starts it.

use std::{env, ffi::OsString};

/// Variables by which programs, files, proxies and certificates are found.
const NEEDED: &[&str] = &[
    "ALL_PROXY",
    // The system's keyring is reached over it.
    "DBUS_SESSION_BUS_ADDRESS",
    "HOME",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "LANG",
    "LD_LIBRARY_PATH",
    "LOGNAME",
    "NODE_EXTRA_CA_CERTS",
    "NO_PROXY",
    "PATH",
    "SHELL",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "XDG_STATE_HOME",
    "all_proxy",
    "https_proxy",
    "http_proxy",
    "no_proxy",
];

/// Variables of the shell that a command of a server inherits, as the core's client passes them.
const INHERITED: &[&str] = &["HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"];

/// Returns the variables for the background process.
pub fn needed() -> impl Iterator<Item = (&'static str, OsString)> {
    set(NEEDED)
}

/// Returns the variables for a server that is started as a command.
pub fn inherited() -> impl Iterator<Item = (&'static str, OsString)> {
    // A shell would run a function.
    set(INHERITED).filter(|(_, value)| !value.as_encoded_bytes().starts_with(b"()"))
}

fn set(names: &'static [&str]) -> impl Iterator<Item = (&'static str, OsString)> {
    names.iter().filter_map(|name| env::var_os(name).map(|value| (*name, value)))
}
