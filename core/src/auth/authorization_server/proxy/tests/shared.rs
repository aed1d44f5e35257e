//! Two servers with one store: what one of them exchanged or revoked counts at the other.

use serde_json::{Value, json};

use super::{
    super::{super::test_server::AuthFaults, *},
    world::{World, provider},
};

/// A world, and a second server at the same address, with the same keys, provider and store.
struct Servers {
    world: World,
    other: OAuthProxy,
    id: String,
}

impl Servers {
    fn new() -> Self {
        let mut world = World::new(&json!({ "faults": { "errors": { "token": 0 } } }));
        let other = || OAuthProxy::new(provider(), None, &[b"key"], b"");
        let [mut here, mut there] = [other(), other()];
        here.use_store();
        there.use_store();
        world.proxy = here;
        let id = world.register();
        let mut servers = Self { world, other: there, id };
        // So that it has the metadata of the provider.
        assert_eq!(servers.refresh_there("wrong").0, 400);
        servers
    }

    /// Signs in at the first server. Returns the tokens.
    fn sign_in(&mut self) -> Value {
        let code = self.world.sign_in(&self.id);
        let (status, tokens) = self.world.redeem(&self.id, &code);
        assert_eq!(status, 200, "{tokens}");
        tokens
    }

    fn swap(&mut self) {
        std::mem::swap(&mut self.world.proxy, &mut self.other);
    }

    /// Performs something at the second server.
    fn there<T>(&mut self, act: impl FnOnce(&mut World, &str) -> T) -> T {
        self.swap();
        let done = act(&mut self.world, &self.id.clone());
        self.swap();
        done
    }

    fn refresh(&mut self, token: &str) -> (u16, Value) {
        self.world.refresh(&self.id.clone(), token)
    }

    fn refresh_there(&mut self, token: &str) -> (u16, Value) {
        self.there(|world, id| world.refresh(id, token))
    }

    fn revoke(&mut self, token: &str) -> u16 {
        let fields = [("client_id", self.id.clone()), ("token", token.to_owned())];
        self.world.post(OAuthEndpoint::Revoke, &fields).0
    }

    fn asked_provider(&self) -> usize {
        self.world.fetched.iter().filter(|url| url.ends_with("/token")).count()
    }
}

fn refresh_of(tokens: &Value) -> String {
    tokens["refresh_token"].as_str().unwrap_or_else(|| panic!("{tokens}")).to_owned()
}

fn access_of(tokens: &Value) -> String {
    tokens["access_token"].as_str().unwrap_or_else(|| panic!("{tokens}")).to_owned()
}

#[test]
fn a_response_that_may_have_been_lost_is_repeated_by_every_server() {
    let mut servers = Servers::new();
    let first = refresh_of(&servers.sign_in());
    let (status, second) = servers.refresh(&first);
    assert_eq!(status, 200, "{second}");
    let asked = servers.asked_provider();
    servers.world.unix += 60;
    assert_eq!(servers.refresh_there(&first), (200, second.clone()));
    assert_eq!(servers.refresh(&first), (200, second));
    assert_eq!(servers.asked_provider(), asked);
}

/// RFC 9700, section 4.14.2.
#[test]
fn a_token_that_was_used_at_one_server_is_reused_at_the_other_and_everything_of_its_sign_in_ends() {
    let mut servers = Servers::new();
    let signed_in = servers.sign_in();
    let first = refresh_of(&signed_in);
    let (_, second) = servers.refresh(&first);
    servers.world.unix += 61;
    let (status, refused) = servers.refresh_there(&first);
    assert_eq!((status, &refused["error"]), (400, &json!("invalid_grant")));
    for tokens in [&signed_in, &second] {
        assert_eq!(servers.world.accepts(&access_of(tokens)), Some(false));
        assert_eq!(servers.there(|world, _| world.accepts(&access_of(tokens))), Some(false));
    }
    assert_eq!(servers.refresh(&refresh_of(&second)).0, 400);
}

#[test]
fn a_response_is_not_repeated_once_its_refresh_token_was_used_at_another_server() {
    let mut servers = Servers::new();
    let first = refresh_of(&servers.sign_in());
    let (_, second) = servers.refresh(&first);
    let (status, third) = servers.refresh_there(&refresh_of(&second));
    assert_eq!(status, 200, "{third}");
    assert_eq!(servers.refresh(&first).0, 400);
    assert_eq!(servers.refresh_there(&refresh_of(&third)).0, 400, "all ended");
}

#[test]
fn one_of_two_servers_exchanges_a_token() {
    let mut servers = Servers::new();
    let first = refresh_of(&servers.sign_in());
    let fields = [
        ("grant_type", "refresh_token".to_owned()),
        ("client_id", servers.id.clone()),
        ("refresh_token", first.clone()),
    ];
    let begun = servers.world.begin_post(OAuthEndpoint::Token, &fields);
    let digest = TokenDigest::new(&first);
    let ProxyStep::Store(operation, flow) = begun else { panic!("{begun:?}") };
    assert_eq!(flow.refreshes(), Some(digest));
    let again = servers.world.begin_post(OAuthEndpoint::Token, &fields);
    assert!(matches!(again, ProxyStep::Wait(same) if same == digest), "{again:?}");
    let reply = servers.world.store(operation);
    let moment = servers.world.moment();
    let claim = servers.world.proxy.stored(&moment, flow, reply);
    let ProxyStep::Store(operation, flow) = claim else { panic!("{claim:?}") };
    let StoreOperation::Put { key, ttl, .. } = &operation else { panic!("{operation:?}") };
    assert!(key.starts_with("oauth-refresh:") && !key.contains(&first), "{key}");
    assert_eq!(ttl.as_secs(), 60, "a server that is gone holds it for a minute");
    let reply = servers.world.store(operation);
    let moment = servers.world.moment();
    let exchange = servers.world.proxy.stored(&moment, flow, reply);
    assert!(matches!(exchange, ProxyStep::Fetch(..)), "{exchange:?}");
    let (status, busy) = servers.refresh_there(&first);
    assert_eq!((status, &busy["error"]), (503, &json!("temporarily_unavailable")));
    let done = servers.world.carry_on(exchange);
    assert_eq!(done.status, 200);
    let body: Value = serde_json::from_slice(&done.body).unwrap();
    assert_eq!(servers.refresh_there(&first), (200, body));
}

