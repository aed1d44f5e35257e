//! Matching by example and by property, and RFC 6570's own tables of expansions.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{MAX_URI_BYTES, UriTemplate, expand_template};

fn matched(template: &str, uri: &str) -> Option<Vec<(String, Value)>> {
    UriTemplate::parse(template).unwrap().match_uri(uri)
}

fn texts(template: &str, uri: &str) -> Option<String> {
    let show = |(name, value): (String, Value)| match value {
        Value::String(text) => format!("{name}={text}"),
        Value::Array(items) => {
            let items: Vec<_> = items.iter().filter_map(Value::as_str).collect();
            format!("{name}=[{}]", items.join("|"))
        }
        other => panic!("matching gave {other}"),
    };
    matched(template, uri).map(|found| found.into_iter().map(show).collect::<Vec<_>>().join(" "))
}

#[test]
fn templates_match_the_uris_they_expand_to() {
    for (template, uri, expected) in [
        ("docs://index", "docs://index", Some("")),
        ("docs://index", "docs://index/", None),
        ("docs://{x}", "docs://a-b_c~d.e", Some("x=a-b_c~d.e")),
        ("docs://{x}", "docs://", None),
        ("docs://{x}", "docs://a/b", None),
        ("docs://{x}", "docs://a?b", None),
        ("docs://{x}", "docs://a%20b%C3%A9", Some("x=a bé")),
        ("docs://{x}", "docs://aé", Some("x=aé")),
        ("docs://é/{x}", "docs://é/1", Some("x=1")),
        ("docs://é/{x}", "docs://%C3%A9/1", Some("x=1")),
        ("docs://{+path}", "docs://a/b/c.md", Some("path=a/b/c.md")),
        ("docs://{+path}/{name}", "docs://a/b/c.md", Some("path=a/b name=c.md")),
        ("docs://{+a}/x{b}", "docs://p/xq/r/xs", Some("a=p/xq/r b=s")),
        ("docs://{name}.{ext}", "docs://a.tar.gz", Some("name=a.tar ext=gz")),
        ("docs://{a,b}", "docs://1,2", Some("a=1 b=2")),
        ("docs://{a,b}", "docs://1,2,3", None),
        ("docs://{list*}", "docs://1,2,3", Some("list=[1|2|3]")),
        ("docs://x{/path*}", "docs://x/a/b", Some("path=[a|b]")),
        ("docs://x{/a,b}", "docs://x/1/2", Some("a=1 b=2")),
        ("docs://x{/a}", "docs://x", Some("")),
        ("docs://x{.ext}", "docs://x.md", Some("ext=md")),
        ("docs://x{;a,b}", "docs://x;b=2;a=1", Some("a=1 b=2")),
        ("docs://x{;a,b}", "docs://x;c=2", None),
        ("docs://x{#part}", "docs://x#a/b", Some("part=a/b")),
        ("docs://{x:3}", "docs://abc", Some("x=abc")),
        ("docs://{x:3}", "docs://abcd", None),
    ] {
        assert_eq!(texts(template, uri).as_deref(), expected, "{template} on {uri}");
    }
}

#[test]
fn query_variables_come_in_any_order_and_may_be_absent() {
    for (template, uri, expected) in [
        ("s://find{?q,page}", "s://find?q=a&page=2", Some("q=a page=2")),
        ("s://find{?q,page}", "s://find?page=2&q=a%26b", Some("q=a&b page=2")),
        ("s://find{?q,page}", "s://find?other=1&q=", Some("q=")),
        ("s://find{?q,page}", "s://find", Some("")),
        ("s://find{?q}", "s://find?q=a/../b", Some("q=a/../b")),
        ("s://find{?tag*}", "s://find?tag=a&tag=b", Some("tag=[a|b]")),
        ("s://find?fixed=1{&q}", "s://find?q=2&fixed=1", Some("q=2")),
        ("s://find?fixed=1{&q}", "s://find?q=2", None),
        ("s://{+path}{?q}", "s://a/b?q=1", Some("path=a/b q=1")),
        ("s://find?q={q}", "s://find?q=1", Some("q=1")),
        ("s://find{?q}", "s://find?q=1#part", Some("q=1")),
        ("s://find{?q}", "s://find?q=%GG", None),
        ("s://find{?q}", "s://find?q=%FF", None),
    ] {
        assert_eq!(texts(template, uri).as_deref(), expected, "{template} on {uri}");
    }
}

#[test]
fn path_traversal_does_not_match() {
    for uri in [
        "docs://..",
        "docs://a/../b",
        "docs://%2e%2e/b",
        "docs://a%2F..%2Fb",
        "docs://a/..",
        "docs://a%5Cb",
        "docs://a%00b",
        "docs://%",
        "docs://%2",
        "docs://%FF",
    ] {
        assert_eq!(texts("docs://{+path}", uri), None, "{uri}");
        assert_eq!(texts("docs://{x}", uri), None, "{uri}");
        assert_eq!(texts("docs:/{/path*}", uri.replacen("//", "/", 1).as_str()), None, "{uri}");
    }
    assert_eq!(texts("docs://{x}", "docs://a/b"), None);
    assert_eq!(texts("docs://{x}", "docs://a%2Fb").as_deref(), Some("x=a/b"));
    assert_eq!(texts("docs://{+x}", "docs://a%2Fb").as_deref(), Some("x=a/b"));
    assert_eq!(texts("docs://{+x}", "docs://a..b/...").as_deref(), Some("x=a..b/..."));
}

