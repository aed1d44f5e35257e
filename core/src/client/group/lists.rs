//! The lists of a group, and the server that a tool or prompt belongs to.

use std::{cmp::Reverse, collections::HashMap, sync::Arc};

use futures_util::future::join_all;

use super::{ClientGroup, Member};
use crate::{
    client::{Client, ListName, operation::Operation},
    error::{Error, ErrorKind},
    peer,
    protocol::{Members, Raw, json},
};

/// A server and the name of a tool or prompt there.
type Owner = (Arc<Member>, String);

impl ClientGroup {
    /// Lists the entries of all servers as JSON objects; tools and prompts with their full names.
    ///
    /// Errors if two tools or two prompts would have the same name.
    #[doc(hidden)] // For the language bindings.
    pub async fn list_raw(&self, kind: ListName) -> Result<Vec<Raw>, Error> {
        let lists = self.lists(kind, &self.members).await;
        let Some(singular) = singular(kind) else {
            return Ok(lists.into_iter().flat_map(|(_, list)| list).collect());
        };
        let mut owners = HashMap::<String, Owner>::new();
        let mut renamed = Vec::new();
        for (member, list) in lists {
            for item in list {
                let (item, own, full) = with_prefix(kind, &member.name, &item)?;
                let owner = (Arc::clone(&member), own);
                if let Some(other) = owners.insert(full.clone(), owner.clone()) {
                    return Err(ambiguous(singular, &full, &[other, owner]));
                }
                renamed.push(item);
            }
        }
        Ok(renamed)
    }

    /// Returns the server whose prefix the name of a tool or prompt has, and the name there. Of several, it is the one
    /// that lists the rest of the name, or else the one with the longest prefix. Errors if a server with a longer prefix
    /// can't be asked: the name may be of its tool.
    #[doc(hidden)] // For the language bindings.
    pub async fn find(&self, kind: ListName, name: &str) -> Result<Owner, Error> {
        let singular = singular(kind).unwrap_or_default();
        let owners = self.owners(name);
        let longest = owners.first().ok_or_else(|| self.nothing_fits(singular, name))?.clone();
        if owners.len() == 1 {
            return Ok(longest);
        }
        let mut found = Vec::new();
        for owner in owners {
            let (member, own) = &owner;
            match member.names(kind).await {
                Ok(names) if names.contains(own) => found.push(owner),
                Err(error) if found.is_empty() => return Err(error),
                Ok(_) | Err(_) => {}
            }
        }
        match &found[..] {
            [] => Ok(longest),
            [owner] => Ok(owner.clone()),
            _ => Err(ambiguous(singular, name, &found)),
        }
    }

    /// Returns what [`Self::find`] does, if it is certain without lists.
    #[doc(hidden)] // For the language bindings.
    pub fn find_now(&self, name: &str) -> Option<Owner> {
        let mut owners = self.owners(name);
        let is_certain = owners.len() == 1 && owners[0].0.connected().is_some();
        owners.pop().filter(|_| is_certain)
    }

    /// Returns the servers whose prefix the name has, the longest first, and the name there.
    fn owners(&self, name: &str) -> Vec<Owner> {
        let own_name = |server: &str| name.strip_prefix(server)?.strip_prefix('_');
        let owner =
            |member: &Arc<Member>| Some((Arc::clone(member), own_name(&member.name)?.to_owned()));
        let mut owners: Vec<_> = self.members.iter().filter_map(owner).collect();
        owners.sort_by_key(|(member, _)| Reverse(member.name.len()));
        owners
    }

    /// Returns the names, URIs or templates that connected servers list, by server.
    pub(super) async fn listed(
        &self,
        kind: ListName,
        members: &[Arc<Member>],
    ) -> HashMap<String, Vec<String>> {
        let lists = self.lists(kind, members).await.into_iter();
        lists.map(|(member, list)| (member.name.clone(), names_of(kind, &list))).collect()
    }

