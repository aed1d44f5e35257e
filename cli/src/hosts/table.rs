//! The table of hosts.
//!
//! Paths and members are those of the hosts' own documentation, as of November 2026: Claude Desktop and Claude Code
//! (docs.claude.com), Cursor (cursor.com/docs/mcp), VS Code (code.visualstudio.com, "MCP configuration reference"), Codex
//! (developers.openai.com/codex/mcp), Gemini CLI (docs/tools/mcp-server.md), Windsurf (docs.windsurf.com), Zed
//! (zed.dev/docs/ai/mcp), Cline (docs.cline.bot), Copilot CLI (docs.github.com), Kiro (kiro.dev/docs/mcp/configuration), LM
//! Studio (lmstudio.ai/docs/app/mcp).

use gudgeon::client::configuration::Notation;

use super::location::Location;

/// A host and the form of its configuration.
#[derive(Debug)]
pub struct Host {
    /// The name on the command line.
    pub name: &'static str,
    /// The name that users know.
    pub title: &'static str,
    pub syntax: Syntax,
    /// The member of the file that holds the servers by name.
    pub servers: &'static str,
    /// The file of the user.
    pub user: Location,
    /// The file of a project, relative to its folder.
    pub project: Option<&'static str>,
    /// The value of `type` in the entry of a command.
    pub command_type: Option<&'static str>,
    /// The entry of a URL; `None` if the file takes commands only.
    pub url: Option<UrlEntry>,
    /// Members that every entry needs beside those of the server, as JSON.
    pub extra: &'static str,
    /// `true` if the entry of a command may name a file with variables, in the member `envFile`.
    pub env_file: bool,
    /// The syntax by which strings of an entry refer to variables.
    pub notation: Notation,
    /// The step by which a user makes the host read the file again.
    pub reload: &'static str,
}

/// The members of the entry of a URL.
#[derive(Debug)]
pub struct UrlEntry {
    pub kind: Option<&'static str>,
    pub url: &'static str,
    pub headers: &'static str,
}

/// The syntax of a configuration file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Syntax {
    Json,
    JsonWithComments,
    Toml,
}

impl Host {
    /// Returns the host of this name.
    pub fn find(name: &str) -> Option<&'static Self> {
        HOSTS.iter().find(|host| host.name == name)
    }
}

const URL: UrlEntry = UrlEntry { kind: None, url: "url", headers: "headers" };

/// The most common form; the rows below name their differences.
const COMMON: Host = Host {
    name: "",
    title: "",
    syntax: Syntax::JsonWithComments,
    servers: "mcpServers",
    user: Location::home(""),
    project: None,
    command_type: None,
    url: Some(URL),
    extra: "{}",
    env_file: false,
    notation: Notation::None,
    reload: "",
};

const CLINE: Host = Host {
    url: Some(UrlEntry { kind: Some("streamableHttp"), ..URL }),
    reload: "Cline reads the file again by itself",
    ..COMMON
};

