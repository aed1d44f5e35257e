//! The command that starts the file of a server from anywhere: absolute paths, and the interpreter of its project.

use std::{
    env,
    path::{Path, PathBuf},
};

use super::{Entry, Environment};
use crate::{
    failure::Failure,
    files::{read, trust},
    target::{FileTarget, interpreter, is_script},
};

/// Names of files that say nothing about the server in them.
const COMMON_NAMES: [&str; 7] = ["server", "main", "index", "app", "__main__", "mcp", "src"];
/// Programs whose first argument is the package that they run.
const RUNNERS: [&str; 6] = ["npx", "uvx", "bunx", "pnpx", "pipx", "uv"];
const LONGEST_NAME: usize = 64;

/// Returns the command that runs a file of a server. Errors if its suffix is of no known language, or if there is no
/// interpreter for it.
pub fn of_file(path: &Path, environment: &Environment) -> Result<Entry, Failure> {
    let path = absolute(path, environment);
    let suffix = path.extension().and_then(|suffix| suffix.to_str()).unwrap_or_default();
    let mut words = match suffix {
        "py" => python(&path, environment)?,
        "js" | "mjs" | "cjs" => vec![needed("node", "https://nodejs.org", environment)?],
        "ts" | "mts" | "cts" => typescript(&path, environment)?,
        _ => {
            let message =
                format!("{}: the suffix names no language that gudgeon runs", path.display());
            let hint =
                "it may be .py, .js, .mjs, .cjs, .ts, .mts or .cts; or give the command after `--`";
            return Err(Failure::usage(message).with_hint(hint));
        }
    };
    words.push(path);
    of_words(&words)
}

/// Returns whether a file looks like a program that serves, instead of one that only defines a server. Where that is wrong, the
/// user sees it when the host starts the server, and can give the command after `--`.
pub fn serves_itself(path: &Path) -> bool {
    let Ok(text) = read::small(path) else { return true };
    let text = String::from_utf8_lossy(&text);
    let is_python = path.extension().is_some_and(|suffix| suffix == "py");
    let calls: &[&str] = match is_python {
        true => &["__main__", ".run", "run(", "main("],
        false => &[".run(", ".connect(", ".listen(", "serve", "main("],
    };
    calls.iter().any(|call| text.contains(call))
}

/// Returns the command by which this program serves a file that only defines a server, one of the servers of a file, or that
/// of a module, which is found in the current folder. Errors if the module is not found.
pub fn of_run(file: &FileTarget, environment: &Environment) -> Result<Entry, Failure> {
    let mut words = vec![env::current_exe()?, "run".into()];
    if file.is_module() {
        file.find_module()?;
        words.extend(["--directory".into(), environment.folder.clone(), file.to_string().into()]);
    } else {
        let mut place = absolute(file.path(), environment).into_os_string();
        if let Some(name) = file.name() {
            place.push(":");
            place.push(name);
        }
        words.push(place.into());
    }
    let mut entry = of_words(&words)?;
    // Hosts do not know the virtual environment that is active now.
    if let Entry::Command { environment: variables, .. } = &mut entry
        && file.is_python()
        && let Some(active) = active(environment)
        && environment.python_in(&active).is_some()
        && let Some(active) = active.to_str()
    {
        variables.push(("VIRTUAL_ENV".to_owned(), active.to_owned()));
    }
    Ok(entry)
}

/// Returns the command of words that were given after `--`. A program or a file that is named by a relative path is named
/// by an absolute one, because hosts start servers in other folders.
pub fn of_command<T: AsRef<std::ffi::OsStr>>(
    words: &[T],
    environment: &Environment,
) -> Result<Entry, Failure> {
    let words = words.iter().enumerate().map(|(index, word)| {
        let path = Path::new(word.as_ref());
        let is_path = index == 0 && path.components().count() > 1
            || index > 0 && path.is_relative() && environment.folder.join(path).is_file();
        if is_path { absolute(path, environment) } else { path.to_path_buf() }
    });
    of_words(&words.collect::<Vec<_>>())
}

