//! Folders on systems where a program needs a right of its own to make symbolic links, so that they are looked for once.

use std::{
    ffi::OsStr,
    fs::{self, File, Metadata, OpenOptions},
    io,
    path::{Path, PathBuf},
};

/// A folder.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// Finds a folder. Symbolic links on the way are followed.
    pub fn open(path: &Path) -> io::Result<Self> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        match path.metadata()?.is_dir() {
            true => Ok(Self(path.to_path_buf())),
            false => Err(io::ErrorKind::NotADirectory.into()),
        }
    }

    /// Finds a folder in this one. Errors if its name is that of a symbolic link.
    pub fn inner(&self, name: &OsStr) -> io::Result<Self> {
        Self::open(&self.checked(name)?)
    }

    /// Finds a folder in this one, and makes it if it is missing.
    pub fn inner_made(&self, name: &OsStr) -> io::Result<Self> {
        match fs::create_dir(self.path_of(name)) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => self.inner(name),
        }
    }

    /// Opens a file for reading. Errors if it is a symbolic link.
    pub fn read(&self, name: &OsStr) -> io::Result<File> {
        File::open(self.checked(name)?)
    }

    /// Opens a file for reading and for appending, or creates it. Errors if it is a symbolic link.
    pub fn append(&self, name: &OsStr, _mode: u32) -> io::Result<File> {
        OpenOptions::new().read(true).append(true).create(true).open(self.checked(name)?)
    }

    /// Opens a file or a device for writing. Errors if it is a symbolic link.
    pub fn write(&self, name: &OsStr) -> io::Result<File> {
        OpenOptions::new().write(true).open(self.checked(name)?)
    }

    /// Creates a file. Errors if the name is taken, also by a symbolic link.
    pub fn create(&self, name: &OsStr, _mode: u32) -> io::Result<File> {
        OpenOptions::new().write(true).create_new(true).open(self.path_of(name))
    }

    /// Gives a file in this folder another name, and replaces what had it.
    pub fn rename(&self, old: &OsStr, new: &OsStr) -> io::Result<()> {
        fs::rename(self.path_of(old), self.path_of(new))
    }

    /// Removes a file, or a symbolic link itself.
    pub fn remove(&self, name: &OsStr) -> io::Result<()> {
        fs::remove_file(self.path_of(name))
    }

    /// Returns what is known of this folder itself.
    pub fn metadata(&self) -> io::Result<Metadata> {
        self.0.metadata()
    }

    /// Returns the path of something in this folder, for messages.
    pub fn path_of(&self, name: &OsStr) -> PathBuf {
        self.0.join(name)
    }

    fn checked(&self, name: &OsStr) -> io::Result<PathBuf> {
        let path = self.path_of(name);
        match path.symlink_metadata() {
            Ok(found) if found.is_symlink() => Err(super::link(&path)),
            _ => Ok(path),
        }
    }
}