pub const HOSTS: &[Host] = &[
    Host {
        name: "claude-desktop",
        title: "Claude Desktop",
        syntax: Syntax::Json,
        user: Location::application("Claude/claude_desktop_config.json"),
        // Remote servers are added as connectors, in the settings of the application.
        url: None,
        reload: "restart Claude Desktop",
        ..COMMON
    },
    Host {
        name: "claude-code",
        title: "Claude Code",
        syntax: Syntax::Json,
        user: Location::home(".claude.json").or_folder("CLAUDE_CONFIG_DIR", ".claude.json"),
        project: Some(".mcp.json"),
        command_type: Some("stdio"),
        url: Some(UrlEntry { kind: Some("http"), ..URL }),
        notation: Notation::Shell,
        reload: "start Claude Code again",
        ..COMMON
    },
    Host {
        name: "cursor",
        title: "Cursor",
        user: Location::home(".cursor/mcp.json"),
        project: Some(".cursor/mcp.json"),
        env_file: true,
        notation: Notation::Editor,
        reload: "enable the server in Cursor's settings, under MCP",
        ..COMMON
    },
    Host {
        name: "vscode",
        title: "VS Code",
        servers: "servers",
        user: Location::application("Code/User/mcp.json"),
        project: Some(".vscode/mcp.json"),
        command_type: Some("stdio"),
        url: Some(UrlEntry { kind: Some("http"), ..URL }),
        env_file: true,
        notation: Notation::Editor,
        reload: "start the server with the command \"MCP: List Servers\" of VS Code",
        ..COMMON
    },
    Host {
        name: "codex",
        title: "Codex",
        syntax: Syntax::Toml,
        servers: "mcp_servers",
        user: Location::home(".codex/config.toml").or_folder("CODEX_HOME", "config.toml"),
        project: Some(".codex/config.toml"),
        url: Some(UrlEntry { headers: "http_headers", ..URL }),
        notation: Notation::Headers,
        reload: "start Codex again",
        ..COMMON
    },
    Host {
        name: "gemini",
        title: "Gemini CLI",
        user: Location::home(".gemini/settings.json"),
        project: Some(".gemini/settings.json"),
        // Its member "url" is an address of the older transport with server-sent events.
        url: Some(UrlEntry { url: "httpUrl", ..URL }),
        notation: Notation::Shell,
        reload: "start Gemini CLI again",
        ..COMMON
    },
    Host {
        name: "windsurf",
        title: "Windsurf",
        user: Location::home(".codeium/windsurf/mcp_config.json"),
        url: Some(UrlEntry { url: "serverUrl", ..URL }),
        notation: Notation::Editor,
        reload: "press Refresh in Windsurf's list of MCP servers",
        ..COMMON
    },
    Host {
        name: "zed",
        title: "Zed",
        servers: "context_servers",
        user: Location::configuration("zed/settings.json"),
        project: Some(".zed/settings.json"),
        reload: "Zed reads the file again by itself",
        ..COMMON
    },
    Host {
        name: "cline",
        title: "Cline in VS Code",
        user: Location::application(
            "Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
        ),
        ..CLINE
    },
    Host {
        name: "cline-cli",
        title: "Cline CLI",
        user: Location::home(".cline/data/settings/cline_mcp_settings.json")
            .or_file("CLINE_MCP_SETTINGS_PATH"),
        ..CLINE
    },
    Host {
        name: "copilot-cli",
        title: "GitHub Copilot CLI",
        user: Location::home(".copilot/mcp-config.json")
            .or_folder("COPILOT_HOME", "mcp-config.json"),
        command_type: Some("local"),
        url: Some(UrlEntry { kind: Some("http"), ..URL }),
        extra: r#"{"tools": ["*"]}"#,
        notation: Notation::Shell,
        reload: "start Copilot CLI again",
        ..COMMON
    },
    Host {
        name: "kiro",
        title: "Kiro",
        user: Location::home(".kiro/settings/mcp.json"),
        project: Some(".kiro/settings/mcp.json"),
        notation: Notation::Shell,
        reload: "Kiro reads the file again by itself",
        ..COMMON
    },
    Host {
        name: "lm-studio",
        title: "LM Studio",
        user: Location::home(".lmstudio/mcp.json"),
        reload: "LM Studio reads the file again by itself",
        ..COMMON
    },
];

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_are_unique_and_every_row_is_complete() {
        let names: HashSet<_> = HOSTS.iter().map(|host| host.name).collect();
        assert_eq!(names.len(), HOSTS.len());
        for host in HOSTS {
            assert!(!host.title.is_empty() && !host.reload.is_empty(), "{}", host.name);
            assert!(!host.name.contains(':'), "a name is followed by a colon in targets");
            assert!(serde_json::from_str::<serde_json::Value>(host.extra).unwrap().is_object());
        }
    }
}
