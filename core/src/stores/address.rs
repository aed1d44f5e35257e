//! The addresses of stores, as options of the bindings and the command spell them.

use std::sync::Arc;

use super::MemoryStore;
use crate::{error::Error, store::StoreEngine};

/// The addresses that are possible, for errors.
pub const ADDRESSES: &str =
    r#""memory", "redis://host:6379" (also "rediss:", "valkey:" and "valkeys:") or "sqlite:path""#;

/// Returns `true` if a text begins as the address of a store does.
pub fn is_address(address: &str) -> bool {
    Kind::parse(address).is_some()
}

/// Opens the store at an address. Errors if there is none, with a reason that does not show the address, because it may have a
/// password.
pub fn open(address: &str) -> Result<Arc<dyn StoreEngine>, Error> {
    match Kind::parse(address) {
        Some(Kind::Memory) => Ok(Arc::new(MemoryStore::default())),
        #[cfg(feature = "redis")]
        Some(Kind::Redis) => Ok(Arc::new(super::RedisStore::connect(address)?)),
        #[cfg(feature = "sqlite")]
        Some(Kind::Sqlite(path)) => Ok(Arc::new(super::SqliteStore::open(path)?)),
        #[cfg(not(all(feature = "redis", feature = "sqlite")))]
        Some(_) => Err(Error::misuse(
            "this build has no such store: it needs the feature `redis` or `sqlite`",
        )),
        None => Err(Error::misuse(format!("the address of a store must be {ADDRESSES}"))),
    }
}

enum Kind<'a> {
    Memory,
    Redis,
    #[cfg_attr(not(feature = "sqlite"), allow(dead_code, reason = "this build has no SQLite"))]
    Sqlite(&'a str),
}

impl<'a> Kind<'a> {
    fn parse(address: &'a str) -> Option<Self> {
        if address == "memory" {
            return Some(Self::Memory);
        }
        let (scheme, rest) = address.split_once(':')?;
        match scheme {
            "redis" | "rediss" | "valkey" | "valkeys" | "redis+unix" | "valkey+unix" => {
                rest.starts_with("//").then_some(Self::Redis)
            }
            "sqlite" => {
                let path = rest.strip_prefix("//").unwrap_or(rest);
                (!path.is_empty()).then_some(Self::Sqlite(path))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_a_store() {
        let path = |address| match Kind::parse(address) {
            Some(Kind::Sqlite(path)) => path.to_owned(),
            _ => panic!("{address}"),
        };
        assert_eq!(path("sqlite:store.db"), "store.db");
        assert_eq!(path("sqlite:/var/store.db"), "/var/store.db");
        assert_eq!(path("sqlite:///var/store.db"), "/var/store.db");
        for address in ["memory", "redis://localhost", "valkeys://ada:s3cret@host:1/2"] {
            assert!(is_address(address), "{address}");
        }
        assert!(open("memory").is_ok());
        for address in
            ["", "sqlite:", "sqlite://", "redis:", "postgres://ada:s3cret@host", "s3cret"]
        {
            assert!(!is_address(address), "{address}");
            let Err(error) = open(address) else { panic!("{address}") };
            let error = error.to_string();
            assert!(error.contains(ADDRESSES) && !error.contains("s3cret"), "{error}");
        }
    }
}
