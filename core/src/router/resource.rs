//! Resources and templates: registration, reads, and the conversion of replies.

use std::sync::Arc;

use serde_json::{Value, value::RawValue};

use super::{
    Changes, Component, ComponentOptions, Components, Handler, Visibility,
    completion::Completions,
    component::{changeable, updated},
    handler::{Failure, Reply, bad_result, cannot_ask, own_meta},
    names, paths,
    served::Served,
    uri_template::{UriTemplate, Variable, expand_template},
};
use crate::{
    error::{Error, Fault, FaultKind},
    protocol::{CacheHint, Raw, Resource, ResourceTemplate, Response, json, json::ObjectWriter},
};

/// A resource with a fixed URI.
#[derive(Clone, Debug)]
pub struct RegisteredResource {
    pub resource: Arc<Resource>,
    pub handler: Handler,
    pub options: ComponentOptions,
}

/// A resource template.
#[derive(Clone, Debug)]
pub struct RegisteredTemplate {
    pub template: Arc<ResourceTemplate>,
    pub handler: Handler,
    pub options: ComponentOptions,
    pub(super) completions: Completions,
    pub(super) uri: Arc<UriTemplate>,
    /// The handler gets the whole URI, and not the values of its variables.
    pub(super) takes_uri: bool,
}

impl RegisteredResource {
    /// Errors if the URI is not valid, or is a template.
    pub fn new(resource: Resource, handler: Handler) -> Result<Self, Error> {
        names::check_uri(&resource.uri)?;
        if resource.uri.contains('{') {
            return Err(Error::misuse(format!(
                "{:?} is a URI template; add it as a resource template",
                resource.uri
            )));
        }
        Ok(Self { resource: Arc::new(resource), handler, options: ComponentOptions::default() })
    }

    /// Sets the options. Errors if one of them is for templates only.
    pub(crate) fn with(self, options: ComponentOptions) -> Result<Self, Error> {
        paths::check_names(&self.resource.uri, &[], &options)?;
        Ok(Self { options, ..self })
    }
}

impl RegisteredTemplate {
    /// Errors if the template is not valid; the message names the position.
    pub fn new(template: ResourceTemplate, handler: Handler) -> Result<Self, Error> {
        names::check_uri(&template.uri_template)?;
        let uri = UriTemplate::parse(&template.uri_template).map_err(|error| {
            Error::misuse(format!(
                "the URI template {:?} can't be used: {error}",
                template.uri_template
            ))
        })?;
        Ok(Self {
            template: Arc::new(template),
            handler,
            options: ComponentOptions::default(),
            completions: Completions::new(),
            uri: Arc::new(uri),
            takes_uri: false,
        })
    }

    /// Returns a template whose reads another server answers: the handler gets the whole URI. Errors if it is not valid.
    pub(crate) fn passed_on(template: ResourceTemplate, handler: Handler) -> Result<Self, Error> {
        Ok(Self { takes_uri: true, ..Self::new(template, handler)? })
    }

    /// Sets the options. Errors if one of them names a variable that the template does not have.
    pub(crate) fn with(self, options: ComponentOptions) -> Result<Self, Error> {
        paths::check_names(self.uri.text(), &self.variables(), &options)?;
        Ok(Self { options, ..self })
    }

    /// Returns the values of the variables in a URI; `None` if it does not match, or a path leads out of its folder.
    pub(super) fn match_uri(&self, uri: &str) -> Option<Vec<(String, Value)>> {
        let values = self.uri.match_uri(uri)?;
        let accepts = |variable: &Variable| {
            let mut own = values.iter().filter(|(name, _)| *name == variable.name);
            own.all(|(_, value)| paths::accepts(variable, value, &self.options))
        };
        self.uri.kinds().all(accepts).then_some(values)
    }

    /// Returns the names of the template's variables.
    pub fn variables(&self) -> Vec<String> {
        self.uri.variables().map(ToString::to_string).collect()
    }
}

impl Component for RegisteredResource {
    type Listed = Resource;

    fn key(&self) -> &str {
        &self.resource.uri
    }

    fn listed(&self) -> &Arc<Resource> {
        &self.resource
    }

    fn options(&self) -> &ComponentOptions {
        &self.options
    }

    fn meta(&self) -> Option<&Raw> {
        self.resource.meta.as_ref()
    }

    fn update(&mut self, changes: &Changes) -> Result<(), Error> {
        self.resource = Arc::new(updated(&*self.resource, changes, changeable::RESOURCE)?);
        Ok(())
    }
}

impl Component for RegisteredTemplate {
    type Listed = ResourceTemplate;

    fn key(&self) -> &str {
        &self.template.uri_template
    }

    fn listed(&self) -> &Arc<ResourceTemplate> {
        &self.template
    }

    fn options(&self) -> &ComponentOptions {
        &self.options
    }

    fn meta(&self) -> Option<&Raw> {
        self.template.meta.as_ref()
    }

