//! The names by which requests are counted: only those that the server has, because clients send any others.

use super::{Components, Visibility, served::Served};
use crate::{
    metrics::OTHER,
    protocol::{Method, MethodName, Request},
};

impl Components {
    /// Returns the method of a request and the tool, prompt or resource template that it names; the method is [`OTHER`] and the
    /// name is empty if the server does not have it.
    pub(crate) fn known_name<'a>(&'a self, request: &'a Request) -> (&'a str, &'a str) {
        match request {
            Request::CallTool { name, .. } => {
                let tool = self.tools.get(name).map(|component| &*component.tool.name);
                (Method::CallTool.as_str(), tool.unwrap_or_default())
            }
            Request::GetPrompt { name, .. } => {
                let prompt = self.prompts.get(name).map(|component| &*component.prompt.name);
                (Method::GetPrompt.as_str(), prompt.unwrap_or_default())
            }
            Request::ReadResource { uri, .. } => {
                (Method::ReadResource.as_str(), self.template_of(uri))
            }
            Request::Other { method: MethodName::Vendor(name), .. } => {
                (self.methods.get_key_value(&**name).map_or(OTHER, |(name, _)| name), "")
            }
            Request::Other { method: MethodName::Standard(method), .. } => (method.as_str(), ""),
            request => match request.method() {
                MethodName::Standard(method) => (method.as_str(), ""),
                MethodName::Vendor(_) => (OTHER, ""),
            },
        }
    }

    /// Returns the template that serves a URI, or that a request names as it is.
    fn template_of(&self, uri: &str) -> &str {
        if let Some(template) = self.templates.get(uri) {
            return &template.template.uri_template;
        }
        match self.served_at(uri, &Visibility::everything()) {
            Some(Served::Template(template, _)) => &template.template.uri_template,
            Some(Served::Resource(_)) | None => "",
        }
    }
}
