//! The servers that a resource is read from.

use std::sync::Arc;

use serde_json::json;

use super::{ClientGroup, Member};
use crate::{
    client::{
        ListName,
        operation::{Operation, OperationReply},
    },
    error::{Error, ErrorKind},
    protocol::{Method, json::to_raw},
    router::uri_template::UriTemplate,
};

impl ClientGroup {
    /// Reads a resource from the server that has it.
    #[doc(hidden)] // For the language bindings.
    pub async fn read_raw(&self, uri: &str) -> Result<OperationReply, Error> {
        // A refusal may mean that the server does not have the resource, other errors do not.
        let (mut refusal, mut failure) = (None, None);
        for member in self.order(uri).await {
            match member.read(uri).await {
                Ok(reply) => return Ok(reply),
                Err(error) => match error.kind {
                    ErrorKind::NotFound => (),
                    ErrorKind::Protocol => _ = refusal.get_or_insert(error),
                    _ => _ = failure.get_or_insert(error),
                },
            }
        }
        Err(failure.or(refusal).unwrap_or_else(|| self.no_resource(uri)))
    }

    /// Returns the connected servers with resources in the order in which they are asked for this one.
    pub(super) async fn order(&self, uri: &str) -> Vec<Arc<Member>> {
        let mut order = self.members.to_vec();
        order.retain(|member| member.has_resources());
        if order.len() > 1 {
            let listed = self.listed(ListName::Resources, &order).await;
            let lists = |member: &Arc<Member>| {
                listed.get(&member.name).is_some_and(|uris| uris.iter().any(|known| known == uri))
            };
            if let Some(member) = order.iter().find(|member| lists(member)) {
                return vec![Arc::clone(member)];
            }
            let templates = self.listed(ListName::ResourceTemplates, &order).await;
            let fits = |template: &String| {
                UriTemplate::parse(template).is_ok_and(|template| template.match_uri(uri).is_some())
            };
            order.sort_by_cached_key(|member| {
                !templates.get(&member.name).is_some_and(|templates| templates.iter().any(fits))
            });
        }
        order
    }

    fn no_resource(&self, uri: &str) -> Error {
        let missing = self.not_reached();
        let message = format!("no server of this group has the resource '{uri}'{missing}");
        let data = to_raw(&json!({ "uri": uri }));
        Error::new(ErrorKind::NotFound, message).with(|details| details.data = Some(data))
    }
}

impl Member {
    fn has_resources(&self) -> bool {
        self.connected().is_some_and(|client| client.server().answers(Method::ReadResource))
    }

    /// Reads a resource from this server.
    #[doc(hidden)] // For the language bindings.
    pub async fn read(&self, uri: &str) -> Result<OperationReply, Error> {
        let client = self.client().await?;
        let operation = Operation::ReadResource { uri: uri.to_owned(), variables: None };
        let options = client.options.clone();
        client.call(operation, options).await
    }
}
