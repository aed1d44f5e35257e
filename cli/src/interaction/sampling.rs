//! Sampling by a command: the request is its standard input, the result its standard output.

use std::{process::Stdio, sync::Arc};

use gudgeon::{
    client::Answerer,
    error::{Error, ErrorKind},
    protocol::{CreateMessageResult, Raw, json},
};
use tokio::{io::AsyncWriteExt as _, process::Command};

/// The most bytes of a result that are repeated in an error.
const SHOWN: usize = 200;

/// Returns a callback that runs a shell command for each request.
pub fn answerer(command: String) -> Answerer {
    let command: Arc<str> = command.into();
    Arc::new(move |question| {
        let command = Arc::clone(&command);
        Box::pin(async move { run(&command, question.params.get()).await })
    })
}

async fn run(command: &str, request: &str) -> Result<Raw, Error> {
    let failed = |problem: String| {
        Error::new(ErrorKind::Misuse, format!("--sample: the command {command:?} {problem}"))
    };
    let mut child = shell(command)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        // A call that is cancelled needs no answer.
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| failed(format!("could not be started: {error}")))?;
    let input = child.stdin.take();
    let write = async {
        if let Some(mut input) = input {
            // A command that does not read its input may still answer.
            let _ = input.write_all(request.as_bytes()).await;
        }
    };
    let ((), output) = tokio::join!(write, child.wait_with_output());
    let output = output.map_err(|error| failed(format!("failed: {error}")))?;
    if !output.status.success() {
        return Err(failed(format!("failed: {}", output.status)));
    }
    let result: CreateMessageResult = serde_json::from_slice(&output.stdout).map_err(|error| {
        let shown = &output.stdout[..output.stdout.len().min(SHOWN)];
        failed(format!(
            "must print the result of sampling/createMessage, such as {}; {error} in {:?}",
            r#"{"role":"assistant","model":"m","content":{"type":"text","text":"…"}}"#,
            String::from_utf8_lossy(shown)
        ))
    })?;
    Ok(json::to_raw(&result))
}

fn shell(command: &str) -> Command {
    let (program, option) = if cfg!(windows) { ("cmd", "/C") } else { ("sh", "-c") };
    let mut shell = Command::new(program);
    shell.arg(option).arg(command);
    shell
}
