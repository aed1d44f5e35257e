//! Registration of any kind of component.

use super::{
    ComponentOptions, Components, RegisteredPrompt, RegisteredResource, RegisteredTemplate,
    RegisteredTool,
};
use crate::{
    error::Error,
    protocol::{Prompt, Resource, ResourceTemplate, Tool},
};

/// A component as clients see it in a list.
#[derive(Clone, Debug)]
pub enum Definition {
    Tool(Tool),
    Resource(Resource),
    Template(ResourceTemplate),
    Prompt(Prompt),
}

impl From<Tool> for Definition {
    fn from(tool: Tool) -> Self {
        Self::Tool(tool)
    }
}

impl From<Resource> for Definition {
    fn from(resource: Resource) -> Self {
        Self::Resource(resource)
    }
}

impl From<ResourceTemplate> for Definition {
    fn from(template: ResourceTemplate) -> Self {
        Self::Template(template)
    }
}

impl From<Prompt> for Definition {
    fn from(prompt: Prompt) -> Self {
        Self::Prompt(prompt)
    }
}

impl<H> Components<H> {
    /// Registers a tool, resource, resource template or prompt. Returns warnings about properties that known hosts
    /// reject. Errors if the name or URI is taken, or a part of the definition is not valid.
    pub fn add(
        &mut self,
        definition: impl Into<Definition>,
        handler: H,
        options: ComponentOptions,
    ) -> Result<Vec<String>, Error> {
        self.register(definition.into(), handler, options, true)
    }

    /// Registers a component that is hidden until it is enabled, if `enabled` is false.
    pub(crate) fn register(
        &mut self,
        definition: Definition,
        handler: H,
        options: ComponentOptions,
        enabled: bool,
    ) -> Result<Vec<String>, Error> {
        match definition {
            Definition::Tool(tool) => {
                let mut component = RegisteredTool::new(tool, handler)?;
                component.options = options;
                self.tools.add(component, enabled)
            }
            Definition::Resource(resource) => {
                let component = RegisteredResource::new(resource, handler)?.with(options)?;
                self.resources.add(component, enabled)
            }
            Definition::Template(template) => {
                let component = RegisteredTemplate::new(template, handler)?.with(options)?;
                self.templates.add(component, enabled)
            }
            Definition::Prompt(prompt) => {
                let mut component = RegisteredPrompt::new(prompt, handler)?;
                component.options = options;
                self.prompts.add(component, enabled)
            }
        }
    }
}
