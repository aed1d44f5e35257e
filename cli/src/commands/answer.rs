//! `gudgeon answer` and `questions`: answers to the questions of calls that are kept by the background process.

use std::process::ExitCode;

use clap::Args;
use gudgeon::protocol::Raw;
use serde_json::{Value, json, value::RawValue};

use crate::{
    background::{self, Outcome, QuestionShown, ToolReply},
    commands::call,
    escape,
    failure::{ASKED, Failure},
    notices::Notices,
    output,
    render::RenderArguments,
    values::{self, Assignments, description},
};

const EXAMPLES: &str = "\
Examples:
  gudgeon call --detach shelf order title=Dune     (prints a question and its id, exit code 20)
  gudgeon answer 5f0c3a91 copies=2 gift=no
  gudgeon answer 5f0c3a91 --decline

Values are spelled like the arguments of a tool, and converted by the form of the question. A question with a URL is accepted without values, once the page was \
visited. Prints the result of the call, or its next question.";

const LIST_EXAMPLES: &str = "\
Examples:
  gudgeon questions
  gudgeon questions --json";

#[derive(Args, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "options of the command line")]
#[command(after_help = EXAMPLES)]
pub struct AnswerArguments {
    /// The id of the question
    id: String,
    /// The values of the form; for sampling `text=…` and, if known, `model=…`
    #[arg(value_name = "KEY=VALUE | KEY:=JSON | @FILE")]
    values: Vec<String>,
    /// Answer that the user declines
    #[arg(long, conflicts_with_all = ["values", "result"])]
    decline: bool,
    /// Answer that the user closed the question without a choice
    #[arg(long, conflicts_with_all = ["values", "result", "decline"])]
    cancel: bool,
    /// Answer with this result of the protocol, in place of values
    #[arg(long, value_name = "JSON", conflicts_with = "values")]
    result: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Show no progress and no log messages
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    render: RenderArguments,
}

#[derive(Args, Debug)]
#[command(after_help = LIST_EXAMPLES)]
pub struct QuestionsArguments {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub async fn answer(arguments: AnswerArguments) -> Result<ExitCode, Failure> {
    let question = background::client::question(&arguments.id).await?;
    let answer = answer_of(&arguments, &question)?;
    let notices = Notices::new(arguments.quiet);
    let outcome = background::client::answer(&arguments.id, answer, &notices).await?;
    finish(outcome, arguments.json, &arguments.render)
}

pub async fn questions(arguments: QuestionsArguments) -> Result<ExitCode, Failure> {
    let questions = background::client::questions().await?;
    if arguments.json {
        output::json(&json!({ "questions": questions }))?;
        return Ok(ExitCode::SUCCESS);
    }
    for (number, question) in questions.iter().enumerate() {
        if number > 0 {
            output::line("")?;
        }
        show(question)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints the result or the question of a kept call; returns the exit code.
pub fn finish(
    outcome: Outcome,
    as_json: bool,
    render: &RenderArguments,
) -> Result<ExitCode, Failure> {
    match outcome {
        Outcome::Question(question) => {
            match as_json {
                true => output::json(&json!({ "question": question }))?,
                false => show(&question)?,
            }
            Ok(ExitCode::from(ASKED))
        }
        Outcome::Result(ToolReply { tool, result, data }) => {
            call::show(&result, data.as_deref().map(RawValue::get), &tool, as_json, render)
        }
    }
}

fn answer_of(arguments: &AnswerArguments, question: &QuestionShown) -> Result<Raw, Failure> {
    let params: Value = serde_json::from_str(question.params.get()).unwrap_or_default();
    let is_form = question.method == "elicitation/create";
    let answer = match (&arguments.result, arguments.decline, arguments.cancel) {
        (Some(result), ..) => serde_json::from_str(result)
            .map_err(|error| Failure::usage(format!("--result is not valid JSON: {error}")))?,
        (_, true, _) if is_form => json!({ "action": "decline" }),
        (_, _, true) if is_form => json!({ "action": "cancel" }),
        (_, false, false) if !is_form => message(&Assignments::parse(&arguments.values)?)?,
        (_, false, false) if params.get("url").is_some() => json!({ "action": "accept" }),
        (_, false, false) => {
            let form = params.get("requestedSchema").unwrap_or(&Value::Null);
            let content = values::filled_in(form, &Assignments::parse(&arguments.values)?)?;
            json!({ "action": "accept", "content": content })
        }
        _ => {
            let message = format!("{} can't be declined by an answer", question.method);
            return Err(Failure::usage(message).with_hint("give `text=…`, or let it expire"));
        }
    };
    serde_json::value::to_raw_value(&answer).map_err(|error| Failure::usage(error.to_string()))
}

/// Returns a result of `sampling/createMessage` with this text.
fn message(values: &Assignments) -> Result<Value, Failure> {
    let (mut text, mut model) = (None, "unknown".to_owned());
    for (name, value) in values.to_strings()? {
        match name.as_str() {
            "text" => text = Some(value),
            "model" => model = value,
            _ => {
                let message = format!("a message has no '{name}'; it has 'text' and 'model'");
                return Err(Failure::usage(message));
            }
        }
    }
    let text = text.ok_or_else(|| {
        Failure::usage("the text is missing").with_hint("write `text=…`, or `--result JSON`")
    })?;
    let content = json!({ "type": "text", "text": text });
    Ok(json!({ "role": "assistant", "content": content, "model": model, "stopReason": "endTurn" }))
}

/// Prints a question for people.
fn show(question: &QuestionShown) -> Result<(), Failure> {
    let params: Value = serde_json::from_str(question.params.get()).unwrap_or_default();
    let text = |name: &str| params.get(name).and_then(Value::as_str).unwrap_or_default();
    let QuestionShown { id, connection, tool, .. } = question;
    output::line(escape::one_line(&format!("question {id} of {tool} ({connection})")))?;
    if question.method == "elicitation/create" {
        for line in text("message").lines() {
            output::line(format_args!("  {}", escape::one_line(line)))?;
        }
        if params.get("url").is_some() {
            output::line(format_args!("  visit {}", escape::one_line(text("url"))))?;
        }
        let form = params.get("requestedSchema").unwrap_or(&Value::Null);
        for field in description::lines(form) {
            output::line(format_args!("  {}", escape::one_line(&field)))?;
        }
    } else {
        output::line("  a message of a model is asked for:")?;
        output::line(format_args!("  {}", escape::one_line(question.params.get())))?;
    }
    output::line(format_args!(
        "answer it by `gudgeon answer {id} …` in {} s",
        question.expires_in_seconds
    ))
}
