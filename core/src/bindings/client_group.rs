//! A group of servers as one client: the names of their components, and the server that a request goes to.
//!
//! Tools and prompts are named `<server>_<name>`. A resource keeps its URI. It is read from the first server that lists
//! the URI. If none does, servers with a template that matches are asked first, then the others, each in the order of
//! the group, until one does not refuse.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    client::describe,
    error::{Error, ErrorKind},
    protocol::json::to_raw,
    router::uri_template::UriTemplate,
};

/// A server and the names, URIs or templates that it lists.
type Listed = (String, Vec<String>);

/// A server and a name there.
type Home<'a> = (&'a str, &'a str);

/// A question about a group.
#[derive(Deserialize)]
#[serde(tag = "what", rename_all = "camelCase", rename_all_fields = "camelCase")]
enum Question {
    /// The full names of tools or prompts.
    Names { kind: String, lists: Vec<Listed> },
    /// The server of a tool or prompt. `lists` are those that an answer asked for.
    Find { kind: String, name: String, group: Group, lists: Option<Vec<Listed>> },
    /// The server to read a resource from. `failures` are the kinds of the errors of the servers that were tried.
    Resource {
        uri: String,
        group: Group,
        resources: Option<Vec<Listed>>,
        resource_templates: Option<Vec<Listed>>,
        failures: Vec<String>,
    },
    /// The error for a server that the group does not have.
    Unknown { server: String, group: Group },
}

/// The names of the servers of a group, or those that have resources, in the order of the group.
#[derive(Deserialize)]
struct Group {
    connected: Vec<String>,
    missing: Vec<String>,
}

/// Answers a question, both JSON.
///
/// Answers are `{"names": [[…], …]}` as in the lists; `{"server", "name"}`; `{"list": kind, "of": servers}` for the
/// same question with these lists; `{"read": server}`; `{"raise": n}` for the error of the nth server that was tried;
/// and `{"error": …}`.
pub fn answer(question: &[u8]) -> String {
    let read = serde_json::from_slice(question).map_err(|it| Error::misuse(it.to_string()));
    read.and_then(|it| answer_to(&it)).map_or_else(
        |error| format!("{{\"error\":{}}}", describe(&error, &error.message)),
        |it| it.to_string(),
    )
}

fn answer_to(question: &Question) -> Result<Value, Error> {
    match question {
        Question::Names { kind, lists } => full_names(kind, lists).map(|it| json!({ "names": it })),
        Question::Find { kind, name, group, lists } => group.find(kind, name, lists.as_deref()),
        Question::Resource { uri, group, resources, resource_templates, failures } => {
            group.read(uri, resources.as_deref(), resource_templates.as_deref(), failures)
        }
        Question::Unknown { server, group } => {
            let error = format!("this group has no server '{server}'; it has {}", group.names(""));
            Err(Error::new(ErrorKind::Protocol, error))
        }
    }
}

fn full_names(kind: &str, lists: &[Listed]) -> Result<Vec<Vec<String>>, Error> {
    let mut homes = std::collections::HashMap::<String, Home<'_>>::new();
    let mut full = |server, own| {
        let name = format!("{server}_{own}");
        match homes.insert(name.clone(), (server, own)) {
            Some(other) => Err(ambiguous(kind, &name, &[other, (server, own)])),
            None => Ok(name),
        }
    };
    lists.iter().map(|(server, names)| names.iter().map(|it| full(server, it)).collect()).collect()
}

impl Group {
    /// Returns the server whose prefix the name has. Of several, it is the one that lists the rest of the name, or else
    /// the one with the longest prefix.
    fn find(&self, kind: &str, name: &str, lists: Option<&[Listed]>) -> Result<Value, Error> {
        let mut homes: Vec<Home<'_>> = self.all().filter_map(|it| prefixed(it, name)).collect();
        homes.sort_by_key(|(server, _)| std::cmp::Reverse(server.len()));
        let longest = *homes.first().ok_or_else(|| self.nothing_fits(kind, name))?;
        let (server, own) = match lists {
            None if homes.len() > 1 => {
                let of: Vec<_> = homes.iter().map(|(server, _)| server).collect();
                return Ok(json!({ "list": kind, "of": of }));
            }
            lists => {
                homes.retain(|(server, own)| has(lists.unwrap_or_default(), server, own));
                match homes[..] {
                    [] => longest,
                    [home] => home,
                    _ => return Err(ambiguous(kind, name, &homes)),
                }
            }
        };
        Ok(json!({ "server": server, "name": own }))
    }

