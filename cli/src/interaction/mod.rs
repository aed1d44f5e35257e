//! A server's questions, log messages and progress: answered and shown in the terminal, or as the arguments say.

mod form;
mod page;
pub mod roots;
mod sampling;
mod terminal;

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use clap::Args;
use gudgeon::{
    LoggingLevel,
    client::{ClientBuilder, LogMessage},
    error::{Error, ErrorKind},
    protocol::{ElicitRequestParams, ElicitResult, Root},
};
use tokio::sync::Mutex;

use crate::{
    connection::belongs_to_connect, failure::Failure, notices::Notices, target::Target,
    values::Assignments, warnings,
};

/// The answers to a server's questions, and the messages to show.
#[derive(Args, Debug)]
#[command(next_help_heading = "Questions and messages of the server")]
pub struct InteractionArguments {
    /// Fill in a field of the server's forms; may be given several times
    #[arg(long = "answer", value_name = "KEY=VALUE")]
    answers: Vec<String>,
    /// Fill in the server's forms from a JSON object in a file, or on standard input with @-
    #[arg(long = "answers", value_name = "@FILE")]
    answers_file: Option<String>,
    /// Answer the server's requests to a model with a shell command: the params of sampling/createMessage are its
    /// standard input, the result is its standard output, both JSON
    #[arg(long, value_name = "COMMAND")]
    sample: Option<String>,
    /// Tell the server a folder that it may use, as a path or file:// URI; may be given several times
    #[arg(long = "root", value_name = "FOLDER")]
    roots: Vec<String>,
    /// Show log messages of the server from this level on: debug, info, notice, warning, error, critical, alert or
    /// emergency
    #[arg(long, value_name = "LEVEL")]
    log_level: Option<LoggingLevel>,
    /// Show no progress and no log messages
    #[arg(long, short)]
    quiet: bool,
}

/// The answering of questions during a command.
pub struct Interaction {
    pub notices: Notices,
    answers: Assignments,
    sample: Option<String>,
    roots: Vec<String>,
    log_level: Option<LoggingLevel>,
    /// Held while a question is asked: one at a time.
    turn: Mutex<()>,
    has_declined: AtomicBool,
}

impl InteractionArguments {
    /// Returns whether the arguments answer questions.
    pub fn answers(&self) -> bool {
        !self.answers.is_empty() || self.answers_file.is_some() || self.sample.is_some()
    }

    /// Reads the arguments and the files that they name.
    pub fn read(&self) -> Result<Arc<Interaction>, Failure> {
        let notices = Notices::new(self.quiet);
        warnings::print_to(notices.clone());
        let file = self.answers_file.as_ref().map(|file| match file.strip_prefix('@') {
            Some(_) => file.clone(),
            None => format!("@{file}"),
        });
        Ok(Arc::new(Interaction {
            notices,
            answers: Assignments::parse(file.iter().chain(&self.answers))?,
            sample: self.sample.clone(),
            roots: self.roots.iter().map(|folder| roots::uri(folder)).collect::<Result<_, _>>()?,
            log_level: self.log_level,
            turn: Mutex::default(),
            has_declined: AtomicBool::new(false),
        }))
    }
}

impl Interaction {
    /// Sets the callbacks and options of a client.
    pub fn attach(self: &Arc<Self>, builder: ClientBuilder) -> ClientBuilder {
        let (eliciting, progress) = (Arc::clone(self), self.notices.clone());
        let mut builder = builder
            .on_elicit(move |question| {
                let interaction = Arc::clone(&eliciting);
                async move { interaction.elicit(question).await }
            })
            .on_progress(move |step| progress.progress(&step))
            .options(|options| {
                options.log_level = self.log_level;
                options.roots = self.roots().or_else(|| options.roots.take());
            });
        if !self.notices.is_quiet() {
            let notices = self.notices.clone();
            builder = builder.on_log(move |message| notices.line(&log_line(&message)));
        }
        if let Some(command) = self.sample.clone() {
            builder = builder.on_sample_raw(sampling::answerer(command));
        }
        builder
    }

    /// Returns the level from which log messages are shown, if the user names one.
    pub fn log_level(&self) -> Option<LoggingLevel> {
        self.log_level
    }

    /// Returns the folders that the server may use, as URIs.
    pub fn roots(&self) -> Option<Vec<Root>> {
        let roots: Vec<_> = self.roots.iter().map(|root| root.as_str().into()).collect();
        Some(roots).filter(|roots| !roots.is_empty())
    }

    /// Errors if an option can't apply to a target: a named connection has the roots of `gudgeon connect`.
    pub fn check(&self, target: &Target) -> Result<(), Failure> {
        match target {
            Target::Connection(name) if !self.roots.is_empty() => {
                Err(belongs_to_connect("--root", name))
            }
            _ => Ok(()),
        }
    }

    /// Returns whether a question was declined or cancelled.
    pub fn has_declined(&self) -> bool {
        self.has_declined.load(Ordering::Relaxed)
    }

    async fn elicit(&self, question: ElicitRequestParams) -> Result<ElicitResult, Error> {
        let _turn = self.turn.lock().await;
        self.notices.clear();
        let answer = match question {
            ElicitRequestParams::Form(form) => {
                form::fill_in(&self.notices, &self.answers, &form).await
            }
            ElicitRequestParams::Url(page) => page::offer(&self.notices, &page).await,
        };
        if let Err(error) = &answer
            && matches!(error.kind, ErrorKind::Declined | ErrorKind::Cancelled)
        {
            self.has_declined.store(true, Ordering::Relaxed);
        }
        answer
    }
}

/// Returns a log message as a line.
pub fn log_line(message: &LogMessage) -> String {
    let text = serde_json::from_str::<String>(message.data.get());
    let text = text.unwrap_or_else(|_| message.data.get().to_owned());
    match &message.logger {
        Some(logger) => format!("[{}] {logger}: {text}", message.level),
        None => format!("[{}] {text}", message.level),
    }
}
