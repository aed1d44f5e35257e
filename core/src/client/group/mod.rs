//! Several servers as one client.
//!
//! Tools and prompts are named `<server>_<name>`. A resource keeps its URI. It is read from the first server that lists
//! the URI. If none does, servers with a template that matches are asked first, then the others, each in the order of
//! the group, until one has it.

mod backoff;
mod lists;
mod member;
mod read;
mod subscription;
#[cfg(feature = "bindings")]
#[doc(hidden)]
pub mod targets;
#[cfg(not(feature = "bindings"))]
mod targets;

use std::{collections::HashSet, sync::Arc};

use futures_util::future::join_all;
use serde::Serialize;

pub(crate) use self::backoff::Backoff;
#[doc(hidden)]
pub use self::member::Member;
pub use self::subscription::GroupSubscription;
use super::{Client, ClientBuilder, ListName, Listed, ToolResult};
use crate::{
    error::{Error, ErrorKind},
    peer,
    protocol::{GetPromptResult, ReadResourceResult},
};

/// Several servers as one client: the names of tools and prompts begin with the name of their server, as in
/// `shelf_count`.
///
/// A server that can't be reached leaves the others working: its error is in [`Self::errors`], and it is tried again in
/// the background, after 1 s at first and after growing delays of up to 60 s, unless credentials or a common revision
/// are missing. A call to it tries at once. Commands that end are started again before the next request.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), gudgeon::Error> {
/// use gudgeon::{Client, Server, client::ClientGroup, protocol::Tool};
///
/// let shelf = Server::new("shelf").tool("count", || async { 2 });
/// let group = ClientGroup::connect([
///     ("shelf", Client::builder(&shelf)),
///     ("gone", Client::builder(["no-such-program"])),
/// ])
/// .await?;
/// assert_eq!(group.call_tool("shelf_count", ()).await?.data::<u32>()?, 2);
/// assert_eq!(group.list::<Tool>().await?[0].name, "shelf_count");
/// assert_eq!(group.errors()[0].0, "gone");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct ClientGroup {
    members: Arc<[Arc<Member>]>,
}

impl ClientGroup {
    /// Connects to all servers at once and returns when each has answered or failed.
    ///
    /// # Errors
    /// [`ErrorKind::Misuse`] if a name is empty or given twice, or the options of a client are invalid.
    pub async fn connect<N: Into<String>>(
        servers: impl IntoIterator<Item = (N, ClientBuilder)>,
    ) -> Result<Self, Error> {
        let members = servers
            .into_iter()
            .map(|(name, builder)| Member::new(name.into(), builder.for_group()));
        let group = Self::from_members(members.collect::<Result<_, _>>()?)?;
        join_all(group.members.iter().map(Member::connect)).await;
        Ok(group)
    }

    /// Returns a group of servers that are connected already, or were tried to.
    #[doc(hidden)] // For the language bindings.
    pub fn from_members(members: Vec<Arc<Member>>) -> Result<Self, Error> {
        let mut names = HashSet::new();
        match members.iter().find(|member| member.name.is_empty() || !names.insert(&member.name)) {
            Some(member) if member.name.is_empty() => {
                Err(Error::misuse("the name of a server in a group must not be empty"))
            }
            Some(member) => {
                Err(Error::misuse(format!("two servers of the group are named {:?}", member.name)))
            }
            None => Ok(Self { members: members.into() }),
        }
    }

    /// Returns the clients of the servers that were reached, by name. The connection of one may be lost meanwhile.
    pub fn clients(&self) -> Vec<(&str, Client)> {
        let members = self.members.iter();
        members.filter_map(|member| Some((member.name.as_str(), member.connected()?))).collect()
    }

    /// Returns, by name, the errors of the servers that can't be reached, or whose last list or subscription failed.
    pub fn errors(&self) -> Vec<(&str, Arc<Error>)> {
        self.members
            .iter()
            .filter_map(|member| Some((member.name.as_str(), member.error()?)))
            .collect()
    }

    /// Lists the tools, resources, resource templates or prompts of all servers. Those of servers that fail are left out,
    /// and the failure is in [`Self::errors`].
    ///
    /// # Errors
    /// [`ErrorKind::Protocol`] if two tools or two prompts would have the same name.
    pub async fn list<T: Listed>(&self) -> Result<Vec<T>, Error> {
        let items = self.list_raw(T::LIST).await?;
        items.iter().map(|item| peer::read(T::LIST.method().as_str(), item)).collect()
    }

    /// Calls the tool `<server>_<tool>`, as [`Client::call_tool`] does.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] if no server's name fits, [`ErrorKind::Protocol`] if two tools have the name, the error
    /// of a server that can't be reached, and those of the call.
    pub async fn call_tool(
        &self,
        name: &str,
        arguments: impl Serialize,
    ) -> Result<ToolResult, Error> {
        let (member, own_name) = self.find(ListName::Tools, name).await?;
        member.client().await?.call_tool(&own_name, arguments).await
    }

    /// Gets the prompt `<server>_<prompt>`, as [`Client::get_prompt`] does; its errors are those of [`Self::call_tool`].
    pub async fn get_prompt(
        &self,
        name: &str,
        arguments: impl Serialize,
    ) -> Result<GetPromptResult, Error> {
        let (member, own_name) = self.find(ListName::Prompts, name).await?;
        member.client().await?.get_prompt(&own_name, arguments).await
    }

    /// Reads a resource from the first server that lists its URI. If none does, servers with a template that matches are
    /// tried first, then the others.
    ///
    /// # Errors
    /// The first error of a server that was tried, other than that it does not have the resource;
    /// [`ErrorKind::NotFound`] without one.
    pub async fn read_resource(&self, uri: &str) -> Result<ReadResourceResult, Error> {
        peer::read("resources/read", &self.read_raw(uri).await?.result)
    }

    /// Closes all clients at the same time, and ends the attempts to reach servers.
    pub async fn close(&self) {
        join_all(self.members.iter().map(|member| member.close())).await;
    }

    /// Returns the member with this name.
    #[doc(hidden)] // For the language bindings.
    pub fn member(&self, name: &str) -> Result<&Arc<Member>, Error> {
        self.members.iter().find(|member| member.name == name).ok_or_else(|| {
            let names = self.names("");
            let message = format!("this group has no server '{name}'; it has {names}");
            Error::new(ErrorKind::Protocol, message)
        })
    }

    fn names(&self, suffix: &str) -> String {
        let names: Vec<_> =
            self.members.iter().map(|member| format!("{}{suffix}", member.name)).collect();
        names.join(", ")
    }

    /// Returns the servers that were never reached, for the end of errors.
    fn not_reached(&self) -> String {
        let missing = self.members.iter().filter(|member| member.connected().is_none());
        let missing: Vec<_> = missing.map(|member| member.name.as_str()).collect();
        match missing.is_empty() {
            true => String::new(),
            false => format!(" (not reached: {})", missing.join(", ")),
        }
    }
}
