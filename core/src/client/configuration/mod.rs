//! Hosts' configurations: files in which Claude Desktop, Cursor, VS Code and others name servers.
//!
//! `text` reads JSON with comments, `servers` finds the servers in it, `entry` reads one in any host's spelling, and `variables`
//! replaces references to variables. Groups of clients and the command `gudgeon` read configurations with these modules only.

mod dotenv;
mod entry;
mod servers;
mod text;
mod variables;

pub use self::{
    entry::{Entry, URLS, add_variables},
    servers::{SERVERS, read_configuration},
    text::{JsonForm, MAX_SIZE, parse},
    variables::{Notation, Resolver, names},
};
pub(super) use self::{
    entry::{NO_HEADERS, object_of},
    servers::{read_given, read_text, servers_in},
};
