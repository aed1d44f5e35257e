//! Runs every `tests/client_transcripts/*.txt` against a server that replays it: frames, results and callbacks.

use std::{collections::VecDeque, fs, io, path::Path, sync::Arc, time::Duration};

use gudgeon::{
    Client,
    client::{Change, Progress},
    error::Error,
    protocol::{
        CreateMessageResult, Implementation, Prompt, Resource, ResourceContents, ResourceTemplate,
        Revision, Role, SamplingMessage, Tool,
    },
    transport::Transport,
};
use serde_json::{Value, json};
use tokio::{
    sync::{Mutex, mpsc},
    task::JoinHandle,
    time::timeout,
};

const PATIENCE: Duration = Duration::from_secs(20);

#[tokio::test(start_paused = true)]
async fn every_transcript_holds() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/client_transcripts");
    let mut held = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "txt") {
            replay(&path).await;
            held += 1;
        }
    }
    assert!(held >= 5, "only {held} transcripts found");
}

async fn replay(path: &Path) {
    let transcript = fs::read_to_string(path).unwrap();
    let revision = transcript.lines().find_map(|line| line.strip_prefix("revision: ")).unwrap();
    let mut player = Player::new(revision.to_owned());
    for (index, line) in transcript.lines().enumerate() {
        let place = format!("{} line {}", path.display(), index + 1);
        let Some((mark, rest)) = line.split_once(' ') else { continue };
        let (name, value) = rest.split_once(' ').unwrap_or((rest, "null"));
        let expected = match mark {
            "!" if name == "cancel" => {
                player.acts.pop_front().unwrap().abort();
                continue;
            }
            "!" => {
                player.begin(name, serde_json::from_str(value).unwrap()).await;
                continue;
            }
            "<" => {
                player.to_client.as_ref().unwrap().send(rest.as_bytes().to_vec()).unwrap();
                continue;
            }
            ">" | "=" => serde_json::from_str(rest).unwrap(),
            "*" => json!([name, serde_json::from_str::<Value>(value).unwrap()]),
            _ => continue,
        };
        let actual = timeout(PATIENCE, player.take(mark)).await.expect(&place);
        assert!(equal(&expected, &actual), "{place}, expected\n{rest}\ngot\n{actual}");
    }
    player.end().await;
}

/// The client's end of a connection whose other end is a transcript.
struct TranscriptTransport {
    sender: mpsc::UnboundedSender<Vec<u8>>,
    arriving: Mutex<mpsc::UnboundedReceiver<Vec<u8>>>,
}

impl Transport for TranscriptTransport {
    async fn receive(&self) -> io::Result<Option<Vec<u8>>> {
        Ok(self.arriving.lock().await.recv().await)
    }

    async fn send(&self, message: Vec<u8>) -> io::Result<()> {
        // After the end of the transcript nobody listens.
        let _ = self.sender.send(message);
        Ok(())
    }

    async fn close(&self) {}
}

struct Player {
    /// A revision's date, or a dialect's name.
    spoken: String,
    client: Arc<Mutex<Option<Client>>>,
    to_client: Option<mpsc::UnboundedSender<Vec<u8>>>,
    from_client: Option<mpsc::UnboundedReceiver<Vec<u8>>>,
    events: (mpsc::UnboundedSender<Value>, mpsc::UnboundedReceiver<Value>),
    /// Pending operations of the client's user, oldest first.
    acts: VecDeque<JoinHandle<Value>>,
}

impl Player {
    fn new(spoken: String) -> Self {
        Self {
            spoken,
            client: Arc::default(),
            to_client: None,
            from_client: None,
            events: mpsc::unbounded_channel(),
            acts: VecDeque::new(),
        }
    }

    async fn begin(&mut self, name: &str, given: Value) {
        let events = self.events.0.clone();
        if name == "connect" {
            let ((sender, from_client), (to_client, arriving)) =
                (mpsc::unbounded_channel(), mpsc::unbounded_channel());
            (self.from_client, self.to_client) = (Some(from_client), Some(to_client));
            let wire = TranscriptTransport { sender, arriving: Mutex::new(arriving) };
            let (spoken, kept) = (self.spoken.clone(), Arc::clone(&self.client));
            self.acts.push_back(tokio::spawn(async move {
                match connect(wire, &spoken, events).await {
                    Ok(client) => {
                        let spoken = json!(client.server().spoken().name());
                        *kept.lock().await = Some(client);
                        spoken
                    }
                    Err(error) => failed(&error),
                }
            }));
            return;
        }
        let client = self.client.lock().await.clone().expect("connect comes first");
        let name = name.to_owned();
        self.acts.push_back(tokio::spawn(async move {
            act(&client, &name, &given, events).await.unwrap_or_else(|error| failed(&error))
        }));
        // Lines that follow are sent after it.
        tokio::task::yield_now().await;
    }

    async fn take(&mut self, mark: &str) -> Value {
        match mark {
            ">" => {
                let message = self.from_client.as_mut().unwrap().recv().await.unwrap();
                serde_json::from_slice(&message).unwrap()
            }
            "=" => self.acts.pop_front().unwrap().await.unwrap(),
            _ => self.events.1.recv().await.unwrap(),
        }
    }