    /// Returns the next server to read a resource from, or the outcome.
    fn read(
        &self,
        uri: &str,
        resources: Option<&[Listed]>,
        templates: Option<&[Listed]>,
        failures: &[String],
    ) -> Result<Value, Error> {
        let list = |kind: &str| Ok(json!({ "list": kind, "of": self.connected }));
        let mut order: Vec<&String> = self.connected.iter().collect();
        if order.len() > 1 {
            let Some(resources) = resources else { return list("resource") };
            if let Some(server) = order.iter().find(|it| has(resources, it, uri)) {
                order = vec![*server];
            } else {
                let Some(templates) = templates else { return list("resourceTemplate") };
                order.sort_by_cached_key(|it| !matches(templates, it, uri));
            }
        }
        let (refused, not_found) = (ErrorKind::Protocol.as_str(), ErrorKind::NotFound.as_str());
        // Some servers answer an unknown URI with another error than "not found".
        match failures.iter().position(|it| it != refused && it != not_found) {
            Some(at) => return Ok(json!({ "raise": at })),
            None if failures.len() < order.len() => {
                return Ok(json!({ "read": order[failures.len()] }));
            }
            None => (),
        }
        match failures.iter().position(|it| it == refused) {
            Some(at) => Ok(json!({ "raise": at })),
            None => Err(self.no_resource(uri)),
        }
    }

    fn no_resource(&self, uri: &str) -> Error {
        let message = format!("no server of this group has the resource '{uri}'{}", self.gone());
        Error {
            data: Some(to_raw(&json!({ "uri": uri }))),
            ..Error::new(ErrorKind::NotFound, message)
        }
    }

    fn nothing_fits(&self, kind: &str, name: &str) -> Error {
        let message = format!("no server of this group has the {kind} '{name}'");
        let (prefixes, gone) = (self.names("_"), self.gone());
        let hint = format!("names are <server>_<{kind}>; they begin with one of {prefixes}{gone}");
        Error::new(ErrorKind::Unsupported, message).with_hint(hint)
    }

    /// Returns the servers that are not connected, for the end of errors.
    fn gone(&self) -> String {
        match self.missing.is_empty() {
            true => String::new(),
            false => format!(" (not reached: {})", self.missing.join(", ")),
        }
    }

    fn names(&self, suffix: &str) -> String {
        let names: Vec<_> = self.all().map(|it| format!("{it}{suffix}")).collect();
        names.join(", ")
    }

    fn all(&self) -> impl Iterator<Item = &str> {
        self.connected.iter().chain(&self.missing).map(String::as_str)
    }
}

fn prefixed<'a>(server: &'a str, name: &'a str) -> Option<Home<'a>> {
    let own = name.strip_prefix(server)?.strip_prefix('_')?;
    Some((server, own))
}

fn entries<'a>(lists: &'a [Listed], server: &str) -> impl Iterator<Item = &'a String> {
    lists.iter().filter(move |(it, _)| it == server).flat_map(|(_, entries)| entries)
}

fn has(lists: &[Listed], server: &str, entry: &str) -> bool {
    entries(lists, server).any(|it| it == entry)
}

fn matches(templates: &[Listed], server: &str, uri: &str) -> bool {
    let mut templates = entries(templates, server).filter_map(|it| UriTemplate::parse(it).ok());
    templates.any(|it| it.match_uri(uri).is_some())
}

