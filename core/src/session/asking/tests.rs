#![allow(clippy::unwrap_used, reason = "a test that fails here says where")]

use serde_json::json;

use super::*;
use crate::protocol::{Revision, json::to_raw};

const FORM: &str = r#"{"mode":"form","message":"Who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer","default":30}},"required":["name"]}}"#;

fn responses(value: &Value) -> Answers {
    Answers::new(Some(&to_raw(value)), Journal::default())
}

fn value(raw: &Raw) -> Value {
    serde_json::from_str(raw.get()).unwrap()
}

fn question(key: &str, method: Method, params: &str) -> Question {
    Question { key: key.into(), method, params: json::raw(params.into()) }
}

fn asked(questions: &[(&str, &str, Value)]) -> String {
    let all: Vec<_> = questions
        .iter()
        .map(|(key, method, params)| json!({"key": key, "method": method, "params": params}))
        .collect();
    Value::Array(all).to_string()
}

fn form() -> Value {
    serde_json::from_str(FORM).unwrap()
}

fn modern() -> &'static Wire {
    Wire::for_revision(Revision::V2026_07_28)
}

#[test]
fn an_accepted_form_is_checked_and_its_defaults_are_filled_in() {
    let get = |answer: Value| responses(&json!({"who": answer})).get("who", Method::Elicit, FORM);
    let accepted = get(json!({"action": "accept", "content": {"name": "Ada"}})).unwrap();
    assert_eq!(
        value(&accepted),
        json!({"action": "accept", "content": {"name": "Ada", "age": 30}})
    );
    let given = get(json!({"action": "accept", "content": {"name": "Ada", "age": 7}})).unwrap();
    assert_eq!(value(&given)["content"]["age"], 7);
    assert!(get(json!({"action": "decline"})).is_some());
    assert!(get(json!({"action": "cancel", "content": null})).is_some());
    for unfit in [
        json!({"action": "accept", "content": {"name": 3}}),
        json!({"action": "accept", "content": {"name": "Ada", "age": "old"}}),
        json!({"action": "accept"}),
        json!({"action": "accept", "content": [1]}),
        json!({"action": "perhaps"}),
        json!(12345),
        json!(null),
        json!("Ada"),
    ] {
        assert!(get(unfit.clone()).is_none(), "{unfit}");
    }
}

#[test]
fn a_page_needs_no_content() {
    let params = r#"{"mode":"url","message":"In?","url":"https://a.example/in"}"#;
    let answers = responses(&json!({"in": {"action": "accept"}}));
    assert!(answers.get("in", Method::Elicit, params).is_some());
}

#[test]
fn models_and_roots_have_shapes_of_their_own() {
    let sampled =
        json!({"role": "assistant", "content": {"type": "text", "text": "Paris"}, "model": "m"});
    let roots = json!({"roots": [{"uri": "file:///a"}]});
    let answers = responses(&json!({"s": sampled, "r": roots}));
    assert!(answers.get("s", Method::CreateMessage, "{}").is_some());
    assert!(answers.get("r", Method::ListRoots, "{}").is_some());
    assert!(answers.get("r", Method::CreateMessage, "{}").is_none());
    assert!(answers.get("s", Method::ListRoots, "{}").is_none());
    assert!(answers.get("s", Method::CallTool, "{}").is_none());
}

#[test]
fn answers_of_earlier_rounds_travel_in_the_journal() {
    let first = Answers::default();
    let one = question("step1", Method::Elicit, FORM);
    let journal = first.journal().asking(std::slice::from_ref(&one));
    let ada = json!({"action": "accept", "content": {"name": "Ada"}});
    let second = Answers::new(Some(&to_raw(&json!({"step1": ada, "junk": {}}))), journal);
    assert!(second.get("step1", Method::Elicit, FORM).is_some());
    let two = question("step2", Method::ListRoots, "{}");
    let sealed = serde_json::to_string(&second.journal().asking(&[two])).unwrap();
    let opened: Journal = serde_json::from_str(&sealed).unwrap();
    // A settled question can't be answered again.
    let bob = json!({"action": "accept", "content": {"name": "Bob"}});
    let third = Answers::new(Some(&to_raw(&json!({"step1": bob, "step2": {"roots": []}}))), opened);
    let settled = third.get("step1", Method::Elicit, FORM).unwrap();
    assert_eq!(value(&settled)["content"]["name"], "Ada");
    assert!(third.get("step2", Method::ListRoots, "{}").is_some());
}

