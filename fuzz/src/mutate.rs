//! Makes new inputs of old ones: lines, JSON values, numbers and bytes are changed, and inputs are mixed.

/// A generator of pseudo-random numbers (xorshift64*); the same seed gives the same numbers.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 16
    }

    /// Returns a number below `limit`, or 0.
    pub fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % (limit.max(1) as u64)).unwrap_or_default()
    }
}

/// Texts at which readers branch.
const TOKENS: &[&str] = &[
    "null",
    "true",
    "false",
    "0",
    "-0",
    "1",
    "-1",
    "1e999",
    "1.0",
    "0.1",
    "9007199254740993",
    "123456789012345678901234567890",
    "{}",
    "[]",
    "\"\"",
    "\"\\ud800\"",
    "\"\\u0000\"",
    "\"\\n\"",
    "\\",
    "\"",
    ",",
    "}",
    "[",
    "]",
    "{",
    ":",
    "\r",
    " ",
    "\t",
    "\u{0}",
    "\u{e9}",
    "\"jsonrpc\":\"2.0\"",
    "\"id\":1",
    "\"id\":null",
    "\"method\":\"ping\"",
    "\"params\":{}",
    "\"result\":{}",
    "\"error\":{}",
    "initialize",
    "ping",
    "tools/list",
    "tools/call",
    "resources/read",
    "resources/list",
    "resources/templates/list",
    "resources/subscribe",
    "resources/unsubscribe",
    "prompts/get",
    "prompts/list",
    "completion/complete",
    "logging/setLevel",
    "server/discover",
    "subscriptions/listen",
    "notifications/initialized",
    "notifications/cancelled",
    "notifications/progress",
    "notifications/roots/list_changed",
    "acme/echo",
    "acme/changed",
    "call_tool",
    "elicitation/create",
    "sampling/createMessage",
    "roots/list",
    "2024-11-05",
    "2025-03-26",
    "2025-06-18",
    "2025-11-25",
    "2026-07-28",
    "0.7.0",
    "echo",
    "add",
    "wait",
    "slow",
    "drop",
    "confirm",
    "interview",
    "fixture://about",
    "fixture://items/7",
    "staff://pay",
    "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\"io.modelcontextprotocol/clientCapabilities\":{\"elicitation\":{}}}",
    "\"requestState\":\"<state>\"",
    "\"inputResponses\":{\"elicit-1\":{\"action\":\"accept\",\"content\":{\"value\":true}}}",
    "\"progressToken\":1",
    "\"cursor\":\"x\"",
    "\"arguments\":{}",
    "\"resultType\":\"input_required\"",
    "\"nextCursor\":\"\"",
    "{x}",
    "{+x}",
    "{#x}",
    "{.x}",
    "{/x*}",
    "{;x}",
    "{?x}",
    "{&x}",
    "{x:3}",
    "%2e%2e",
    "%2F",
    "%00",
    "%",
    "..",
    "/",
    "?",
    "&",
    "=",
    "#",
    "data:",
    "id:",
    "retry: 1",
    "event: message",
    ":",
    "\u{feff}",
    "\"$ref\":\"#\"",
    "\"$ref\":\"#/$defs/a\"",
    "\"$defs\":{\"a\":{}}",
    "\"allOf\":[{}]",
    "\"anyOf\":[{},false]",
    "\"oneOf\":[true]",
    "\"not\":{}",
    "\"type\":\"object\"",
    "\"type\":[\"string\",\"null\"]",
    "\"properties\":{\"a\":{}}",
    "\"required\":[\"a\"]",
    "\"pattern\":\"(a+)+$\"",
    "\"pattern\":\"^(?=a)(a)\\\\1\"",
    "\"patternProperties\":{\".*\":{}}",
    "\"additionalProperties\":false",
    "\"items\":{\"$ref\":\"#\"}",
    "\"prefixItems\":[{}]",
    "\"uniqueItems\":true",
    "\"multipleOf\":0.01",
    "\"minimum\":1e308",
    "\"const\":1.0",
    "\"enum\":[1]",
    "\"if\":{}",
    "\"then\":false",
    "\"$dynamicRef\":\"#a\"",
    "\"$anchor\":\"a\"",
    "\"$id\":\"a:b\"",
    "\"unevaluatedProperties\":false",
    "\"dependentSchemas\":{\"a\":{}}",
    "\"format\":\"email\"",
    "\"contains\":{}",
    "\"minContains\":0",
    "\"propertyNames\":{}",
];

