//! The authorities that the environment and the system trust.

use std::{
    env,
    ffi::OsString,
    sync::{Arc, Mutex, PoisonError},
};

use rustls::RootCertStore;

use super::file::certificates;
use crate::{
    error::{Error, ErrorKind},
    transport::Pem,
};

/// The environment variables that name certificates at one point in time.
///
/// `SSL_CERT_FILE` and `SSL_CERT_DIR` (several folders, as in `PATH`) name those that are trusted in place of the system's, and
/// `NODE_EXTRA_CA_CERTS` a file of those that are trusted in addition.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Variables {
    file: Option<OsString>,
    folders: Option<OsString>,
    extra: Option<OsString>,
}

/// The authorities that were read last: they are many, and most clients of a process trust the same.
static LAST: Mutex<Option<(Variables, Arc<RootCertStore>)>> = Mutex::new(None);

impl Variables {
    /// Reads the variables of this process. Call it on the thread that called the client: other languages do not synchronize
    /// changes to the environment with other threads.
    pub(super) fn read() -> Self {
        let variable = |name| env::var_os(name).filter(|value| !value.is_empty());
        Self {
            file: variable("SSL_CERT_FILE"),
            folders: variable("SSL_CERT_DIR"),
            extra: variable("NODE_EXTRA_CA_CERTS"),
        }
    }
}

/// Returns the authorities. Errors if a file that a variable names has no certificate, and if there are no authorities.
pub(super) async fn authorities(variables: &Variables) -> Result<Arc<RootCertStore>, Error> {
    let last = || LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((known, authorities)) = &*last()
        && known == variables
    {
        return Ok(Arc::clone(authorities));
    }
    let (wanted, read) = (variables.clone(), variables.clone());
    let loaded = tokio::task::spawn_blocking(move || load(&read)).await;
    let loaded = loaded.unwrap_or_else(|error| Err(no_authorities(&error.to_string())));
    let authorities = Arc::new(loaded.map_err(|error| error.in_phase("connect"))?);
    *last() = Some((wanted, Arc::clone(&authorities)));
    Ok(authorities)
}

fn load(variables: &Variables) -> Result<RootCertStore, Error> {
    let mut authorities = RootCertStore::empty();
    let mut add = |name, path: &OsString| {
        let pem = Pem::File(path.into());
        match authorities.add_parsable_certificates(certificates(name, &pem)?).0 {
            0 => Err(super::file::unusable(name, &pem, &"none of its certificates is valid")),
            _ => Ok(()),
        }
    };
    if let Some(file) = &variables.file {
        add("SSL_CERT_FILE", file)?;
    }
    if let Some(extra) = &variables.extra {
        add("NODE_EXTRA_CA_CERTS", extra)?;
    }
    let count = authorities.len();
    if let Some(folders) = &variables.folders {
        for folder in env::split_paths(folders) {
            // As OpenSSL does, folders that are missing and files that hold no certificate are left out.
            let found = rustls_native_certs::load_certs_from_paths(None, Some(&folder));
            authorities.add_parsable_certificates(found.certs);
        }
        if authorities.len() == count && variables.file.is_none() {
            return Err(no_authorities(&format!(
                "SSL_CERT_DIR: {} has no certificates",
                folders.display()
            )));
        }
    } else if variables.file.is_none() {
        let found = rustls_native_certs::load_native_certs();
        authorities.add_parsable_certificates(found.certs);
    }
    match authorities.is_empty() {
        true => Err(no_authorities("this system has no trusted certificates")),
        false => Ok(authorities),
    }
}

fn no_authorities(message: &str) -> Error {
    Error::new(ErrorKind::Connect, message)
        .with_hint("install the package ca-certificates, or name a file with SSL_CERT_FILE")
}
