//! Reads certificates and keys. Errors name the option, the file and what is wrong.

use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem, pem::PemObject};

use crate::{error::Error, transport::Pem};

/// Returns the certificates of an option or a variable. Errors if there are none.
pub(super) fn certificates(option: &str, pem: &Pem) -> Result<Vec<CertificateDer<'static>>, Error> {
    let text = pem.read().map_err(|error| unusable(option, pem, &error))?;
    let read = CertificateDer::pem_slice_iter(&text).collect::<Result<Vec<_>, _>>();
    let read = read.map_err(|error| unusable(option, pem, &reason(&error)))?;
    match read.is_empty() {
        true => Err(unusable(option, pem, &"it has no certificate in PEM format")),
        false => Ok(read),
    }
}

/// Returns the private key of an option.
pub(super) fn private_key(option: &str, pem: &Pem) -> Result<PrivateKeyDer<'static>, Error> {
    let text = pem.read().map_err(|error| unusable(option, pem, &error))?;
    PrivateKeyDer::from_pem_slice(&text).map_err(|error| match error {
        pem::Error::NoItemsFound
            if memchr::memmem::find(&text, b"ENCRYPTED PRIVATE KEY").is_some() =>
        {
            unusable(option, pem, &"it is encrypted; decrypt it with `openssl pkey`")
        }
        pem::Error::NoItemsFound => unusable(option, pem, &"it has no private key in PEM format"),
        error => unusable(option, pem, &reason(&error)),
    })
}

/// Returns what is wrong in a text, without its bytes, which may be a key.
fn reason(error: &pem::Error) -> String {
    match error {
        pem::Error::MissingSectionEnd { .. } => "it is cut off: a section has no end".into(),
        pem::Error::IllegalSectionStart { .. } => "the beginning of a section is not valid".into(),
        pem::Error::Base64Decode(_) => "a section is not valid base64".into(),
        error => error.to_string(),
    }
}

pub(super) fn unusable(option: &str, pem: &Pem, why: &dyn std::fmt::Display) -> Error {
    Error::misuse(format!("{option}: {pem} can't be used: {why}"))
}
