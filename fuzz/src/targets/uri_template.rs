//! URI templates: the first line is a template, each other line a URI or, as a JSON object, values.

use gudgeon::router::uri_template::{MAX_URI_BYTES, UriTemplate, expand_template};
use serde_json::Value;

use crate::script::steps;

pub(super) const SEEDS: &[&str] = &[
    "tdocs://{x}/{+path}{?q,tag*}\nudocs://a/b/c?q=1&tag=a&tag=b\nv{\"x\":\"a b\",\"path\":\"p/q\",\"tag\":[\"1\",\"2\"]}",
    "tdocs://x{/path*}{.ext}{;a,b}{#part}\nudocs://x/a/b\nudocs://x/a%2Fb.md;b=2;a=1#p",
    "tfiles://{name}.{ext}\nufiles://a.tar.gz\nufiles://%2e%2e.x",
    "ta://{x:3}{&y}?fixed=1{&z}\nua://abc?fixed=1&z=%00",
];

pub(super) fn run(input: &[u8]) {
    let mut template = None;
    for (name, argument) in steps(input) {
        let text = String::from_utf8_lossy(argument);
        match (name, &template) {
            (b't', _) => {
                template =
                    UriTemplate::parse(&text).ok().map(|template| (template, text.into_owned()));
            }
            (b'u', Some((template, _))) => check_match(template, &text),
            (b'v', Some((template, text_of))) => {
                let Ok(Value::Object(values)) = serde_json::from_str(&text) else { continue };
                let values: Vec<_> = values.into_iter().collect();
                let uri = template.expand(&values);
                assert_eq!(expand_template(text_of, &values).unwrap(), uri, "two expansions");
                check_match(template, &uri);
            }
            _ => (),
        }
    }
}

fn check_match(template: &UriTemplate, uri: &str) {
    let Some(values) = template.match_uri(uri) else { return };
    assert!(uri.len() <= MAX_URI_BYTES);
    let names: Vec<_> = template.variables().collect();
    for (name, value) in &values {
        assert!(names.contains(&name.as_str()), "{name} is not a variable");
        let is_query =
            template.kinds().any(|variable| variable.name == *name && variable.is_query());
        let texts = match value {
            Value::String(text) => vec![text.as_str()],
            Value::Array(items) => {
                items.iter().map(|item| item.as_str().expect("a string")).collect()
            }
            other => panic!("matching gave {other}"),
        };
        for text in texts.into_iter().filter(|_| !is_query) {
            let climbs = text.split(['/', '\\']).any(|segment| segment == "..");
            assert!(!climbs && !text.contains(['\0', '\\']), "{uri} gave {name}={text:?}");
        }
    }
    // The URI that these values make matches as well, and stays the same from then on. In `{+x}` a question mark can't be
    // distinguished from that of a query, nor a percent sign from that of an escape.
    let own = template.expand(&values);
    let is_ambiguous = values
        .iter()
        .any(|(_, value)| value.as_str().is_some_and(|text| text.contains(['?', '%'])));
    if !is_ambiguous && own.len() <= MAX_URI_BYTES {
        let again = template.match_uri(&own);
        let again = again.unwrap_or_else(|| {
            panic!("{uri} gave {values:?}, which make {own}, which does not match")
        });
        assert_eq!(template.expand(&again), own, "{uri} gave {values:?}, and then {again:?}");
    }
}
