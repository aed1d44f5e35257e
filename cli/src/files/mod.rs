//! Files that the command reads and writes on its own: configurations, scripts, and what it generates.
//!
//! Those of a project may have been made by somebody else, such as the author of a repository: no link is followed in them.

pub mod read;
pub mod trust;
pub mod write;

use std::{
    io,
    path::{Component, Path, PathBuf},
};

/// Errors if a path leads out of a project, or through a symbolic link in it. Parts of it may be missing.
fn check_inside(project: &Path, path: &Path) -> io::Result<()> {
    let below = path.strip_prefix(project).map_err(|_| outside(path))?;
    let mut place = PathBuf::from(project);
    for part in below.components() {
        let Component::Normal(part) = part else { return Err(outside(path)) };
        place.push(part);
        match place.symlink_metadata() {
            Ok(found) if found.is_symlink() => {
                let message = format!(
                    "{} is a symbolic link, which is not followed in a project",
                    place.display()
                );
                return Err(io::Error::other(message));
            }
            Ok(_) => (),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn outside(path: &Path) -> io::Error {
    io::Error::other(format!("{} is outside the project", path.display()))
}