#[test]
fn what_cannot_be_told_apart_is_refused_with_the_mend() {
    for (template, position, word) in [
        ("a://{+a}{+b}", 8, "between"),
        ("a://{a}{b}", 7, "between"),
        ("a://{+a}{/b}", 8, "between"),
        ("a://{a}{.b}", 7, "between"),
        ("a://{a}{;b}{c}", 11, "between"),
        ("a://{+a,b}", 4, "separate"),
        ("a://{a*,b}", 4, "end of its expression"),
        ("a://{a}/{a}", 8, "twice"),
        ("a://{a}{?b}{?c}", 11, "{&"),
        ("a://{a}{&b}", 7, "{?"),
        ("a://{a}{?b}{c}", 11, "before the `?`"),
        ("a://{a}{?b}c=d", 7, "?name=value{&…}"),
        ("a://{a}{?b}&c=d", 7, "?name=value{&…}"),
        ("a://{a}?b=c{&d}e", 11, "?name=value{&…}"),
        ("a://{a}?b=c{&d}&e#f", 11, "before the `?`"),
        ("a://{a}?b=c{&d}&d=e", 11, "rename"),
        ("a://b?c=1{&c*}", 9, "rename"),
    ] {
        let error = UriTemplate::parse(template).unwrap_err();
        assert_eq!(error.position, position, "{error}");
        assert!(error.message.contains(word), "{error}");
    }
    assert!(UriTemplate::parse("a://{a}{/b}{;c}").is_ok());
    assert!(UriTemplate::parse("a://{a}?b=c{&d}&e=f{&g}").is_ok());
}

#[test]
fn adversarial_uris_do_not_hang() {
    let many = (0..40).map(|index| format!("{{+v{index}}}")).collect::<Vec<_>>().join("a") + "a";
    let uri = "a".repeat(MAX_URI_BYTES);
    assert!(matched(&format!("{many}b"), &uri).is_none());
    assert!(matched(&many, &uri).is_some());
    assert!(matched(&format!("{{x}}{}", "a".repeat(4000)), &format!("{}b", &uri[1..])).is_none());
    assert!(matched("{+x}", &format!("{uri}a")).is_none());
}

proptest! {
    #[test]
    fn what_is_expanded_matches_back(
        simple in "[^\\\\\0]{1,12}", reserved in "[a-z0-9:/@!$&'()*+,;= é.]{1,20}", query in any::<Option<String>>(), other in any::<String>(),
    ) {
        prop_assume!(simple.split('/').chain(reserved.split('/')).all(|segment| segment != ".."));
        let template = UriTemplate::parse("gudgeon://{simple}/{+reserved}{?query,other}").unwrap();
        let mut values = vec![("simple".to_owned(), Value::String(simple)), ("reserved".to_owned(), Value::String(reserved))];
        values.extend(query.map(|query| ("query".to_owned(), Value::String(query))));
        values.push(("other".to_owned(), Value::String(other)));
        let uri = template.expand(&values);
        prop_assert_eq!(template.match_uri(&uri), Some(values), "{}", uri);
    }

    #[test]
    fn no_match_ever_escapes(uri in "docs://([./\\\\%a-z]|%2e|%2F|%5c|%00){0,12}") {
        for template in ["docs://{x}", "docs://{+x}", "docs:/{/x*}", "docs://{x}/{+y}"] {
            for (_, value) in matched(template, &uri).unwrap_or_default() {
                let texts = match value {
                    Value::Array(items) => items,
                    single => vec![single],
                };
                for text in texts.iter().filter_map(Value::as_str) {
                    prop_assert!(!text.split(['/', '\\']).any(|segment| segment == "..") && !text.contains('\0'));
                }
            }
        }
    }

    #[test]
    fn nothing_panics(template in "\\PC{0,30}", uri in "\\PC{0,30}") {
        if let Ok(template) = UriTemplate::parse(&template) {
            template.match_uri(&uri);
            template.expand(&[]);
        }
    }
}

/// RFC 6570 §3.2: the variables of its examples.
fn rfc_values() -> Vec<(String, Value)> {
    let values = json!({
        "count": ["one", "two", "three"],
        "dom": ["example", "com"],
        "list": ["red", "green", "blue"],
        "empty_keys": {},
        "keys": {"semi": ";", "dot": ".", "comma": ","},
        "dub": "me/too",
        "hello": "Hello World!",
        "half": "50%",
        "var": "value",
        "who": "fred",
        "base": "http://example.com/home/",
        "path": "/foo/bar",
        "v": 6,
        "x": 1024,
        "y": "768",
        "empty": "",
        "undef": null,
    });
    let members = values.as_object().unwrap().iter();
    members.map(|(name, value)| (name.clone(), value.clone())).collect()
}

#[test]
fn the_examples_of_rfc6570_3_2_expand_as_printed() {
    let values = rfc_values();
    let mut count = 0;
    for line in include_str!("rfc6570_examples.txt").lines().filter(|line| !line.starts_with('#')) {
        let (template, expected) = line.split_once(' ').unwrap_or((line, ""));
        assert_eq!(expand_template(template, &values).unwrap(), expected.trim(), "{template}");
        count += 1;
    }
    assert!(count > 100, "{count}");
}
