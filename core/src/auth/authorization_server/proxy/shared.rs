//! Refresh tokens and revocations that servers know together, in a store.
//!
//! A refresh token has a record there. One server claims it for the time of an exchange, and then replaces the claim by the
//! response. For a while, each server answers the same refresh token with that response again, as a server without a store does. It
//! stops once the refresh token in the response was used: the first token counts as stolen then, and its grant is revoked. Records are
//! sealed, because they contain tokens.

use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    super::message::{OAuthError, Response},
    Interruption, OAuthProxy, Outcome, Refreshing, Waits,
    sealed::Use,
    tokens::{GRACE, REFRESH_LIFE},
};
use crate::{
    auth::{TokenDigest, fetch::FetchRequest, moment::Moment},
    store::{Expect, StoreOperation, StoreReply},
};

/// The seconds by which the clock of another server with the same store may be slow, so that it accepts a token for longer.
pub(super) const CLOCK_DIFFERENCE: u64 = 60;
/// The seconds for which a server may exchange a refresh token. If it is gone by then, another one may try.
const CLAIM_LIFE: u64 = 60;

/// The state of a refresh token.
#[derive(Deserialize, Serialize)]
enum Record {
    /// A server is exchanging it.
    Claimed,
    /// It was not exchanged, and may be.
    Free,
    /// It was exchanged at this time for the tokens in this body.
    Exchanged(u64, Value),
}

/// The answer to a request that ends when the store knows something.
pub(super) enum Afterwards {
    /// The grant is revoked there, and at the provider by this request.
    Revoked(Option<Box<FetchRequest>>),
    /// The request is refused.
    Refused(Box<OAuthError>, Option<TokenDigest>),
}

impl OAuthProxy {
    /// Begins to exchange a refresh token that no other request is exchanging here.
    pub(super) fn refresh_with_store(&mut self, at: &Moment, refreshing: Refreshing) -> Outcome {
        if !self.used.begin_shared(refreshing.digest) {
            return Err(Interruption::Wait(refreshing.digest));
        }
        if let Some((body, version)) = self.used.unsaved(&refreshing.digest) {
            return self.save(at, Refreshing { version, ..refreshing }, body);
        }
        ask(get(grant_key(&refreshing.token.grant.id)), Waits::Grant(Box::new(refreshing)))
    }

    /// Takes the reply about the grant of a refresh token.
    pub(super) fn take_grant(
        &mut self,
        at: &Moment,
        refreshing: Refreshing,
        reply: StoreReply,
    ) -> Outcome {
        match reply {
            StoreReply::Found(None) => self.claim_token(at, refreshing, Expect::Absent),
            StoreReply::Found(Some(_)) => {
                self.used.revoke(&refreshing.token.grant.id);
                let reason = "the refresh token has expired or was revoked";
                self.end_shared(&refreshing, OAuthError::new("invalid_grant", reason))
            }
            other => Ok(self.not_known(at, &refreshing, other)),
        }
    }

    fn claim_token(&self, at: &Moment, refreshing: Refreshing, expect: Expect) -> Outcome {
        let claim = self.put(at, &refreshing, &Record::Claimed, CLAIM_LIFE, expect);
        ask(claim, Waits::Claim(Box::new(refreshing)))
    }

    /// Takes the reply about the claim of a refresh token.
    pub(super) fn take_claim(
        &mut self,
        at: &Moment,
        mut refreshing: Refreshing,
        reply: StoreReply,
    ) -> Outcome {
        match reply {
            StoreReply::Stored(version) => {
                refreshing.version = version;
                let Some(fetch) = refreshing.fetch.take() else {
                    return Err(super::token::failed());
                };
                Err(Interruption::Fetch(fetch, Waits::Refresh(Box::new(refreshing))))
            }
            StoreReply::Conflict => {
                ask(get(token_key(&refreshing.digest)), Waits::Record(Box::new(refreshing)))
            }
            other => Ok(self.not_known(at, &refreshing, other)),
        }
    }

    /// Takes the record of a refresh token that is not new.
    pub(super) fn take_record(
        &mut self,
        at: &Moment,
        refreshing: Refreshing,
        reply: StoreReply,
    ) -> Outcome {
        let StoreReply::Found(found) = reply else {
            return Ok(self.not_known(at, &refreshing, reply));
        };
        let Some((sealed, version)) = found else {
            return Ok(self.busy(&refreshing));
        };
        match self.open_record(&refreshing.issuer, &sealed) {
            Some(Record::Free) => self.claim_token(at, refreshing, Expect::Version(version)),
            Some(Record::Claimed) => Ok(self.busy(&refreshing)),
            Some(Record::Exchanged(when, body)) if at.unix <= when + GRACE => {
                match body["refresh_token"].as_str().map(TokenDigest::new) {
                    Some(next) => {
                        ask(get(token_key(&next)), Waits::Next(Box::new((refreshing, body))))
                    }
                    None => Ok(self.repeat(&refreshing, &body)),
                }
            }
            Some(Record::Exchanged(..)) => self.reused(&refreshing),
            None => Ok(self.not_known(at, &refreshing, unreadable())),
        }
    }

