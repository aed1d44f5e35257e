//! Reads of files that end in any case: of a device, a pipe, or a file without end.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read as _},
    path::Path,
};

/// The maximum size of a small file, in bytes.
const MAX: u64 = 1 << 20;

/// Reads a regular file of at most 1 MiB. Errors if it is larger, is not a regular file, or can't be read.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    read_open(open(path)?)
}

/// Reads an open file as [`read`] does.
pub fn read_open(file: File) -> io::Result<Vec<u8>> {
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    file.take(MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX {
        return Err(io::Error::other("it is larger than 1 MiB"));
    }
    Ok(bytes)
}

/// Opens a file, without waiting for the other end of a pipe.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
    }
    options.open(path)
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::{fs, os::unix::fs::symlink, process};

    use super::*;

    #[test]
    fn only_a_small_regular_file_is_read() {
        let folder = std::env::temp_dir().join(format!("gudgeon-small-file-{}", process::id()));
        fs::create_dir_all(&folder).unwrap();
        let at = |name: &str| folder.join(name);
        fs::write(at("file"), "text").unwrap();
        fs::write(at("large"), vec![b' '; 1 << 20]).unwrap();
        fs::write(at("too large"), vec![b' '; (1 << 20) + 1]).unwrap();
        symlink("file", at("link")).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            at("pipe"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RWXU,
            0,
        )
        .unwrap();
        assert_eq!(read(&at("file")).unwrap(), b"text");
        assert_eq!(read(&at("link")).unwrap(), b"text");
        assert_eq!(read(&at("large")).unwrap().len(), 1 << 20);
        for (path, reason) in [
            (at("too large"), "larger than 1 MiB"),
            (at("pipe"), "not a regular file"),
            ("/dev/zero".into(), "not a regular file"),
            (folder.clone(), "not a regular file"),
        ] {
            let error = read(&path).unwrap_err().to_string();
            assert!(error.contains(reason), "{}: {error}", path.display());
        }
        fs::remove_dir_all(folder).unwrap();
    }
}