#[test]
fn an_answer_to_another_question_under_the_same_key_does_not_count() {
    let one = question("who", Method::Elicit, FORM);
    let journal = Answers::default().journal().asking(&[one]);
    let answer = json!({"who": {"action": "accept", "content": {"name": "Ada"}}});
    let answers = || Answers::new(Some(&to_raw(&answer)), journal.clone());
    // The spelling makes no difference.
    let spaced = serde_json::to_string_pretty(&form()).unwrap();
    let another = FORM.replace("Who?", "Whom?");
    let twice = answers();
    assert!(twice.get("who", Method::Elicit, &spaced).is_some());
    assert!(twice.get("who", Method::Elicit, &another).is_none());
    assert!(twice.is_taken(&question("who", Method::Elicit, &another)), "by one of the same run");
    assert!(twice.get("who", Method::Elicit, FORM).is_some());
    let changed = answers();
    assert!(changed.get("who", Method::Elicit, &another).is_none());
    assert!(!changed.is_taken(&question("who", Method::Elicit, &another)));
    assert!(changed.get("who", Method::Elicit, FORM).is_none(), "it was left behind");
}

#[test]
fn only_what_is_not_answered_is_asked() {
    let declared = to_raw(&json!({"elicitation": {}, "roots": {}}));
    let questions =
        asked(&[("who", "elicitation/create", form()), ("where", "roots/list", json!({}))]);
    let answers = responses(&json!({"where": {"roots": []}}));
    let Round::Ask(open) = round(&questions, &answers, Some(&declared), modern()).unwrap() else {
        panic!("2026-07-28 asks in results");
    };
    assert_eq!(open.iter().map(|question| question.key.as_str()).collect::<Vec<_>>(), ["who"]);
    let legacy = Wire::for_revision(Revision::V2025_11_25);
    let round_of_legacy = round(&questions, &answers, Some(&declared), legacy).unwrap();
    assert!(matches!(round_of_legacy, Round::Request(open) if open.len() == 1));
    let all = responses(&json!({"where": {"roots": []}, "who": {"action": "decline"}}));
    let fault = round(&questions, &all, Some(&declared), modern()).unwrap_err();
    assert_eq!(fault.kind, FaultKind::Handler);
    assert!(fault.message.contains("who, where is answered already"), "{}", fault.message);
}

#[test]
fn what_was_not_declared_is_not_asked() {
    let url = json!({"mode": "url", "message": "In?", "url": "https://a.example/in"});
    let sample = json!({"messages": [], "maxTokens": 1});
    let with_tools = json!({"messages": [], "maxTokens": 1, "tools": []});
    for (method, params, declared, missing) in [
        ("elicitation/create", form(), json!({}), json!({"elicitation": {}})),
        ("elicitation/create", form(), json!({"elicitation": null}), json!({"elicitation": {}})),
        (
            "elicitation/create",
            form(),
            json!({"elicitation": {"url": {}}}),
            json!({"elicitation": {"form": {}}}),
        ),
        (
            "elicitation/create",
            url.clone(),
            json!({"elicitation": {}}),
            json!({"elicitation": {"url": {}}}),
        ),
        ("sampling/createMessage", sample.clone(), json!({}), json!({"sampling": {}})),
        (
            "sampling/createMessage",
            with_tools.clone(),
            json!({"sampling": {}}),
            json!({"sampling": {"tools": {}}}),
        ),
        ("roots/list", json!({}), json!([]), json!({"roots": {}})),
    ] {
        let questions = asked(&[("k", method, params)]);
        let declared = to_raw(&declared);
        let fault = round(&questions, &Answers::default(), Some(&declared), modern()).unwrap_err();
        assert_eq!(fault.kind, FaultKind::MissingCapability);
        assert_eq!(value(&fault.data.unwrap()), json!({"requiredCapabilities": missing}));
    }
    for (method, params, declared) in [
        ("elicitation/create", form(), json!({"elicitation": {}})),
        ("elicitation/create", url, json!({"elicitation": {"url": {}}})),
        ("sampling/createMessage", with_tools, json!({"sampling": {"tools": {}}})),
        ("roots/list", json!({}), json!({"roots": {"listChanged": true}})),
    ] {
        let questions = asked(&[("k", method, params)]);
        let declared = to_raw(&declared);
        assert!(round(&questions, &Answers::default(), Some(&declared), modern()).is_ok());
    }
    let first = asked(&[("a", "elicitation/create", form())]);
    let declared = to_raw(&json!({"elicitation": {}}));
    let fault = round(
        &first,
        &Answers::default(),
        Some(&declared),
        Wire::for_revision(Revision::V2024_11_05),
    );
    assert_eq!(
        fault.unwrap_err().message,
        r#"revision 2024-11-05 has no elicitation, so the client can't be asked "Who?""#
    );
    let two =
        asked(&[("a", "elicitation/create", form()), ("b", "sampling/createMessage", sample)]);
    let fault = round(&two, &Answers::default(), None, modern()).unwrap_err();
    assert_eq!(
        fault.message,
        r#"the client did not declare elicitation, so it can't be asked "Who?""#
    );
    assert_eq!(
        value(&fault.data.unwrap()),
        json!({"requiredCapabilities": {"elicitation": {}, "sampling": {}}})
    );
}

