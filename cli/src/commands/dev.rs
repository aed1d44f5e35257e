//! `gudgeon dev`: serves a file, and starts it again when it changes.

use std::{
    ffi::OsString,
    future::pending,
    io::{self, IsTerminal as _},
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use clap::Args;

use crate::{
    connection::ConnectionArguments,
    dev::{Reloading, Watching},
    failure::Failure,
    frames::{
        Upstream as _,
        http::{self, Front},
        process::Process,
        stdio,
    },
    inspect, output,
    target::Target,
};

/// The time for a server to end by itself before it is started again.
const GRACE: Duration = Duration::from_millis(500);

const EXAMPLES: &str = "\
Examples:
  gudgeon dev server.py
  gudgeon dev server.ts --http http://127.0.0.1:9000/mcp
  gudgeon dev --watch src -- npx tsx src/server.ts

In a terminal the server is served over HTTP, and a host that starts the command gets it over stdio. When a source file \
changes, the server starts again; the session of the client goes on, and its lists of tools, resources and prompts are \
announced as changed. Requests in progress fail with an error that says so. Calls show the errors of Gudgeon's handlers, \
because GUDGEON_DEBUG is 1 for the server.";

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES, override_usage = "gudgeon dev [OPTIONS] FILE\n       gudgeon dev [OPTIONS] -- COMMAND...")]
pub struct Arguments {
    /// The file of a server, `FILE:NAME` where it defines several, or `MODULE:APP` in Python
    file: Option<String>,
    /// Serve over HTTP; port 0 chooses a free port. The default in a terminal
    #[arg(long, value_name = "URL", num_args = 0..=1, default_missing_value = http::DEFAULT_URL)]
    http: Option<String>,
    /// Serve over stdio. The default outside a terminal
    #[arg(long, conflicts_with = "http")]
    stdio: bool,
    /// Watch this file or folder as well, with files of every kind; may be given several times
    #[arg(long, value_name = "PATH")]
    watch: Vec<PathBuf>,
    /// Don't open the inspector page
    #[arg(long)]
    no_inspect: bool,
    /// The command of a server over stdio
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

pub async fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    let target = match (&arguments.file, arguments.command.is_empty()) {
        (Some(file), true) => Target::File(super::run::file(file)?),
        (None, false) => Target::Command(arguments.command),
        (Some(file), false) => {
            return Err(Failure::usage(format!("unexpected argument {file:?}"))
                .with_hint("give a file, or a command after `--`"));
        }
        (None, true) => {
            return Err(Failure::usage("the file is missing").with_hint("gudgeon dev server.py"));
        }
    };
    let path = match &target {
        Target::File(file) => file.path(),
        _ => Path::new("."),
    };
    let changes = Watching::new(path, &arguments.watch)?.report();
    let name = target.to_string();
    let start = Arc::new(move || {
        let mut launch = target.launch()?;
        // The callers of a server under development may see its errors.
        launch.environment.push(("GUDGEON_DEBUG".into(), "1".into()));
        Ok(Process::new(launch).with_grace(GRACE))
    });
    let server = Reloading { name: name.clone(), start, changes };
    let is_http = arguments.http.is_some() || (!arguments.stdio && io::stdin().is_terminal());
    if !is_http {
        return Ok(stdio::serve(server.open().await?).await);
    }
    let url = arguments.http.as_deref().unwrap_or(http::DEFAULT_URL);
    let front = Front::bind(url, server).await?;
    output::note(format_args!(
        "{name} serves, and starts again when it changes (Ctrl-C ends it)\n{}",
        front.url()
    ));
    if arguments.no_inspect || !output::is_terminal() {
        return Ok(front.run().await);
    }
    let target = Some(Target::Url(front.url().to_owned()));
    let page = async {
        let options = inspect::Options { port: 0, opens: true };
        if let Err(failure) = inspect::serve(target, &ConnectionArguments::default(), options).await
        {
            output::note(format_args!("the inspector page can't be shown: {failure}"));
        }
        // The server goes on without the page.
        pending::<()>().await;
    };
    tokio::select! {
        code = front.run() => Ok(code),
        () = page => Ok(ExitCode::SUCCESS),
    }
}