    /// The client says nothing more, and nobody waits.
    async fn end(mut self) {
        assert!(self.acts.is_empty());
        let client = self.client.lock().await.take().unwrap();
        client.close().await;
        assert!(self.events.1.try_recv().is_err());
        let more = self.from_client.unwrap().try_recv();
        assert!(more.is_err(), "{more:?}");
    }
}

async fn connect(
    wire: TranscriptTransport,
    spoken: &str,
    events: mpsc::UnboundedSender<Value>,
) -> Result<Client, Error> {
    let changes = events.clone();
    let builder = Client::builder(wire);
    let builder = match Revision::parse(spoken) {
        Some(revision) => builder.options(|options| options.revisions = vec![revision]),
        None => builder.options(|options| options.dialect = Some(spoken.parse().unwrap())),
    };
    builder
        .options(|options| {
            options.info = Implementation::new("c", "1");
            options.roots = Some(vec!["file:///a".into()]);
        })
        .on_sample(|_| async {
            let sampled = SamplingMessage::new(Role::Assistant, "Sheep.");
            Ok(CreateMessageResult {
                role: sampled.role,
                content: sampled.content,
                model: "m".into(),
                stop_reason: Some("endTurn".into()),
                result_type: None,
                meta: None,
            })
        })
        .on_log(move |message| {
            let _ = events.send(json!(["log", [message.level, message.logger, message.data]]));
        })
        .on_list_changed(move |kind| {
            let _ = changes.send(json!(["list_changed", format!("{kind:?}").to_lowercase()]));
        })
        .connect()
        .await
}

/// An operation of the client's user.
async fn act(
    client: &Client,
    name: &str,
    given: &Value,
    events: mpsc::UnboundedSender<Value>,
) -> Result<Value, Error> {
    Ok(match name {
        "list_tools" => {
            pairs(client.list::<Tool>().await?, |tool| json!([tool.name, tool.input_schema]))
        }
        "list_resources" => {
            pairs(client.list::<Resource>().await?, |resource| json!([resource.uri, resource.name]))
        }
        "list_resource_templates" => pairs(client.list::<ResourceTemplate>().await?, |template| {
            json!([template.uri_template, template.name])
        }),
        "list_prompts" => pairs(client.list::<Prompt>().await?, |prompt| {
            let arguments = prompt.arguments.unwrap_or_default();
            json!([
                prompt.name,
                pairs(arguments, |argument| json!([argument.name, argument.required]))
            ])
        }),
        "call_tool" => {
            let on_progress = Arc::new(move |step: Progress| {
                let numbers = [Some(step.progress), step.total].map(|number| number.map(whole));
                let _ = events.send(json!(["progress", numbers]));
            });
            let client = client.with_options(|options| {
                options.raise_on_error = false;
                options.on_progress = Some(on_progress);
            });
            let tool = given["name"].as_str().unwrap();
            let called = client.call_tool(tool, &given["arguments"]).await?;
            let data = called.raw_data().map(|data| serde_json::from_str(data).unwrap());
            let data: Value = data.unwrap_or_else(|| json!(called.text()));
            json!([data, called.is_error.unwrap_or_default()])
        }
        "read_resource" => {
            let read = client.read_resource(given.as_str().unwrap()).await?;
            pairs(read.contents, |contents| match contents {
                ResourceContents::Text(text) => json!(text.text),
                ResourceContents::Blob(_) => Value::Null,
            })
        }
        "get_prompt" => {
            let prompt =
                client.get_prompt(given["name"].as_str().unwrap(), &given["arguments"]).await?;
            pairs(prompt.messages, |message| json!([message.role, message.content.as_text()]))
        }
        "ping" => json!(client.ping().await? >= Duration::ZERO),
        "set_roots" => {
            let uris = given.as_array().unwrap().iter();
            client.set_roots(uris.map(|uri| uri.as_str().unwrap()))?;
            Value::Null
        }
        "subscribe" => {
            let updated = Change::Updated(given.as_str().unwrap().into());
            let mut changes = client.subscribe([updated]).await?;
            tokio::spawn(async move {
                while let Some(Ok(Change::Updated(uri))) = changes.next().await {
                    let _ = events.send(json!(["updated", uri]));
                }
            });
            Value::Null
        }
        _ => panic!("what is {name}?"),
    })
}

fn pairs<T>(list: Vec<T>, of: impl Fn(T) -> Value) -> Value {
    list.into_iter().map(of).collect()
}

#[expect(clippy::cast_possible_truncation, reason = "a handful of steps")]
fn whole(number: f64) -> i64 {
    number as i64
}

/// The message of an error begins with the server.
fn failed(error: &Error) -> Value {
    let about = error.target.as_ref().map(|target| format!("{target}: ")).unwrap_or_default();
    json!({"code": error.code, "message": error.message.replace(&about, "")})
}

/// Equal as JSON; `"<any>"` stands for any string.
fn equal(expected: &Value, actual: &Value) -> bool {
    match (expected, actual) {
        (Value::String(any), Value::String(_)) if any == "<any>" => true,
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len()
                && left.iter().zip(right).all(|(value, other)| equal(value, other))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .all(|(key, value)| right.get(key).is_some_and(|other| equal(value, other)))
        }
        _ => expected == actual,
    }
}