#[test]
fn a_revision_without_words_for_a_question_is_a_client_that_can_t_be_asked() {
    let declared = to_raw(&json!({"elicitation": {}}));
    let questions = asked(&[("k", "elicitation/create", form())]);
    let wire = Wire::for_revision(Revision::V2025_03_26);
    let fault = round(&questions, &Answers::default(), Some(&declared), wire).unwrap_err();
    assert_eq!(fault.kind, FaultKind::MissingCapability);
    // Pages and tools in sampling came with 2025-11-25.
    let declared = to_raw(&json!({"elicitation": {"url": {}}, "sampling": {"tools": {}}}));
    let url = json!({"mode": "url", "message": "In?", "url": "https://a.example/in"});
    let tools = json!({"messages": [], "maxTokens": 1, "tools": []});
    for (method, params) in [("elicitation/create", url), ("sampling/createMessage", tools)] {
        let questions = asked(&[("k", method, params)]);
        let round = |revision| {
            round(&questions, &Answers::default(), Some(&declared), Wire::for_revision(revision))
        };
        let fault = round(Revision::V2025_06_18).unwrap_err();
        assert_eq!(fault.kind, FaultKind::MissingCapability);
        assert!(round(Revision::V2025_11_25).is_ok() && round(Revision::V2026_07_28).is_ok());
    }
}

#[test]
fn a_page_is_named_by_an_absolute_url() {
    let declared = to_raw(&json!({"elicitation": {"url": {}}}));
    let ask = |url: &str| {
        let page = json!({"mode": "url", "message": "In?", "url": url});
        let questions = asked(&[("a", "elicitation/create", page)]);
        round(&questions, &Answers::default(), Some(&declared), modern())
    };
    for url in ["https://a.example", "https://a.example:8443/in?x=1#y", "app://a/b%20c"] {
        assert!(ask(url).is_ok(), "{url}");
    }
    for url in [
        "",
        "in",
        "/in",
        "a.example/in",
        "https://",
        "https://a b/",
        "https://a.example/b c",
        "https://a.example/\n",
    ] {
        let fault = ask(url).unwrap_err();
        assert_eq!(fault.kind, FaultKind::Handler, "{url}");
        assert!(fault.message.contains("absolute URL"), "{}", fault.message);
    }
}

#[test]
fn questions_that_make_no_sense_are_the_handlers_mistake() {
    for bad in [
        "nonsense".to_owned(),
        "[]".to_owned(),
        "[1]".to_owned(),
        asked(&[("a", "tools/call", json!({}))]),
        asked(&[("a", "acme/ask", json!({}))]),
        asked(&[("a", "roots/list", json!([]))]),
        asked(&[("a", "roots/list", json!({})), ("a", "roots/list", json!({}))]),
        asked(&[("a", "elicitation/create", json!({"mode": "url", "message": "?"}))]),
        asked(&[(
            "a",
            "elicitation/create",
            json!({"message": "?", "requestedSchema": {"type": 3}}),
        )]),
    ] {
        let fault = round(&bad, &Answers::default(), None, modern()).unwrap_err();
        assert_eq!(fault.kind, FaultKind::Handler, "{bad}");
    }
}