/// Returns a name for one of the servers of a file or a module, if the user gives none: that of its variable, of the file or
/// module, or of a folder, whichever is the first that says something.
pub fn name_of(file: &FileTarget, environment: &Environment) -> String {
    let text = file.to_string();
    let (words, place): (Vec<&str>, _) = match file.is_module() {
        true => (text.split([':', '.']).collect(), environment.folder.clone()),
        false => (
            file.name().into_iter().collect(),
            absolute(file.path(), environment).with_extension(""),
        ),
    };
    let places = place.ancestors().filter_map(|folder| folder.file_name()?.to_str());
    let mut names = words.into_iter().rev().chain(places);
    cleaned(names.find(|name| !COMMON_NAMES.contains(name)).unwrap_or_default())
}

/// Returns a name for the server, if the user gives none.
pub fn name(entry: &Entry) -> String {
    let name = match entry {
        Entry::Url { url, .. } => {
            let rest = url.split_once("://").map_or(url.as_str(), |parts| parts.1);
            let authority = rest.split(['/', '?']).next().unwrap_or_default();
            authority.rsplit('@').next().unwrap_or_default().to_owned()
        }
        Entry::Command { program, arguments, .. } => {
            let stem = |path: &str| {
                Path::new(path).file_stem().unwrap_or_default().to_string_lossy().into_owned()
            };
            let runs_package = RUNNERS.contains(&stem(program).as_str());
            let is_file =
                |path: &&String| Path::new(path).is_absolute() && Path::new(path).is_file();
            if let Some(file) = arguments.iter().rev().find(is_file) {
                let parents = Path::new(file).ancestors().skip(1);
                let folders =
                    parents.filter_map(|folder| folder.file_name()?.to_str().map(str::to_owned));
                let mut names = std::iter::once(stem(file)).chain(folders);
                names.find(|name| !COMMON_NAMES.contains(&name.as_str())).unwrap_or_default()
            } else if runs_package
                && let Some(package) = arguments
                    .iter()
                    .find(|argument| !argument.starts_with('-') && *argument != "run")
            {
                // Without the scope and the version of a package.
                let package = package.rsplit('/').next().unwrap_or_default();
                package.split(['@', '=', '[']).next().unwrap_or_default().to_owned()
            } else {
                stem(program)
            }
        }
    };
    cleaned(&name)
}

/// Returns a name that every host accepts.
fn cleaned(name: &str) -> String {
    let name: String = name
        .chars()
        .map(|letter| if is_name_character(letter) { letter } else { '-' })
        .take(LONGEST_NAME)
        .collect();
    match name.trim_matches('-') {
        "" => "server".to_owned(),
        name => name.to_owned(),
    }
}

/// Errors if a name has characters that some host refuses.
pub fn check_name(name: &str) -> Result<(), Failure> {
    if !name.is_empty() && name.len() <= LONGEST_NAME && name.chars().all(is_name_character) {
        return Ok(());
    }
    let message = format!("{name:?} is not the name of a server");
    Err(Failure::usage(message).with_hint("hosts accept up to 64 letters, digits, \"-\" and \"_\""))
}

fn is_name_character(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '-' | '_')
}

fn python(path: &Path, environment: &Environment) -> Result<Vec<PathBuf>, Failure> {
    let uv = environment.program("uv");
    if let Some(uv) = &uv
        && is_script(path)
    {
        return Ok(vec![uv.clone(), "run".into(), "--script".into()]);
    }
    if let Some(python) = active(environment).and_then(|folder| environment.python_in(&folder)) {
        return Ok(vec![python]);
    }
    for folder in path.ancestors().skip(1) {
        if let Some(python) = environment.python_in(&folder.join(".venv"))
            && let Ok(below) = python.strip_prefix(folder)
            && trust::has(folder, &[below])
        {
            return Ok(vec![python]);
        }
        if let Some(uv) = &uv
            && trust::has(folder, &interpreter::UV_FILES.map(Path::new))
        {
            return Ok(vec![
                uv.clone(),
                "run".into(),
                "--project".into(),
                folder.into(),
                "python".into(),
            ]);
        }
    }
    let python = environment.program("python3").or_else(|| environment.program("python"));
    python.map(|python| vec![python]).ok_or_else(|| missing("python3", "https://www.python.org"))
}

