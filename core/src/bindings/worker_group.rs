//! The processes that one parent started to serve an address together: their key, and the folder in which they find each
//! other.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
};

use crate::{
    error::Error,
    transport::process_group::{private_folder, short_name},
};

/// The length of a key, in bytes.
const KEY: usize = 32;

/// A group of processes.
#[derive(Debug)]
pub struct WorkerGroup {
    /// The folder of their sockets.
    pub folder: PathBuf,
    /// The key that the first of them has made.
    pub key: Vec<u8>,
}

impl WorkerGroup {
    /// Joins the processes with this parent that serve a server of this name together.
    ///
    /// The group is a folder among the temporary ones, which only this user may enter.
    ///
    /// # Errors
    /// Errors if no folder can be made there.
    pub fn of_parent(parent: u32, server: &str) -> Result<Self, Error> {
        Self::within(&env::temp_dir(), parent, server).map_err(|error| {
            Error::misuse(format!(
                "the workers can't reach each other, and a client's next request may go to any of them: {error} in {}; set \
                 TMPDIR to a folder that can be written",
                env::temp_dir().display()
            ))
        })
    }

    fn within(temporary: &Path, parent: u32, server: &str) -> io::Result<Self> {
        let user = rustix::process::geteuid().as_raw();
        let of_parent = temporary.join(format!("gudgeon-{user}-{parent}"));
        private_folder(&of_parent)?;
        let key = shared_key(&of_parent)?;
        let folder = of_parent.join(short_name(server));
        private_folder(&folder)?;
        Ok(Self { folder, key })
    }
}

/// Returns a new key.
///
/// # Errors
/// Errors if the system has no random bytes.
pub fn fresh_key() -> io::Result<Vec<u8>> {
    let mut key = vec![0; KEY];
    getrandom::fill(&mut key)?;
    Ok(key)
}

/// Returns the key in the folder, which the first process writes.
fn shared_key(folder: &Path) -> io::Result<Vec<u8>> {
    let path = folder.join("key");
    let own = folder.join(format!("key-{}", std::process::id()));
    if !path.exists() {
        fs::write(&own, fresh_key()?)?;
        // A link never replaces the key that another process has written in the meantime, and appears with its content.
        let linked = fs::hard_link(&own, &path);
        fs::remove_file(&own)?;
        match linked {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => (),
        }
    }
    match fs::read(&path)? {
        key if key.len() == KEY => Ok(key),
        _ => Err(io::Error::other(format!("{} is not a key: remove it", path.display()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_of_one_parent_have_one_key_and_a_folder_for_each_server() {
        let temporary = env::temp_dir().join(format!("gudgeon-test-{}", std::process::id()));
        fs::create_dir_all(&temporary).expect("a folder");
        let join =
            |parent, server| WorkerGroup::within(&temporary, parent, server).expect("a group");
        let (first, second) = (join(1, "a"), join(1, "a"));
        assert_eq!((&first.folder, &first.key), (&second.folder, &second.key));
        assert_eq!(first.key.len(), KEY);
        let other = join(1, "b/../../c");
        assert_ne!(first.folder, other.folder);
        assert_eq!(first.folder.parent(), other.folder.parent());
        assert_eq!(first.key, other.key);
        assert_ne!(first.key, join(2, "a").key);
        fs::write(temporary.join("file"), "").expect("a file");
        assert!(private_folder(&temporary.join("file")).is_err());
        fs::remove_dir_all(&temporary).expect("own");
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_that_others_may_enter_or_a_link_is_refused() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = env::temp_dir().join(format!("gudgeon-open-{}", std::process::id()));
        private_folder(&folder).expect("a new one");
        private_folder(&folder).expect("the same");
        let link = folder.join("link");
        symlink(&folder, &link).expect("a link");
        assert!(private_folder(&link).is_err());
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o711)).expect("own");
        assert!(private_folder(&folder).is_err());
        fs::remove_dir_all(&folder).expect("own");
    }
}
