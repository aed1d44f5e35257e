//! Checks as data: what a server is expected to do, where the specification says so, and how to fix it.

use gudgeon::Revision;

/// A check of one behaviour.
#[derive(Debug)]
pub struct Check {
    /// Stable: programs that read `--json` rely on it.
    pub id: &'static str,
    /// The behaviour of a correct implementation.
    pub title: &'static str,
    pub severity: Severity,
    pub section: Section,
    pub fix: &'static str,
    /// The oldest revision with the rule.
    pub since: Revision,
    /// The newest revision with the rule.
    pub until: Revision,
}

impl Check {
    /// A check of all revisions, to be completed by struct update syntax.
    pub const ANY: Self = Self {
        id: "",
        title: "",
        severity: Severity::Failure,
        section: Section::new("basic"),
        fix: "",
        since: Revision::V2024_11_05,
        until: Revision::V2026_07_28,
    };
    /// A check of the revisions that open a session by `initialize`.
    pub const LEGACY: Self = Self { until: Revision::LATEST_LEGACY, ..Self::ANY };
    /// A check of the revisions without sessions.
    pub const MODERN: Self = Self { since: Revision::V2026_07_28, ..Self::ANY };

    /// Returns whether the revision has the rule.
    pub fn applies(&self, revision: Revision) -> bool {
        (self.since..=self.until).contains(&revision)
    }

    /// Returns the part of the id before the first dot.
    pub fn area(&self) -> &'static str {
        self.id.split('.').next().unwrap_or_default()
    }
}

/// The weight of a deviation. Only failures make the command fail.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Severity {
    /// The specification says MUST, or its schema requires it.
    Failure,
    /// The specification says SHOULD or describes other behaviour, or known hosts have trouble with it.
    Warning,
    /// Worth knowing, not wrong.
    Note,
}

impl Severity {
    pub fn name(self) -> &'static str {
        match self {
            Self::Failure => "failure",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

/// A section of the specification: a page, a `#` and a heading. Pages have moved between revisions.
#[derive(Clone, Copy, Debug)]
pub struct Section {
    modern: &'static str,
    legacy: &'static str,
    oldest: &'static str,
}

impl Section {
    /// A section with the same address in all revisions, or the URL of another document.
    pub const fn new(page: &'static str) -> Self {
        Self { modern: page, legacy: page, oldest: page }
    }

    /// A section with addresses for 2026-07-28 and for the revisions before it.
    pub const fn moved(modern: &'static str, legacy: &'static str) -> Self {
        Self { modern, legacy, oldest: legacy }
    }

    /// Sets the address in 2024-11-05.
    pub const fn in_2024(self, oldest: &'static str) -> Self {
        Self { oldest, ..self }
    }

    /// Returns the URL of the section in a revision.
    pub fn url(self, revision: Revision) -> String {
        let page = match revision {
            Revision::V2026_07_28 => self.modern,
            Revision::V2024_11_05 => self.oldest,
            _ => self.legacy,
        };
        match page.starts_with("https://") {
            true => page.to_owned(),
            false => format!("https://modelcontextprotocol.io/specification/{revision}/{page}"),
        }
    }
}

/// Sections that several areas name.
pub mod sections {
    use super::Section;

    pub const MESSAGES: Section = Section::new("basic#messages").in_2024("basic/messages");
    pub const RESPONSES: Section =
        Section::new("basic#responses").in_2024("basic/messages#responses");
    pub const NOTIFICATIONS: Section =
        Section::new("basic#notifications").in_2024("basic/messages#notifications");
    pub const JSON_RPC_ERRORS: Section =
        Section::new("https://www.jsonrpc.org/specification#error_object");
    pub const STDIO: Section = Section::moved("basic/transports/stdio", "basic/transports#stdio");
    pub const HTTP_SENDING: Section = Section::moved(
        "basic/transports/streamable-http#sending-messages",
        "basic/transports#sending-messages-to-the-server",
    );
    pub const HTTP_SECURITY: Section = Section::moved(
        "basic/transports/streamable-http#security-&-endpoint",
        "basic/transports#security-warning",
    );
    pub const INITIALIZATION: Section =
        Section::moved("server/discover#response", "basic/lifecycle#initialization");
    pub const META: Section = Section::new("basic#_meta");
    pub const HOSTS: Section = Section::new(
        "https://github.com/gudgeon-mcp/gudgeon/blob/main/docs/command-line.md#rules-of-known-hosts",
    );
}