#[test]
fn a_model_is_not_given_what_the_revision_has_no_words_for() {
    let audio = json!({"type": "audio", "data": "", "mimeType": "audio/wav"});
    let text = json!({"type": "text", "text": "hi"});
    let able = to_raw(&json!({"sampling": {}}));
    for (content, has_audio) in
        [(audio.clone(), true), (json!([text, audio]), true), (text.clone(), false)]
    {
        let params = json!({"messages": [{"role": "user", "content": content}], "maxTokens": 1});
        let question = question("k", Method::CreateMessage, &params.to_string());
        for revision in Revision::ALL {
            let refused = check(&question, Some(&able), Wire::for_revision(revision)).err();
            assert_eq!(refused.is_some(), has_audio && revision == Revision::V2024_11_05);
            if let Some(fault) = refused {
                assert!(fault.message.contains("audio in 2024-11-05"), "{}", fault.message);
            }
        }
    }
}

#[test]
fn a_conversation_that_no_model_can_be_given_is_not_sent() {
    let text = |role: &str| json!({"role": role, "content": {"type": "text", "text": "hi"}});
    let calls = |ids: &[&str]| {
        let blocks: Vec<_> = ids
            .iter()
            .map(|id| json!({"type": "tool_use", "id": id, "name": "look", "input": {}}))
            .collect();
        json!({"role": "assistant", "content": blocks})
    };
    let result = |id: &str| json!({"type": "tool_result", "toolUseId": id, "content": []});
    let user = |content: Value| json!({"role": "user", "content": content});
    let resource = json!({"type": "resource", "resource": {"uri": "a://b", "text": "x"}});
    let missing = "calls tools, and the next message is not";
    let mixed = "has results of tools beside other content";
    let cases = [
        (json!([text("user"), calls(&["1"])]), Some(("messages[1]", missing))),
        (json!([calls(&["1"]), text("user")]), Some(("messages[0]", missing))),
        (json!([calls(&["1", "2"]), user(result("1"))]), Some(("messages[0]", missing))),
        (json!([calls(&["1"]), user(result("2"))]), Some(("messages[0]", missing))),
        (
            json!([calls(&["1"]), user(json!([result("1"), {"type": "text", "text": "so"}]))]),
            Some(("messages[1]", mixed)),
        ),
        (json!([user(json!([resource]))]), Some(("messages[0]", "a model can't receive"))),
        (json!([calls(&["1", "2"]), user(json!([result("2"), result("1")]))]), None),
        (json!([calls(&["1"]), user(result("1")), text("assistant"), text("user")]), None),
        (json!([user(json!({"type": "hologram"}))]), None),
        (json!([]), None),
    ];
    let able = to_raw(&json!({"sampling": {"tools": {}}}));
    let refused = |params: &Value, revision| {
        let question = question("k", Method::CreateMessage, &params.to_string());
        check(&question, Some(&able), Wire::for_revision(revision)).err().map(|fault| fault.message)
    };
    for (messages, expected) in cases {
        let params = json!({"messages": messages, "maxTokens": 1});
        let refused = refused(&params, Revision::V2026_07_28);
        match (&refused, expected) {
            (None, None) => (),
            (Some(text), Some((place, why))) => {
                assert!(text.contains(place) && text.contains(why), "{text}");
            }
            _ => panic!("{messages}: {refused:?}"),
        }
    }
    let older = json!({"messages": [calls(&["1"]), user(result("1"))], "maxTokens": 1});
    assert!(
        refused(&older, Revision::V2025_06_18)
            .unwrap()
            .contains("in 2025-06-18, which does not support")
    );
    for (wrong, why) in [
        (json!({"toolChoice": {"mode": "any"}}), "\"any\" is not a tool choice"),
        (
            json!({"modelPreferences": {"costPriority": 2}}),
            "costPriority is a number from 0 to 1, not 2",
        ),
        (
            json!({"modelPreferences": {"speedPriority": -0.1}}),
            "speedPriority is a number from 0 to 1",
        ),
    ] {
        let mut params = json!({"messages": [text("user")], "maxTokens": 1, "tools": []});
        params.as_object_mut().unwrap().extend(wrong.as_object().unwrap().clone());
        let text = refused(&params, Revision::V2025_11_25).unwrap();
        assert!(text.contains(why), "{text}");
    }
    let right = json!({
        "messages": [text("user")], "maxTokens": 1, "tools": [], "toolChoice": {"mode": "required"},
        "modelPreferences": {"costPriority": 0, "speedPriority": 1.0},
    });
    assert_eq!(refused(&right, Revision::V2025_11_25), None);
}

