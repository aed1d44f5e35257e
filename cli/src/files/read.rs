//! Reads of files that a project or the user wrote.

use std::{fs, io, path::Path};

pub use gudgeon::transport::small_file::read as small;

use super::check_inside;

/// Reads a regular file of at most 1 MiB in a project, through no symbolic link.
fn of_project(project: &Path, path: &Path) -> io::Result<Vec<u8>> {
    check_inside(project, path)?;
    small(path)
}

/// Reads a configuration: one of a project, or one of the user's own, which may have any size.
pub fn configuration(path: &Path, project: Option<&Path>) -> io::Result<Vec<u8>> {
    match project {
        Some(project) => of_project(project, path),
        None => fs::read(path),
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::{fs, os::unix::fs::symlink, process};

    use super::*;

    #[test]
    fn a_file_of_a_project_is_read_through_no_link() {
        let folder = std::env::temp_dir().join(format!("gudgeon-read-{}", process::id()));
        fs::create_dir_all(&folder).unwrap();
        let at = |name: &str| folder.join(name);
        fs::write(at("file"), "text").unwrap();
        symlink("file", at("link")).unwrap();
        symlink(".", at("folder")).unwrap();
        assert_eq!(of_project(&folder, &at("file")).unwrap(), b"text");
        for (path, reason) in [
            (at("link"), "symbolic link"),
            (at("folder/file"), "symbolic link"),
            (at("../file"), "outside the project"),
            ("/dev/zero".into(), "outside the project"),
        ] {
            let error = of_project(&folder, &path).unwrap_err().to_string();
            assert!(error.contains(reason), "{}: {error}", path.display());
        }
        let missing = of_project(&folder, &at("no/file")).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
        fs::remove_dir_all(folder).unwrap();
    }
}
