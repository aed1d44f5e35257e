//! How the fixture server in Rust is served.

use gudgeon::{Server, error::Error};

const USAGE: &str = "usage: conformance-server --stdio [--page-size N]";

pub(crate) struct Options {
    pub(crate) page_size: usize,
}

impl Options {
    pub(crate) fn read(mut arguments: impl Iterator<Item = String>) -> Result<Self, Error> {
        let mut options = Self { page_size: 100 };
        while let Some(name) = arguments.next() {
            match &*name {
                "--stdio" => {}
                "--page-size" => options.page_size = number(arguments.next())?,
                _ => return Err(Error::misuse(format!("{name}: {USAGE}"))),
            }
        }
        Ok(options)
    }
}

pub(crate) async fn serve(server: Server, _options: Options) -> Result<(), Error> {
    server.run_stdio().await
}

fn number(given: Option<String>) -> Result<usize, Error> {
    given.and_then(|it| it.parse().ok()).ok_or_else(|| Error::misuse(USAGE))
}