    /// Takes the record of the refresh token in a response: once it was used, the response has arrived, and is never repeated.
    pub(super) fn take_next(
        &mut self,
        at: &Moment,
        (refreshing, body): (Refreshing, Value),
        reply: StoreReply,
    ) -> Outcome {
        match reply {
            StoreReply::Found(None) => Ok(self.repeat(&refreshing, &body)),
            StoreReply::Found(Some((sealed, _))) => {
                match self.open_record(&refreshing.issuer, &sealed) {
                    Some(Record::Exchanged(..)) => self.reused(&refreshing),
                    Some(_) => Ok(self.repeat(&refreshing, &body)),
                    None => Ok(self.not_known(at, &refreshing, unreadable())),
                }
            }
            other => Ok(self.not_known(at, &refreshing, other)),
        }
    }

    /// Stores the response of an exchange, without which nobody gets it.
    pub(super) fn save(&mut self, at: &Moment, refreshing: Refreshing, body: Value) -> Outcome {
        self.used.keep_unsaved(refreshing.digest, body.clone(), refreshing.version);
        let left = refreshing.token.seconds_left(at.unix) + CLOCK_DIFFERENCE;
        let expect = Expect::Version(refreshing.version);
        let record = Record::Exchanged(at.unix, body.clone());
        let put = self.put(at, &refreshing, &record, left, expect);
        ask(put, Waits::Saved(Box::new((refreshing, body))))
    }

    /// Takes the reply about a response that was to be stored.
    pub(super) fn take_saved(
        &mut self,
        at: &Moment,
        (refreshing, body): (Refreshing, Value),
        reply: StoreReply,
    ) -> Response {
        match reply {
            StoreReply::Stored(_) => {
                self.used.forget_unsaved(&refreshing.digest);
                self.repeat(&refreshing, &body)
            }
            // The exchange took so long that another server may have claimed the token.
            StoreReply::Conflict => {
                self.used.forget_unsaved(&refreshing.digest);
                self.busy(&refreshing)
            }
            other => self.not_known(at, &refreshing, other),
        }
    }

    /// Gives up the claim of a refresh token, which was not exchanged.
    pub(super) fn free(&self, at: &Moment, refreshing: &Refreshing, error: OAuthError) -> Outcome {
        let expect = Expect::Version(refreshing.version);
        let put = self.put(at, refreshing, &Record::Free, CLAIM_LIFE, expect);
        let refused = Afterwards::Refused(Box::new(error), Some(refreshing.digest));
        ask(put, Waits::Afterwards(refused))
    }

    /// Revokes a grant at all servers. Afterwards comes what follows.
    pub(super) fn revoke_grant(&mut self, grant: &str, afterwards: Afterwards) -> Outcome {
        self.used.revoke(grant);
        if !self.has_store {
            return self.go_on(afterwards);
        }
        let put = StoreOperation::Put {
            key: grant_key(grant),
            value: b"1".into(),
            ttl: Duration::from_secs(REFRESH_LIFE + CLOCK_DIFFERENCE),
            expect: Expect::Any,
        };
        ask(put, Waits::Afterwards(afterwards))
    }

    /// Takes the reply about something after which a request ends.
    pub(super) fn take_afterwards(
        &mut self,
        at: &Moment,
        afterwards: Afterwards,
        reply: StoreReply,
    ) -> Outcome {
        match (reply, afterwards) {
            (StoreReply::Stored(_) | StoreReply::Conflict, afterwards) => self.go_on(afterwards),
            // The client can send it again.
            (reply, Afterwards::Revoked(_)) => Ok(self.unavailable(at, reply)),
            (reply, afterwards) => {
                // It is logged; the request is refused in any case.
                let _ = self.unavailable(at, reply);
                self.go_on(afterwards)
            }
        }
    }

    fn go_on(&mut self, afterwards: Afterwards) -> Outcome {
        match afterwards {
            Afterwards::Revoked(None) => Ok(Response::empty(StatusCode::OK)),
            Afterwards::Revoked(Some(fetch)) => Err(Interruption::Fetch(fetch, Waits::Revoked)),
            Afterwards::Refused(error, digest) => {
                if let Some(digest) = digest {
                    self.used.end_shared(&digest);
                }
                Err(Interruption::Refused(*error))
            }
        }
    }

