//! Writes of files that are complete or not made, with a backup of the file before.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
    process,
};

use crate::failure::{Failure, FailureKind};

/// The permissions of a file that did not exist: it may hold secrets.
#[cfg(unix)]
const PRIVATE: u32 = 0o600;

/// Replaces the content of a file, or creates it with its folders. A symbolic link stays, and the file that it names is
/// replaced. Returns the path of the backup, if there was a file. Errors if the file was changed since `old` was read.
pub fn replace(path: &Path, old: Option<&str>, text: &str) -> Result<Option<PathBuf>, Failure> {
    write(path, old, text).map_err(|it| {
        let message = format!("{}: the file cannot be written: {it}", path.display());
        let failure = Failure::new(FailureKind::File, message);
        match it.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => failure
                .with_hint("nothing was changed; run the command as the owner of this folder"),
            _ => failure.with_hint("nothing was changed"),
        }
    })
}

fn write(path: &Path, old: Option<&str>, text: &str) -> io::Result<Option<PathBuf>> {
    let path = match path.canonicalize() {
        Ok(path) => path,
        // A new file, or a symbolic link to one.
        Err(error) if error.kind() == io::ErrorKind::NotFound => link_target(path)?,
        Err(error) => return Err(error),
    };
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let temporary = folder.join(format!(".{name}.{}.tmp", process::id()));
    let written = exchange(&path, &temporary, &name, old, text);
    if written.is_err() {
        // The file itself is untouched; a rest of a failed write is of no use.
        let _ = fs::remove_file(&temporary);
    }
    written
}

fn exchange(
    path: &Path,
    temporary: &Path,
    name: &str,
    old: Option<&str>,
    text: &str,
) -> io::Result<Option<PathBuf>> {
    let mut file = create(temporary)?;
    file.write_all(text.as_bytes())?;
    let mut backup = None;
    match fs::metadata(path) {
        Ok(metadata) => {
            file.set_permissions(metadata.permissions())?;
            let current = fs::read(path)?;
            if old.is_none_or(|it| it.as_bytes() != current) {
                return Err(io::Error::other(
                    "it was changed by another program; repeat the command",
                ));
            }
            let copy = path.with_file_name(format!("{name}.gudgeon.bak"));
            fs::copy(path, &copy)?;
            backup = Some(copy);
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => (),
        Err(error) => return Err(error),
    }
    file.sync_all()?;
    drop(file);
    fs::rename(temporary, path)?;
    Ok(backup)
}

fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, PRIVATE);
    options.open(path)
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
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        symlink("real.json", &link).unwrap();
        let backup = replace(&link, Some("old"), "new").unwrap().unwrap();
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
        assert_eq!(replace(&file, None, "new").unwrap(), None);
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_change_by_another_program_is_not_overwritten() {
        let folder = folder("changed");
        let file = folder.join("mcp.json");
        fs::write(&file, "theirs").unwrap();
        let error = replace(&file, Some("old"), "new").unwrap_err().to_string();
        assert!(error.contains("changed by another program"), "{error}");
        assert_eq!(fs::read_to_string(&file).unwrap(), "theirs");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        fs::remove_dir_all(folder).unwrap();
    }
}
