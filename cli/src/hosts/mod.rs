//! Hosts: the programs that start MCP servers from a configuration file, such as Claude Desktop and Cursor.
//!
//! `table` has the hosts as data, `document` edits their files, `servers` finds what they have configured.

pub mod code_variables;
pub mod confirmation;
pub mod diff;
pub mod document;
pub mod entry;
pub mod launch;
pub mod location;
pub mod masked;
pub mod servers;
pub mod table;

pub use self::{
    confirmation::Consent,
    document::Document,
    entry::Entry,
    location::Environment,
    servers::Source,
    table::{HOSTS, Host, Syntax},
};
