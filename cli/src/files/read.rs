//! Reads of files that a project or the user wrote.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

pub use gudgeon::transport::small_file::{read as small, read_open as small_open};

use super::{IfMissing, in_project, trust};

/// The maximum sizes of files that the user names, in MiB: nobody waits for the end of `/dev/zero`.
pub const MAX_CONFIGURATION: u64 = 64;
pub const MAX_SECRET: u64 = 1;
pub const MAX_VALUE: u64 = 64;
pub const MAX_GENERATED: u64 = 64;
pub const MAX_DOCUMENT: u64 = 1;
pub const MAX_TRANSCRIPT: u64 = 256;

/// Reads a regular file of at most 1 MiB in a project, through no symbolic link. Errors if another user may have written it.
fn of_project(project: &Path, path: &Path) -> io::Result<Vec<u8>> {
    let (folder, name) = in_project(project, path, IfMissing::Error)?;
    let file = folder.read(&name)?;
    trust::check(path, &file.metadata()?)?;
    small_open(file)
}

/// Errors if a file that a project names can't be trusted: in the project as [`of_project`], elsewhere if another user may have
/// written it. A missing one passes.
pub fn check_of_project(project: &Path, path: &Path) -> io::Result<()> {
    let checked = match path.starts_with(project) {
        true => in_project(project, path, IfMissing::Error)
            .and_then(|(folder, name)| trust::check(path, &folder.read(&name)?.metadata()?)),
        false => path.metadata().and_then(|metadata| trust::check(path, &metadata)),
    };
    checked.or_else(|error| match error.kind() {
        io::ErrorKind::NotFound => Ok(()),
        _ => Err(error),
    })
}

/// Reads a configuration: one of a project, or one of the user's own.
pub fn configuration(path: &Path, project: Option<&Path>) -> io::Result<Vec<u8>> {
    match project {
        Some(project) => of_project(project, path),
        None => file(path, MAX_CONFIGURATION),
    }
}

/// Reads a file that the command line names, which may be a pipe. Errors if it has more than this many MiB.
pub fn file(path: &Path, mebibytes: u64) -> io::Result<Vec<u8>> {
    all(File::open(path)?, mebibytes)
}

/// Reads the text of a file that the command line names.
pub fn text_file(path: &Path, mebibytes: u64) -> io::Result<String> {
    utf8(file(path, mebibytes)?)
}

/// Reads everything up to this many MiB. Errors if there is more.
pub fn all(source: impl Read, mebibytes: u64) -> io::Result<Vec<u8>> {
    let most = mebibytes << 20;
    let mut bytes = Vec::new();
    source.take(most + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > most {
        true => Err(io::Error::other(format!("it is larger than {mebibytes} MiB"))),
        false => Ok(bytes),
    }
}

/// Returns the text of bytes. Errors if they are not UTF-8.
pub fn utf8(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        io::Error::new(io::ErrorKind::InvalidData, format!("it is not UTF-8 at byte {at}"))
    })
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

    #[test]
    fn a_file_without_end_is_an_error() {
        let error = file(Path::new("/dev/zero"), 1).unwrap_err().to_string();
        assert_eq!(error, "it is larger than 1 MiB");
    }

    #[test]
    fn a_pipe_that_the_user_names_is_read() {
        let (reader, mut writer) = io::pipe().unwrap();
        io::Write::write_all(&mut writer, b"text").unwrap();
        drop(writer);
        let path = format!("/dev/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&reader));
        assert_eq!(file(Path::new(&path), 1).unwrap(), b"text");
    }
}
