//! The capabilities that a program declares for itself: extensions, and experimental ones (spec: Capabilities).

use serde::Deserialize;
use serde_json::{Map, Value};

#[cfg(feature = "client")]
use super::ClientCapabilities;
use super::{Members, Raw, json, meta_key};
use crate::error::Error;

/// Extensions and experimental capabilities with their settings, by their names.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct OwnCapabilities {
    extensions: Option<Members<Raw>>,
    experimental: Option<Members<Raw>>,
}

impl OwnCapabilities {
    pub fn new(extensions: &Map<String, Value>, experimental: &Map<String, Value>) -> Self {
        Self { extensions: members(extensions), experimental: members(experimental) }
    }

    /// Returns those of a client, however they were given.
    #[cfg(feature = "client")]
    pub fn from_client(capabilities: &ClientCapabilities) -> Self {
        Self {
            extensions: capabilities.extensions.clone(),
            experimental: capabilities.experimental.clone(),
        }
    }

    /// Errors for settings that are not an object, and for an extension whose name has no prefix (SEP-2133, "Definition").
    pub fn check(&self) -> Result<(), Error> {
        let named = [("extensions", &self.extensions), ("experimental", &self.experimental)];
        for (option, members) in named {
            for (name, settings) in members.iter().flat_map(|members| &members.0) {
                if option == "extensions" && !meta_key::has_prefix(name) {
                    return Err(Error::misuse(format!(
                        "{option}: {name:?} is not the name of an extension: it needs a prefix that is yours, such as \
                         \"com.example/search\""
                    )));
                }
                if !settings.get().starts_with('{') {
                    return Err(Error::misuse(format!(
                        "{option}: the settings of {name:?} must be an object, such as {{}}"
                    )));
                }
            }
        }
        Ok(())
    }

    /// Adds what is not declared yet to the capabilities of a server or a client.
    pub fn declare(
        &self,
        extensions: &mut Option<Members<Raw>>,
        experimental: &mut Option<Members<Raw>>,
    ) {
        declare(extensions, self.extensions.as_ref());
        declare(experimental, self.experimental.as_ref());
    }

    /// Adds those of another server.
    pub fn add(&mut self, other: &Self) {
        other.declare(&mut self.extensions, &mut self.experimental);
    }

    /// Returns the name of one that another server declares with other settings.
    pub fn conflict<'a>(&self, other: &'a Self) -> Option<&'a str> {
        let conflict = |ours: &Option<Members<Raw>>, theirs: &'a Option<Members<Raw>>| {
            let mut theirs = theirs.iter().flat_map(|members| &members.0);
            theirs.find_map(|(name, settings)| {
                let known = ours.as_ref()?.get(name)?;
                (value(known) != value(settings)).then_some(name.as_str())
            })
        };
        conflict(&self.extensions, &other.extensions)
            .or_else(|| conflict(&self.experimental, &other.experimental))
    }
}

fn declare(declared: &mut Option<Members<Raw>>, own: Option<&Members<Raw>>) {
    let Some(own) = own else { return };
    let declared = declared.get_or_insert_with(|| Members(Vec::new()));
    for (name, settings) in &own.0 {
        if declared.get(name).is_none() {
            declared.0.push((name.clone(), settings.clone()));
        }
    }
}

fn members(given: &Map<String, Value>) -> Option<Members<Raw>> {
    let members = given.iter().map(|(name, settings)| (name, json::to_raw(settings)));
    (!given.is_empty()).then(|| members.collect())
}

fn value(raw: &Raw) -> Option<Value> {
    serde_json::from_str(raw.get()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(json: &str) -> OwnCapabilities {
        serde_json::from_str(json).expect("an object")
    }

    fn declared(own: &OwnCapabilities) -> String {
        let (mut extensions, mut experimental) = (None, None);
        own.declare(&mut extensions, &mut experimental);
        serde_json::to_string(&(extensions, experimental)).expect("JSON")
    }

    #[test]
    fn names_of_extensions_have_a_prefix_and_settings_are_objects() {
        for allowed in [
            "{}",
            r#"{"extensions":{"com.example/search":{"depth":2},"io.modelcontextprotocol/ui":{}}}"#,
            r#"{"experimental":{"search":{}}}"#,
        ] {
            assert!(given(allowed).check().is_ok(), "{allowed}");
        }
        for (refused, reason) in [
            (r#"{"extensions":{"search":{}}}"#, r#"extensions: "search" is not the name"#),
            (r#"{"extensions":{"/search":{}}}"#, r#"extensions: "/search" is not the name"#),
            (
                r#"{"extensions":{"com.example/":{}}}"#,
                r#"extensions: "com.example/" is not the name"#,
            ),
            (r#"{"extensions":{"com example/a":{}}}"#, "is not the name of an extension"),
            (r#"{"extensions":{"com.example/a/b":{}}}"#, "is not the name of an extension"),
            (
                r#"{"extensions":{"com.example/a":true}}"#,
                r#"extensions: the settings of "com.example/a" must be an object, such as {}"#,
            ),
            (r#"{"experimental":{"a":[1]}}"#, r#"experimental: the settings of "a""#),
        ] {
            let error = given(refused).check().expect_err(refused).to_string();
            assert!(error.contains(reason), "{refused}: {error}");
        }
    }

    #[test]
    fn what_is_declared_already_stays() {
        let own = given(r#"{"extensions":{"com.example/a":{"n":1},"com.example/b":{}}}"#);
        let mut extensions =
            Some(Members(vec![("com.example/a".to_owned(), json::raw("{}".into()))]));
        own.declare(&mut extensions, &mut None);
        let text = serde_json::to_string(&extensions).expect("JSON");
        assert_eq!(text, r#"{"com.example/a":{},"com.example/b":{}}"#);
    }

    #[test]
    fn those_of_a_mounted_server_are_added_unless_settings_differ() {
        let mut outer = given(r#"{"extensions":{"com.example/a":{"x":1,"y":2}}}"#);
        let inner = r#"{"extensions":{"com.example/a":{"y":2,"x":1}},"experimental":{"b":{}}}"#;
        assert_eq!(outer.conflict(&given(inner)), None, "the same settings in another order");
        outer.add(&given(inner));
        assert_eq!(declared(&outer), r#"[{"com.example/a":{"x":1,"y":2}},{"b":{}}]"#);
        assert_eq!(outer.conflict(&given(r#"{"experimental":{"b":{"c":1}}}"#)), Some("b"));
    }

    #[test]
    fn values_of_rust_are_declared_as_they_are() {
        let own = OwnCapabilities::new(
            serde_json::json!({"com.example/a": {"depth": 2}}).as_object().expect("an object"),
            &Map::new(),
        );
        assert_eq!(declared(&own), r#"[{"com.example/a":{"depth":2}},null]"#);
    }
}