/// Lines of operations, whatever the target: those that it does not know do nothing.
const LINES: &[&str] = &[
    "+ 1",
    "+ 1000",
    "+ 10000",
    "+ 100000",
    "+ 3600000",
    "! 0 tx",
    "! 1 j{}",
    "! 0 j3",
    "! 0 q",
    "! 0 e no",
    "! 0 c",
    "! 2 E no",
    "! 0 n",
    "?0 elicit-1",
    "?0 a",
    "?0 roots",
    "?1 sample",
    "a0 elicit-1",
    "w0",
    "w0 b",
    "w1",
    "p0 x",
    "l0 {}",
    "s0 step",
    "h0 1",
    "h0 0",
    "h0 f",
    "d0",
    "u fixture://about",
    "c0",
    "c1",
    "L1",
    "L0",
    "C",
    "T",
    "~ idle",
    "~ restart",
    "O0",
    "O1",
    "e0",
    "k0",
    "K0",
    "K1",
    "K2",
    "K5",
    "G0",
    "G1",
    "G0 0-1",
    "G0 1-1",
    "D0",
    "E",
    "P x",
    "R",
    "X",
    "V",
    "r",
    "x1",
    "x2",
    "f1",
    "f2",
    "f3",
    "= 0 {}",
    "= 0",
    "b 0",
    "b 77",
    "n 1",
    "j 1",
    "v {}",
    "v []",
    "v \"aaaaaaaaaaaaaaaaaaaaaaaa\"",
    "s true",
    "o1",
    "o2",
    "o3",
    "o4",
    "o5",
    "o6",
    "o7",
];

/// Makes a new input of one of the corpus, and sometimes of another one.
pub fn mutate(random: &mut Random, corpus: &[Vec<u8>]) -> Vec<u8> {
    let mut input = corpus[random.below(corpus.len())].clone();
    for _ in 0..=random.below(4) {
        let other = &corpus[random.below(corpus.len())];
        match random.below(14) {
            0 => remove(random, &mut input),
            1 => flip(random, &mut input),
            2 | 3 => insert(random, &mut input),
            4 => replace_number(random, &mut input),
            5 | 6 => replace_value(random, &mut input, other),
            7 => repeat(random, &mut input),
            8 | 9 => {
                let line = LINES[random.below(LINES.len())];
                insert_line(random, &mut input, line.as_bytes());
            }
            10 => {
                let all = lines(other);
                let line = all[random.below(all.len())];
                insert_line(random, &mut input, line);
            }
            11 => remove_line(random, &mut input),
            12 => swap_lines(random, &mut input),
            _ => splice(random, &mut input, other),
        }
    }
    input.truncate(super::MAX_INPUT);
    input
}

fn lines(input: &[u8]) -> Vec<&[u8]> {
    input.split(|byte| *byte == b'\n').collect()
}

fn remove(random: &mut Random, input: &mut Vec<u8>) {
    let at = random.below(input.len());
    let end = (at + 1 + random.below(12)).min(input.len());
    input.drain(at.min(end)..end);
}

fn flip(random: &mut Random, input: &mut [u8]) {
    let at = random.below(input.len());
    if let Some(byte) = input.get_mut(at) {
        *byte = match random.below(3) {
            0 => *byte ^ (1 << random.below(8)),
            1 => u8::try_from(random.below(256)).unwrap_or_default(),
            _ => byte.wrapping_add(1),
        };
    }
}

