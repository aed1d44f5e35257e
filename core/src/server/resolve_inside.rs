//! Paths that clients give, resolved inside a folder.

use std::{
    io,
    path::{Path, PathBuf},
};

use super::ToolError;
use crate::router::leaves_folder;

/// Returns the real path of a file in the folder `root`, for a path relative to it that a client gave.
///
/// Call it before a handler opens, writes or lists what an argument names. The path uses `/` on every system. It need not
/// exist, so a handler can create the file. The check is made once: in a folder where others replace directories by
/// symbolic links at the same time, it does not protect.
///
/// ```
/// # fn main() -> Result<(), gudgeon::ToolError> {
/// use gudgeon::{ToolError, server::resolve_inside};
///
/// fn read_note(path: &str) -> Result<String, ToolError> {
///     Ok(std::fs::read_to_string(resolve_inside("notes", path)?)?)
/// }
/// # let folder = std::env::temp_dir();
/// assert!(resolve_inside(&folder, "../etc/passwd").is_err());
/// assert!(resolve_inside(&folder, "today.md")?.ends_with("today.md"));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// An error for the model if the path is absolute, names a drive, contains `..`, a backslash or NUL, or leads out of the
/// folder through a symbolic link. An error that only the log shows if `root` is not a folder that can be read.
pub fn resolve_inside(root: impl AsRef<Path>, path: &str) -> Result<PathBuf, ToolError> {
    resolve(root.as_ref(), path)?.map_err(ToolError::new)
}

/// Does the same for all languages: the outer error is that of `root`, the inner one is for the model.
pub fn resolve(root: &Path, path: &str) -> io::Result<Result<PathBuf, String>> {
    let root = root.canonicalize()?;
    if !root.is_dir() {
        return Err(io::Error::new(
            io::ErrorKind::NotADirectory,
            format!("{} is not a folder", root.display()),
        ));
    }
    if leaves_folder(path) {
        let fix = "give a relative path without \"..\", backslashes and drive letters";
        return Ok(Err(format!("path {path:?} leads out of the folder; {fix}")));
    }
    let mut inside = root.clone();
    for part in path.split('/').filter(|part| !matches!(*part, "" | ".")) {
        inside.push(part);
        // A path that does not exist can't lead anywhere else; opening it reports what is wrong.
        if !inside.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink()) {
            continue;
        }
        match inside.canonicalize() {
            Ok(target) if target.starts_with(&root) => inside = target,
            _ => {
                let fix = "give the path of a file inside it";
                return Ok(Err(format!(
                    "path {path:?} leads out of the folder by a symbolic link; {fix}"
                )));
            }
        }
    }
    Ok(Ok(inside))
}
