//! The names of options in the language that the core is built for.

use std::sync::OnceLock;

/// The language whose names for options errors use.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Language {
    /// Snake case.
    #[default]
    Rust,
    /// Snake case; durations are in seconds.
    Python,
    /// Camel case, and `Ms` behind durations, which are in milliseconds.
    TypeScript,
}

/// Options that are durations: TypeScript's names for them end in `Ms`.
const DURATIONS: [&str; 18] = [
    "body_timeout",
    "cache",
    "connect_timeout",
    "deadline",
    "delay",
    "drain_delay",
    "expires_in",
    "header_timeout",
    "idle_timeout",
    "keep_alive",
    "list_ttl",
    "max_timeout",
    "suspended_ttl",
    "session_idle",
    "shutdown_grace",
    "state_ttl",
    "timeout",
    "ttl",
];

/// The language of this build: the core is linked into each binding by itself.
static LANGUAGE: OnceLock<Language> = OnceLock::new();

/// Returns the name of an option, given in snake case, in the language of this build.
pub fn option_name(name: &str) -> String {
    Language::of_build().option(name)
}

impl Language {
    /// Sets the language of this build; only the first call has an effect. Default: Rust.
    pub fn set(self) {
        let _ = LANGUAGE.set(self);
    }

    /// Returns the language of this build.
    pub(crate) fn of_build() -> Self {
        LANGUAGE.get().copied().unwrap_or_default()
    }

    /// Returns the name of an option, given in snake case, in this language.
    pub fn option(self, name: &str) -> String {
        if self != Self::TypeScript {
            return name.to_owned();
        }
        let mut words = name.split('_');
        let mut out = words.next().unwrap_or_default().to_owned();
        for word in words {
            let (first, rest) = word.split_at(word.len().min(1));
            out.push_str(&first.to_ascii_uppercase());
            out.push_str(rest);
        }
        if DURATIONS.contains(&name) {
            out.push_str("Ms");
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_have_the_names_of_the_language() {
        for (name, typescript) in [
            ("max_body", "maxBody"),
            ("suspended_ttl", "suspendedTtlMs"),
            ("timeout", "timeoutMs"),
            ("cors", "cors"),
        ] {
            assert_eq!(Language::TypeScript.option(name), typescript);
            assert_eq!(Language::Rust.option(name), name);
        }
        assert_eq!(option_name("max_body"), "max_body");
    }
}
