//! The fixture server of the transcripts, as `tests/transcripts/README.md` describes it.

use std::{sync::Arc, time::Duration};

use crate::support::{Handler, kept};
use gudgeon::{
    protocol::{
        Dialect, Implementation, Method, Prompt, PromptArgument, Resource, ResourceTemplate, Tool,
        json::to_raw,
    },
    router::{
        Components, Definition, Failure, Middleware, RegisteredPrompt, RegisteredResource,
        RegisteredTemplate, RegisteredTool, Reply, ServerFacts,
    },
    schema::closed,
};
use serde_json::{Value, json};

/// The result of a fixture handler for its input; `None` means that it never finishes.
pub(crate) type Act = fn(&Value, &mut Vec<HandlerMessage>) -> Option<Result<Reply, Failure>>;

/// The reply of a handler to the answer that it waits for.
pub(crate) type Then = fn(&Value) -> Result<Reply, Failure>;

/// A message that a handler sends while it runs.
pub(crate) enum HandlerMessage {
    Progress {
        progress: f64,
        total: f64,
        message: String,
    },
    Log {
        level: String,
        data: Value,
    },
    /// Asks the client and waits; the answer determines the reply.
    Ask {
        method: Method,
        params: Value,
        then: Then,
    },
    /// Questions by key and form, of which it returns the first that has no answer.
    Interview {
        questions: [(&'static str, Value); 2],
    },
    /// A change to report: of a list, or of the resource with this URI.
    Change(String),
}

pub(crate) fn components() -> Components {
    build(|_, act| act)
}

/// `behind`: what is run for the handler of this tool, prompt, resource or argument.
fn build(behind: fn(&str, Act) -> Act) -> Components {
    let mut components = Components::new(ServerFacts {
        instructions: Some("Ask the fixture.".into()),
        request_state_keys: vec![b"the key of every fixture which is long".to_vec()],
        ..ServerFacts::from(Implementation::new("fixture", "1.0"))
    });
    add_tools(&mut components, behind);
    add_resources(&mut components, behind);
    let mut greet = Prompt::from("greet");
    greet.description = Some("Greet somebody.".into());
    greet.arguments = Some(vec![argument("name", true), argument("style", false)]);
    components
        .prompts
        .add(
            RegisteredPrompt::new(greet, kept(handler(behind("greet", act::greet)))).unwrap(),
            true,
        )
        .unwrap();
    components
        .add(
            Definition::Completion { target: "greet".into(), argument: "name".into() },
            kept(handler(behind("name", act::names))),
        )
        .unwrap();
    components.add(Definition::Method("acme/echo".into()), kept(handler(act::acme))).unwrap();
    components.add(Definition::Method("acme/signed".into()), kept(handler(act::signed))).unwrap();
    // The player of the transcripts logs the outcome of notification handlers.
    let changed = "notifications/roots/list_changed";
    components.add(Definition::Notification(changed.into()), kept(handler(act::places))).unwrap();
    components
}

/// The additional components of a server with dialects.
pub(crate) fn components_in(dialects: Vec<Dialect>) -> Components {
    let mut components = components();
    if !dialects.is_empty() {
        let what = json!({"type": "object", "properties": {"what": {"type": "string"}}, "required": ["what"]});
        let mut slow = tool("slow", "Too slow.", &none(), act::wait);
        slow.options.timeout = Some(Duration::from_millis(10));
        components.tools.add(slow, true).unwrap();
        components
            .tools
            .add(tool("change", "Change something.", &what, act::change), true)
            .unwrap();
        let broken = resource(&json!({
            "uri": "fixture://broken", "name": "broken", "description": "Broken.",
        }));
        let broken = RegisteredResource::new(broken, kept(handler(act::crash))).unwrap();
        components.resources.add(broken, true).unwrap();
        let search: ResourceTemplate = serde_json::from_value(json!({
            "uriTemplate": "fixture://search{?q,limit}", "name": "search", "description": "Search.",
        }))
        .unwrap();
        let search = RegisteredTemplate::new(search, kept(handler(act::search))).unwrap();
        components.templates.add(search, true).unwrap();
        let prompts: [(&str, &str, Act); 2] =
            [("talk", "Two messages.", act::talk), ("lost", "Lost.", act::crash)];
        for (name, description, act) in prompts {
            let mut prompt = Prompt::from(name);
            prompt.description = Some(description.into());
            components
                .prompts
                .add(RegisteredPrompt::new(prompt, kept(handler(act))).unwrap(), true)
                .unwrap();
        }
    }
    Arc::make_mut(&mut components.server).dialects = dialects;
    components
}

/// Returns the components behind middleware, which runs around each handler, as in every shell, and around what the core
/// answers by itself.
pub(crate) fn components_behind_middleware() -> Components {
    let mut components = build(|name, act| match name {
        "add" => act::add_a_hundred,
        "echo" => act::echo_loudly,
        "fail" => act::refused,
        "greet" => act::greet_loudly,
        "fixture://about" => act::about_that_was_read,
        "fixture://bytes" => act::not_these,
        "name" => act::not_now,
        _ => act,
    });
    components.set_middleware(Some(Middleware::new(kept(handler(act::few_tools)), ["*"], false)));
    components
}

fn none() -> Value {
    json!({"type": "object", "properties": {}})
}

fn tool(name: &str, description: &str, input: &Value, act: Act) -> RegisteredTool {
    let mut tool = Tool::new(name, closed(to_raw(input)));
    tool.description = Some(description.into());
    RegisteredTool::new(tool, kept(handler(act))).unwrap()
}

fn add_tools(components: &mut Components, behind: fn(&str, Act) -> Act) {
    let integer = json!({"type": "integer"});
    let text = json!({"type": "string"});
    let book = json!({
        "type": "object",
        "properties": {"id": {"type": "integer"}, "title": {"type": "string"}},
        "required": ["id", "title"],
    });
    let object = |properties: Value| {
        let required: Vec<_> = properties.as_object().unwrap().keys().cloned().collect();
        json!({"type": "object", "properties": properties, "required": required})
    };
    let tools: [(&str, &str, Value, Option<Value>, Act); 16] = [
        (
            "add",
            "Add two numbers.",
            object(json!({"a": integer, "b": integer})),
            Some(integer.clone()),
            act::add,
        ),
        ("echo", "Say it again.", object(json!({"text": text})), None, act::echo),
        ("book", "Find a book.", object(json!({"id": integer})), Some(book), act::book),
        ("content", "Every kind of content.", none(), None, act::content),
        ("custom", "Content of its own kind.", none(), None, act::custom),
        ("fail", "Fail.", object(json!({"message": text})), None, act::fail),
        ("crash", "Crash.", none(), None, act::crash),
        ("refuse", "Refuse.", none(), None, act::refuse),
        ("count", "Count.", object(json!({"steps": integer})), None, act::count),
        ("say", "Log.", object(json!({"level": text, "text": text})), None, act::say),
        ("wait", "Wait.", none(), None, act::wait),
        ("confirm", "Ask first.", none(), None, act::confirm),
        ("dream", "Ask the model.", object(json!({"prompt": text})), None, act::dream),
        ("places", "Ask for the roots.", none(), None, act::places),
        ("interview", "Ask twice.", none(), None, act::interview),
        ("hidden", "Hidden.", none(), None, act::wait),
    ];
    for (name, description, input, output, act) in tools {
        let mut tool = Tool::new(name, closed(to_raw(&input)));
        tool.description = Some(description.into());
        tool.output_schema = output.as_ref().map(to_raw);
        let component = RegisteredTool::new(tool, kept(handler(behind(name, act)))).unwrap();
        components.tools.add(component, name != "hidden").unwrap();
    }
}

fn add_resources(components: &mut Components, behind: fn(&str, Act) -> Act) {
    let about = resource(&json!({
        "uri": "fixture://about", "name": "about", "description": "About the fixture.", "mimeType": "text/plain",
    }));
    components
        .resources
        .add(
            RegisteredResource::new(about, kept(handler(behind("fixture://about", act::about))))
                .unwrap(),
            true,
        )
        .unwrap();
    let bytes = resource(&json!({"uri": "fixture://bytes", "name": "bytes"}));
    components
        .resources
        .add(
            RegisteredResource::new(bytes, kept(handler(behind("fixture://bytes", act::bytes))))
                .unwrap(),
            true,
        )
        .unwrap();
    let items: ResourceTemplate = serde_json::from_value(json!({
        "uriTemplate": "fixture://items/{id}", "name": "items", "description": "An item.",
    }))
    .unwrap();
    components
        .templates
        .add(RegisteredTemplate::new(items, kept(handler(act::item))).unwrap(), true)
        .unwrap();
}

fn resource(listed: &Value) -> Resource {
    serde_json::from_str(&listed.to_string()).unwrap()
}

fn argument(name: &str, required: bool) -> PromptArgument {
    PromptArgument { required: Some(required), ..name.into() }
}

fn handler(act: Act) -> Handler {
    Handler::Act(act)
}

#[expect(clippy::unnecessary_wraps, reason = "all handlers have one type")]
mod act {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    use gudgeon::{
        protocol::{Method, json::to_raw},
        router::{Failure, Reply},
    };
    use serde_json::{Value, json};

    use super::HandlerMessage;

    type Answer = Option<Result<Reply, Failure>>;

    pub(super) fn add(input: &Value, _: &mut Vec<HandlerMessage>) -> Answer {
        let sum = input["a"].as_i64().unwrap() + input["b"].as_i64().unwrap();
        Some(Ok(Reply::Json(sum.to_string())))
    }

    pub(super) fn echo(input: &Value, _: &mut Vec<HandlerMessage>) -> Answer {
        Some(Ok(Reply::Text(text(input, "text"))))
    }

    pub(super) fn book(input: &Value, _: &mut Vec<HandlerMessage>) -> Answer {
        Some(Ok(Reply::Json(json!({"id": input["id"], "title": "Dune"}).to_string())))
    }

    pub(super) fn content(_: &Value, _: &mut Vec<HandlerMessage>) -> Answer {
        let blocks = json!([
            "Here",
            {"type": "image", "data": STANDARD.encode("PNG"), "mimeType": "image/png"},
            {"type": "audio", "data": STANDARD.encode("WAV"), "mimeType": "audio/wav"},
            {"type": "resource", "resource": {"uri": "fixture://about", "text": "About.", "mimeType": "text/plain"}},
            {"type": "resource_link", "uri": "fixture://about", "name": "about"},
        ]);
        Some(Ok(Reply::Parts(blocks.to_string())))
    }

    pub(super) fn custom(_: &Value, _: &mut Vec<HandlerMessage>) -> Answer {
        Some(Ok(Reply::Parts(json!([{"type": "acme/thing", "data": [1]}]).to_string())))
    }

    pub(super) fn fail(input: &Value, _: &mut Vec<HandlerMessage>) -> Answer {
        Some(Err(Failure::Tool { message: text(input, "message"), meta: None }))
    }

    pub(super) fn crash(_: &Value, _: &mut Vec<HandlerMessage>) -> Answer {
        Some(Err(Failure::Exception {
            kind: "Crash".into(),
            message: "a secret".into(),
            traceback: "line 1".into(),
        }))
    }

    pub(super) fn refuse(_: &Value, _: &mut Vec<HandlerMessage>) -> Answer {
        let data = Some(to_raw(&json!({"why": "because"})));
        Some(Err(Failure::Protocol { code: 1234, message: "Refused.".into(), data }))
    }

    pub(super) fn count(input: &Value, emitted: &mut Vec<HandlerMessage>) -> Answer {
        let steps = input["steps"].as_u64().unwrap();
        #[expect(clippy::cast_precision_loss, reason = "a handful of steps")]
        for step in 1..=steps {
            let message = format!("step {step}");
            emitted.push(HandlerMessage::Progress {
                progress: step as f64,
                total: steps as f64,
                message,
            });
        }
        Some(Ok(Reply::Text("done".into())))
    }

    pub(super) fn say(input: &Value, emitted: &mut Vec<HandlerMessage>) -> Answer {
        emitted
            .push(HandlerMessage::Log { level: text(input, "level"), data: input["text"].clone() });
        Some(Ok(Reply::Text("said".into())))
    }

    pub(super) fn wait(_: &Value, _: &mut Vec<HandlerMessage>) -> Answer {
        None
    }

    pub(super) fn confirm(_: &Value, emitted: &mut Vec<HandlerMessage>) -> Answer {
        let params = form("Sure?", "boolean");
        let then = |result: &Value| match result["action"] == "accept" {
            true => Ok(Reply::Text(
                if result["content"]["value"] == true { "yes" } else { "no" }.into(),
            )),
            false => Err(Failure::Declined("Sure?".into())),
        };
        emitted.push(HandlerMessage::Ask { method: Method::Elicit, params, then });
        None
    }

    pub(super) fn dream(input: &Value, emitted: &mut Vec<HandlerMessage>) -> Answer {
        let said = json!({"role": "user", "content": {"type": "text", "text": input["prompt"]}});
        let params = json!({"messages": [said], "maxTokens": 100});
        let then = |result: &Value| Ok(Reply::Text(text(&result["content"], "text")));
        emitted.push(HandlerMessage::Ask { method: Method::CreateMessage, params, then });
        None
    }

    pub(super) fn places(_: &Value, emitted: &mut Vec<HandlerMessage>) -> Answer {
        let then = |result: &Value| {
            let roots: Vec<_> =
                result["roots"].as_array().unwrap().iter().map(|root| text(root, "uri")).collect();
            Ok(Reply::Text(roots.join(", ")))
        };
        emitted.push(HandlerMessage::Ask { method: Method::ListRoots, params: json!({}), then });
        None
    }

    pub(super) fn interview(_: &Value, emitted: &mut Vec<HandlerMessage>) -> Answer {
        let questions = [("name", form("Who?", "string")), ("colour", form("Colour?", "string"))];
        emitted.push(HandlerMessage::Interview { questions });
        None
    }

    fn form(message: &str, of: &str) -> Value {
        let schema =
            json!({"type": "object", "properties": {"value": {"type": of}}, "required": ["value"]});
        json!({"mode": "form", "message": message, "requestedSchema": schema})
    }

    pub(super) fn about(_: &Value, _: &mut Vec<HandlerMessage>) -> Answer {
        Some(Ok(Reply::Text("About.".into())))
    }

    pub(super) fn bytes(_: &Value, _: &mut Vec<HandlerMessage>) -> Answer {
        Some(Ok(Reply::Blob(STANDARD.encode([0, 1, 2]))))
    }

    pub(super) fn item(input: &Value, _: &mut Vec<HandlerMessage>) -> Answer {
        let id: i64 = match text(input, "id").parse() {
            Ok(id) => id,
            Err(_) => return Some(Err(Failure::Invalid("id: expected an integer".into()))),
        };
        Some(match id {
            404 => Err(Failure::NotFound { uri: "fixture://items/404".into(), message: None }),
            _ => Ok(Reply::Json(json!({ "id": id }).to_string())),
        })
    }

    pub(super) fn search(input: &Value, _: &mut Vec<HandlerMessage>) -> Answer {
        let Ok(limit) = input["limit"].as_str().unwrap_or("10").parse::<i64>() else {
            return Some(Err(Failure::Invalid("limit: expected an integer".into())));
        };
        Some(Ok(Reply::Json(json!({"q": input["q"], "limit": limit}).to_string())))
    }

    pub(super) fn greet(input: &Value, _: &mut Vec<HandlerMessage>) -> Answer {
        let style = input["style"].as_str().unwrap_or("warm");
        Some(Ok(Reply::Text(format!("Greet {}, {style}.", text(input, "name")))))
    }

    pub(super) fn names(input: &Value, _: &mut Vec<HandlerMessage>) -> Answer {
        let prefix = text(input, "value");
        let names: Vec<_> =
            ["Ada", "Alan"].into_iter().filter(|name| name.starts_with(&prefix)).collect();
        Some(Ok(Reply::Json(json!(names).to_string())))
    }

    pub(super) fn acme(input: &Value, _: &mut Vec<HandlerMessage>) -> Answer {
        Some(Ok(Reply::Json(json!({"echo": input["text"]}).to_string())))
    }

    pub(super) fn signed(_: &Value, _: &mut Vec<HandlerMessage>) -> Answer {
        let result = json!({
            "resultType": "complete", "signed": true,
            "_meta": {"acme/by": "us", "io.modelcontextprotocol/serverInfo": {"name": "else", "version": "0"}},
        });
        Some(Ok(Reply::Json(result.to_string())))
    }

    pub(super) fn change(input: &Value, emitted: &mut Vec<HandlerMessage>) -> Answer {
        emitted.push(HandlerMessage::Change(text(input, "what")));
        Some(Ok(Reply::Text("changed".into())))
    }

    pub(super) fn talk(_: &Value, _: &mut Vec<HandlerMessage>) -> Answer {
        let said = |role: &str, text: &str| json!({"role": role, "content": {"type": "text", "text": text}});
        let messages = json!([said("user", "Hello."), said("assistant", "Hello you.")]);
        Some(Ok(Reply::Parts(messages.to_string())))
    }

    pub(super) fn add_a_hundred(input: &Value, emitted: &mut Vec<HandlerMessage>) -> Answer {
        add(&json!({"a": input["a"], "b": 100}), emitted)
    }

    pub(super) fn echo_loudly(input: &Value, _: &mut Vec<HandlerMessage>) -> Answer {
        Some(Ok(Reply::Text(format!("{}!", text(input, "text")))))
    }

    pub(super) fn refused(_: &Value, _: &mut Vec<HandlerMessage>) -> Answer {
        Some(Err(Failure::Tool { message: "Refused before it ran.".into(), meta: None }))
    }

    pub(super) fn greet_loudly(input: &Value, emitted: &mut Vec<HandlerMessage>) -> Answer {
        greet(&json!({"name": input["name"], "style": "loud"}), emitted)
    }

    pub(super) fn about_that_was_read(_: &Value, _: &mut Vec<HandlerMessage>) -> Answer {
        Some(Ok(Reply::Text("Read: About.".into())))
    }

    pub(super) fn not_these(_: &Value, _: &mut Vec<HandlerMessage>) -> Answer {
        let data = Some(to_raw(&json!({"uri": "fixture://bytes"})));
        Some(Err(Failure::Protocol { code: 1234, message: "Not these.".into(), data }))
    }

    pub(super) fn not_now(_: &Value, _: &mut Vec<HandlerMessage>) -> Answer {
        Some(Err(Failure::Protocol { code: 1234, message: "Not now.".into(), data: None }))
    }

    /// Around what the core answers by itself.
    pub(super) fn few_tools(input: &Value, _: &mut Vec<HandlerMessage>) -> Answer {
        if input["method"] != "tools/list" {
            return Some(Ok(Reply::Nothing));
        }
        let mut result = input["result"].clone();
        let tools = result["tools"].as_array_mut().unwrap();
        tools.retain(|tool| tool["name"] == "add" || tool["name"] == "echo");
        Some(Ok(Reply::Result(result.to_string())))
    }

    fn text(input: &Value, name: &str) -> String {
        input[name].as_str().unwrap().to_owned()
    }
}
