use http::header;
use serde_json::{Value, json};

use super::*;
use crate::{protocol::Implementation, router::ServerFacts};

fn components(routes: &[(&str, &str)]) -> Result<Components, Error> {
    let mut components = Components::new(ServerFacts::from(Implementation::new("t", "")));
    for (method, path) in routes {
        components.add_route(method, path, false, Arc::new(()))?;
    }
    Ok(components)
}

fn at<'a>(components: &'a Components, path: &str) -> &'a [Arc<Route>] {
    components.routes.at(path).expect("routes at this path")
}

#[test]
fn a_path_has_the_methods_that_were_added() {
    let components =
        components(&[("POST", "/hooks"), ("GET", "/status"), ("GET", "/hooks")]).unwrap();
    let hooks = at(&components, "/hooks");
    for (method, handler) in
        [("GET", Some("GET")), ("HEAD", Some("GET")), ("POST", Some("POST")), ("PUT", None)]
    {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let found = with_method(hooks, &method);
        assert_eq!(found.map(|route| route.method.as_str()), handler, "{method}");
    }
    assert_eq!(allowed(hooks), "GET, HEAD, OPTIONS, POST");
    assert_eq!(at(&components, "/status")[0].place(), "route GET \"/status\"");
    for elsewhere in ["/hooks/", "/hook", "/", "hooks", "/HOOKS"] {
        assert!(components.routes.at(elsewhere).is_none(), "{elsewhere}");
    }
}

#[test]
fn routes_that_can_match_nothing_or_several_are_refused() {
    for (method, path, problem) in [
        ("POST", "hooks", "it is not a path as in URLs"),
        ("POST", "", "it is not a path as in URLs"),
        ("POST", "/hooks?a=1", "it is not a path as in URLs"),
        ("POST", "/hooks#a", "it is not a path as in URLs"),
        ("POST", "/a b", "it is not a path as in URLs"),
        ("POST", "/ä", "it is not a path as in URLs"),
        ("POST", "/hooks/{id}", "a route has one exact path"),
        ("POST", "/hooks/:id", "a route has one exact path"),
        ("POST", "/hooks/<id>", "a route has one exact path"),
        ("POST", "/hooks/*", "a route has one exact path"),
        ("post", "/hooks", "\"post\" is not a method of routes; write one of \"GET\", \"POST\""),
        ("HEAD", "/hooks", "\"HEAD\" is not a method of routes"),
        ("OPTIONS", "/hooks", "\"OPTIONS\" is not a method of routes"),
        ("FETCH", "/hooks", "\"FETCH\" is not a method of routes"),
    ] {
        let error = components(&[(method, path)]).expect_err(path).to_string();
        assert!(error.contains(&format!("route {path:?}: {problem}")), "{error}");
    }
    let error = components(&[("GET", "/a"), ("GET", "/a")]).unwrap_err().to_string();
    assert!(error.contains("route GET \"/a\" is already registered; choose another"), "{error}");
}

#[test]
fn a_mounted_server_has_its_routes_under_the_same_paths() {
    let shelf = components(&[("GET", "/status")]).unwrap();
    let mut house = components(&[("POST", "/status")]).unwrap();
    house.mount("shelf", &shelf, &|handler, _| Arc::clone(handler)).unwrap();
    assert_eq!(allowed(at(&house, "/status")), "GET, HEAD, OPTIONS, POST");
    let mut taken = components(&[("GET", "/status")]).unwrap();
    let mounted = taken.mount("shelf", &shelf, &|handler, _| Arc::clone(handler));
    assert!(mounted.unwrap_err().to_string().contains("is already registered"));
}

#[test]
fn the_input_of_a_handler_is_the_request() {
    let mut headers = HeaderMap::new();
    headers.insert("x-name", header::HeaderValue::from_bytes(b"J\xfcrgen").unwrap());
    headers.append("x-two", "1".parse().unwrap());
    headers.append("x-two", "2".parse().unwrap());
    let principal = Principal::new("ada");
    let request = RouteRequest {
        method: &Method::POST,
        url: "http://localhost/hooks?a=%20b",
        path: "/hooks",
        query: "a=%20b",
        headers: &headers,
        principal: Some(&principal),
        remote: Some("10.0.0.7".into()),
    };
    let read = |body: &[u8]| serde_json::from_str::<Value>(&request.input(body)).unwrap();
    assert_eq!(
        read(b"\"quoted\"\n"),
        json!({
            "method": "POST",
            "url": "http://localhost/hooks?a=%20b",
            "path": "/hooks",
            "query": "a=%20b",
            "headers": [["x-name", "Jürgen"], ["x-two", "1"], ["x-two", "2"]],
            "body": "\"quoted\"\n",
            "principal": {"subject": "ada", "scopes": [], "claims": {}},
            "remote": "10.0.0.7",
        })
    );
    let bytes = read(&[0xff, 0x00]);
    assert_eq!((&bytes["blob"], bytes.get("body")), (&json!("/wA="), None));
    assert_eq!(read(b"")["body"], "");
}

