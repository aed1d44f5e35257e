//! Tells files of the user from those that another user could have put into a folder.

use std::{fs::Metadata, io, path::Path};

use crate::output;

/// Returns why the files below a folder are not used, if one that the path names may be from another user: neither the
/// user nor root owns it, or others may write it.
pub fn problem(folder: &Path, below: &Path) -> Option<String> {
    let mut place = folder.to_path_buf();
    below.components().find_map(|part| {
        place.push(part);
        // The link itself, and what it names. What is missing is nobody's.
        let found = [place.symlink_metadata(), place.metadata()];
        found.into_iter().flatten().find_map(|metadata| problem_of(&place, &metadata))
    })
}

/// Errors if an open file or folder may be from another user.
pub fn check(place: &Path, metadata: &Metadata) -> io::Result<()> {
    problem_of(place, metadata).map_or(Ok(()), |problem| {
        let advice = "look at what it contains and make it your own";
        Err(io::Error::other(format!("{problem}; {advice}")))
    })
}

#[cfg(unix)]
fn problem_of(place: &Path, metadata: &Metadata) -> Option<String> {
    use std::os::unix::fs::MetadataExt as _;

    let (own, group) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    let others_write =
        metadata.mode() & 0o002 != 0 || metadata.mode() & 0o020 != 0 && metadata.gid() != group;
    let reason = match metadata.uid() {
        uid if uid != own && uid != 0 => format!("belongs to the user {uid}"),
        // The mode of a link says nothing.
        _ if others_write && !metadata.is_symlink() => "may be written by other users".to_owned(),
        _ => return None,
    };
    Some(format!("{} {reason}", place.display()))
}

#[cfg(not(unix))]
fn problem_of(_: &Path, _: &Metadata) -> Option<String> {
    None
}

/// Returns whether a folder has the first of these files, and all of them are used. If they are not, a message says why.
pub fn has(folder: &Path, files: &[&Path]) -> bool {
    let Some(first) = files.first().map(|file| folder.join(file)).filter(|path| path.is_file())
    else {
        return false;
    };
    let problem = files.iter().find_map(|file| problem(folder, file));
    if let Some(problem) = &problem {
        output::note(format_args!("{} is not used: {problem}", first.display()));
    }
    problem.is_none()
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::{
        fs,
        os::unix::fs::{PermissionsExt as _, symlink},
        process,
    };

    use super::*;

    #[test]
    fn files_of_others_are_told_apart() {
        let folder = std::env::temp_dir().join(format!("gudgeon-trust-{}", process::id()));
        fs::create_dir_all(folder.join("a")).unwrap();
        let file = folder.join("a/file");
        fs::write(&file, "").unwrap();
        symlink("file", folder.join("a/link")).unwrap();
        let problem = |below: &str| problem(&folder, Path::new(below)).unwrap_or_default();
        let mode = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        mode(&folder.join("a"), 0o755);
        mode(&file, 0o644);
        assert_eq!(problem("a/file"), "");
        assert_eq!(problem("a/link"), "");
        assert_eq!(problem("a/none/file"), "");
        mode(&file, 0o666);
        assert!(problem("a/file").ends_with("a/file may be written by other users"));
        assert!(problem("a/link").ends_with("a/link may be written by other users"));
        mode(&file, 0o644);
        mode(&folder.join("a"), 0o777);
        assert!(problem("a/file").ends_with("/a may be written by other users"));
        mode(&folder.join("a"), 0o755);
        // Only root can give a file to somebody else.
        if rustix::process::getuid().is_root() {
            std::os::unix::fs::chown(&file, Some(65_534), None).unwrap();
            assert!(problem("a/file").ends_with("a/file belongs to the user 65534"));
            assert!(problem("a/link").ends_with("a/link belongs to the user 65534"));
        }
        fs::remove_dir_all(folder).unwrap();
    }
}
