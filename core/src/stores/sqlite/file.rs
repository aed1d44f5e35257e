//! The file of a store.

use std::{fmt, fs, io, path::Path, time::Duration};

use rusqlite::{Connection, ErrorCode, OpenFlags};

/// The mark of our files: `gudg`.
const APPLICATION: i32 = 0x6775_6467;
/// The version of our tables.
const VERSION: i32 = 1;

const TABLES: &str = "
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS entries (
    key TEXT PRIMARY KEY, value BLOB NOT NULL, version INTEGER NOT NULL, ends INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS entries_end ON entries (ends);
CREATE TABLE IF NOT EXISTS logs (
    log TEXT PRIMARY KEY, before INTEGER NOT NULL, removed INTEGER NOT NULL, last INTEGER NOT NULL,
    bytes INTEGER NOT NULL, count INTEGER NOT NULL, ends INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS logs_end ON logs (ends);
CREATE TABLE IF NOT EXISTS events (
    log TEXT NOT NULL, number INTEGER NOT NULL, event BLOB NOT NULL, PRIMARY KEY (log, number)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS leases (
    key TEXT PRIMARY KEY, owner TEXT NOT NULL, token INTEGER NOT NULL, ends INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS leases_end ON leases (ends);
CREATE TABLE IF NOT EXISTS messages (
    number INTEGER PRIMARY KEY AUTOINCREMENT, topic TEXT NOT NULL, message BLOB NOT NULL, sent INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS counter (id INTEGER PRIMARY KEY CHECK (id = 1), number INTEGER NOT NULL);
INSERT OR IGNORE INTO counter VALUES (1, 0);
";

/// The reason why an operation failed.
#[derive(Debug)]
pub(super) struct Failure {
    reason: String,
    is_fatal: bool,
}

impl Failure {
    pub(super) fn new(reason: &str) -> Self {
        Self { reason: reason.into(), is_fatal: false }
    }

    /// Returns `true` if the file has to be opened again.
    pub(super) fn is_fatal(&self) -> bool {
        self.is_fatal
    }
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        let reason = match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                "the file is locked by another process".into()
            }
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
                "the file can't be written; the user of this process needs the permission".into()
            }
            Some(ErrorCode::DiskFull) => "the disk is full".into(),
            Some(ErrorCode::NotADatabase) => {
                "the file is not a store; use the path of another, or of none".into()
            }
            _ => error.to_string(),
        };
        let is_fatal = !matches!(
            error.sqlite_error_code(),
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::DiskFull)
        );
        Self { reason, is_fatal }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

/// Opens the file of a store, or creates it. Errors with the path and the reason.
pub(super) fn open(path: &Path, wait: Duration) -> Result<Connection, String> {
    let opened = create(path).and_then(|()| connect(path, wait).map_err(Into::into));
    opened.and_then(set_up).map_err(|failure| format!("the store {}: {failure}", path.display()))
}

/// Creates the file for its owner only, if there is none.
fn create(path: &Path) -> Result<(), Failure> {
    let mut options = fs::OpenOptions::new();
    options.read(true).append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => Failure::new("its folder does not exist; create it first"),
        io::ErrorKind::PermissionDenied => {
            Failure::new("the file can't be written; the user of this process needs the permission")
        }
        io::ErrorKind::IsADirectory => Failure::new("this is a folder, and not the path of a file"),
        _ => Failure::new(&error.to_string()),
    };
    let metadata = options.open(path).and_then(|file| file.metadata()).map_err(failed)?;
    // The superuser may write it, but did not make it so.
    if metadata.permissions().readonly() {
        return Err(Failure::new("the file is read-only; a store needs one that can be written"));
    }
    Ok(())
}

fn connect(path: &Path, wait: Duration) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let file = Connection::open_with_flags(path, flags)?;
    file.busy_timeout(wait)?;
    Ok(file)
}

fn set_up(file: Connection) -> Result<Connection, Failure> {
    let number = |pragma| file.query_row(pragma, [], |row| row.get::<_, i32>(0));
    let (application, version) = (number("PRAGMA application_id")?, number("PRAGMA user_version")?);
    let tables = number("SELECT count(*) FROM sqlite_schema")?;
    match (application, version) {
        (APPLICATION, VERSION) => {}
        (APPLICATION | 0, 0) if tables == 0 || application == APPLICATION => {}
        (APPLICATION, _) => {
            return Err(Failure::new(
                "the file was written by a newer version of Gudgeon; upgrade this one, or use another file",
            ));
        }
        _ => {
            return Err(Failure::new(
                "the file is the database of another program; use the path of another, or of none",
            ));
        }
    }
    let _: String = file.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
    file.execute_batch("PRAGMA synchronous = NORMAL")?;
    if (application, version) != (APPLICATION, VERSION) {
        let mark =
            format!("PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {VERSION};");
        let made = file.execute_batch(&format!("{TABLES}{mark}COMMIT;"));
        if let Err(error) = made {
            let _ = file.execute_batch("ROLLBACK");
            return Err(error.into());
        }
    }
    Ok(file)
}