#[test]
fn the_claim_of_a_server_that_is_gone_ends() {
    let mut servers = Servers::new();
    let first = refresh_of(&servers.sign_in());
    servers.swap();
    let fields = [
        ("grant_type", "refresh_token".to_owned()),
        ("client_id", servers.id.clone()),
        ("refresh_token", first.clone()),
    ];
    let mut step = servers.world.begin_post(OAuthEndpoint::Token, &fields);
    while let ProxyStep::Store(operation, flow) = step {
        let reply = servers.world.store(operation);
        let moment = servers.world.moment();
        step = servers.world.proxy.stored(&moment, flow, reply);
    }
    servers.swap();
    assert_eq!(servers.refresh(&first).0, 503);
    servers.world.unix += 61;
    assert_eq!(servers.refresh(&first).0, 200);
}

#[test]
fn a_revocation_counts_at_every_server() {
    let mut servers = Servers::new();
    let tokens = servers.sign_in();
    let (access, refresh) = (access_of(&tokens), refresh_of(&tokens));
    assert_eq!(servers.there(|world, _| world.accepts(&access)), Some(true));
    assert_eq!(servers.revoke(&refresh), 200);
    assert!(servers.world.fetched.iter().any(|url| url.ends_with("/revoke")));
    assert_eq!(servers.world.accepts(&access), Some(false));
    assert_eq!(servers.refresh_there(&refresh).0, 400);
    // It learned that; a server that asked a moment ago learns it within half a minute.
    assert_eq!(servers.there(|world, _| world.accepts(&access)), Some(false));
    let tokens = servers.sign_in();
    let access = access_of(&tokens);
    assert_eq!(servers.there(|world, _| world.accepts(&access)), Some(true));
    servers.revoke(&access);
    servers.world.unix += 30;
    assert_eq!(servers.there(|world, _| world.accepts(&access)), Some(false));
}

#[test]
fn a_code_that_is_used_twice_ends_its_sign_in_at_every_server() {
    let mut servers = Servers::new();
    let code = servers.world.sign_in(&servers.id.clone());
    let (_, tokens) = servers.world.redeem(&servers.id.clone(), &code);
    assert_eq!(servers.there(|world, id| world.redeem(id, &code)).0, 400);
    assert_eq!(servers.world.accepts(&access_of(&tokens)), Some(false));
}

#[test]
fn nothing_is_granted_while_the_store_is_away() {
    let mut servers = Servers::new();
    let tokens = servers.sign_in();
    let (access, refresh) = (access_of(&tokens), refresh_of(&tokens));
    servers.world.is_store_away = true;
    let asked = servers.asked_provider();
    let (status, refused) = servers.refresh(&refresh);
    assert_eq!((status, &refused["error"]), (503, &json!("temporarily_unavailable")));
    assert_eq!(servers.revoke(&refresh), 503);
    assert_eq!(servers.world.accepts(&access), Some(false), "it was revoked here");
    assert_eq!(servers.there(|world, _| world.accepts(&access)), None);
    assert_eq!(servers.asked_provider(), asked, "the token of the provider is not used up");
    servers.world.is_store_away = false;
    assert_eq!(servers.there(|world, _| world.accepts(&access)), Some(true));
    assert_eq!(servers.revoke(&refresh), 200);
    assert_eq!(servers.refresh_there(&refresh).0, 400);
}

#[test]
fn a_response_that_could_not_be_stored_is_given_once_it_is() {
    let mut servers = Servers::new();
    let first = refresh_of(&servers.sign_in());
    let fields = [
        ("grant_type", "refresh_token".to_owned()),
        ("client_id", servers.id.clone()),
        ("refresh_token", first.clone()),
    ];
    let mut step = servers.world.begin_post(OAuthEndpoint::Token, &fields);
    while let ProxyStep::Store(operation, flow) = step {
        let reply = servers.world.store(operation);
        let moment = servers.world.moment();
        step = servers.world.proxy.stored(&moment, flow, reply);
    }
    servers.world.are_writes_lost = true;
    let lost = servers.world.carry_on(step);
    assert_eq!(lost.status, 503);
    assert!(lost.headers.contains_key(header::RETRY_AFTER));
    let asked = servers.asked_provider();
    servers.world.are_writes_lost = false;
    let (status, tokens) = servers.refresh(&first);
    assert_eq!(status, 200, "{tokens}");
    assert_eq!(servers.asked_provider(), asked);
    assert_eq!(servers.refresh_there(&first), (200, tokens));
}

#[test]
fn a_refresh_that_failed_can_be_repeated_at_every_server() {
    let mut servers = Servers::new();
    let first = refresh_of(&servers.sign_in());
    let faults = AuthFaults { errors: [("token".to_owned(), 1)].into(), ..AuthFaults::default() };
    servers.world.provider.set_faults(faults).unwrap();
    assert_eq!(servers.refresh(&first).0, 503);
    assert_eq!(servers.refresh_there(&first).0, 200);
}