/// Returns the folder of the virtual environment that is active.
fn active(environment: &Environment) -> Option<PathBuf> {
    environment.variable("VIRTUAL_ENV").map(|folder| absolute(Path::new(&folder), environment))
}

fn typescript(path: &Path, environment: &Environment) -> Result<Vec<PathBuf>, Failure> {
    for folder in path.ancestors().skip(1) {
        let tsx = Path::new("node_modules/.bin/tsx");
        if trust::has(folder, &[tsx]) {
            return Ok(vec![folder.join(tsx)]);
        }
    }
    if let Some(tsx) = environment.program("tsx") {
        return Ok(vec![tsx]);
    }
    let node = needed("node", "https://nodejs.org", environment)?;
    // Such versions of Node run TypeScript whose types can be left out.
    if interpreter::node_version(&node).is_some_and(interpreter::strips_types) {
        return Ok(vec![node]);
    }
    let message = format!("{}: this version of Node does not run TypeScript", path.display());
    Err(Failure::usage(message)
        .with_hint("install Node 22.18 or later, or `npm install --save-dev tsx`"))
}

fn needed(program: &str, home: &str, environment: &Environment) -> Result<PathBuf, Failure> {
    environment.program(program).ok_or_else(|| missing(program, home))
}

fn missing(program: &str, home: &str) -> Failure {
    let message = format!("there is no program {program:?} in the folders of PATH");
    Failure::usage(message)
        .with_hint(format!("install it ({home}), or give the command after `--`"))
}

fn of_words(words: &[PathBuf]) -> Result<Entry, Failure> {
    let mut texts = words.iter().map(|word| {
        word.to_str().map(str::to_owned).ok_or_else(|| {
            Failure::usage(format!("{}: a configuration holds names in UTF-8 only", word.display()))
        })
    });
    let program = texts.next().ok_or_else(|| Failure::usage("the command is empty"))??;
    Ok(Entry::command(program, texts.collect::<Result<Vec<_>, _>>()?))
}

/// Returns the absolute path, with links as they are: the interpreter of a virtual environment is one.
fn absolute(path: &Path, environment: &Environment) -> PathBuf {
    let path = environment.folder.join(path);
    std::path::absolute(&path).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(program: &str, arguments: &[&str]) -> Entry {
        Entry::command(program, arguments.iter().copied())
    }

    #[test]
    fn a_server_is_named_after_its_package_or_host() {
        for (entry, expected) in [
            (
                command("npx", &["-y", "@modelcontextprotocol/server-everything@1.0", "/tmp"]),
                "server-everything",
            ),
            (command("/usr/bin/uvx", &["mcp-server-time[x]==2"]), "mcp-server-time"),
            (command("/opt/shelf.bin", &["--stdio"]), "shelf"),
            (command("..", &[]), "server"),
            (
                Entry::Url {
                    url: "https://me@mcp.example.com:8000/mcp?k=v".into(),
                    headers: vec![],
                },
                "mcp-example-com-8000",
            ),
        ] {
            assert_eq!(name(&entry), expected);
            assert!(check_name(&name(&entry)).is_ok());
        }
        assert!(check_name("a b").is_err() && check_name("").is_err());
    }

    #[test]
    fn files_that_serve_themselves_are_programs() {
        let folder = env::temp_dir();
        for (suffix, text, expected) in [
            ("py", "app = Server('a')\napp.run()", true),
            ("py", "if __name__ == '__main__':\n    main()", true),
            ("py", "from gudgeon import Server\napp = Server('a')", false),
            ("mjs", "await app.run();", true),
            ("ts", "await server.connect(transport);", true),
            ("ts", "export const app = new Server(\"a\");", false),
        ] {
            let path = folder.join(format!("gudgeon-launch-{}.{suffix}", std::process::id()));
            std::fs::write(&path, text).unwrap();
            assert_eq!(serves_itself(&path), expected, "{text}");
            std::fs::remove_file(&path).unwrap();
        }
        assert!(serves_itself(Path::new("/no/such/file.py")));
    }
}
