//! Writes of files that are complete or not made, with a backup of the file before.

use std::{
    ffi::{OsStr, OsString},
    fs::{self, File, OpenOptions, Permissions},
    io::{self, Write as _},
    path::{Path, PathBuf},
    process,
};

use super::{Folder, IfMissing, in_project, named, read, trust};
use crate::failure::{Failure, FailureKind};

/// The mode of a configuration that did not exist: it may hold secrets.
const PRIVATE: u32 = 0o600;
/// The mode of a generated file; the user's settings take permissions away from it.
pub const USUAL: u32 = 0o666;

/// Replaces the content of a configuration file, or creates it with its folders. Returns the path of the backup, if there was a
/// file. Errors if the file was changed since `old` was read.
///
/// In a project nothing is written through a symbolic link, and no file is replaced that another user may have written: it would be
/// one of this user's then, whose servers are started. Elsewhere a link stays, and the file that it names is replaced.
pub fn replace(
    path: &Path,
    project: Option<&Path>,
    old: Option<&str>,
    text: &str,
) -> Result<Option<PathBuf>, Failure> {
    exchange(path, project, old, text).map_err(|error| {
        let message = format!("{}: the file cannot be written: {error}", path.display());
        let failure = Failure::new(FailureKind::File, message);
        match error.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => failure
                .with_hint("nothing was changed; run the command as the owner of this folder"),
            _ => failure.with_hint("nothing was changed"),
        }
    })
}

/// Opens a file that messages are added to, and that can be read as well. Only the user may read a new one: messages may contain
/// secrets. Errors if it is a symbolic link, or if another user may have made it.
pub fn appended(path: &Path) -> io::Result<File> {
    let (folder, name) = named(path)?;
    let file = folder.append(name, PRIVATE)?;
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    trust::check(path, &found)?;
    Ok(file)
}

/// Writes a file that does not exist yet, and that only the user can read.
pub fn private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let (folder, name) = named(path)?;
    folder.create(name, PRIVATE)?.write_all(bytes)
}

/// Writes a file of this program, which only the user can read, in place of the one that was there. Makes its folders.
pub fn own(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let (folder, name) = of_user(path)?;
    place(&folder, &name, bytes, PRIVATE, None)
}

