//! Signs of a server in the text of a file, which is not run.

use std::path::Path;

use crate::{failure::Failure, files::read};

/// Parts of the names in programs that serve: libraries, their classes, and the input of a server without a library.
const PARTS: [&str; 4] = ["gudgeon", "mcp", "server", "stdin"];
/// Modules of Python that define no server. A file that imports another module may get its server from there.
const STANDARD: [&str; 24] = [
    "__future__",
    "argparse",
    "asyncio",
    "collections",
    "csv",
    "dataclasses",
    "datetime",
    "enum",
    "functools",
    "itertools",
    "json",
    "logging",
    "math",
    "os",
    "pathlib",
    "random",
    "re",
    "shutil",
    "string",
    "subprocess",
    "sys",
    "tempfile",
    "time",
    "typing",
];

/// Errors if nothing in a file points to a server. A file that can't be read, or is large, passes.
pub fn check(path: &Path) -> Result<(), Failure> {
    let Ok(text) = read::small(path) else { return Ok(()) };
    let is_python = path.extension().is_some_and(|suffix| suffix == "py");
    if has_sign(&String::from_utf8_lossy(&text), is_python) {
        return Ok(());
    }
    let define = match is_python {
        true => "app = gudgeon.Server(\"name\")",
        false => "export const app = new Server(\"name\")",
    };
    let message = format!(
        "there is no server in {}: it neither defines nor runs one, and imports no library that could",
        path.display()
    );
    Err(Failure::usage(message).with_hint(format!(
        "define one, as in `{define}`; if the file is a server nevertheless, give its command after `--`"
    )))
}

fn has_sign(text: &str, is_python: bool) -> bool {
    let text = text.to_lowercase();
    let mut names = text.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    names.any(|name| name == "app" || PARTS.iter().any(|part| name.contains(part)))
        || text.lines().any(|line| imports_other_code(line, is_python))
}

/// Returns whether a line imports code that is not part of the language.
fn imports_other_code(line: &str, is_python: bool) -> bool {
    if is_python {
        let mut words = line.split([' ', ',', '.']).filter(|word| !word.is_empty());
        return match (words.next(), words.next()) {
            (Some("from"), None) => true,
            (Some("from" | "import"), Some(module)) => !STANDARD.contains(&module),
            _ => false,
        };
    }
    let is_import =
        ["import ", "from ", "import(", "require("].iter().any(|word| line.contains(word));
    is_import && !line.contains("\"node:") && !line.contains("'node:")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_without_any_sign_are_no_servers() {
        for (text, is_python) in [
            ("x = 1\n", true),
            ("import os, sys\nprint('hello')\nhappy = []\nhappy.append(1)\n", true),
            ("from pathlib import Path\n\ndef main():\n    pass\n\nmain()\n", true),
            ("import { readFile } from \"node:fs\";\nconsole.log(await readFile('a'));\n", false),
            ("export const x = 1;\n", false),
        ] {
            assert!(!has_sign(text, is_python), "{text}");
        }
    }

    #[test]
    fn whatever_may_serve_has_a_sign() {
        for (text, is_python) in [
            ("from mcp.server.fastmcp import FastMCP\n", true),
            ("from shop import app\n", true),
            ("from shop.cli import main\nmain()\n", true),
            ("from . import main\nmain()\n", true),
            ("import json, sys\nfor line in sys.stdin: ...\n", true),
            ("app.run()\n", true),
            ("import { main } from \"./shop.js\";\nmain();\n", false),
            ("const { Server } = require('gudgeon');\n", false),
            ("process.stdin.on('data', answer);\n", false),
        ] {
            assert!(has_sign(text, is_python), "{text}");
        }
    }
}