    fn update(&mut self, changes: &Changes) -> Result<(), Error> {
        self.template = Arc::new(updated(&*self.template, changes, changeable::RESOURCE_TEMPLATE)?);
        Ok(())
    }
}

/// Expands a URI with the given template variables or query variables.
pub(super) fn filled(
    components: &Components,
    uri: String,
    variables: Option<&Raw>,
    visibility: &Visibility,
) -> Result<String, Fault> {
    let Some(variables) = variables else { return Ok(uri) };
    let given: serde_json::Map<String, Value> = serde_json::from_str(variables.get())
        .map_err(|_| Fault::invalid_params("params.arguments must be an object"))?;
    let given: Vec<(String, Value)> = given.into_iter().collect();
    let is_given = |name: &str| given.iter().any(|(key, value)| key == name && !value.is_null());
    if uri.contains('{') {
        let template = components.templates.get_visible(&uri, visibility);
        let missing = template.and_then(|template| {
            template
                .uri
                .kinds()
                .find(|variable| !variable.is_optional() && !is_given(&variable.name))
        });
        if let Some(missing) = missing {
            return Err(Fault::invalid_params(format!(
                "{uri} leaves {:?} open: give it in params.arguments",
                missing.name
            )));
        }
        return expand_template(&uri, &given)
            .map_err(|error| Fault::invalid_params(format!("params.uri {uri:?}: {error}")));
    }
    let Some(Served::Template(component, mut values)) = components.served_at(&uri, visibility)
    else {
        return Ok(uri);
    };
    let bound = values.len();
    for (name, value) in given {
        let is_open = component.uri.variables().any(|variable| variable == name)
            && !values.iter().any(|(known, _)| *known == name);
        if is_open {
            values.push((name, value));
        }
    }
    Ok(if values.len() == bound { uri } else { component.uri.expand(&values) })
}

/// Converts a resource's reply into contents.
pub(super) fn contents(
    uri: &str,
    mime_type: Option<&str>,
    cache: CacheHint,
    reply: Reply,
) -> Result<Response, Failure> {
    let one = |mime_type: &str, name: &str, value: &str| {
        let mut contents = ObjectWriter::with_capacity(uri.len() + value.len() + 64);
        contents.member("uri", uri).member("mimeType", mime_type).member(name, value);
        format!("[{}]", contents.finish())
    };
    let (contents, meta) = match reply {
        Reply::Nothing => (one(mime_type.unwrap_or("text/plain"), "text", ""), None),
        Reply::Text(text) => (one(mime_type.unwrap_or("text/plain"), "text", &text), None),
        Reply::Json(value) => (one(mime_type.unwrap_or("application/json"), "text", &value), None),
        Reply::Blob(base64) => {
            (one(mime_type.unwrap_or("application/octet-stream"), "blob", &base64), None)
        }
        Reply::Parts(parts) => (addressed(uri, mime_type, &parts)?, None),
        Reply::Questions(_) => return Err(cannot_ask()),
        Reply::Result(result) => {
            #[derive(serde::Deserialize)]
            struct Whole<'a> {
                #[serde(borrow)]
                contents: &'a RawValue,
                #[serde(borrow, rename = "_meta")]
                meta: Option<&'a RawValue>,
            }
            let whole: Whole<'_> =
                serde_json::from_str(&result).map_err(|error| bad_result(error.to_string()))?;
            let contents = addressed(uri, mime_type, whole.contents.get())?;
            (contents, own_meta(whole.meta)?)
        }
    };
    Ok(Response::Contents { contents, meta, cache })
}

/// Sets the requested URI on contents without a URI.
fn addressed(uri: &str, mime_type: Option<&str>, contents: &str) -> Result<String, Failure> {
    let contents: Vec<&RawValue> =
        serde_json::from_str(contents).map_err(|error| bad_result(error.to_string()))?;
    let contents = contents.into_iter().map(|part| {
        #[derive(serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Head {
            uri: Option<String>,
            mime_type: Option<String>,
        }
        let head: Head = serde_json::from_str(part.get())
            .map_err(|_| bad_result("a resource's contents are objects"))?;
        let mut whole = ObjectWriter::with_capacity(part.get().len() + uri.len() + 32);
        if head.uri.is_none() {
            whole.member("uri", uri);
        }
        if let (None, Some(mime_type)) = (head.mime_type, mime_type) {
            whole.member("mimeType", mime_type);
        }
        whole.splice(part.get());
        Ok(whole.finish())
    });
    let contents = contents.collect::<Result<Vec<_>, Failure>>()?;
    Ok(format!("[{}]", contents.join(",")))
}

pub(super) fn not_found(uri: &str, message: Option<String>) -> Fault {
    let message = message.unwrap_or_else(|| format!("Resource not found: {uri}"));
    Fault::new(FaultKind::ResourceNotFound, message)
        .with_data(Some(json::to_raw(&serde_json::json!({ "uri": uri }))))
}
