//! The server of a target, as the commands that pass its messages on reach it.

use std::path::PathBuf;

use clap::Args;
use gudgeon::{client, transport::Scheme};

use super::{Upstream, process::Process, remote::Remote};
use crate::{
    connection::{ConnectionArguments, header},
    failure::Failure,
    target::Target,
};

/// Options with the headers and the access token that are sent with each request to a server at a URL.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Servers at URLs")]
pub struct AccessArguments {
    /// Send this HTTP header; may be given several times
    #[arg(long = "header", short = 'H', value_name = "NAME: VALUE", value_parser = header)]
    headers: Vec<(String, String)>,
    /// Send the access token in this file; by default the one in the environment variable `GUDGEON_TOKEN`, or that of
    /// `gudgeon auth login`
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

impl AccessArguments {
    pub fn is_empty(&self) -> bool {
        self.headers.is_empty() && self.token_file.is_none()
    }
}

/// Returns the server of a target: a program that is started for each connection, or a URL. Errors if headers or a token are
/// given for a program.
pub fn for_target(target: &Target, access: &AccessArguments) -> Result<Box<dyn Upstream>, Failure> {
    if is_at_url(target)? {
        let AccessArguments { headers, token_file } = access.clone();
        let connection = ConnectionArguments { headers, token_file, ..Default::default() };
        // Wrong options are an error of the command, not of its first connection.
        let builder = connection.builder(target)?;
        if let (client::Target::Url(url), _) = builder.target()
            && matches!(url.scheme(), Scheme::Tcp | Scheme::Unix)
        {
            let message = format!("messages of a server at {url} can't be passed on");
            let hint = "give an http, https, ws or wss URL, a file, or a command after `--`";
            return Err(Failure::usage(message).with_hint(hint));
        }
        let target = target.clone();
        return Ok(Box::new(Remote::new(move || connection.builder(&target))));
    }
    if !access.is_empty() {
        return Err(Failure::usage(format!("{target} takes no headers and no token")).with_hint(
            "they are sent to servers at URLs; a program finds them in its environment",
        ));
    }
    Ok(Box::new(Process::new(target.launch()?)))
}

fn is_at_url(target: &Target) -> Result<bool, Failure> {
    Ok(match target {
        Target::Url(_) => true,
        Target::Configured(_) => matches!(target.builder()?.target().0, client::Target::Url(_)),
        _ => false,
    })
}
