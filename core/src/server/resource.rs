//! Resources and resource templates as added to a server.

use std::time::Duration;

use serde_json::Value;

use super::{
    entry::Entry,
    handler::{Components, Erased, Handler, HandlerOf},
    kind::ResourceKind,
    registry::{Component, Registered, sealed::Sealed},
    schema,
};
use crate::{
    error::Error,
    protocol::{self, Annotations, CacheScope, ResourceTemplate},
    router::{Definition, List, RegisteredTemplate},
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
///         _ => Err(ResourceNotFound { uri: format!("shelf://books/{id}"), message: None }.into()),
///     }
/// }
///
/// let server = Server::new("shelf")
///     .add(Resource::new("shelf://about", || async { "A shelf of books." }).name("about"))
///     .add(Resource::template("shelf://books/{id}", book).description("A book's title."));
/// ```
pub type Resource = Entry<ResourceParts>;

/// The options that only resources have.
#[derive(Debug)]
pub struct ResourceParts {
    uri: String,
    is_template: bool,
    name: Option<String>,
    mime_type: Option<String>,
    annotations: Option<Annotations>,
    size: Option<u64>,
    arguments: Option<Value>,
}

impl Resource {
    /// Creates a resource at a URI. The handler takes nothing, or the [`Context`](super::Context).
    pub fn new<H: Handler<Form>, Form: HandlerOf<ResourceKind>>(
        uri: impl Into<String>,
        handler: H,
    ) -> Self {
        Self::at(uri.into(), false, handler)
    }

    /// Creates resources behind a template, whose variables are the fields of the handler's arguments. `{+path}`
    /// matches slashes too, but no absolute path, drive letter, backslash, NUL or `..`.
    pub fn template<H: Handler<Form>, Form: HandlerOf<ResourceKind>>(
        template: impl Into<String>,
        handler: H,
    ) -> Self {
        Self::at(template.into(), true, handler)
    }

    fn at<H: Handler<Form>, Form: HandlerOf<ResourceKind>>(
        uri: String,
        is_template: bool,
        handler: H,
    ) -> Self {
        let parts = ResourceParts {
            uri,
            is_template,
            name: None,
            mime_type: None,
            annotations: None,
            size: None,
            arguments: Form::arguments().map(schema::written_out),
        };
        Self::with_parts(parts, Form::erase(handler))
    }

    /// Sets the name. Default: the URI.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.parts.name = Some(name.into());
        self
    }

    /// Sets the media type. Default: determined by the handler's return value.
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.parts.mime_type = Some(mime_type.into());
        self
    }

    /// Sets the audience, priority and age.
    pub fn annotations(mut self, change: impl FnOnce(&mut Annotations)) -> Self {
        change(self.parts.annotations.get_or_insert_default());
        self
    }

    /// Sets the size in bytes, if it is known in advance; templates have none.
    pub fn size(mut self, bytes: u64) -> Self {
        self.parts.size = Some(bytes);
        self
    }

    /// Sets the time for which a client may cache the contents. Default: none (Caching, from revision 2026-07-28).
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.options.cache_ttl = ttl;
        self
    }

    /// Sets whether caches may share the contents between users. Default: public, unless the caller is known by a
    /// principal or an `Authorization` header. A resource that is not visible to everybody stays private.
    pub fn cache_scope(mut self, scope: CacheScope) -> Self {
        self.options.cache_scope = Some(scope);
        self
    }

    /// Sets whether values of a variable of the template are checked as paths: an absolute path, a drive letter, a
    /// backslash, NUL or `..` is not found. Default: only those of `{+path}`. Call it once for a variable.
    pub fn check_path(mut self, variable: impl Into<String>, is_checked: bool) -> Self {
        let options = &mut self.options;
        let names = if is_checked { &mut options.paths } else { &mut options.unchecked_paths };
        names.push(variable.into());
        self
    }

    /// Sets the time for which the server itself caches the handler's results, by URI and caller.
    /// [`Registry::notify_updated`] and any change of the resources clear the cache. Concurrent reads of the same URI
    /// share one run. Results that depend on a client's answers are never cached, nor any results if middleware runs
    /// around reads. Default: no cache.
    ///
    /// [`Registry::notify_updated`]: super::Registry::notify_updated
    pub fn cache(mut self, keep: Duration) -> Self {
        self.options.keep = Some(keep);
        self
    }

    fn register_template(mut self, components: &mut Components) -> Result<Vec<String>, Error> {
        let taken = self.parts.arguments.as_ref().map(schema::properties).unwrap_or_default();
        self.decode_arguments()?;
        let template = ResourceTemplate {
            name: self.parts.name.unwrap_or_else(|| self.parts.uri.clone()),
            uri_template: self.parts.uri,
            title: self.title,
            description: self.description,
            icons: self.icons,
            mime_type: self.parts.mime_type,
            annotations: self.parts.annotations,
            meta: self.meta,
            unknown: None,
        };
        let component = RegisteredTemplate::new(template, self.handler.kept())?;
        let variables = component.variables();
        if let Some((name, ..)) =
            taken.iter().find(|property| property.2 && !variables.contains(&property.0))
        {
            return Err(Error::misuse(format!(
                "the template {:?} has no variable {name:?}, which its handler takes; add {{{name}}} to the \
                 template, or make the field optional",
                component.template.uri_template
            )));
        }
        components.templates.add(component.with(self.options)?, self.enabled)
    }

    fn register_resource(self, components: &mut Components) -> Result<Vec<String>, Error> {
        let taken = self.parts.arguments.as_ref().map(schema::properties).unwrap_or_default();
        if let Some((name, ..)) = taken.iter().find(|property| property.2) {
            return Err(Error::misuse(format!(
                "the resource {:?} has one URI, but its handler takes {name:?}: use Resource::template with {{{name}}} \
                 in the URI, or take no arguments",
                self.parts.uri
            )));
        }
        let resource = protocol::Resource {
            name: self.parts.name.unwrap_or_else(|| self.parts.uri.clone()),
            uri: self.parts.uri,
            title: self.title,
            description: self.description,
            icons: self.icons,
            mime_type: self.parts.mime_type,
            annotations: self.parts.annotations,
            size: self.parts.size,
            meta: self.meta,
            unknown: None,
        };
        let definition = Definition::Resource(resource, self.options);
        components.register(definition, self.handler.kept(), self.enabled)
    }

    /// Sets the decoder: parts of a URI are strings, whatever the type of the handler's argument.
    fn decode_arguments(&mut self) -> Result<(), Error> {
        let Some(schema) = &self.parts.arguments else { return Ok(()) };
        let place = format!("the arguments of the template {:?}", self.parts.uri);
        self.handler.decode_with(schema::compile(schema, &place)?);
        Ok(())
    }
}

impl Sealed for Resource {}

impl Component for Resource {
    fn handler(&mut self) -> &mut Erased {
        &mut self.handler
    }

    fn register(self, components: &mut Components) -> Result<Registered, Error> {
        let key = self.parts.uri.clone();
        let (list, warnings) = match self.parts.is_template {
            true => (List::Templates, self.register_template(components)?),
            false => (List::Resources, self.register_resource(components)?),
        };
        Ok(Registered { list, key, warnings })
    }
}
