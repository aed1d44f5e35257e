//! Keeps what an upstream server offers registered with the server that it is a part of.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex, Weak},
    time::Duration,
};

use serde::de::DeserializeOwned;
use tokio::{sync::watch, task::AbortHandle};

use super::{
    START_TIME,
    calls::{Subject, handler},
    connections::{Connections, Told},
    lock,
    watched::Watched,
};
use crate::{
    client::{Backoff, Client, ListName, Member, Operation},
    clock,
    driver::boxed,
    error::{Error, ErrorKind},
    peer,
    protocol::{
        CompletionTarget, Method, Prompt, Raw, Resource, ResourceTemplate, Tool,
        unknown::{Entry, keep_unknown},
    },
    router::{
        Components, Definition, List, RegisteredPrompt, RegisteredResource, RegisteredTemplate,
        RegisteredTool, Registrar,
    },
};

/// The shortest time between two looks at the lists of a server that says all the time that they change.
const LISTING_PAUSE: Duration = Duration::from_millis(250);

/// The task that keeps the registrations up to date. Dropping it ends it.
pub(super) struct Following {
    task: AbortHandle,
    pub(super) listed: Listed,
}

/// Tells when a server's lists are registered, or it could not be reached at first.
#[derive(Clone)]
pub(super) struct Listed(watch::Receiver<bool>);

struct Follower {
    prefix: String,
    connections: Arc<Connections>,
    registrar: Weak<dyn Registrar>,
    registered: AllRegistered,
    watched: Watched,
}

/// The entries of each list that are registered, which stay when the task ends.
pub(super) type AllRegistered = Arc<Mutex<HashMap<ListName, Registered>>>;

#[derive(Default)]
pub(super) struct Registered {
    /// As they came, each with its key; `None` for one that can't be used.
    entries: Vec<(Raw, Option<String>)>,
    /// The keys of entries that the program has removed, and that are never added again.
    removed: BTreeSet<String>,
    /// The keys of entries that the program had disabled when they were taken out.
    disabled: BTreeSet<String>,
}

impl Following {
    /// Must be called inside a tokio runtime.
    pub(super) fn start(
        prefix: String,
        connections: Arc<Connections>,
        registrar: &Arc<dyn Registrar>,
        registered: &AllRegistered,
        before: Option<Listed>,
    ) -> Self {
        let (has_listed, listed) = watch::channel(false);
        let follower = Follower {
            prefix,
            connections,
            registrar: Arc::downgrade(registrar),
            registered: Arc::clone(registered),
            watched: Watched::default(),
        };
        let task = tokio::spawn(boxed(follower.follow(has_listed, before))).abort_handle();
        Self { task, listed: Listed(listed) }
    }
}

