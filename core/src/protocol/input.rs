//! A server's questions to its client inside an `input_required` result, since 2026-07-28.

use std::borrow::Cow;

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{DeserializeOwned, Error},
};

use super::{
    CreateMessageRequestParams, ElicitRequestParams, Members, Method, Raw, RequestParams,
    ResultType,
};

/// The result of a request that the server can't finish without more input from the client (spec: Multi Round-Trip
/// Requests).
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub struct InputRequiredResult {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_requests: Option<Members<InputRequest>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_state: Option<String>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Raw>,
}

/// The client's answers by question key; the type of each depends on its question (spec: Multi Round-Trip Requests).
pub type InputResponses = Members<Raw>;

/// A question and the key of its answer; the params are a JSON object as the newest revision defines it.
#[derive(Clone, Debug)]
pub struct Question {
    pub key: String,
    /// One of `elicitation/create`, `sampling/createMessage` and `roots/list`.
    pub method: Method,
    pub params: Raw,
}

/// A question (spec: Multi Round-Trip Requests).
#[derive(Clone, Debug)]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub enum InputRequest {
    CreateMessage(CreateMessageRequestParams),
    ListRoots(RequestParams),
    Elicit(ElicitRequestParams),
    /// A question with a method unknown to this library, as received.
    Unknown(Raw),
}

impl InputRequest {
    fn parse(raw: Raw) -> serde_json::Result<Self> {
        #[derive(Deserialize)]
        struct Call<'a> {
            #[serde(borrow)]
            method: Cow<'a, str>,
            params: Option<Raw>,
        }
        let Call { method, params } = serde_json::from_str(raw.get())?;
        Ok(match Method::parse(&method) {
            Some(Method::CreateMessage) => Self::CreateMessage(read(params.as_ref())?),
            Some(Method::ListRoots) => Self::ListRoots(read(params.as_ref())?),
            Some(Method::Elicit) => Self::Elicit(read(params.as_ref())?),
            _ => Self::Unknown(raw),
        })
    }
}

impl Serialize for InputRequest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Call<T> {
            method: &'static str,
            #[serde(skip_serializing_if = "Option::is_none")]
            params: Option<T>,
        }
        match self {
            Self::CreateMessage(params) => {
                Call { method: Method::CreateMessage.as_str(), params: Some(params) }
                    .serialize(serializer)
            }
            Self::ListRoots(params) => {
                let params = params.meta.is_some().then_some(params);
                Call { method: Method::ListRoots.as_str(), params }.serialize(serializer)
            }
            Self::Elicit(params) => {
                Call { method: Method::Elicit.as_str(), params: Some(params) }.serialize(serializer)
            }
            Self::Unknown(raw) => raw.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for InputRequest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(Raw::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

fn read<T: DeserializeOwned>(params: Option<&Raw>) -> serde_json::Result<T> {
    serde_json::from_str(params.map_or("{}", |params| params.get()))
}
