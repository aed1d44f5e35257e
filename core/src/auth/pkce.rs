//! Proof Key for Code Exchange with S256, the only method that is used (RFC 7636).

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest as _, Sha256};

use crate::auth::Secret;

/// The verifier of one authorization request.
#[derive(Clone, Debug)]
pub(super) struct Verifier(Secret);

impl Verifier {
    /// Creates a verifier from fresh random bytes.
    pub(super) fn new(random: [u8; 32]) -> Self {
        Self(URL_SAFE_NO_PAD.encode(random).into())
    }

    /// Returns the value for the token request.
    pub(super) fn expose(&self) -> &str {
        self.0.expose()
    }

    /// Returns the challenge for the authorization request.
    pub(super) fn challenge(&self) -> String {
        challenge(self.expose())
    }
}

/// Returns the challenge of a verifier (RFC 7636, section 4.2).
pub(super) fn challenge(verifier: &str) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(verifier))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 7636, appendix B.
    #[test]
    fn the_challenge_is_that_of_the_specification() {
        let random = [
            116, 24, 223, 180, 151, 153, 224, 37, 79, 250, 96, 125, 216, 173, 187, 186, 22, 212,
            37, 77, 105, 214, 191, 240, 91, 88, 5, 88, 83, 132, 141, 121,
        ];
        let verifier = Verifier::new(random);
        assert_eq!(verifier.expose(), "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk");
        assert_eq!(verifier.challenge(), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
        assert_eq!(format!("{verifier:?}"), "Verifier(…)");
    }
}