    /// Returns the operation that tells whether the grant of an access token was revoked, if the store has to be asked.
    pub fn revocation_of(&self, issuer: &str, token: &str, unix: u64) -> Option<StoreOperation> {
        let (_, grant, _) = super::tokens::verify(&self.sealer, issuer, token, unix)?;
        let is_known = !self.has_store || self.used.is_revoked(&grant);
        (!is_known && !self.used.is_checked(&grant, unix)).then(|| get(grant_key(&grant)))
    }

    /// Takes the reply to [`revocation_of`](Self::revocation_of). Errors with the reason if the store does not know.
    pub fn take_revocation(
        &mut self,
        issuer: &str,
        token: &str,
        unix: u64,
        reply: StoreReply,
    ) -> Result<(), String> {
        let verified = super::tokens::verify(&self.sealer, issuer, token, unix);
        match (reply, verified) {
            (_, None) => Ok(()),
            (StoreReply::Found(Some(_)), Some((_, grant, _))) => {
                self.used.revoke(&grant);
                Ok(())
            }
            (StoreReply::Found(None), Some((_, grant, _))) => {
                self.used.note_checked(&grant, unix);
                Ok(())
            }
            (other, Some(_)) => Err(reason_of(other)),
        }
    }

    fn reused(&mut self, refreshing: &Refreshing) -> Outcome {
        let error = OAuthError::new("invalid_grant", "the refresh token was used before");
        let afterwards = Afterwards::Refused(Box::new(error), Some(refreshing.digest));
        self.revoke_grant(&refreshing.token.grant.id, afterwards)
    }

    fn repeat(&mut self, refreshing: &Refreshing, body: &Value) -> Response {
        self.used.end_shared(&refreshing.digest);
        Response::json(StatusCode::OK, body)
    }

    fn end_shared(&mut self, refreshing: &Refreshing, error: OAuthError) -> Outcome {
        self.used.end_shared(&refreshing.digest);
        Err(Interruption::Refused(error))
    }

    /// Returns the answer while another server exchanges the token.
    fn busy(&mut self, refreshing: &Refreshing) -> Response {
        self.used.end_shared(&refreshing.digest);
        Response::unavailable("the refresh token is being exchanged by another request")
    }

    /// Returns the answer if the store does not say whether the token may be exchanged.
    fn not_known(&mut self, at: &Moment, refreshing: &Refreshing, reply: StoreReply) -> Response {
        self.used.end_shared(&refreshing.digest);
        self.unavailable(at, reply)
    }

    fn unavailable(&mut self, at: &Moment, reply: StoreReply) -> Response {
        let reason = reason_of(reply);
        if let Some(left_out) = self.log.due(at.unix) {
            tracing::error!(
                "the store failed, so a refresh token or a revocation is not handled now: {reason}{left_out}"
            );
        }
        Response::unavailable("the server's store does not answer")
    }

    fn put(
        &self,
        at: &Moment,
        refreshing: &Refreshing,
        record: &Record,
        seconds: u64,
        expect: Expect,
    ) -> StoreOperation {
        let sealed = self.sealer.seal(Use::Exchange, &refreshing.issuer, record, at);
        StoreOperation::Put {
            key: token_key(&refreshing.digest),
            // Without a key nothing was issued either.
            value: sealed.unwrap_or_default().into_bytes(),
            ttl: Duration::from_secs(seconds),
            expect,
        }
    }

    fn open_record(&self, issuer: &str, sealed: &[u8]) -> Option<Record> {
        self.sealer.open(Use::Exchange, issuer, std::str::from_utf8(sealed).ok()?)
    }
}

fn ask(operation: StoreOperation, waits: Waits) -> Outcome {
    Err(Interruption::Store(Box::new(operation), waits))
}

fn get(key: String) -> StoreOperation {
    StoreOperation::Get { key }
}

/// Returns the key of a refresh token. The store sees its digest only.
fn token_key(digest: &TokenDigest) -> String {
    format!("oauth-refresh:{}", URL_SAFE_NO_PAD.encode(digest.0))
}

/// Returns the key of a grant that was revoked.
fn grant_key(grant: &str) -> String {
    format!("oauth-revoked:{}", URL_SAFE_NO_PAD.encode(TokenDigest::new(grant).0))
}

fn unreadable() -> StoreReply {
    StoreReply::Failed(
        "a record can't be read: all servers with one store need the same keys".into(),
    )
}

fn reason_of(reply: StoreReply) -> String {
    match reply {
        StoreReply::Failed(reason) => reason,
        _ => "the reply is that of another operation".into(),
    }
}
