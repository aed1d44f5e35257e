//! Rounds of questions: the questions inside a result, and the request that carries the answers (Multi Round-Trip
//! Requests).

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{broken, read};
use crate::{
    error::Error,
    protocol::{Members, Method, Question, Raw, ResultType, json, valid_json::contains},
};

/// The maximum number of questions in a round. Each has a task of its own.
const MAX_QUESTIONS: usize = 1_000;

/// The questions of a server that must be answered before it continues.
#[derive(Clone, Debug)]
pub struct Round {
    pub questions: Vec<Question>,
    /// The JSON text of `requestState`, which is returned byte for byte.
    state: Option<Raw>,
}

impl Round {
    /// Reads the questions of a result; returns `None` for a final result. Errors if the questions or the state are
    /// malformed, and above 1,000 questions.
    pub fn read(method: &str, result: &Raw) -> Result<Option<Self>, Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct RoundMembers {
            #[serde(default)]
            result_type: ResultType,
            input_requests: Option<Members<Raw>>,
            request_state: Option<Raw>,
        }
        // Most results are final, and this check avoids parsing them.
        if !contains(result.get().as_bytes(), "input_required") {
            return Ok(None);
        }
        let members: RoundMembers = read(method, result)?;
        if members.result_type != ResultType::InputRequired {
            return Ok(None);
        }
        let state = members.request_state.filter(|state| state.get() != "null");
        if state.as_ref().is_some_and(|state| !state.get().starts_with('"')) {
            return Err(broken(format!("{method}: the server's requestState is not a string")));
        }
        if state.is_none() && members.input_requests.is_none() {
            return Err(broken(format!(
                "{method}: the server requires input but sent neither questions nor a requestState"
            )));
        }
        let asked = members.input_requests.unwrap_or_default().0;
        if asked.len() > MAX_QUESTIONS {
            return Err(broken(format!(
                "{method}: the server asks more than {MAX_QUESTIONS} questions at once"
            )));
        }
        let questions = asked.into_iter().map(|(key, raw)| read_question(method, key, &raw));
        Ok(Some(Self { questions: questions.collect::<Result<_, _>>()?, state }))
    }

    /// Returns the params of the next request: those of the first one, the answers in the order of the questions, and
    /// the state.
    pub fn params(&self, first: &str, answers: &[Raw]) -> String {
        let keys = self.questions.iter().map(|question| question.key.as_str());
        let answers: Members<&RawValue> =
            keys.zip(answers.iter().map(|answer| &**answer)).collect();
        with_answers(
            first,
            (!answers.is_empty()).then(|| json::to_raw(&answers)).as_deref(),
            self.state.as_deref(),
        )
    }
}

/// Adds answers and a state, each as JSON, to the params of a request.
pub fn with_answers(params: &str, answers: Option<&RawValue>, state: Option<&RawValue>) -> String {
    let mut out = json::ObjectWriter::with_capacity(params.len() + 64);
    out.splice(params);
    if let Some(answers) = answers {
        out.raw("inputResponses", answers.get());
    }
    if let Some(state) = state {
        out.raw("requestState", state.get());
    }
    out.finish()
}

/// Reads a question; its params become an empty object if absent.
fn read_question(asker: &str, key: String, raw: &Raw) -> Result<Question, Error> {
    #[derive(Deserialize)]
    struct Call<'a> {
        #[serde(borrow)]
        method: Cow<'a, str>,
        params: Option<Raw>,
    }
    let call: Call<'_> = serde_json::from_str(raw.get()).map_err(|error| {
        broken(format!("{asker}: the server's question {key:?} is invalid: {error}"))
    })?;
    let known = Method::parse(&call.method).filter(|method| {
        matches!(method, Method::CreateMessage | Method::ListRoots | Method::Elicit)
    });
    let Some(method) = known else {
        let name = call.method;
        return Err(broken(format!(
            "{asker}: the server's question {key:?} has the method {name:?}, which is not a question"
        )));
    };
    let params = call.params.filter(|params| params.get().starts_with('{'));
    Ok(Question { key, method, params: params.unwrap_or_else(|| json::raw("{}".into())) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_round(text: &str) -> Result<Option<Round>, Error> {
        Round::read("tools/call", &json::raw(text.into()))
    }

    #[test]
    fn a_round_of_too_many_questions_is_an_error() {
        for (count, is_fine) in [(MAX_QUESTIONS, true), (MAX_QUESTIONS + 1, false)] {
            let questions: Vec<_> = (0..count)
                .map(|number| format!(r#""{number}":{{"method":"roots/list"}}"#))
                .collect();
            let round = read_round(&format!(
                r#"{{"resultType":"input_required","inputRequests":{{{}}}}}"#,
                questions.join(",")
            ));
            assert_eq!(round.is_ok(), is_fine, "{round:?}");
        }
    }

    #[test]
    fn state_goes_back_byte_for_byte() {
        let round = read_round(
            r#"{"resultType":"input_required","requestState":"a\u0041\/","inputRequests":{"q":{"method":"roots/list"}}}"#,
        );
        let round = round.expect("readable").expect("a round");
        let answers = [json::raw(r#"{"roots":[]}"#.into())];
        assert_eq!(
            round.params(r#"{"name":"a"}"#, &answers),
            r#"{"name":"a","inputResponses":{"q":{"roots":[]}},"requestState":"a\u0041\/"}"#
        );
    }

    #[test]
    fn no_state_means_none_is_sent() {
        let round = read_round(
            r#"{"resultType":"input_required","inputRequests":{"q":{"method":"roots/list"}}}"#,
        );
        let params = round.expect("readable").expect("a round").params("{}", &[]);
        assert_eq!(params, "{}");
    }

    #[test]
    fn a_finished_result_is_no_round() {
        let text =
            r#"{"resultType":"complete","content":[{"type":"text","text":"input_required"}]}"#;
        assert!(read_round(text).expect("readable").is_none());
    }

    #[test]
    fn what_a_server_may_not_ask_is_an_error() {
        for text in [
            r#"{"resultType":"input_required"}"#,
            r#"{"resultType":"input_required","requestState":3}"#,
            r#"{"resultType":"input_required","inputRequests":{"q":{"method":"tools/call"}}}"#,
            r#"{"resultType":"input_required","inputRequests":{"q":{}}}"#,
            r#"{"resultType":"input_required","inputRequests":[]}"#,
        ] {
            assert!(read_round(text).is_err(), "{text}");
        }
    }
}
