//! Registration of handlers and of what they serve.

use std::{collections::HashMap, sync::Arc};

use super::{
    ComponentOptions, Components, Handler, RegisteredPrompt, RegisteredResource,
    RegisteredTemplate, RegisteredTool, completion, names,
};
use crate::{
    error::Error,
    protocol::{Prompt, Resource, ResourceTemplate, Tool},
};

/// The purpose of a handler. A tool, resource, resource template or prompt, as clients see it in a list, is converted by
/// `into()` with default options.
#[derive(Clone, Debug)]
pub enum Definition {
    Tool(Tool, ComponentOptions),
    Resource(Resource, ComponentOptions),
    Template(ResourceTemplate, ComponentOptions),
    Prompt(Prompt, ComponentOptions),
    /// The completion of an argument of a prompt, given by name, or of a variable of a resource template, given by URI
    /// template.
    Completion {
        target: String,
        argument: String,
    },
    /// A vendor's method, or a standard method, whose answer by the server the handler replaces. The handler receives the
    /// params as sent and returns the complete result in the vocabulary of the newest revision.
    Method(String),
    /// A vendor's notification, or `notifications/roots/list_changed`.
    Notification(String),
}

impl From<Tool> for Definition {
    fn from(tool: Tool) -> Self {
        Self::Tool(tool, ComponentOptions::default())
    }
}

impl From<Resource> for Definition {
    fn from(resource: Resource) -> Self {
        Self::Resource(resource, ComponentOptions::default())
    }
}

impl From<ResourceTemplate> for Definition {
    fn from(template: ResourceTemplate) -> Self {
        Self::Template(template, ComponentOptions::default())
    }
}

impl From<Prompt> for Definition {
    fn from(prompt: Prompt) -> Self {
        Self::Prompt(prompt, ComponentOptions::default())
    }
}

impl Components {
    /// Registers a handler. Returns warnings about properties of a component that known hosts reject.
    ///
    /// Errors if the name or URI is taken, a part of the definition is not valid, or the target or argument of a
    /// completion has not been added.
    pub fn add(
        &mut self,
        definition: impl Into<Definition>,
        handler: Handler,
    ) -> Result<Vec<String>, Error> {
        self.register(definition.into(), handler, true)
    }

    /// Registers a component that is hidden until it is enabled, if `enabled` is false.
    pub(crate) fn register(
        &mut self,
        definition: Definition,
        handler: Handler,
        enabled: bool,
    ) -> Result<Vec<String>, Error> {
        match definition {
            Definition::Tool(tool, options) => {
                let mut component = RegisteredTool::new(tool, handler)?;
                component.options = options;
                return self.tools.add(component, enabled);
            }
            Definition::Resource(resource, options) => {
                let component = RegisteredResource::new(resource, handler)?.with(options)?;
                return self.resources.add(component, enabled);
            }
            Definition::Template(template, options) => {
                let component = RegisteredTemplate::new(template, handler)?.with(options)?;
                return self.templates.add(component, enabled);
            }
            Definition::Prompt(prompt, options) => {
                let mut component = RegisteredPrompt::new(prompt, handler)?;
                component.options = options;
                return self.prompts.add(component, enabled);
            }
            Definition::Completion { target, argument } => {
                completion::add(self, &target, &argument, handler)?;
            }
            Definition::Method(name) => {
                names::check_method(&name)?;
                insert(&mut self.methods, "method", name, handler)?;
            }
            Definition::Notification(name) => {
                names::check_notification(&name)?;
                insert(&mut self.notifications, "notification", name, handler)?;
            }
        }
        Ok(Vec::new())
    }
}

fn insert(
    handlers: &mut Arc<HashMap<String, Handler>>,
    kind: &str,
    name: String,
    handler: Handler,
) -> Result<(), Error> {
    if handlers.contains_key(&name) {
        return Err(Error::misuse(format!("the {kind} {name:?} is already registered")));
    }
    Arc::make_mut(handlers).insert(name, handler);
    Ok(())
}