    /// Returns what connected servers list. A server that fails has an empty list; its error is recorded.
    async fn lists(&self, kind: ListName, members: &[Arc<Member>]) -> Vec<(Arc<Member>, Vec<Raw>)> {
        join_all(members.iter().map(|member| async move {
            (Arc::clone(member), member.list(kind).await.unwrap_or_default())
        }))
        .await
    }

    fn nothing_fits(&self, kind: &str, name: &str) -> Error {
        let message = format!("no server of this group has the {kind} '{name}'");
        let (prefixes, missing) = (self.names("_"), self.not_reached());
        let hint =
            format!("names are <server>_<{kind}>; they begin with one of {prefixes}{missing}");
        Error::new(ErrorKind::Unsupported, message).with_hint(hint)
    }
}

impl Member {
    /// Lists the entries of the server; `None` if it is not connected, or fails, which is recorded.
    async fn list(&self, kind: ListName) -> Option<Vec<Raw>> {
        self.asked(kind, &self.connected()?).await.ok()
    }

    /// Returns the names that the server lists. Errors if it is not connected, or fails.
    async fn names(&self, kind: ListName) -> Result<Vec<String>, Error> {
        let list = self.asked(kind, &self.client().await?).await?;
        Ok(names_of(kind, &list))
    }

    /// Lists the entries of the server, and records whether it answered.
    async fn asked(&self, kind: ListName, client: &Client) -> Result<Vec<Raw>, Error> {
        let listed = client.call(Operation::List(kind), client.options.clone()).await;
        match listed.and_then(|reply| peer::read(kind.method().as_str(), &reply.result)) {
            // A server without resources, for example.
            Err(error) if error.kind == ErrorKind::Unsupported => Ok(Vec::new()),
            listed => {
                self.report(listed.as_ref().err().map(Error::duplicate));
                listed
            }
        }
    }
}

/// Returns the names, URIs or templates of a list.
fn names_of(kind: ListName, list: &[Raw]) -> Vec<String> {
    let entries = list.iter().filter_map(|entry| serde_json::from_str(entry.get()).ok());
    entries.filter_map(|entry| name_in(kind, &entry)).collect()
}

/// Returns the word for an entry of a list whose names get a prefix.
fn singular(kind: ListName) -> Option<&'static str> {
    match kind {
        ListName::Tools => Some("tool"),
        ListName::Prompts => Some("prompt"),
        ListName::Resources | ListName::ResourceTemplates => None,
    }
}

/// Returns the name, URI or template of an entry.
fn name_in(kind: ListName, entry: &Members<Raw>) -> Option<String> {
    let member = match kind {
        ListName::Tools | ListName::Prompts => "name",
        ListName::Resources => "uri",
        ListName::ResourceTemplates => "uriTemplate",
    };
    serde_json::from_str(entry.get(member)?.get()).ok()
}

/// Returns an entry under its full name, its own name, and the full name.
fn with_prefix(kind: ListName, server: &str, entry: &Raw) -> Result<(Raw, String, String), Error> {
    let mut members: Members<Raw> = peer::read(kind.method().as_str(), entry)?;
    let own = name_in(kind, &members).unwrap_or_default();
    let full = format!("{server}_{own}");
    for (_, value) in members.0.iter_mut().filter(|(name, _)| name == "name") {
        *value = json::to_raw(&full);
    }
    Ok((json::to_raw(&members), own, full))
}

fn ambiguous(kind: &str, name: &str, owners: &[Owner]) -> Error {
    let describe =
        |(member, own): &Owner| format!("the {kind} '{own}' of server '{}'", member.name);
    let owners: Vec<_> = owners.iter().map(describe).collect();
    let message = format!("ClientGroup: '{name}' is {}", owners.join(" and "));
    Error::new(ErrorKind::Protocol, message).with_hint("give one of the servers another name")
}