fn ambiguous(kind: &str, name: &str, homes: &[Home<'_>]) -> Error {
    let owner = |(server, own): &Home<'_>| format!("the {kind} '{own}' of server '{server}'");
    let owners: Vec<_> = homes.iter().map(owner).collect();
    let message = format!("ClientGroup: '{name}' is {}", owners.join(" and "));
    Error::new(ErrorKind::Protocol, message).with_hint("give one of the servers another name")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(question: &Value) -> Value {
        serde_json::from_str(&answer(question.to_string().as_bytes())).unwrap()
    }

    fn group() -> Value {
        json!({ "connected": ["a", "a_b", "c"], "missing": ["gone"] })
    }

    fn find(name: &str, lists: &Value) -> Value {
        ask(&json!({
            "what": "find", "kind": "tool", "name": name, "group": group(), "lists": lists
        }))
    }

    #[test]
    fn a_name_goes_to_the_server_whose_prefix_it_has() {
        assert_eq!(find("c_x", &Value::Null), json!({ "server": "c", "name": "x" }));
        assert_eq!(find("gone_x", &Value::Null), json!({ "server": "gone", "name": "x" }));
        let asked = find("a_b_x", &Value::Null);
        assert_eq!(asked, json!({ "list": "tool", "of": ["a_b", "a"] }));
        let (one, other) = (json!(["a", ["b_x"]]), json!(["a_b", ["x"]]));
        assert_eq!(find("a_b_x", &json!([one])), json!({ "server": "a", "name": "b_x" }));
        assert_eq!(find("a_b_x", &json!([])), json!({ "server": "a_b", "name": "x" }));
        let error = find("a_b_x", &json!([one, other]))["error"]["message"].to_string();
        assert!(error.contains("'x' of server 'a_b' and the tool 'b_x' of server 'a'"), "{error}");
        let error = find("x", &Value::Null)["error"].to_string();
        assert!(
            error.contains("begin with one of a_, a_b_, c_, gone_ (not reached: gone)"),
            "{error}"
        );
    }

    #[test]
    fn full_names_are_unique() {
        let names = |lists| ask(&json!({ "what": "names", "kind": "prompt", "lists": lists }));
        let full = names(json!([["a", ["x", "y"]], ["b", []]]));
        assert_eq!(full, json!({ "names": [["a_x", "a_y"], []] }));
        let error = &names(json!([["a", ["b_x"]], ["a_b", ["x"]]]))["error"];
        assert_eq!(error["hint"], "give one of the servers another name");
        assert!(error["message"].as_str().unwrap().contains("the prompt 'b_x' of server 'a' and"));
    }

    #[test]
    fn a_resource_is_read_where_it_is_listed_then_where_a_template_matches() {
        let read = |resources: Value, templates: Value, failures: &[&str]| {
            ask(&json!({
                "what": "resource", "uri": "s://1", "group": group(),
                "resources": resources, "resourceTemplates": templates, "failures": failures
            }))
        };
        let none = Value::Null;
        let of = json!(["a", "a_b", "c"]);
        assert_eq!(read(none.clone(), none.clone(), &[]), json!({ "list": "resource", "of": of }));
        let listed = json!([["c", ["s://1"]], ["a_b", ["s://1"]]]);
        assert_eq!(read(listed.clone(), none.clone(), &[]), json!({ "read": "a_b" }));
        assert_eq!(read(listed, none.clone(), &["protocol"]), json!({ "raise": 0 }));
        let asked = read(json!([]), none, &[]);
        assert_eq!(asked, json!({ "list": "resourceTemplate", "of": of }));
        let templates = json!([["a", ["t://{x}", "{not a template"]], ["c", ["s://{x}"]]]);
        for (failures, expected) in [
            (&[][..], json!({ "read": "c" })),
            (&["notFound"], json!({ "read": "a" })),
            (&["notFound", "protocol"], json!({ "read": "a_b" })),
            (&["notFound", "protocol", "notFound"], json!({ "raise": 1 })),
            (&["lost"], json!({ "raise": 0 })),
        ] {
            assert_eq!(read(json!([]), templates.clone(), failures), expected);
        }
        let error = &read(json!([]), templates, &["notFound"; 3])["error"];
        assert_eq!((&error["kind"], &error["data"]["uri"]), (&json!("notFound"), &json!("s://1")));
    }

    #[test]
    fn one_server_is_read_without_lists() {
        let group = json!({ "connected": ["a"], "missing": [] });
        let question =
            json!({ "what": "resource", "uri": "s://1", "group": group, "failures": [] });
        assert_eq!(ask(&question), json!({ "read": "a" }));
        let question = json!({ "what": "unknown", "server": "b", "group": group });
        assert_eq!(ask(&question)["error"]["message"], "this group has no server 'b'; it has a");
    }
}
