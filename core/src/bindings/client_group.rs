//! Operations of a group of clients, with JSON in and out.

use serde::Deserialize;
use serde_json::json;

use super::client_operation::{operation, parse};
use crate::{
    client::{ClientGroup, GroupSubscription, Operation, OperationReply},
    error::Error,
    peer::ListKind,
    protocol::{SubscriptionFilter, json::to_raw},
};

#[derive(Deserialize)]
struct Named {
    name: String,
}

#[derive(Deserialize)]
struct Read {
    uri: String,
    server: Option<String>,
}

/// Performs the operation named `what` with these params, a JSON object.
///
/// `listTools`, … return the entries of all servers. `findTool` and `findPrompt` return `{"server", "name"}`: the server
/// that a `name` belongs to, which is connected, and the name there. `readResource` reads the `uri`, if given from this
/// `server`.
pub async fn perform(
    group: ClientGroup,
    what: &str,
    params: &[u8],
) -> Result<OperationReply, Error> {
    let kind = match what {
        "findTool" => ListKind::Tools,
        "findPrompt" => ListKind::Prompts,
        "readResource" => {
            let Read { uri, server } = parse(what, params)?;
            return match server {
                Some(server) => group.member(&server)?.read(&uri).await,
                None => group.read_raw(&uri).await,
            };
        }
        _ => {
            let Operation::List(kind) = operation(what, params)? else {
                let message = format!("{what:?} is not an operation of a group of clients");
                return Err(Error::misuse(message));
            };
            return Ok(to_raw(&group.list_raw(kind).await?).into());
        }
    };
    let Named { name } = parse(what, params)?;
    let (member, own_name) = group.find(kind, &name).await?;
    member.client().await?;
    Ok(to_raw(&json!({ "server": member.name(), "name": own_name })).into())
}

/// Subscribes to the `filter` in these params, a JSON object; if given of this `server` only.
pub async fn subscribe(group: ClientGroup, params: &[u8]) -> Result<GroupSubscription, Error> {
    #[derive(Deserialize)]
    struct Subscribe {
        filter: SubscriptionFilter,
        server: Option<String>,
    }
    let Subscribe { filter, server } = parse("subscribe", params)?;
    group.subscribe_to(&filter, server.as_deref()).await
}

/// Returns the server that the name of a tool or prompt belongs to and the name there, if it is connected and certain
/// without lists.
pub fn find_now(group: &ClientGroup, name: &str) -> Option<(String, String)> {
    let (member, own_name) = group.find_now(name)?;
    Some((member.name().to_owned(), own_name))
}

/// Returns the errors of a group by server, as a JSON object of what `describe` returns.
pub fn errors(group: &ClientGroup, describe: impl Fn(&Error) -> String) -> String {
    let mut out = String::from("{");
    for (server, error) in group.errors() {
        if out.len() > 1 {
            out.push(',');
        }
        crate::protocol::json::push_string(&mut out, server);
        out.push(':');
        out.push_str(&describe(&error));
    }
    out.push('}');
    out
}
