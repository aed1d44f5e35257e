//! Certificates and keys that a program gives, as files or as text.

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

/// The beginning of each certificate and key.
const BEGIN: &[u8] = b"-----BEGIN ";

/// One or more certificates or a private key in PEM format.
///
/// A string that holds `-----BEGIN ` is the text itself, any other is a path, which is read when a client connects. A file may
/// have 1 MiB.
///
/// ```
/// use gudgeon::client::Pem;
///
/// assert_eq!(Pem::from("ca.pem"), Pem::File("ca.pem".into()));
/// assert_eq!(Pem::from(&b"-----BEGIN CERTIFICATE-----"[..]), Pem::from("-----BEGIN CERTIFICATE-----"));
/// ```
#[derive(Clone, Eq, PartialEq)]
pub enum Pem {
    File(PathBuf),
    Text(Vec<u8>),
}

impl Pem {
    /// Returns the text. Errors if the file can't be read.
    pub(super) fn read(&self) -> io::Result<Vec<u8>> {
        match self {
            Self::File(path) => super::small_file::read(path),
            Self::Text(text) => Ok(text.clone()),
        }
    }
}

impl From<&str> for Pem {
    fn from(text: &str) -> Self {
        match text.as_bytes().windows(BEGIN.len()).any(|part| part == BEGIN) {
            true => Self::Text(text.into()),
            false => Self::File(text.into()),
        }
    }
}

impl From<String> for Pem {
    fn from(text: String) -> Self {
        text.as_str().into()
    }
}

impl From<&Path> for Pem {
    fn from(path: &Path) -> Self {
        Self::File(path.into())
    }
}

impl From<PathBuf> for Pem {
    fn from(path: PathBuf) -> Self {
        Self::File(path)
    }
}

impl From<&[u8]> for Pem {
    fn from(text: &[u8]) -> Self {
        Self::Text(text.into())
    }
}

impl From<Vec<u8>> for Pem {
    fn from(text: Vec<u8>) -> Self {
        Self::Text(text)
    }
}

/// The path, but not the text, which may be a private key.
impl fmt::Debug for Pem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
            Self::Text(_) => f.write_str("Text(…)"),
        }
    }
}

impl fmt::Display for Pem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Text(_) => f.write_str("the text"),
        }
    }
}