/// Returns the status, the headers and the body of the response that a reply becomes.
fn shown(reply: Reply) -> (u16, Vec<String>, Vec<u8>) {
    let response = Route::response(reply).expect("a response");
    let (head, body) = response.into_parts();
    let line = |(name, value): (&header::HeaderName, &header::HeaderValue)| {
        format!("{name}: {}", value.as_bytes().escape_ascii())
    };
    (head.status.as_u16(), head.headers.iter().map(line).collect(), body)
}

#[test]
fn each_kind_of_reply_is_a_response() {
    let plain = "content-type: text/plain; charset=utf-8";
    let bytes = "content-type: application/octet-stream";
    for (reply, status, headers, body) in [
        (Reply::Nothing, 204, vec![], &b""[..]),
        (Reply::Text("hi".into()), 200, vec![plain], b"hi"),
        (Reply::Text(String::new()), 200, vec![plain], b""),
        (Reply::Json("{\"a\":1}".into()), 200, vec!["content-type: application/json"], b"{\"a\":1}"),
        (Reply::Blob("/wA=".into()), 200, vec![bytes], b"\xff\0"),
        (Reply::Result("{}".into()), 200, vec![], b""),
        (Reply::Result(r#"{"status":404,"body":"no"}"#.into()), 404, vec![plain], b"no"),
        (Reply::Result(r#"{"blob":"/wA="}"#.into()), 200, vec![bytes], b"\xff\0"),
        (Reply::Result(r#"{"status":304,"body":"left out"}"#.into()), 304, vec![], b""),
        (
            Reply::Result(
                r#"{"headers":[["Content-Type","text/html"],["set-cookie","a=1"],["set-cookie","b=é"],["Content-Length","9"],["connection","close"]],"body":"<p>"}"#
                    .into(),
            ),
            200,
            vec!["content-type: text/html", "set-cookie: a=1", "set-cookie: b=\\xe9"],
            b"<p>",
        ),
    ] {
        let label = format!("{reply:?}");
        let expected = headers.into_iter().map(str::to_owned).collect();
        assert_eq!(shown(reply), (status, expected, body.to_vec()), "{label}");
    }
}

#[test]
fn what_is_not_a_response_is_a_failure_that_says_why() {
    for (reply, problem) in [
        (Reply::Questions("[]".into()), "a route has no client that could be asked"),
        (Reply::Parts("[]".into()), "a route does not return content of tools"),
        (Reply::Result("[]".into()), "the response can't be read"),
        (Reply::Result(r#"{"code":200}"#.into()), "the response can't be read"),
        (Reply::Result(r#"{"status":101}"#.into()), "101 is not the status of a response"),
        (Reply::Result(r#"{"status":600}"#.into()), "600 is not the status of a response"),
        (Reply::Result(r#"{"blob":"?"}"#.into()), "the body is not base64"),
        (
            Reply::Result(r#"{"headers":[["a b","c"]]}"#.into()),
            "\"a b\" is not the name of a header",
        ),
        (
            Reply::Result(r#"{"headers":[["a","b\r\nc: d"]]}"#.into()),
            "the header \"a\" has a value",
        ),
        (Reply::Result(r#"{"headers":[["a","€"]]}"#.into()), "the header \"a\" has a value"),
    ] {
        match Route::response(reply) {
            Err(Failure::Exception { message, .. }) => {
                assert!(message.starts_with(problem), "{message}");
            }
            other => panic!("{problem}: {other:?}"),
        }
    }
}

#[test]
fn a_failure_reveals_a_reference_only() {
    let components = components(&[("POST", "/hooks")]).unwrap();
    let route = &at(&components, "/hooks")[0];
    let secret = || "secret".to_owned();
    let exception = |traceback: &str| Failure::Exception {
        kind: "KeyError".into(),
        message: secret(),
        traceback: traceback.into(),
    };
    for (failure, logged) in [
        (exception("Traceback: …"), "\nTraceback: …"),
        (exception(""), ": KeyError: secret"),
        (Failure::Exposed(secret()), ": secret"),
        (Failure::Tool { message: secret(), meta: None }, ": secret"),
    ] {
        let (response, report) = route.failed(failure, "7f-1");
        let body = str::from_utf8(response.body()).unwrap();
        assert_eq!(
            (response.status().as_u16(), body),
            (500, "the server failed to answer (reference 7f-1)\n")
        );
        let expected = format!("route POST \"/hooks\" failed (reference 7f-1){logged}");
        assert_eq!(report, Some(expected));
    }
    let (response, report) = route.failed(Failure::Cancelled, "");
    assert_eq!((response.status().as_u16(), report), (503, None));
}
