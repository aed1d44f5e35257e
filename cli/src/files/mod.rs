//! Files that the command reads and writes on its own: configurations, scripts, and what it generates.
//!
//! Those of a project may have been made by somebody else, such as the author of a repository: no link is followed in them.

#[cfg(unix)]
mod folder;
#[cfg(not(unix))]
#[path = "folder_by_path.rs"]
mod folder;
pub mod read;
pub mod trust;
pub mod write;

use std::{
    env,
    ffi::{OsStr, OsString},
    io,
    path::{Component, Path, PathBuf},
};

use self::folder::Folder;

/// The treatment of a folder that does not exist.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum IfMissing {
    Make,
    Error,
}

/// Opens a folder that the command line names. Below the current folder no symbolic link is followed: a repository could have it.
pub fn folder(path: &Path, missing: IfMissing) -> io::Result<Folder> {
    let current = env::current_dir()?;
    let path = path.strip_prefix(&current).unwrap_or(path);
    if path.is_absolute() {
        if missing == IfMissing::Make {
            std::fs::create_dir_all(path)?;
        }
        return Folder::open(path);
    }
    let is_above = |part: &Component<'_>| matches!(part, Component::CurDir | Component::ParentDir);
    let above: PathBuf = path.components().take_while(is_above).collect();
    let mut folder = Folder::open(&above)?;
    for part in path.components().skip_while(is_above) {
        folder = inner(&folder, part.as_os_str(), missing)?;
    }
    Ok(folder)
}

/// Returns the folder of a file that the command line names, and the name of the file.
fn named(path: &Path) -> io::Result<(Folder, &OsStr)> {
    let name = path.file_name().ok_or_else(|| io::Error::other("it is the path of a folder"))?;
    Ok((folder(path.parent().unwrap_or(Path::new("")), IfMissing::Error)?, name))
}

/// Returns the folder of a project's file, and the name of the file. Errors if the path leads out of the project, through a
/// symbolic link, or through a folder that another user may have written.
fn in_project(project: &Path, path: &Path, missing: IfMissing) -> io::Result<(Folder, OsString)> {
    let below = path.strip_prefix(project).map_err(|_| outside(path))?;
    let name = below.file_name().ok_or_else(|| outside(path))?;
    let mut folder = Folder::open(project)?;
    for part in below.parent().unwrap_or(Path::new("")).components() {
        let Component::Normal(part) = part else { return Err(outside(path)) };
        let place = folder.path_of(part);
        folder = inner(&folder, part, missing)?;
        trust::check(&place, &folder.metadata()?)?;
    }
    Ok((folder, name.to_owned()))
}

fn inner(folder: &Folder, name: &OsStr, missing: IfMissing) -> io::Result<Folder> {
    match missing {
        IfMissing::Make => folder.inner_made(name),
        IfMissing::Error => folder.inner(name),
    }
}

fn link(path: &Path) -> io::Error {
    let message = format!(
        "{} is a symbolic link, which is not followed here; give the path that it leads to",
        path.display()
    );
    io::Error::other(message)
}

fn outside(path: &Path) -> io::Error {
    io::Error::other(format!("{} is outside the project", path.display()))
}
