//! Comparison of the tables of each revision with its published schema.

use std::collections::BTreeSet;

use gudgeon::{
    protocol::{Method, Revision},
    wire::Wire,
};
use serde_json::{Value, json};

use crate::support::spec;

/// The methods in a union of requests or notifications. A union of one is that one itself, and an absent one is empty.
fn methods<'a>(definitions: &'a Value, union: &str) -> BTreeSet<&'a str> {
    let members = match (definitions.get(union), &definitions[union]["anyOf"]) {
        (None, _) => return BTreeSet::new(),
        (Some(_), Value::Array(members)) => {
            members.iter().map(|member| resolve(definitions, member)).collect()
        }
        (Some(one), _) => vec![resolve(definitions, one)],
    };
    members
        .into_iter()
        .map(|schema| {
            schema["properties"]["method"]["const"].as_str().expect("a message names its method")
        })
        .collect()
}

fn resolve<'a>(definitions: &'a Value, schema: &'a Value) -> &'a Value {
    match schema["$ref"].as_str().and_then(|reference| reference.rsplit('/').next()) {
        Some(name) => &definitions[name],
        None => schema,
    }
}

fn names(table: &[Method]) -> BTreeSet<&'static str> {
    table.iter().map(|method| method.as_str()).collect()
}

#[test]
fn the_method_tables_are_the_published_ones() {
    if !spec::available() {
        return;
    }
    for revision in Revision::ALL {
        let definitions = spec::definitions(revision);
        let wire = Wire::for_revision(revision);
        for (union, table) in [
            ("ClientRequest", wire.client_requests),
            ("ServerRequest", wire.server_requests),
            ("ClientNotification", wire.client_notifications),
            ("ServerNotification", wire.server_notifications),
            ("InputRequest", wire.input_requests),
        ] {
            assert_eq!(names(table), methods(&definitions, union), "{union} of {revision}");
            assert_eq!(
                names(table).len(),
                table.len(),
                "{union} of {revision} names a method twice"
            );
        }
        assert!(!wire.client_requests.is_empty() && !wire.server_notifications.is_empty());
    }
}

#[test]
fn every_method_belongs_to_some_revision() {
    let known: BTreeSet<&str> = Revision::ALL
        .into_iter()
        .map(Wire::for_revision)
        .flat_map(|wire| {
            [
                wire.client_requests,
                wire.server_requests,
                wire.client_notifications,
                wire.server_notifications,
                wire.input_requests,
            ]
        })
        .flat_map(names)
        .collect();
    assert_eq!(known, names(Method::ALL));
}

#[test]
fn messages_are_checked_against_their_definition() {
    if !spec::available() {
        return;
    }
    for revision in Revision::ALL {
        let tool = json!({ "name": "add", "inputSchema": { "type": "object" } });
        assert_eq!(spec::check(revision, "Tool", &tool), Ok(()));
        let error = spec::check(
            revision,
            "Tool",
            &json!({ "name": 7, "inputSchema": { "type": "object" } }),
        );
        assert!(error.unwrap_err().contains("'name'"));
        assert!(spec::check(revision, "Tool", &json!({})).is_err());
    }
}