fn insert(random: &mut Random, input: &mut Vec<u8>) {
    let at = random.below(input.len() + 1);
    let token = TOKENS[random.below(TOKENS.len())];
    // Members need a comma, and tokens often take the place of another.
    let comma = if token.starts_with('"') && token.contains("\":") { "," } else { "" };
    let text = format!("{token}{comma}").into_bytes();
    let replaced = if random.below(2) == 0 { random.below(text.len() + 1) } else { 0 };
    let end = (at + replaced).min(input.len());
    input.splice(at..end, text);
}

fn replace_number(random: &mut Random, input: &mut Vec<u8>) {
    let digits: Vec<usize> =
        (0..input.len()).filter(|index| input[*index].is_ascii_digit()).collect();
    if digits.is_empty() {
        return;
    }
    let at = digits[random.below(digits.len())];
    let number =
        [0, 1, 2, 3, 4, 7, 10, 100, 255, 65_536, 4_294_967_296, u64::MAX][random.below(12)];
    let end =
        (at..input.len()).find(|index| !input[*index].is_ascii_digit()).unwrap_or(input.len());
    input.splice(at..end, number.to_string().into_bytes());
}

/// Returns the range of a JSON value that begins somewhere in the input.
fn value(random: &mut Random, input: &[u8]) -> Option<(usize, usize)> {
    let start = random.below(input.len());
    let at = (start..input.len()).find(|index| b"{[\":".contains(&input[*index]))?;
    let at = if input[at] == b':' { at + 1 } else { at };
    let line = &input[at..];
    let line = &line[..line.iter().position(|byte| *byte == b'\n').unwrap_or(line.len())];
    let mut stream = serde_json::Deserializer::from_slice(line).into_iter::<serde_json::Value>();
    stream.next()?.ok()?;
    Some((at, at + stream.byte_offset()))
}

fn replace_value(random: &mut Random, input: &mut Vec<u8>, other: &[u8]) {
    let Some((start, end)) = value(random, input) else { return };
    let new = match random.below(4) {
        0 => TOKENS[random.below(24)].as_bytes().to_vec(),
        1 => {
            let depth = 1 + random.below(150);
            let (open, close) = if random.below(2) == 0 { ("[", "]") } else { ("{\"a\":", "}") };
            format!("{}1{}", open.repeat(depth), close.repeat(depth)).into_bytes()
        }
        2 => value(random, &input.clone())
            .map(|(from, to)| input[from..to].to_vec())
            .unwrap_or_default(),
        _ => value(random, other).map(|(from, to)| other[from..to].to_vec()).unwrap_or_default(),
    };
    input.splice(start..end, new);
}

fn repeat(random: &mut Random, input: &mut Vec<u8>) {
    let start = random.below(input.len());
    let end = (start + 1 + random.below(40)).min(input.len());
    let piece = input[start.min(end)..end].repeat(1 + random.below(20));
    let at = random.below(input.len() + 1);
    input.splice(at..at, piece);
}

fn insert_line(random: &mut Random, input: &mut Vec<u8>, line: &[u8]) {
    let mut all = lines(input);
    let at = random.below(all.len() + 1);
    all.insert(at, line);
    *input = all.join(&b'\n');
}

fn remove_line(random: &mut Random, input: &mut Vec<u8>) {
    let mut all = lines(input);
    if all.len() > 1 {
        let at = random.below(all.len());
        let end = (at + 1 + random.below(3)).min(all.len());
        all.drain(at..end);
        *input = all.join(&b'\n');
    }
}

fn swap_lines(random: &mut Random, input: &mut Vec<u8>) {
    let mut all = lines(input);
    let (one, other) = (random.below(all.len()), random.below(all.len()));
    all.swap(one, other);
    *input = all.join(&b'\n');
}

/// Puts the beginning of one input before the end of another.
fn splice(random: &mut Random, input: &mut Vec<u8>, other: &[u8]) {
    let (head, tail) = (lines(input), lines(other));
    let (end, start) = (random.below(head.len() + 1), random.below(tail.len()));
    *input = [&head[..end], &tail[start..]].concat().join(&b'\n');
}