/// Writes a generated file in place of the one that was there. Errors if that is a symbolic link. A terminal, a pipe or a device
/// stays, and the bytes are written to it.
pub fn whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // Such as /dev/stdout, which is a link.
    if path.is_absolute() && path.metadata().is_ok_and(|found| !found.is_file()) {
        return OpenOptions::new().write(true).open(path)?.write_all(bytes);
    }
    let (folder, name) = named(path)?;
    let permissions = match folder.read(name) {
        Ok(file) => match file.metadata()? {
            found if found.is_file() => Some(found.permissions()),
            _ => return folder.write(name)?.write_all(bytes),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    place(&folder, name, bytes, USUAL, permissions)
}

fn exchange(
    path: &Path,
    project: Option<&Path>,
    old: Option<&str>,
    text: &str,
) -> io::Result<Option<PathBuf>> {
    let (folder, name) = match project {
        Some(project) => in_project(project, path, IfMissing::Make)?,
        None => match path.canonicalize() {
            Ok(path) => of_user(&path)?,
            // A new file, or a symbolic link to one.
            Err(error) if error.kind() == io::ErrorKind::NotFound => of_user(&link_target(path)?)?,
            Err(error) => return Err(error),
        },
    };
    let file = match folder.read(&name) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            place(&folder, &name, text.as_bytes(), PRIVATE, None)?;
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    let before = file.metadata()?;
    let current = match project {
        Some(_) => {
            trust::check(path, &before)?;
            read::small_open(file)?
        }
        None => read::all(file, read::MAX_CONFIGURATION)?,
    };
    if old.is_none_or(|old| old.as_bytes() != current) {
        return Err(io::Error::other("it was changed by another program; repeat the command"));
    }
    let backup = format!("{}.gudgeon.bak", name.to_string_lossy());
    let backup = OsStr::new(&backup);
    place(&folder, backup, &current, PRIVATE, Some(before.permissions()))?;
    place(&folder, &name, text.as_bytes(), PRIVATE, Some(before.permissions()))?;
    Ok(Some(folder.path_of(backup)))
}

/// Returns the folder of a file of the user's own, which is made if it is missing, and the name of the file.
fn of_user(path: &Path) -> io::Result<(Folder, OsString)> {
    let name = path.file_name().ok_or_else(|| io::Error::other("it is the path of a folder"))?;
    let parent = path.parent().unwrap_or(Path::new(""));
    fs::create_dir_all(parent)?;
    Ok((Folder::open(parent)?, name.to_owned()))
}

/// Makes a new file and gives it the name: what had the name before, such as a symbolic link, is replaced and not written to.
/// Without permissions, the file gets those of a new one, `mode`.
fn place(
    folder: &Folder,
    name: &OsStr,
    bytes: &[u8],
    mode: u32,
    permissions: Option<Permissions>,
) -> io::Result<()> {
    let new = format!(".{}.{}.tmp", name.to_string_lossy(), process::id());
    let new = OsStr::new(&new);
    let mut file = folder.create(new, mode)?;
    let written = file
        .write_all(bytes)
        .and_then(|()| permissions.map_or(Ok(()), |given| file.set_permissions(given)))
        .and_then(|()| file.sync_all())
        .and_then(|()| folder.rename(new, name));
    if written.is_err() {
        // The file itself is untouched; a rest of a failed write is of no use.
        let _ = folder.remove(new);
    }
    written
}

/// Returns the path that a symbolic link to a missing file names, or the path itself.
fn link_target(path: &Path) -> io::Result<PathBuf> {
    match fs::read_link(path) {
        Ok(target) => Ok(path.parent().unwrap_or(Path::new(".")).join(target)),
        Err(error)
            if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::InvalidInput) =>
        {
            Ok(path.to_path_buf())
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("gudgeon-write-{}-{name}", process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn permissions_and_links_are_kept_and_a_backup_is_made() {
        let folder = folder("links");
        let (file, link) = (folder.join("real.json"), folder.join("link.json"));
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
        symlink("real.json", &link).unwrap();
        let backup = replace(&link, None, Some("old"), "new").unwrap().unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert_eq!(fs::read_to_string(&backup).unwrap(), "old");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 3);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_new_file_is_private_and_its_folders_are_made() {
        let folder = folder("new");
        let file = folder.join("a/b/mcp.json");
        assert_eq!(replace(&file, None, None, "new").unwrap(), None);
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_change_by_another_program_is_not_overwritten() {
        let folder = folder("changed");
        let file = folder.join("mcp.json");
        fs::write(&file, "theirs").unwrap();
        let error = replace(&file, None, Some("old"), "new").unwrap_err().to_string();
        assert!(error.contains("changed by another program"), "{error}");
        assert_eq!(fs::read_to_string(&file).unwrap(), "theirs");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn nothing_is_written_through_a_link_of_a_project() {
        let folder = folder("project");
        let (project, own) = (folder.join("project"), folder.join("own"));
        fs::create_dir_all(project.join("inside")).unwrap();
        fs::write(&own, "own").unwrap();
        let file = project.join("inside/mcp.json");
        fs::write(&file, "old").unwrap();
        // The backup takes the place of the link.
        symlink(&own, project.join("inside/mcp.json.gudgeon.bak")).unwrap();
        let backup = replace(&file, Some(&project), Some("old"), "new").unwrap().unwrap();
        assert_eq!(fs::read_to_string(&backup).unwrap(), "old");
        assert!(!backup.symlink_metadata().unwrap().is_symlink());
        symlink(&own, project.join("link.json")).unwrap();
        symlink(folder.join("none"), project.join("dangling.json")).unwrap();
        symlink(&folder, project.join("outside")).unwrap();
        for name in ["link.json", "dangling.json", "outside/own", "outside/new/mcp.json", "../own"]
        {
            for old in [Some("own"), None] {
                let error = replace(&project.join(name), Some(&project), old, "new").unwrap_err();
                let error = error.to_string();
                assert!(
                    error.contains("symbolic link") || error.contains("outside the project"),
                    "{name}: {error}"
                );
            }
        }
        assert_eq!(fs::read_to_string(&own).unwrap(), "own");
        assert!(!folder.join("none").exists() && !folder.join("new").exists());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn folders_that_others_may_write_are_not_used() {
        let project = folder("shared");
        let path = project.join("a/b/mcp.json");
        fs::create_dir_all(project.join("a/b")).unwrap();
        fs::set_permissions(project.join("a"), Permissions::from_mode(0o777)).unwrap();
        let error = in_project(&project, &path, IfMissing::Make).unwrap_err().to_string();
        assert!(error.contains("/a may be written by other users"), "{error}");
        fs::set_permissions(project.join("a"), Permissions::from_mode(0o755)).unwrap();
        in_project(&project, &path, IfMissing::Make).unwrap();
        fs::remove_dir_all(project).unwrap();
    }

    #[test]
    fn a_file_that_others_may_have_written_does_not_become_the_users_own() {
        let project = folder("foreign");
        fs::create_dir_all(&project).unwrap();
        let file = project.join("mcp.json");
        fs::write(&file, "old").unwrap();
        let refused = |reason: &str| {
            let error = replace(&file, Some(&project), Some("old"), "new").unwrap_err();
            assert!(error.to_string().contains(reason), "{error}");
            assert_eq!(fs::read_to_string(&file).unwrap(), "old");
        };
        fs::set_permissions(&file, Permissions::from_mode(0o666)).unwrap();
        refused("may be written by other users");
        fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
        // Only root can give a file to somebody else.
        if rustix::process::getuid().is_root() {
            std::os::unix::fs::chown(&file, Some(65_534), None).unwrap();
            refused("belongs to the user 65534");
            std::os::unix::fs::chown(&file, Some(0), None).unwrap();
        }
        replace(&file, Some(&project), Some("old"), "new").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        fs::remove_dir_all(project).unwrap();
    }

    #[test]
    fn a_folder_that_becomes_a_link_leads_nowhere_else() {
        let folder = folder("swapped");
        let (project, own) = (folder.join("project"), folder.join("own"));
        fs::create_dir_all(project.join("inside")).unwrap();
        fs::create_dir_all(&own).unwrap();
        fs::write(project.join("inside/mcp.json"), "old").unwrap();
        let path = project.join("inside/mcp.json");
        let (inside, name) = in_project(&project, &path, IfMissing::Make).unwrap();
        fs::rename(project.join("inside"), project.join("moved")).unwrap();
        symlink(&own, project.join("inside")).unwrap();
        place(&inside, &name, b"new", PRIVATE, None).unwrap();
        assert_eq!(fs::read_dir(&own).unwrap().count(), 0);
        assert_eq!(fs::read_to_string(project.join("moved/mcp.json")).unwrap(), "new");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_generated_file_replaces_another_and_no_link() {
        let folder = folder("generated");
        let (file, link) = (folder.join("types.py"), folder.join("link.py"));
        whole(&file, b"old").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
        whole(&file, b"new").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
        for target in ["types.py", "none"] {
            symlink(target, &link).unwrap();
            let error = whole(&link, b"x").unwrap_err().to_string();
            assert!(error.contains("symbolic link"), "{error}");
            fs::remove_file(&link).unwrap();
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        whole(Path::new("/dev/null"), b"x").unwrap();
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        fs::remove_dir_all(folder).unwrap();
    }
}
