//! All protocol types round-trip, ignore unknown members, and reject invalid values.

use gudgeon::protocol::*;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, value::RawValue};

fn parse<T: DeserializeOwned>(json: &str) -> T {
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{error} in {json}"))
}

fn refusal<T: DeserializeOwned>(json: &str) -> String {
    serde_json::from_str::<T>(json).err().unwrap_or_else(|| panic!("accepted: {json}")).to_string()
}

fn written<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("protocol types always serialise")
}

/// Reads and writes: nothing is lost, and a member that nobody knows does not matter.
fn round_trip<T: Serialize + DeserializeOwned>(json: &str) {
    let expected: Value = parse(json);
    let said_back = |json| parse::<Value>(&written(&parse::<T>(json)));
    assert_eq!(said_back(json), expected);
    let more =
        format!(r#"{{"x-nobody": [{{"knows": null}}],{}"#, &json.trim()[1..]).replace(",}", "}");
    assert_eq!(said_back(&more), expected, "with an unknown member");
}

#[test]
fn what_is_completed_is_a_template_or_a_prompt() {
    let named = |target: &str| CompletionTarget::named(target.to_owned());
    assert_eq!(named("urn:book:{id}"), CompletionTarget::Resource("urn:book:{id}".into()));
    assert_eq!(named("shelf://about"), CompletionTarget::Resource("shelf://about".into()));
    assert_eq!(named("team:greet"), CompletionTarget::Prompt("team:greet".into()));
}

/// A check of one member and the handler, which gets a map of all, must not see different values.
#[test]
fn the_last_of_several_params_with_one_name_counts() {
    let body = r#"{"jsonrpc":"2.0","method":"acme/moved","params":{"to":"a","from":"x","to":"b"}}"#;
    let Frame::One(Ok(Message::Notification { params, .. })) = Frame::parse(body.as_bytes()) else {
        panic!("no notification: {body}")
    };
    let whole: Value = parse(params.without_meta().get());
    assert_eq!(params.get("to").map(RawValue::get), Some("\"b\""));
    assert_eq!(whole["to"], "b");
}

/// Each line is a test: a type and samples of it.
macro_rules! round_trips {
    ($($name:ident: $type:ty = [$($json:literal),* $(,)?];)*) => {
        $(#[test]
        fn $name() {
            $(round_trip::<$type>($json);)*
        })*
    };
}

round_trips! {
    request_params: RequestParams = ["{}", r#"{"_meta":{"a.example/k":[1,null]}}"#];
    notification_params: NotificationParams = ["{}", r#"{"_meta":{}}"#];
    empty_result: EmptyResult = ["{}", r#"{"resultType":"complete","_meta":{"k":1}}"#, r#"{"resultType":"task"}"#];

    client_capabilities: ClientCapabilities = [
        "{}",
        r#"{"experimental":{"b":{"on":true},"a":{}},"roots":{"listChanged":true},"sampling":{"context":{},"tools":{"x":1}},
            "elicitation":{"form":{},"url":{}},"extensions":{"com.example/ui":{"mimeTypes":["text/html"]}}}"#,
        r#"{"roots":{},"sampling":{},"elicitation":{},"tasks":{"list":{},"cancel":{},
            "requests":{"sampling":{"createMessage":{}},"elicitation":{"create":{}}}}}"#,
    ];
    server_capabilities: ServerCapabilities = [
        "{}",
        r#"{"experimental":{"x":{}},"logging":{},"completions":{},"prompts":{"listChanged":false},
            "resources":{"subscribe":true,"listChanged":true},"tools":{},"extensions":{"com.example/skills":{}}}"#,
        r#"{"tasks":{"list":{},"requests":{"tools":{"call":{}}}}}"#,
    ];
    missing_capability: MissingRequiredClientCapabilityData = [r#"{"requiredCapabilities":{"sampling":{"tools":{}}}}"#];

    implementation: Implementation = [
        r#"{"name":"shelf","version":"1.0"}"#,
        r#"{"name":"shelf","title":"Shelf","version":"","description":"Books","websiteUrl":"https://shelf.example",
            "icons":[{"src":"data:,","mimeType":"image/png","sizes":["48x48","any"],"theme":"sepia"}]}"#,
    ];
    initialize_params: InitializeRequestParams = [
        r#"{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"c","version":"0"},"_meta":{}}"#,
    ];
    initialize_result: InitializeResult = [
        r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"0"},
            "instructions":"Ask.","_meta":{"k":0}}"#,
    ];
    discover_result: DiscoverResult = [
        r#"{"supportedVersions":["2026-07-28"],"capabilities":{},"instructions":"Ask.","resultType":"complete",
            "ttlMs":60000,"cacheScope":"public","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"0"}}}"#,
    ];
    unsupported_version: UnsupportedProtocolVersionData = [r#"{"supported":["2026-07-28"],"requested":"1999-01-01"}"#];

    content_block: ContentBlock = [
        r#"{"type":"text","text":"hej \u0001 \"du\""}"#,
        r#"{"text":"the type may come last","annotations":{"audience":["user","assistant"],"priority":0.5,
            "lastModified":"2026-01-01T00:00:00Z"},"_meta":{"k":{}},"type":"text"}"#,
        r#"{"type":"image","data":"AAAA","mimeType":"image/png","annotations":{"priority":1}}"#,
        r#"{"type":"audio","data":"AAAA","mimeType":"audio/wav","_meta":{}}"#,
        r#"{"type":"resource_link","uri":"docs://a","name":"a","title":"A","description":"d","mimeType":"text/plain",
            "size":12,"icons":[],"annotations":{},"_meta":{}}"#,
        r#"{"type":"resource","resource":{"uri":"docs://a","text":""},"annotations":{},"_meta":{}}"#,
        r#"{"type":"resource","resource":{"uri":"docs://a","mimeType":"image/png","blob":"AAAA","_meta":{}}}"#,
        r#"{"type":"tool_use","id":"1","name":"add","input":{"a":9007199254740993},"_meta":{}}"#,
        r#"{"type":"tool_result","toolUseId":"1","content":[{"type":"text","text":"2"}],"structuredContent":null,
            "isError":false,"_meta":{}}"#,
    ];
    resource_contents: ResourceContents = [
        r#"{"uri":"docs://a","mimeType":"text/plain","text":"hej","_meta":{"k":1}}"#,
        r#"{"uri":"docs://a","blob":""}"#,
    ];

    tool: Tool = [
        r#"{"name":"add","inputSchema":{"type":"object"}}"#,
        r##"{"name":"add","title":"Add","description":"Adds.","icons":[{"src":"data:,"}],
            "inputSchema":{"type":"object","properties":{"a":{"$ref":"#/$defs/n"}},"$defs":{"n":{"type":"integer"}}},
            "outputSchema":{"oneOf":[true]},"annotations":{"title":"Adder","readOnlyHint":true,"destructiveHint":false,
            "idempotentHint":true,"openWorldHint":false},"execution":{"taskSupport":"optional"},"_meta":{"k":[]}}"##,
    ];
    list_tools_result: ListToolsResult = [
        r#"{"tools":[]}"#,
        r#"{"tools":[{"name":"t","inputSchema":{}}],"nextCursor":"2","resultType":"complete","ttlMs":0,
            "cacheScope":"private","_meta":{}}"#,
    ];
    call_tool_params: CallToolRequestParams = [
        r#"{"name":"add"}"#,
        r#"{"name":"add","arguments":{"a":1e3,"b":12345678901234567890},"inputResponses":{"q":{"action":"cancel"}},
            "requestState":"s","task":{"ttl":1000},"_meta":{"progressToken":1}}"#,
    ];
    call_tool_result: CallToolResult = [
        r#"{"content":[]}"#,
        r#"{"content":[{"type":"text","text":"3"}],"structuredContent":{"sum":3},"isError":false,
            "resultType":"complete","_meta":{}}"#,
        r#"{"content":[],"structuredContent":null,"isError":true}"#,
    ];

    resource: Resource = [r#"{"uri":"docs://a","name":"a"}"#];
    resource_template: ResourceTemplate = [
        r#"{"uriTemplate":"docs://{+path}","name":"docs","title":"Docs","description":"All","mimeType":"text/markdown",
            "icons":[{"src":"data:,"}],"annotations":{"audience":[]},"_meta":{}}"#,
    ];
    list_resources_result: ListResourcesResult = [
        r#"{"resources":[{"uri":"a:b","name":"b"}],"nextCursor":"","ttlMs":1,"cacheScope":"public","resultType":"complete"}"#,
    ];
    list_resource_templates_result: ListResourceTemplatesResult = [
        r#"{"resourceTemplates":[],"nextCursor":"n","ttlMs":1,"cacheScope":"public","resultType":"complete","_meta":{}}"#,
    ];
    read_resource_params: ReadResourceRequestParams = [
        r#"{"uri":"docs://a","inputResponses":{},"requestState":"","_meta":{}}"#,
    ];
    read_resource_result: ReadResourceResult = [
        r#"{"contents":[{"uri":"a:b","text":"t"},{"uri":"a:c","blob":"AA=="}],"ttlMs":5,"cacheScope":"private"}"#,
    ];
    subscribe_params: SubscribeRequestParams = [r#"{"uri":"docs://a","_meta":{}}"#];
    unsubscribe_params: UnsubscribeRequestParams = [r#"{"uri":"docs://a"}"#];
    resource_updated: ResourceUpdatedNotificationParams = [
        r#"{"uri":"docs://a","_meta":{"io.modelcontextprotocol/subscriptionId":"7"}}"#,
    ];

    prompt: Prompt = [
        r#"{"name":"p"}"#,
        r#"{"name":"p","title":"P","description":"d","icons":[],"_meta":{},
            "arguments":[{"name":"a","title":"A","description":"d","required":true},{"name":"b"}]}"#,
    ];
    list_prompts_result: ListPromptsResult = [r#"{"prompts":[{"name":"p"}],"nextCursor":"n","ttlMs":1}"#];
    get_prompt_params: GetPromptRequestParams = [
        r#"{"name":"p","arguments":{"z":"1","a":"2"},"inputResponses":{},"requestState":"s","_meta":{}}"#,
    ];
    get_prompt_result: GetPromptResult = [
        r#"{"description":"d","messages":[{"role":"user","content":{"type":"text","text":"hej"}},
            {"role":"assistant","content":{"type":"video","src":"v"}}],"resultType":"complete","_meta":{}}"#,
    ];

    complete_params: CompleteRequestParams = [
        r#"{"ref":{"type":"ref/prompt","name":"p","title":"P"},"argument":{"name":"a","value":"x"},
            "context":{"arguments":{"b":"y"}},"_meta":{}}"#,
        r#"{"ref":{"uri":"docs://{p}","type":"ref/resource"},"argument":{"name":"p","value":""}}"#,
    ];
    complete_result: CompleteResult = [
        r#"{"completion":{"values":["a","b"],"total":2,"hasMore":false},"resultType":"complete","_meta":{}}"#,
    ];
    paginated_params: PaginatedRequestParams = ["{}", r#"{"cursor":"c","_meta":{}}"#];

    input_required: InputRequiredResult = [
        r#"{"resultType":"input_required","requestState":"s"}"#,
        r#"{"resultType":"input_required","_meta":{},"inputRequests":{
            "z":{"method":"elicitation/create","params":{"mode":"url","message":"Sign in","url":"https://a.example"}},
            "r":{"method":"roots/list"},"r2":{"method":"roots/list","params":{"_meta":{"k":1}}},
            "s":{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":5}},
            "x":{"method":"acme/ask","params":[1],"more":true}}}"#,
    ];

    elicit_params: ElicitRequestParams = [
        r#"{"mode":"form","message":"Who?","requestedSchema":{"type":"object","properties":{}},"task":{},"_meta":{}}"#,
        r#"{"mode":"url","message":"Go","url":"https://a.example","elicitationId":"e1","task":{"ttl":1},"_meta":{}}"#,
    ];
    elicit_result: ElicitResult = [
        r#"{"action":"accept","content":{"n":1.0,"s":["a"]},"resultType":"complete","_meta":{}}"#,
        r#"{"action":"decline"}"#,
        r#"{"action":"cancel"}"#,
    ];
    elicitation_complete: ElicitationCompleteNotificationParams = [r#"{"elicitationId":"e1","_meta":{}}"#];
    url_elicitation_required: UrlElicitationRequiredData = [
        r#"{"elicitations":[{"mode":"url","message":"Go","url":"https://a.example","elicitationId":"e1"}]}"#,
    ];

    create_message_params: CreateMessageRequestParams = [
        r#"{"messages":[],"maxTokens":1}"#,
        r#"{"messages":[{"role":"user","content":{"type":"text","text":"hej"},"_meta":{}},
            {"role":"assistant","content":[{"type":"tool_use","id":"1","name":"t","input":{}}]},
            {"role":"user","content":[]}],
            "modelPreferences":{"hints":[{"name":"small"},{}],"costPriority":0,"speedPriority":0.3,"intelligencePriority":1},
            "systemPrompt":"Be kind.","includeContext":"thisServer","temperature":0.7,"maxTokens":100,
            "stopSequences":["."],"metadata":{"vendor":[1]},"tools":[{"name":"t","inputSchema":{"type":"object"}}],
            "toolChoice":{"mode":"required"},"task":{},"_meta":{}}"#,
    ];
    create_message_result: CreateMessageResult = [
        r#"{"role":"assistant","content":{"type":"text","text":"hej"},"model":"m","stopReason":"endTurn","resultType":"complete"}"#,
        r#"{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"new"}],"model":"m","stopReason":"tired","_meta":{}}"#,
    ];
    list_roots_result: ListRootsResult = [
        r#"{"roots":[{"uri":"file:///a","name":"a","_meta":{}},{"uri":"file:///b"}],"resultType":"complete","_meta":{}}"#,
    ];

    set_level_params: SetLevelRequestParams = [r#"{"level":"warning","_meta":{}}"#];
    log_message: LoggingMessageNotificationParams = [
        r#"{"level":"emergency","logger":"db","data":null,"_meta":{}}"#,
        r#"{"level":"debug","data":{"any":["thing"]}}"#,
    ];
    progress: ProgressNotificationParams = [
        r#"{"progressToken":"t","progress":1,"total":2.5,"message":"half","_meta":{}}"#,
        r#"{"progressToken":12345678901234567890,"progress":0.25}"#,
    ];
    cancelled: CancelledNotificationParams = [
        r#"{"requestId":"a","reason":"bored","_meta":{}}"#,
        r#"{"requestId":9007199254740993}"#,
        "{}",
    ];
    listen_params: SubscriptionsListenRequestParams = [
        r#"{"notifications":{"toolsListChanged":true,"promptsListChanged":false,"resourcesListChanged":true,
            "resourceSubscriptions":["docs://a"]},"_meta":{}}"#,
        r#"{"notifications":{}}"#,
    ];
    acknowledged: SubscriptionsAcknowledgedNotificationParams = [
        r#"{"notifications":{"resourceSubscriptions":[]},"_meta":{"io.modelcontextprotocol/subscriptionId":1}}"#,
    ];
    listen_result: SubscriptionsListenResult = [r#"{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":1}}"#];

    task: Task = [
        r#"{"taskId":"1","status":"working","createdAt":"2025-11-25T00:00:00Z","lastUpdatedAt":"2025-11-25T00:00:00Z","ttl":null}"#,
        r#"{"taskId":"1","status":"input_required","statusMessage":"hm","createdAt":"a","lastUpdatedAt":"b","ttl":5,
            "pollInterval":500,"_meta":{}}"#,
    ];
    create_task_result: CreateTaskResult = [
        r#"{"task":{"taskId":"1","status":"completed","createdAt":"a","lastUpdatedAt":"b","ttl":0},"_meta":{"k":"v"}}"#,
    ];
    task_params: TaskRequestParams = [r#"{"taskId":"1","_meta":{}}"#];
    list_tasks_result: ListTasksResult = [r#"{"tasks":[],"nextCursor":"n","_meta":{}}"#];
    related_task: RelatedTaskMetadata = [r#"{"taskId":"1"}"#];
}

#[test]
fn unknown_content_is_kept_unchanged() {
    let json = r#"{ "type":"holo\u0067ram",  "depth": 1.50, "depth": 2 }"#;
    let block: ContentBlock = parse(json);
    assert!(matches!(block, ContentBlock::Unknown(_)));
    assert_eq!(written(&block), json);
}

#[test]
fn raw_parts_are_kept_unchanged() {
    let json = r#"{"name":"add","arguments":{"a": 1.50,"a":2 ,"b":"\u0067"}}"#;
    let params: CallToolRequestParams = parse(json);
    assert_eq!(params.arguments.as_ref().unwrap().get(), r#"{"a": 1.50,"a":2 ,"b":"\u0067"}"#);
    assert_eq!(written(&params), json);
}

#[test]
fn types_with_raw_parts_are_read_from_values_too() {
    let value: Value =
        parse(r#"{"content":[{"type":"text","text":"a","_meta":{"k":1}},{"type":"new"}]}"#);
    let result: CallToolResult = serde_json::from_value(value.clone()).unwrap();
    assert_eq!(serde_json::to_value(result).unwrap(), value);
}

#[test]
fn null_means_absent_except_for_structured_content() {
    let tool: Tool = parse(
        r#"{"name":"t","title":null,"icons":null,"annotations":null,"inputSchema":{},"_meta":null}"#,
    );
    assert_eq!(written(&tool), r#"{"name":"t","inputSchema":{}}"#);
    let absent: CallToolResult = parse(r#"{"content":[]}"#);
    let null: CallToolResult = parse(r#"{"content":[],"structuredContent":null}"#);
    assert!(absent.structured_content.is_none());
    assert_eq!(null.structured_content.unwrap().get(), "null");
}

#[test]
fn a_tool_result_without_content_is_an_empty_one() {
    let result: CallToolResult = parse(r#"{"structuredContent":[1]}"#);
    assert!(result.content.is_empty());
    assert_eq!(result.is_error, None);
}

#[test]
fn tool_results_inside_tool_results_are_not_followed() {
    let depth = 50_000;
    let open = r#"{"type":"tool_result","toolUseId":"1","content":["#;
    let json = format!("{}{}", open.repeat(depth), "]}".repeat(depth));
    let ContentBlock::ToolResult(outer) = parse(&json) else { panic!("a tool result") };
    assert!(matches!(&*outer.content, [ContentBlock::Unknown(_)]));
}

#[test]
fn deeply_nested_payloads_pass_through() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let params: CallToolRequestParams = parse(&format!(r#"{{"name":"t","arguments":{deep}}}"#));
    assert_eq!(params.arguments.unwrap().get(), deep);
}

#[test]
fn errors_name_the_problem() {
    assert!(refusal::<ContentBlock>("{}").contains("missing field `type`"));
    assert!(refusal::<ContentBlock>(r#"{"type":"text"}"#).contains("missing field `text`"));
    assert!(refusal::<ContentBlock>(r#"{"type":7}"#).contains("invalid type"));
    assert!(refusal::<ContentBlock>("[]").contains("invalid"));
    assert!(
        refusal::<ResourceContents>(r#"{"uri":"a:b"}"#)
            .contains(r#""a:b" must have either "text" or "blob""#)
    );
    assert!(refusal::<ResourceContents>(r#"{"uri":"a:b","text":"","blob":""}"#).contains("either"));
    assert!(
        refusal::<ElicitRequestParams>(r#"{"message":"m"}"#)
            .contains(r#"needs a "requestedSchema""#)
    );
    assert!(
        refusal::<ElicitRequestParams>(r#"{"mode":"url","message":"m"}"#)
            .contains(r#"needs a "url""#)
    );
    assert!(
        refusal::<ElicitRequestParams>(r#"{"mode":"song","message":"m"}"#)
            .contains(r#"unknown mode "song""#)
    );
    assert!(
        refusal::<CompletionReference>(r#"{"type":"ref/tool","name":"t"}"#).contains("ref/tool")
    );
    assert!(refusal::<LoggingLevel>(r#""loud""#).contains("loud"));
    assert!(
        refusal::<InputRequest>(r#"{"method":"elicitation/create"}"#)
            .contains("missing field `message`")
    );
}

#[test]
fn a_question_without_a_mode_is_a_form() {
    let params: ElicitRequestParams =
        parse(r#"{"message":"Who?","requestedSchema":{"type":"object"}}"#);
    assert!(matches!(&params, ElicitRequestParams::Form(form) if form.message == "Who?"));
    assert!(written(&params).starts_with(r#"{"mode":"form","#));
}

#[test]
fn members_keep_their_order_and_the_last_of_a_name_counts() {
    let members: Members<u8> = parse(r#"{"z":1,"a":2,"z":3}"#);
    assert_eq!(members.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["z", "a", "z"]);
    assert_eq!(members.get("z"), Some(&3));
    assert_eq!(members.get("b"), None);
    assert_eq!(written(&members), r#"{"z":1,"a":2,"z":3}"#);
    assert!(refusal::<Members<u8>>("[]").contains("an object"));
}

#[test]
fn answers_to_questions_are_kept_unchanged() {
    let json = r#"{"z":{ "action":"decline" },"r":{"roots":[]}}"#;
    assert_eq!(written(&parse::<InputResponses>(json)), json);
}

#[test]
fn logging_levels_are_ordered_and_named() {
    assert!(LoggingLevel::ALL.is_sorted());
    for level in LoggingLevel::ALL {
        assert_eq!(LoggingLevel::parse(level.as_ref()), Some(level));
        assert_eq!(serde_json::to_value(level).unwrap(), level.as_ref());
    }
    assert_eq!(LoggingLevel::parse("Info"), None);
}

#[test]
fn constructors_create_minimal_valid_values() {
    assert_eq!(written(&ContentBlock::from("a")), r#"{"type":"text","text":"a"}"#);
    assert_eq!(
        written(&ContentBlock::from(ResourceContents::blob("a:b", "AA=="))),
        r#"{"type":"resource","resource":{"uri":"a:b","blob":"AA=="}}"#
    );
    assert_eq!(
        written(&SamplingMessage::new(Role::User, "a")),
        r#"{"role":"user","content":{"type":"text","text":"a"}}"#
    );
    assert_eq!(written(&Implementation::new("s", "1")), r#"{"name":"s","version":"1"}"#);
    let tool = Tool::new("t", json::raw("{}".to_owned()));
    assert_eq!(written(&tool), r#"{"name":"t","inputSchema":{}}"#);
}

#[test]
fn content_that_is_none_is_described_without_the_names_of_inner_types() {
    for content in [r#""text""#, "3"] {
        let error = serde_json::from_str::<ContentBlock>(content).unwrap_err().to_string();
        assert!(error.contains("expected a content block with a type"), "{error}");
    }
}
