//! Typed client modules: `schema` reads what a server offers into a `model`, `python` and `typescript` write it.

mod docs;
mod layout;
mod literal;
mod model;
mod names;
mod python;
mod schema;
mod typescript;

pub use self::{
    model::{Components, Language, Module},
    names::MARK,
};

/// Returns the text of a module.
pub fn generate(components: &Components, language: Language) -> String {
    let module = Module::new(components);
    match language {
        Language::Python => python::write(&module),
        Language::Typescript => typescript::write(&module),
    }
}
