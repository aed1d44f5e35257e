//! Tokens that were verified, so that a repeated one costs a look-up.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use super::jwt::VerifiedToken;
use crate::auth::TokenDigest;

/// The maximum number of tokens.
const MAX_TOKENS: usize = 10_000;
/// The maximum time that a token is kept, so that a key that its issuer withdraws is noticed.
pub const MAX_KEPT: Duration = Duration::from_secs(300);

/// The verified tokens, by digest. The least recently used half goes when the cache is full.
#[derive(Debug, Default)]
pub struct TokenCache {
    recent: HashMap<TokenDigest, Cached>,
    older: HashMap<TokenDigest, Cached>,
}

#[derive(Clone, Debug)]
struct Cached {
    token: Arc<Accepted>,
    until: Instant,
}

/// A token with the method that verified it.
#[derive(Debug)]
pub struct Accepted {
    pub token: VerifiedToken,
    pub principal: Arc<crate::protocol::Principal>,
    /// The place of the method in the authenticator's list.
    pub method: usize,
}

impl TokenCache {
    /// Returns the token if it is still valid: `unix` is the time in seconds since 1970.
    pub fn get(&mut self, digest: &TokenDigest, now: Instant, unix: u64) -> Option<Arc<Accepted>> {
        let is_valid = |cached: &Cached| {
            now < cached.until && cached.token.token.expires.is_none_or(|expires| unix < expires)
        };
        if let Some(cached) = self.recent.get(digest) {
            if is_valid(cached) {
                return Some(Arc::clone(&cached.token));
            }
            self.recent.remove(digest);
            return None;
        }
        let cached = self.older.remove(digest).filter(is_valid)?;
        let token = Arc::clone(&cached.token);
        self.insert_cached(*digest, cached);
        Some(token)
    }

    /// Keeps a token until it expires, and no longer than `kept`.
    pub fn insert(
        &mut self,
        digest: TokenDigest,
        now: Instant,
        token: Arc<Accepted>,
        kept: Duration,
    ) {
        let until = now + kept.min(MAX_KEPT);
        self.insert_cached(digest, Cached { token, until });
    }

    fn insert_cached(&mut self, digest: TokenDigest, cached: Cached) {
        if self.recent.len() >= MAX_TOKENS / 2 {
            self.older = std::mem::take(&mut self.recent);
        }
        self.recent.insert(digest, cached);
    }

    /// Forgets all tokens.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Principal;

    fn token(expires: Option<u64>) -> Arc<Accepted> {
        let token = VerifiedToken { principal: Principal::new("ada"), expires, key: None };
        Arc::new(Accepted { principal: Arc::new(token.principal.clone()), token, method: 0 })
    }

    #[test]
    fn an_entry_ends_with_its_token() {
        let (mut cache, now, digest) =
            (TokenCache::default(), Instant::now(), TokenDigest::new("a"));
        let second = Duration::from_secs(1);
        cache.insert(digest, now, token(Some(100)), MAX_KEPT);
        assert!(cache.get(&digest, now, 99).is_some());
        assert!(cache.get(&TokenDigest::new("b"), now, 99).is_none());
        assert!(cache.get(&digest, now, 100).is_none());
        assert!(cache.get(&digest, now, 99).is_none(), "it was forgotten");
        cache.insert(digest, now, token(None), 60 * second);
        assert!(cache.get(&digest, now + 59 * second, 0).is_some());
        assert!(cache.get(&digest, now + 60 * second, 0).is_none());
        cache.insert(digest, now, token(None), 10 * MAX_KEPT);
        assert!(cache.get(&digest, now + MAX_KEPT, 0).is_none());
    }

    #[test]
    fn the_number_of_tokens_is_bounded_and_used_ones_stay() {
        let (mut cache, now) = (TokenCache::default(), Instant::now());
        let digest = |number: usize| TokenDigest::new(&number.to_string());
        for number in 0..3 * MAX_TOKENS {
            cache.insert(digest(number), now, token(None), MAX_KEPT);
            assert!(cache.get(&digest(0), now, 0).is_some(), "{number}");
            assert!(cache.recent.len() + cache.older.len() <= MAX_TOKENS);
        }
        assert!(cache.get(&digest(1), now, 0).is_none());
    }
}
