//! Wrong registrations fail at once and name the fix.

use std::panic::{AssertUnwindSafe, catch_unwind};

use gudgeon::{Prompt, Registry, Resource, Server, Tool, error::ErrorKind};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only its schema counts")]
struct Id {
    id: u32,
}

fn panics(register: impl FnOnce() -> Server) -> String {
    let panic = catch_unwind(AssertUnwindSafe(register)).expect_err("nothing was wrong");
    panic.downcast_ref::<String>().expect("a panic with a message").clone()
}

#[test]
fn duplicate_names() {
    let said = panics(|| Server::new("s").tool("a", || async { 1 }).tool("a", || async { 2 }));
    assert!(said.contains("\"a\" is already registered"), "{said}");
    assert!(said.contains("another name"), "{said}");
}

#[test]
fn invalid_names() {
    let said = panics(|| Server::new("s").tool("no spaces", || async {}));
    assert!(said.contains("not a tool name") && said.contains("letters"), "{said}");
    let said = panics(|| Server::new("s").add(Resource::new("about", || async { "" })));
    assert!(said.contains("not a URI") && said.contains("shelf://books"), "{said}");
    let said = panics(|| Server::new("s").add(Prompt::new(" ", || async { "" })));
    assert!(said.contains("must not be empty"), "{said}");
    let said = panics(|| Server::new(" "));
    assert!(said.contains("a server's name must not be empty"), "{said}");
    let said = panics(|| Server::new("s").method("", || async {}));
    assert!(said.contains("not a method name"), "{said}");
}

#[test]
fn arguments_other_than_objects() {
    let said = panics(|| Server::new("s").tool("double", |n: i64| async move { n * 2 }));
    assert!(said.contains("\"double\"") && said.contains("must describe an object"), "{said}");
}

#[test]
fn a_template_without_the_variable_that_its_handler_takes() {
    let said = panics(|| {
        Server::new("s").add(Resource::template("shelf://{number}", |_: Id| async { "" }))
    });
    assert!(said.contains("no variable \"id\"") && said.contains("{id}"), "{said}");
    let said = panics(|| Server::new("s").add(Resource::new("shelf://one", |_: Id| async { "" })));
    assert!(said.contains("Resource::template"), "{said}");
}

#[test]
fn a_resource_at_a_template() {
    let said = panics(|| Server::new("s").add(Resource::new("shelf://{id}", || async { "" })));
    assert!(said.contains("\"shelf://{id}\" is a URI template"), "{said}");
}

#[test]
fn completion_of_an_unknown_argument() {
    let complete = |server: Server, target: &str, argument: &str| {
        server.complete(target, argument, |_: String| async { Vec::<String>::new() })
    };
    let said = panics(|| complete(Server::new("s"), "greet", "name"));
    assert!(said.contains("register it first"), "{said}");
    let greet = || Server::new("s").add(Prompt::new("greet", |_: Id| async { "" }));
    let said = panics(|| complete(greet(), "greet", "name"));
    assert!(said.contains("no argument \"name\"") && said.contains("it has id"), "{said}");
}

#[test]
fn meta_other_than_an_object() {
    let said = panics(|| Server::new("s").add(Tool::new("a", || async {}).meta([1])));
    assert!(said.contains("meta must be an object"), "{said}");
}

#[test]
fn wrong_registration_at_run_time_is_an_error() {
    let registry: Registry = Server::new("s").tool("a", || async {}).registry();
    let error = registry.add(Tool::new("a", || async {})).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Misuse);
    registry.add(Tool::new("b", || async {})).unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_target_that_cannot_be_served() {
    let error = Server::new("s").run("ftp://here").await.unwrap_err();
    assert!(error.to_string().contains("http://127.0.0.1:8000/mcp"), "{error}");
}
