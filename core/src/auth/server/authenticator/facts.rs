//! The facts about the methods of a server that its metadata and challenges publish.

use super::{Authenticator, Dpop, Method};
use crate::auth::server::{jwk::Algorithm, resource::Facts};

impl Authenticator {
    /// Returns the facts of the Protected Resource Metadata.
    pub fn facts(&self) -> Facts {
        let mut facts = Facts::default();
        for method in &self.methods {
            let scopes = match method {
                Method::Jwt(it) => &it.scopes,
                Method::Introspection(it, _) => &it.scopes,
                Method::Proxy(it) => {
                    facts.is_issuer = true;
                    it.scopes()
                }
                _ => continue,
            };
            let issuer = method.issuer();
            facts.issuers.extend(issuer.filter(|issuer| !facts.issuers.contains(issuer)).cloned());
            for scope in scopes {
                // Not a scope of the resource (Authorization, "Scope Selection Strategy").
                if scope == "offline_access" && matches!(method, Method::Proxy(_)) {
                    continue;
                }
                if !facts.scopes.contains(scope) {
                    facts.scopes.push(scope.clone());
                }
            }
        }
        let dpop: Vec<_> = self.dpop().collect();
        if dpop.iter().any(|mode| *mode != Dpop::Off) {
            facts.dpop_algorithms = Algorithm::all().into_iter().map(Algorithm::name).collect();
        }
        facts.needs_dpop = self.needs_dpop();
        facts
    }

    /// Returns whether every token has to be bound to a key, so that challenges ask for that.
    pub fn needs_dpop(&self) -> bool {
        let mut dpop = self.dpop().peekable();
        let is_needed = |mode: Dpop| matches!(mode, Dpop::Required | Dpop::WithNonce);
        dpop.peek().is_some()
            && dpop.all(is_needed)
            && !self.methods.iter().any(Method::takes_bearer)
    }

    fn dpop(&self) -> impl Iterator<Item = Dpop> + '_ {
        self.methods.iter().filter_map(|method| match method {
            Method::Jwt(jwt) => Some(jwt.dpop),
            _ => None,
        })
    }
}
