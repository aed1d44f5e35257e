use super::*;
use crate::protocol::json;

fn known(tool: &str) -> KnownTools {
    let mut tools = KnownTools::default();
    tools.learn(ListedTools::read(&mut vec![json::raw(tool.into())], true), true);
    tools
}

fn check_result(tools: &KnownTools, name: &str, result: &Raw) -> Result<(), Error> {
    let schema = tools.output_schema(name);
    schema.map_or(Ok(()), |schema| super::check_result(name, &schema, result, false))
}

fn check_arguments(tools: &KnownTools, name: &str, arguments: &str) -> Result<(), Error> {
    let schema = tools.input_schema(name);
    schema.map_or(Ok(()), |schema| super::check_arguments(name, &schema, arguments))
}

fn result(structured: &str) -> Raw {
    json::raw(format!(r#"{{"content":[],"structuredContent":{structured}}}"#))
}

fn data(tools: &KnownTools, result: &Raw) -> (Option<String>, bool) {
    let verdict = tools.read_result("t", result).expect("readable");
    let data = verdict.data.map(|data| match data {
        ToolData::Structured { range, .. } => result.get()[range].to_owned(),
        ToolData::Text(json) => json,
    });
    (data, verdict.needs_schema)
}

#[test]
fn a_wrapped_value_is_unwrapped_where_the_schema_says_so() {
    for mark in ["x-gudgeon-wrapped", "x-fastmcp-wrap-result"] {
        let tools = known(&format!(
            r#"{{"name":"t","inputSchema":{{}},"outputSchema":{{"type":"object","{mark}":true}}}}"#
        ));
        assert_eq!(data(&tools, &result(r#"{"result":[1]}"#)), (Some("[1]".into()), false));
    }
    let plain = known(r#"{"name":"t","inputSchema":{},"outputSchema":{"type":"object"}}"#);
    assert_eq!(data(&plain, &result(r#"{"result":1}"#)), (Some(r#"{"result":1}"#.into()), false));
}

#[test]
fn only_a_result_that_looks_wrapped_needs_the_list() {
    let none = KnownTools::default();
    assert!(data(&none, &result(r#"{"result":1}"#)).1);
    assert!(!data(&none, &result(r#"{"result":1,"more":2}"#)).1);
    assert_eq!(data(&none, &result("null")), (Some("null".into()), false));
    let marked = json::raw(
        r#"{"structuredContent":{"result":4},"_meta":{"fastmcp":{"wrap_result":true}}}"#.into(),
    );
    assert_eq!(data(&none, &marked), (Some("4".into()), false));
}

#[test]
fn a_text_is_data_where_the_result_says_that_it_is_json() {
    let none = KnownTools::default();
    let text = r#""content":[{"type":"text","text":"12345"}]"#;
    let plain = json::raw(format!("{{{text}}}"));
    assert_eq!(data(&none, &plain), (None, false), "not a guess");
    let marked = json::raw(format!(r#"{{{text},"_meta":{{"gudgeon/jsonText":true}}}}"#));
    assert_eq!(data(&none, &marked), (Some("12345".into()), false));
    let both = json::raw(format!(
        r#"{{{text},"structuredContent":[1],"_meta":{{"gudgeon/jsonText":true}}}}"#
    ));
    assert_eq!(data(&none, &both), (Some("[1]".into()), false));
}

#[test]
fn results_are_checked_against_the_output_schema() {
    let tools = known(
        r#"{"name":"t","inputSchema":{},"outputSchema":{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}}}}"#,
    );
    assert!(check_result(&tools, "t", &result(r#"{"n":1}"#)).is_ok());
    assert!(check_result(&tools, "t", &result(r#"{"n":"x"}"#)).is_err());
    assert!(check_result(&tools, "t", &json::raw(r#"{"content":[]}"#.into())).is_err());
    let failed = json::raw(r#"{"content":[],"isError":true}"#.into());
    assert!(check_result(&tools, "t", &failed).is_ok());
    assert!(check_result(&tools, "other", &result("3")).is_ok());
}

#[test]
fn what_a_schema_means_elsewhere_is_not_taken_as_checked() {
    for (foreign, fix) in [
        (r#"{"$schema":"https://a.example/dialect"}"#, "dialect"),
        (r#"{"$ref":"https://a.example/schema"}"#, "never fetched"),
    ] {
        let tools =
            known(&format!(r#"{{"name":"t","inputSchema":{foreign},"outputSchema":{foreign}}}"#));
        let refused = check_result(&tools, "t", &result("1")).expect_err(foreign);
        assert!(refused.message.contains(fix), "{refused}");
        let refused = check_arguments(&tools, "t", "{}").expect_err(foreign);
        assert!(refused.message.contains(fix), "{refused}");
        let failed = json::raw(r#"{"content":[],"isError":true}"#.into());
        check_result(&tools, "t", &failed).expect("there is nothing to check");
    }
    let tools = known(r#"{"name":"t","inputSchema":{},"outputSchema":{"type":"nothing"}}"#);
    check_result(&tools, "t", &result("1")).expect("not checked");
}

#[test]
fn arguments_are_checked_against_the_input_schema() {
    let tools = known(r#"{"name":"t","inputSchema":{"type":"object","required":["n"]}}"#);
    assert!(check_arguments(&tools, "t", r#"{"n":1}"#).is_ok());
    let refused = check_arguments(&tools, "t", "{}").expect_err("n is missing");
    assert_eq!(refused.kind, ErrorKind::Misuse);
}

#[test]
fn a_failed_tool_speaks_for_itself() {
    let said = json::raw(
        r#"{"isError":true,"content":[{"type":"text","text":"a"},{"type":"image"},{"type":"text","text":"b"}]}"#.into(),
    );
    let verdict = KnownTools::default().read_result("t", &said).expect("readable");
    assert_eq!(verdict.failure.as_deref(), Some("a\nb"));
}
