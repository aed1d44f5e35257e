//! Gudgeon's Rust `Client` against servers: the jobs of its standard input, a JSON line per step.
#![allow(clippy::print_stdout, clippy::print_stderr)] // its output is what it is for

use std::{
    collections::BTreeSet,
    error::Error as StdError,
    io::stdin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use gudgeon::{
    Client, Revision,
    client::{Change, ClientBuilder, ListKind, Target, ToolResult},
    error::Error,
    protocol::{
        CompletionTarget, ContentBlock, ElicitRequestParams, LoggingLevel, Prompt, Resource,
        ResourceContents, ResourceTemplate, Tool,
    },
    transport::Command,
};
use serde_json::{Value, json};
use tokio::sync::Notify;

type Notes = Arc<Mutex<Vec<Value>>>;

#[tokio::main]
async fn main() -> Result<(), Box<dyn StdError>> {
    for job in stdin().lines() {
        let done = perform_job(&serde_json::from_str(&job?)?).await;
        if let Err(error) = &done {
            eprintln!("Error: {error}");
        }
        println!("{}", json!({"done": done.is_ok()}));
    }
    Ok(())
}

async fn perform_job(job: &Value) -> Result<(), Box<dyn StdError>> {
    let logs = Notes::default();
    let seen = Arc::clone(&logs);
    let words: Vec<_> = job["target"].as_array().into_iter().flatten().collect();
    let target = match words.as_slice() {
        [] => Target::url(text(job, "target"))?,
        [program, rest @ ..] => {
            let rest = rest.iter().filter_map(|word| word.as_str());
            Command::new(program.as_str().unwrap_or_default()).args(rest).into()
        }
    };
    let mut builder = Client::builder(target).on_log(move |message| {
        note(&seen, json!([message.level, message.data]));
    });
    let era = text(job, "era");
    let revision = match Revision::parse(era) {
        None if era == "legacy" => Some(Revision::LATEST_LEGACY),
        known => known,
    };
    if let Some(revision) = revision {
        builder = builder.options(|options| options.revisions = vec![revision]);
    }
    builder = answering(builder);
    let client = builder.connect().await?;
    for step in job["steps"].as_array().into_iter().flatten() {
        let got = perform(&client, step, &logs).await;
        let got =
            got.unwrap_or_else(|error| json!({"code": error.code, "error": error.to_string()}));
        println!("{}", json!({"check": step["check"], "got": got}));
    }
    client.close().await;
    Ok(())
}

/// The answers of the user, the model and the host.
fn answering(builder: ClientBuilder) -> ClientBuilder {
    let answers: Arc<Value> =
        Arc::new(serde_json::from_str(include_str!("../../answers.json")).unwrap_or_default());
    let (forms, sample) = (Arc::clone(&answers), Arc::clone(&answers));
    builder
        .on_elicit(move |asked| {
            let message = if let ElicitRequestParams::Form(form) = &asked {
                &*form.message
            } else if let ElicitRequestParams::Url(page) = &asked {
                &*page.message
            } else {
                ""
            };
            let answer = &forms["forms"][message];
            let answer = serde_json::from_value(answer.clone());
            async move { answer.map_err(unknown) }
        })
        .on_sample(move |asked| {
            let kind = if asked.tools.is_some() { "tool_use" } else { "sample" };
            let answer = serde_json::from_value(sample[kind].clone());
            async move { answer.map_err(unknown) }
        })
        .options(|options| {
            options.roots = serde_json::from_value(answers["roots"]["roots"].clone()).ok();
        })
}

async fn perform(client: &Client, step: &Value, logs: &Notes) -> Result<Value, Error> {
    match text(step, "do") {
        "connect" => {
            let server = client.server();
            Ok(json!({"revision": server.revision.to_string(), "server": server.info.name}))
        }
        "list_tools" => Ok(sorted(client.list::<Tool>().await?, |tool| tool.name)),
        "list_prompts" => Ok(sorted(client.list::<Prompt>().await?, |prompt| prompt.name)),
        "list_resources" => Ok(sorted(client.list::<Resource>().await?, |resource| resource.uri)),
        "list_templates" => {
            Ok(sorted(client.list::<ResourceTemplate>().await?, |template| template.uri_template))
        }
        "call" => call(client, step, logs).await,
        "cancel" => cancel(client, step).await,
        "changes" => changes(client, step).await,
        "read" => {
            let result = client.read_resource(text(step, "uri")).await?;
            let texts: Vec<_> = result
                .contents
                .into_iter()
                .filter_map(|content| {
                    if let ResourceContents::Text(contents) = content {
                        Some(contents.text)
                    } else {
                        None
                    }
                })
                .collect();
            Ok(json!({"text": texts.join("\n")}))
        }
        "prompt" => {
            let result = client.get_prompt(text(step, "name"), arguments(step)).await?;
            let messages = result.messages.iter();
            Ok(messages.map(|message| json!([message.role, message.content.as_text()])).collect())
        }
        "complete" => {
            let target = CompletionTarget::Prompt(text(step, "prompt").to_owned());
            let (argument, value) = (text(step, "argument"), text(step, "value"));
            Ok(json!(client.complete(target, argument, value, ()).await?.values))
        }
        "ping" => client.ping().await.map(|_| json!(true)),
        unknown => Err(Error::misuse(format!("no step is called {unknown:?}"))),
    }
}

async fn call(client: &Client, step: &Value, logs: &Notes) -> Result<Value, Error> {
    take(logs);
    if let Some(level) = step["logs"].as_str().and_then(LoggingLevel::parse) {
        client.set_log_level(level).await?;
    }
    let progress = Notes::default();
    let seen = Arc::clone(&progress);
    let client = client.with_options(|options| {
        options.raise_on_error = false;
        options.on_progress = Some(Arc::new(move |at| note(&seen, json!([at.progress, at.total]))));
    });
    let result = client.call_tool(text(step, "name"), arguments(step)).await?;
    let mut got = described(&result);
    got["progress"] = Value::Array(take(&progress));
    got["logs"] = Value::Array(take(logs));
    Ok(got)
}

fn described(result: &ToolResult) -> Value {
    let kinds = json!(result.content);
    let types: Vec<_> =
        kinds.as_array().into_iter().flatten().map(|block| &block["type"]).collect();
    let image = result.content.iter().find_map(|block| match block {
        ContentBlock::Image(image) => {
            let bytes = STANDARD.decode(&image.data).map_or(0, |bytes| bytes.len());
            Some(json!([image.mime_type, bytes]))
        }
        _ => None,
    });
    let links: Vec<_> = result
        .content
        .iter()
        .filter_map(|block| match block {
            ContentBlock::ResourceLink(link) => Some(&link.uri),
            _ => None,
        })
        .collect();
    json!({
        "is_error": result.is_error == Some(true),
        "structured": result.structured_content,
        "data": result.raw_data().map(|data| serde_json::from_str::<Value>(data).expect("JSON")),
        "types": types,
        "text": result.text(),
        "image": image,
        "links": links,
    })
}

async fn changes(client: &Client, step: &Value) -> Result<Value, Error> {
    let lists = [ListKind::Tools, ListKind::Resources, ListKind::Prompts].map(Change::List);
    let updated = Change::Updated(text(step, "uri").into());
    let mut told = client.subscribe(lists.into_iter().chain([updated])).await?;
    for name in ["touch", "grow"] {
        client.call_tool(name, json!({})).await?;
    }
    let mut seen = BTreeSet::new();
    while seen.len() < 4
        && let Some(change) = told.next().await
    {
        let change = change?;
        if let Change::Updated(uri) = &change {
            seen.insert(format!("updated {uri}"));
        } else if let Change::List(kind) = change {
            seen.insert(format!("{kind:?}").to_lowercase());
        }
    }
    Ok(json!(seen))
}

/// Dropping a call's future is how Rust cancels it.
async fn cancel(client: &Client, step: &Value) -> Result<Value, Error> {
    let before = witnessed(client, step).await?;
    let told = Arc::new(Notify::new());
    let tell = Arc::clone(&told);
    let observed = client.with_options(|options| {
        options.on_progress = Some(Arc::new(move |_| tell.notify_one()));
    });
    // Progress shows that the handler runs. A server that counts no cancelled calls need not report any.
    let limit = Duration::from_millis(if before.is_some() { 5000 } else { 300 });
    tokio::select! {
        _ = observed.call_tool(text(step, "name"), arguments(step)) => {
            return Err(Error::misuse("the call ended before it was cancelled"));
        }
        _ = tokio::time::timeout(limit, told.notified()) => {}
    }
    let mut after = before;
    for _ in 0..60 {
        after = witnessed(client, step).await?;
        if after != before || after.is_none() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(json!({"cancelled": after.zip(before).map(|(after, before)| after - before)}))
}

/// Returns the number of cancelled calls that the server reports, if it does.
async fn witnessed(client: &Client, step: &Value) -> Result<Option<i64>, Error> {
    let Some(witness) = step["witness"].as_str() else { return Ok(None) };
    let told = client.call_tool(witness, json!({})).await?.text();
    told.parse().map(Some).map_err(|_| Error::misuse(format!("{witness} is to tell a number")))
}

#[expect(clippy::needless_pass_by_value, reason = "it stands where a conversion does")]
fn unknown(error: serde_json::Error) -> Error {
    Error::misuse(format!("no answer to that: {error}"))
}

fn text<'a>(step: &'a Value, name: &str) -> &'a str {
    step[name].as_str().unwrap_or_default()
}

fn arguments(step: &Value) -> Value {
    step.get("arguments").cloned().unwrap_or_else(|| json!({}))
}

fn sorted<T>(list: Vec<T>, name: impl Fn(T) -> String) -> Value {
    let mut names: Vec<_> = list.into_iter().map(name).collect();
    names.sort_unstable();
    json!(names)
}

fn note(notes: &Notes, value: Value) {
    notes.lock().unwrap_or_else(PoisonError::into_inner).push(value);
}

fn take(notes: &Notes) -> Vec<Value> {
    std::mem::take(&mut *notes.lock().unwrap_or_else(PoisonError::into_inner))
}
