//! Folders that are used through their descriptors: what is put in the place of one after it was opened, such as a symbolic link,
//! changes nothing.

use std::{
    ffi::OsStr,
    fs::{File, Metadata},
    io,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, CWD, FileType, Mode, OFlags, mkdirat, openat, renameat, statat, unlinkat},
    io::Errno,
};

/// The mode of a new folder; the user's settings take permissions away from it.
const FOLDER: Mode = Mode::from_raw_mode(0o777);

/// An open folder.
#[derive(Debug)]
pub struct Folder {
    descriptor: OwnedFd,
    path: PathBuf,
}

impl Folder {
    /// Opens a folder. Symbolic links on the way are followed.
    pub fn open(path: &Path) -> io::Result<Self> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let descriptor = openat(CWD, path, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self { descriptor, path: path.to_path_buf() })
    }

    /// Opens a folder in this one. Errors if its name is that of a symbolic link.
    pub fn inner(&self, name: &OsStr) -> io::Result<Self> {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let descriptor = openat(&self.descriptor, name, flags, Mode::empty())
            .map_err(|error| self.explained(name, error))?;
        Ok(Self { descriptor, path: self.path_of(name) })
    }

    /// Opens a folder in this one, and makes it if it is missing.
    pub fn inner_made(&self, name: &OsStr) -> io::Result<Self> {
        match mkdirat(&self.descriptor, name, FOLDER) {
            Ok(()) | Err(Errno::EXIST) => self.inner(name),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens a file for reading, without waiting for the other end of a pipe. Errors if it is a symbolic link.
    pub fn read(&self, name: &OsStr) -> io::Result<File> {
        self.file(name, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty())
    }

    /// Opens a file for reading and for appending, or creates it with this mode. Errors if it is a symbolic link.
    pub fn append(&self, name: &OsStr, mode: u32) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CREATE | OFlags::NONBLOCK;
        self.file(name, flags, Mode::from_raw_mode(mode))
    }

    /// Opens a file, a pipe or a device for writing. Errors if it is a symbolic link.
    pub fn write(&self, name: &OsStr) -> io::Result<File> {
        self.file(name, OFlags::WRONLY, Mode::empty())
    }

    /// Creates a file with this mode. Errors if the name is taken, also by a symbolic link.
    pub fn create(&self, name: &OsStr, mode: u32) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        self.file(name, flags, Mode::from_raw_mode(mode))
    }

    /// Gives a file in this folder another name, and replaces what had it.
    pub fn rename(&self, old: &OsStr, new: &OsStr) -> io::Result<()> {
        Ok(renameat(&self.descriptor, old, &self.descriptor, new)?)
    }

    /// Removes a file, or a symbolic link itself.
    pub fn remove(&self, name: &OsStr) -> io::Result<()> {
        Ok(unlinkat(&self.descriptor, name, AtFlags::empty())?)
    }

    /// Returns what is known of this folder itself.
    pub fn metadata(&self) -> io::Result<Metadata> {
        File::from(self.descriptor.try_clone()?).metadata()
    }

    /// Returns the path of something in this folder, for messages.
    pub fn path_of(&self, name: &OsStr) -> PathBuf {
        self.path.join(name)
    }

    fn file(&self, name: &OsStr, flags: OFlags, mode: Mode) -> io::Result<File> {
        openat(&self.descriptor, name, flags | OFlags::NOFOLLOW | OFlags::CLOEXEC, mode)
            .map(File::from)
            .map_err(|error| self.explained(name, error))
    }

    /// Returns an error that names the symbolic link, if that is what was not opened: systems have different codes for it.
    fn explained(&self, name: &OsStr, error: Errno) -> io::Error {
        let found = statat(&self.descriptor, name, AtFlags::SYMLINK_NOFOLLOW);
        match found.map(|found| FileType::from_raw_mode(found.st_mode)) {
            Ok(FileType::Symlink) => super::link(&self.path_of(name)),
            _ => error.into(),
        }
    }
}
