//! Resources and resource templates as added to a server.

use std::{sync::Arc, time::Duration};

use serde_json::Value;

use super::{
    common::{Common, common_methods},
    handler::{Components, Erased, Handler},
    kind::ResourceKind,
    registry::{Component, Registered, sealed::Sealed},
    schema,
};
use crate::{
    error::Error,
    protocol::{self, Annotations, CacheScope, Icon, Raw, ResourceTemplate},
    router::{List, RegisteredTemplate},
};

/// A resource at a URI, or resources behind a URI template of RFC 6570 (Resources).
///
/// ```
/// # use gudgeon::{Resource, ResourceNotFound, Server, ToolError};
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Book {
///     id: u32,
/// }
///
/// async fn book(Book { id }: Book) -> Result<String, ToolError> {
///     match id {
///         1 => Ok("Dune".into()),
///         _ => Err(ResourceNotFound::new(format!("shelf://books/{id}")).into()),
///     }
/// }
///
/// let server = Server::new("shelf")
///     .add(Resource::new("shelf://about", || async { "A shelf of books." }).name("about"))
///     .add(Resource::template("shelf://books/{id}", book).description("A book's title."));
/// ```
#[derive(Debug)]
#[must_use = "a resource is available only after it is added to a server"]
pub struct Resource {
    uri: String,
    is_template: bool,
    name: Option<String>,
    title: Option<String>,
    description: Option<String>,
    mime_type: Option<String>,
    annotations: Option<Annotations>,
    icons: Option<Vec<Icon>>,
    meta: Option<Raw>,
    size: Option<u64>,
    handler: Erased,
    arguments: Option<Value>,
    common: Common,
}

impl Resource {
    /// Creates a resource at a URI. The handler takes nothing, or the [`Context`](super::Context).
    pub fn new<H: Handler<ResourceKind, Form>, Form>(uri: impl Into<String>, handler: H) -> Self {
        Self::of(uri.into(), false, handler)
    }

    /// Creates resources behind a template, whose variables are the fields of the handler's arguments. `{+path}`
    /// matches slashes too.
    pub fn template<H: Handler<ResourceKind, Form>, Form>(
        template: impl Into<String>,
        handler: H,
    ) -> Self {
        Self::of(template.into(), true, handler)
    }

    fn of<H: Handler<ResourceKind, Form>, Form>(
        uri: String,
        is_template: bool,
        handler: H,
    ) -> Self {
        Self {
            uri,
            is_template,
            name: None,
            title: None,
            description: None,
            mime_type: None,
            annotations: None,
            icons: None,
            meta: None,
            size: None,
            handler: handler.erase(),
            arguments: H::arguments().map(schema::written_out),
            common: Common::default(),
        }
    }

    /// Sets the name. Default: the URI.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the name to display.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Sets the description.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Sets the media type. Default: determined by the handler's return value.
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.mime_type = Some(mime_type.into());
        self
    }

    /// Sets the audience and priority.
    pub fn annotations(mut self, annotations: Annotations) -> Self {
        self.annotations = Some(annotations);
        self
    }

    /// Sets the size in bytes, if it is known in advance; templates have none.
    pub fn size(mut self, bytes: u64) -> Self {
        self.size = Some(bytes);
        self
    }

    /// Sets the time limit, after which a read fails. Time in which the handler waits for its client's answer does
    /// not count. Default: no limit.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.common.options.timeout = Some(timeout);
        self
    }

    /// Sets the time for which a client may cache the contents. Default: none (Caching, from revision 2026-07-28).
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.common.options.cache_ttl = ttl;
        self
    }

    /// Prevents caches from sharing the contents between users. Default: as [`public`](Self::public), unless the
    /// caller is known by a principal or an `Authorization` header.
    pub fn private(mut self) -> Self {
        self.common.options.cache_scope = Some(CacheScope::Private);
        self
    }

    /// Lets caches serve the contents to everybody, whoever requested it. A resource that is not visible to everybody
    /// stays private.
    pub fn public(mut self) -> Self {
        self.common.options.cache_scope = Some(CacheScope::Public);
        self
    }

    /// Sets the time for which the server itself caches the handler's results, by URI and caller.
    /// [`Registry::notify_updated`] and any change of the resources clear the cache. Concurrent reads of the same URI
    /// share one run. Results that depend on a client's answers are never cached, nor any results if middleware runs
    /// around reads. Default: no cache.
    ///
    /// [`Registry::notify_updated`]: super::Registry::notify_updated
    pub fn cache(mut self, keep: Duration) -> Self {
        self.common.options.keep = Some(keep);
        self
    }

    common_methods!();

    fn register_template(mut self, components: &mut Components) -> Result<Vec<String>, Error> {
        let taken = self.arguments.as_ref().map(schema::properties).unwrap_or_default();
        self.decode_arguments()?;
        let template = ResourceTemplate {
            name: self.name.unwrap_or_else(|| self.uri.clone()),
            uri_template: self.uri,
            title: self.title,
            description: self.description,
            icons: self.icons,
            mime_type: self.mime_type,
            annotations: self.annotations,
            meta: self.meta,
        };
        let mut component = RegisteredTemplate::new(template, Arc::new(self.handler))?;
        let variables = component.variables();
        if let Some((name, ..)) = taken.iter().find(|it| it.2 && !variables.contains(&it.0)) {
            return Err(Error::misuse(format!(
                "the template {:?} has no variable {name:?}, which its handler takes; add {{{name}}} to the \
                 template, or make the field optional",
                component.template.uri_template
            )));
        }
        component.options = self.common.options;
        components.templates.add(component, self.common.enabled)
    }

    fn register_resource(self, components: &mut Components) -> Result<Vec<String>, Error> {
        let taken = self.arguments.as_ref().map(schema::properties).unwrap_or_default();
        if let Some((name, ..)) = taken.iter().find(|it| it.2) {
            return Err(Error::misuse(format!(
                "the resource {:?} has one URI, but its handler takes {name:?}: use Resource::template with {{{name}}} \
                 in the URI, or take no arguments",
                self.uri
            )));
        }
        let resource = protocol::Resource {
            name: self.name.unwrap_or_else(|| self.uri.clone()),
            uri: self.uri,
            title: self.title,
            description: self.description,
            icons: self.icons,
            mime_type: self.mime_type,
            annotations: self.annotations,
            size: self.size,
            meta: self.meta,
        };
        let Common { options, enabled } = self.common;
        components.register(resource.into(), Arc::new(self.handler), options, enabled)
    }

    /// Sets the decoder: parts of a URI are strings, whatever the type of the handler's argument.
    fn decode_arguments(&mut self) -> Result<(), Error> {
        let Some(schema) = &self.arguments else { return Ok(()) };
        let place = format!("the arguments of the template {:?}", self.uri);
        self.handler.decode_with(schema::compile(schema, &place)?);
        Ok(())
    }
}

impl Sealed for Resource {}

impl Component for Resource {
    fn register(self, components: &mut Components) -> Result<Registered, Error> {
        let key = self.uri.clone();
        let (list, warnings) = match self.is_template {
            true => (List::Templates, self.register_template(components)?),
            false => (List::Resources, self.register_resource(components)?),
        };
        Ok(Registered { list, key, warnings })
    }
}