impl Listed {
    /// Waits for it. Returns `false` if it takes longer than this.
    pub(super) async fn within(mut self, limit: Duration) -> bool {
        // An inner error means that the task has ended.
        tokio::time::timeout(limit, self.0.wait_for(|is_listed| *is_listed)).await.is_ok()
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Follower {
    async fn follow(mut self, has_listed: watch::Sender<bool>, before: Option<Listed>) {
        let first = match self.connections.open() {
            Ok(first) => first,
            Err(error) => {
                tracing::warn!(server = ?self.prefix, %error, "an upstream server can't be reached");
                return;
            }
        };
        if first.connect().await.is_err() {
            has_listed.send_replace(true);
        }
        let first = Arc::downgrade(&first);
        let Some(client) = Member::reached(&first).await else { return };
        if let Some(before) = before {
            before.within(START_TIME).await;
        }
        let mut changed: BTreeSet<ListName> = ListName::ALL.into();
        let (mut backoff, mut next_listing) = (Backoff::new(), clock::now());
        loop {
            let mut failed = BTreeSet::new();
            if !changed.is_empty() && next_listing <= clock::now() {
                failed = self.register(&client, std::mem::take(&mut changed)).await;
                next_listing = clock::now() + LISTING_PAUSE;
                if failed.is_empty() {
                    backoff = Backoff::new();
                }
            }
            let watches_more = self.watched.watch(&client, &self.prefix).await;
            has_listed.send_replace(true);
            let told = tokio::select! {
                () = std::future::ready(()), if watches_more => self.connections.events.take(),
                () = tokio::time::sleep_until(next_listing.into()), if !changed.is_empty() => {
                    self.connections.events.take()
                }
                () = backoff.wait(), if !failed.is_empty() => self.connections.events.take(),
                () = self.connections.events.told.notified() => self.connections.events.take(),
                uri = self.watched.next_update() => {
                    Told { updated: uri.into_iter().collect(), ..Told::default() }
                }
            };
            let Some(registrar) = self.registrar.upgrade() else { return };
            told.updated.iter().for_each(|uri| registrar.updated(uri));
            told.pages.iter().for_each(|page| registrar.page_done(page));
            told.subscribed.into_iter().for_each(|uri| self.watched.wanted(uri));
            changed.extend(failed);
            changed.extend(told.lists);
        }
    }

    /// Registers the entries of these lists. Returns those that could not be fetched.
    async fn register(&mut self, client: &Client, lists: BTreeSet<ListName>) -> BTreeSet<ListName> {
        let mut failed = BTreeSet::new();
        for list in lists {
            match fetch(client, list).await {
                Ok(entries) => self.replace(client, list, entries),
                Err(error) => {
                    tracing::warn!(
                        server = ?self.prefix, %error,
                        "what an upstream server offers can't be listed; it is tried again"
                    );
                    failed.insert(list);
                }
            }
            if list == ListName::Resources && !failed.contains(&list) {
                self.watched.listed(self.uris());
            }
        }
        failed
    }

    /// Returns the URIs of the resources that are registered.
    fn uris(&self) -> Vec<String> {
        let all = lock(&self.registered);
        let entries = all.get(&ListName::Resources).map(|registered| &registered.entries);
        entries.into_iter().flatten().filter_map(|(_, uri)| uri.clone()).collect()
    }

    /// Registers these entries in place of the earlier ones of the list.
    fn replace(&mut self, client: &Client, name: ListName, entries: Vec<Raw>) {
        let Some(registrar) = self.registrar.upgrade() else { return };
        let mut all = lock(&self.registered);
        let registered = all.entry(name).or_default();
        let completes = client.server().answers(Method::Complete);
        let adding = Adding { prefix: &self.prefix, connections: &self.connections, completes };
        let mut fetched = Some(entries);
        let change = &mut |components: &mut Components| {
            let entries = fetched.take().unwrap_or_default();
            Ok(registered.replace(entries, components, list_of(name), |components, entry| {
                adding.entry(components, name, entry)
            }))
        };
        if let Err(error) = registrar.change(list_of(name), change) {
            tracing::warn!(server = ?self.prefix, %error, "a list of an upstream server can't be used");
        }
    }
}

impl Registered {
    /// Registers these entries in place of the earlier ones. What the program has changed, disabled or removed stays so, as far as
    /// the entries are the same. Returns whether anything changed.
    fn replace(
        &mut self,
        fetched: Vec<Raw>,
        components: &mut Components,
        list: List,
        add: impl Fn(&mut Components, &Raw) -> Option<String>,
    ) -> bool {
        let order = |entries: &[(Raw, Option<String>)]| -> Vec<String> {
            entries.iter().map(|(entry, _)| entry.get().to_owned()).collect()
        };
        let before = order(&self.entries);
        let mut former: HashMap<String, (Raw, Option<String>)> = std::mem::take(&mut self.entries)
            .into_iter()
            .map(|(entry, key)| (entry.get().to_owned(), (entry, key)))
            .collect();
        let kept: Vec<_> = fetched.iter().map(|entry| former.remove(entry.get())).collect();
        let own = components.list_mut(list);
        for key in former.into_values().filter_map(|(_, key)| key) {
            match own.is_enabled(&key) {
                true => self.disabled.remove(&key),
                false if own.has(&key) => self.disabled.insert(key.clone()),
                false => self.removed.insert(key.clone()),
            };
            let _ = own.remove(&key);
        }
        for (entry, kept) in fetched.into_iter().zip(kept) {
            let entry = kept.unwrap_or_else(|| {
                let key = add(components, &entry);
                if let Some(key) = &key {
                    let own = components.list_mut(list);
                    if self.removed.contains(key) {
                        let _ = own.remove(key);
                    } else if self.disabled.contains(key) {
                        let _ = own.set_enabled(std::slice::from_ref(key), &[], false);
                    }
                }
                (entry, key)
            });
            self.entries.push(entry);
        }
        before != order(&self.entries)
    }
}

async fn fetch(client: &Client, list: ListName) -> Result<Vec<Raw>, Error> {
    let options = client.options();
    match client.call(Operation::List(list), options).await {
        Ok(reply) => peer::read(list.method().as_str(), &reply.result),
        // A server without resources, for example.
        Err(error) if error.kind == ErrorKind::Unsupported => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Reads an entry of a list, with the members that no revision defines.
fn read<T: Entry + DeserializeOwned>(method: &str, entry: &Raw) -> Result<T, Error> {
    let mut read: T = peer::read(method, entry)?;
    keep_unknown(&mut read, entry);
    // Clients refuse a whole list for it.
    if read.meta().is_some_and(|meta| !meta.get().starts_with('{')) {
        let message = format!("an entry of {method} is invalid: its _meta is not an object");
        return Err(Error::new(ErrorKind::Protocol, message));
    }
    Ok(read)
}

fn list_of(name: ListName) -> List {
    match name {
        ListName::Tools => List::Tools,
        ListName::Resources => List::Resources,
        ListName::ResourceTemplates => List::Templates,
        ListName::Prompts => List::Prompts,
    }
}

/// Adds entries of lists to the components of a server.
struct Adding<'a> {
    prefix: &'a str,
    connections: &'a Arc<Connections>,
    completes: bool,
}

impl Adding<'_> {
    /// Adds an entry; returns its key. One that can't be used is left out, with a warning.
    fn entry(&self, components: &mut Components, list: ListName, entry: &Raw) -> Option<String> {
        let added = match list {
            ListName::Tools => self.tool(components, entry),
            ListName::Resources => self.resource(components, entry),
            ListName::ResourceTemplates => self.template(components, entry),
            ListName::Prompts => self.prompt(components, entry),
        };
        added
            .inspect_err(|error| {
                tracing::warn!(
                    server = ?self.prefix, %error,
                    "a part of what an upstream server offers is left out"
                );
            })
            .ok()
    }

    fn tool(&self, components: &mut Components, entry: &Raw) -> Result<String, Error> {
        let mut tool: Tool = read("tools/list", entry)?;
        let handler = handler(self.connections, Subject::Tool(tool.name.clone()));
        tool.name = List::Tools.mounted_key(self.prefix, &tool.name);
        let key = tool.name.clone();
        components.tools.add(RegisteredTool::passed_on(tool, handler)?, true)?;
        Ok(key)
    }

    fn resource(&self, components: &mut Components, entry: &Raw) -> Result<String, Error> {
        let resource: Resource = read("resources/list", entry)?;
        let key = resource.uri.clone();
        let handler = handler(self.connections, Subject::Resource(Some(key.clone())));
        components.resources.add(RegisteredResource::new(resource, handler)?, true)?;
        Ok(key)
    }

    fn template(&self, components: &mut Components, entry: &Raw) -> Result<String, Error> {
        let template: ResourceTemplate = read("resources/templates/list", entry)?;
        let key = template.uri_template.clone();
        let handler = handler(self.connections, Subject::Resource(None));
        let registered = RegisteredTemplate::passed_on(template, handler)?;
        let variables = registered.variables();
        components.templates.add(registered, true)?;
        self.complete(components, &CompletionTarget::Resource(key.clone()), &key, variables)?;
        Ok(key)
    }

    fn prompt(&self, components: &mut Components, entry: &Raw) -> Result<String, Error> {
        let mut prompt: Prompt = read("prompts/list", entry)?;
        let own = prompt.name.clone();
        let handler = handler(self.connections, Subject::Prompt(own.clone()));
        prompt.name = List::Prompts.mounted_key(self.prefix, &own);
        let key = prompt.name.clone();
        let arguments =
            prompt.arguments.iter().flatten().map(|argument| argument.name.clone()).collect();
        components.prompts.add(RegisteredPrompt::new(prompt, handler)?, true)?;
        self.complete(components, &CompletionTarget::Prompt(own), &key, arguments)?;
        Ok(key)
    }

    /// Adds the completion of these arguments of the component with this key.
    fn complete(
        &self,
        components: &mut Components,
        target: &CompletionTarget,
        key: &str,
        arguments: Vec<String>,
    ) -> Result<(), Error> {
        for argument in arguments.into_iter().filter(|_| self.completes) {
            let subject = Subject::Completion(target.clone(), argument.clone());
            let handler = handler(self.connections, subject);
            components.add(Definition::Completion { target: key.to_owned(), argument }, handler)?;
        }
        Ok(())
    }
}