#[test]
fn a_question_travels_as_the_revision_has_it() {
    let declared = to_raw(&json!({"elicitation": {}}));
    let question = question("who", Method::Elicit, FORM);
    let can = |revision, declared| check(&question, declared, Wire::for_revision(revision));
    for (revision, inside) in [(Revision::V2025_06_18, false), (Revision::V2026_07_28, true)] {
        assert!(can(revision, Some(&declared)).is_ok());
        assert_eq!(can(revision, None).unwrap_err().kind, FaultKind::MissingCapability);
        assert_eq!(travels_inside(Method::Elicit, Wire::for_revision(revision)), inside);
    }
}

#[test]
fn a_step_without_a_result_was_done_as_well() {
    let mut journal = Journal::default();
    journal.done("sent", to_raw(&json!(null)));
    let opened: Journal = serde_json::from_str(&serde_json::to_string(&journal).unwrap()).unwrap();
    let again = Answers::new(None, opened);
    assert_eq!(value(&again.step("sent").unwrap()), json!(null));
    assert!(again.step("other").is_none());
}

#[test]
fn a_question_that_changed_leaves_behind_what_came_after_it() {
    let one = question("one", Method::Elicit, FORM);
    let two = question("two", Method::ListRoots, "{}");
    let mut journal = Journal::default();
    journal.answered(&one, to_raw(&json!({"action": "decline"})));
    journal.done("paid", to_raw(&json!(7)));
    journal.answered(&two, to_raw(&json!({"roots": []})));
    let again = Answers::new(None, journal.clone());
    assert!(again.get("one", Method::Elicit, FORM).is_some());
    assert_eq!(value(&again.step("paid").unwrap()), json!(7));
    assert!(again.get("two", Method::ListRoots, "{}").is_some());
    let changed = Answers::new(None, journal);
    assert!(changed.get("two", Method::ListRoots, "{}").is_some());
    assert!(changed.get("one", Method::Elicit, &FORM.replace("Who?", "Whom?")).is_none());
    assert!(changed.step("paid").is_none());
    assert!(changed.get("two", Method::ListRoots, "{}").is_none());
    assert_eq!(serde_json::to_value(changed.journal()).unwrap(), json!([]));
}

#[test]
fn answers_to_what_was_never_asked_are_not_carried_on() {
    let answers = responses(&json!({"who": {"action": "decline"}, "junk": {"action": "accept"}}));
    assert!(answers.get("who", Method::Elicit, FORM).is_some());
    let carried = serde_json::to_value(answers.journal()).unwrap();
    assert_eq!(carried.as_array().unwrap().len(), 1);
    assert_eq!(carried[0]["k"], "who");
}

#[test]
fn however_many_answers_a_client_brings_they_are_read_once() {
    let more: Vec<_> = (0..200_000).map(|n| format!(r#""k{n}":{{"action":"accept"}}"#)).collect();
    let all = format!(
        r#"{{"who":{{"action":"decline"}},{},"who":{{"action":"cancel"}}}}"#,
        more.join(",")
    );
    let answers = Answers::new(Some(&json::raw(all)), Journal::default());
    let answer = answers.get("who", Method::Elicit, FORM).unwrap();
    assert_eq!(
        value(&answer),
        json!({"action": "decline"}),
        "of several with one key the first counts"
    );
    assert!(
        answers
            .get("k199999", Method::Elicit, r#"{"mode":"url","message":"","url":"a:/b"}"#)
            .is_some()
    );
}
