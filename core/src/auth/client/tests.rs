//! Flows of the machine against an authorization server of a few lines.

mod trust;
mod world;

use std::time::Duration;

use serde_json::json;

use self::world::*;
use super::*;
use crate::auth::challenge;

#[test]
fn a_user_signs_in_and_the_token_is_kept() {
    let mut world = World::new(interactive());
    assert!(world.want(1));
    assert_eq!(world.run(), [(Ticket(1), Ok(()))]);
    assert!(world.headers().is_none());
    assert_eq!(world.sign_in(), Ok(()));
    assert_eq!(world.token().as_deref(), Some("Bearer t1"));
    assert_eq!(world.urls(), [RESOURCE, METADATA, REGISTER, TOKEN]);
    assert!(world.opened[0].contains("&client_id=registered&"));
    let form = world.form();
    for field in [
        "grant_type=authorization_code&code=c0de&",
        "redirect_uri=http%3A%2F%2F127.0.0.1%3A7%2Fcallback",
        "resource=https%3A%2F%2Fmcp.example.com%2Fmcp",
        "client_id=registered",
    ] {
        assert!(form.contains(field), "{form}");
    }
    assert_eq!(world.outcomes, [Ok(())]);

    // Another process with the same store.
    let mut later = World::new(interactive());
    later.store = world.store.clone();
    assert!(later.want(1));
    later.run();
    assert_eq!(later.token().as_deref(), Some("Bearer t1"));
    assert!(later.asked.is_empty());
    let shown = format!("{:?}", later.machine);
    for secret in ["t1", "r1", "c0de"] {
        assert!(!shown.contains(&format!("\"{secret}\"")), "{shown}");
    }
}

#[test]
fn a_token_goes_to_its_origin_only() {
    let mut world = World::new(interactive());
    world.sign_in().unwrap();
    let moment = world.moment();
    let sent = |url: &str| world.machine.credentials(&moment, "GET", url).unwrap().is_some();
    assert!(sent("https://mcp.example.com/other?x"));
    assert!(sent("https://MCP.example.com/mcp"));
    for url in [
        "http://mcp.example.com/mcp",
        "https://mcp.example.com:444/mcp",
        "https://as.example.com/",
        "mcp",
    ] {
        assert!(!sent(url), "{url}");
    }
}

#[test]
fn many_requests_share_one_flow() {
    let mut world = World::new(interactive());
    for ticket in 0..50 {
        assert!(world.want(ticket));
    }
    assert_eq!(world.run().len(), 50);
    for ticket in 0..50 {
        let reply = world.reject(ticket, &mut Attempts::default(), 401, "Bearer");
        assert!(matches!(reply, RejectionReply::Wait));
    }
    assert!(world.want(50), "a new request waits for the user as well");
    assert_eq!(world.run().len(), 51);
    assert_eq!(world.opened.len(), 1);
}

#[test]
fn a_token_that_ends_soon_is_renewed_once() {
    let mut world = World::new(interactive());
    world.sign_in().unwrap();
    world.unix += 3539;
    assert!(!world.want(1));
    world.unix += 1;
    for ticket in 0..50 {
        assert!(world.want(ticket));
    }
    assert_eq!(world.run().len(), 50);
    assert_eq!(world.token().as_deref(), Some("Bearer t2"));
    let form = world.form();
    assert!(form.contains("grant_type=refresh_token&refresh_token=r1&resource="), "{form}");
    assert!(!form.contains("scope="), "{form}");
    assert_eq!(world.urls()[4..], [TOKEN]);
}

#[test]
fn a_token_that_another_process_renewed_is_used() {
    let mut world = World::new(interactive());
    world.sign_in().unwrap();
    let mut other = World::new(interactive());
    other.store = world.store.clone();
    other.tokens = vec![granted("other")];
    other.unix = 4_600;
    other.want(1);
    other.run();
    assert_eq!(other.token().as_deref(), Some("Bearer other"));
    world.store = other.store;
    world.unix = 4_601;
    assert!(world.want(2));
    world.run();
    assert_eq!(world.token().as_deref(), Some("Bearer other"));
    assert_eq!(world.urls().iter().filter(|url| **url == TOKEN).count(), 1);
}

#[test]
fn a_rotated_refresh_token_replaces_the_old_one() {
    let mut world = World::new(interactive());
    world.sign_in().unwrap();
    let body = json!({ "access_token": "t2", "token_type": "Bearer", "expires_in": 10, "refresh_token": "r2" });
    let kept = json!({ "access_token": "t3", "token_type": "Bearer", "expires_in": 10 });
    world.tokens = vec![(200, body), (200, kept.clone()), (200, kept)];
    for expected in ["refresh_token=r1&", "refresh_token=r2&", "refresh_token=r2&"] {
        world.unix += 5_000;
        world.want(1);
        world.run();
        assert!(world.form().contains(expected), "{}", world.form());
    }
}

#[test]
fn a_rejected_refresh_token_leads_to_a_new_sign_in() {
    let mut world = World::new(interactive());
    world.sign_in().unwrap();
    world.tokens = vec![(400, json!({ "error": "invalid_grant" })), granted("new")];
    assert_eq!(world.sign_in(), Ok(()));
    assert_eq!(world.token().as_deref(), Some("Bearer new"));
    assert_eq!(world.opened.len(), 2);
    assert_eq!(world.asked.iter().filter(|(url, _)| url == REGISTER).count(), 1);
}

#[test]
fn a_registration_that_the_authorization_server_forgot_is_made_once_more() {
    let registrations =
        |world: &World| world.asked.iter().filter(|(url, _)| url == REGISTER).count();
    let forgotten = || (401, json!({ "error": "invalid_client" }));
    let refused = || (400, json!({ "error": "invalid_grant" }));
    for (answers, opened) in [
        // At the renewal, or at the end of the sign-in that follows it.
        (vec![forgotten(), granted("new")], 2),
        (vec![refused(), forgotten(), granted("new")], 3),
    ] {
        let mut world = World::new(interactive());
        world.sign_in().unwrap();
        world.tokens = answers;
        assert_eq!(world.sign_in(), Ok(()));
        assert_eq!(world.token().as_deref(), Some("Bearer new"));
        assert_eq!((world.opened.len(), registrations(&world)), (opened, 2));
    }
    // A client that has just registered does not register again.
    let mut world = World::new(interactive());
    world.tokens = vec![forgotten(), forgotten()];
    assert!(world.sign_in().unwrap_err().contains("invalid_client"));
    assert_eq!((world.opened.len(), registrations(&world)), (1, 1));
}

#[test]
fn after_a_sign_in_that_nobody_finished_the_client_registers_again() {
    let mut world = World::new(interactive());
    world.sign_in().unwrap();
    world.tokens = vec![(400, json!({ "error": "invalid_grant" })), granted("new")];
    // The authorization server tells only the user that it does not know the client.
    world.is_user_away = true;
    assert!(world.sign_in().unwrap_err().contains("nobody signed in"));
    let mut later = World::new(interactive());
    later.store = world.store;
    later.tokens = vec![granted("new")];
    later.sign_in().unwrap();
    assert_eq!(later.asked.iter().filter(|(url, _)| url == REGISTER).count(), 1);
}

#[test]
fn an_authorization_server_that_is_busy_keeps_the_refresh_token() {
    for (status, code) in [
        (429, "slow_down"),
        (500, "server_error"),
        (503, "invalid_grant"),
        (400, "temporarily_unavailable"),
    ] {
        let mut world = World::new(interactive());
        world.sign_in().unwrap();
        world.unix += 5_000;
        world.tokens = vec![(status, json!({ "error": code })), granted("new")];
        let error = world.sign_in().unwrap_err();
        assert!(error.contains(&status.to_string()) && error.contains(code), "{error}");
        assert_eq!(world.opened.len(), 1, "{code}: the user is not asked");
        world.sign_in().unwrap();
        assert!(world.form().contains("refresh_token=r1&"), "{}", world.form());
        assert_eq!((world.opened.len(), world.token().as_deref()), (1, Some("Bearer new")));
    }
}

#[test]
fn a_failed_renewal_of_a_valid_token_is_tried_again_later() {
    let mut world = World::new(interactive());
    world.sign_in().unwrap();
    world.tokens = vec![(503, json!({})), granted("new")];
    world.unix += 3_550;
    assert!(world.want(1));
    assert_eq!(world.run(), [(Ticket(1), Ok(()))]);
    assert!(!world.want(2), "not at once");
    world.unix += 30;
    assert!(world.want(3));
    world.run();
    assert_eq!(world.token().as_deref(), Some("Bearer new"));
}

/// 2026-07-28, "Step-Up Authorization Flow".
#[test]
fn a_step_up_requests_the_union_of_scopes() {
    let mut world = World::new(interactive());
    world.want(1);
    world.run();
    let basic = r#"Bearer scope="mcp:basic""#;
    let _ = world.reject(1, &mut Attempts::default(), 401, basic);
    world.run();
    let write = r#"Bearer error="insufficient_scope", scope="mcp:write""#;
    let mut attempts = Attempts::default();
    assert!(matches!(world.reject(1, &mut attempts, 403, write), RejectionReply::Wait));
    assert!(!world.want(2), "other requests go on with the old token");
    world.run();
    assert!(world.opened[1].contains("scope=mcp%3Abasic%20mcp%3Awrite"), "{}", world.opened[1]);
    let RejectionReply::Fail(error) = world.reject(1, &mut attempts, 403, write) else { panic!() };
    assert!(error.to_string().contains("mcp:write"), "{error}");
    assert!(matches!(world.reject(3, &mut attempts, 403, "Bearer"), RejectionReply::Stands));
    assert!(matches!(world.reject(3, &mut attempts, 403, ""), RejectionReply::Stands));
}

/// Tokens belong to the client that they were granted to (RFC 6749, section 10.4).
#[test]
fn a_sign_in_that_is_declined_leaves_the_tokens_to_the_client_that_got_them() {
    let mut world = World::new(interactive());
    world.sign_in().unwrap();
    // At another port the client is registered again.
    world.port = 8;
    world.documents.insert(REGISTER.to_owned(), json!({ "client_id": "another" }));
    let allow = std::mem::replace(&mut world.redirect, |url| {
        url.replace("code=c0de", "error=access_denied")
    });
    let write = r#"Bearer error="insufficient_scope", scope="write""#;
    assert!(matches!(world.reject(1, &mut Attempts::default(), 403, write), RejectionReply::Wait));
    let declined = world.run().remove(0).1.unwrap_err();
    assert!(declined.contains("declined"), "{declined}");
    assert!(world.opened[1].contains("&client_id=another&"), "{}", world.opened[1]);

    world.unix += 5_000;
    assert!(world.want(2));
    assert_eq!(world.run(), [(Ticket(2), Ok(()))]);
    let form = world.form();
    assert!(form.contains("refresh_token=r1&") && form.ends_with("client_id=registered"), "{form}");

    world.redirect = allow;
    assert!(matches!(world.reject(3, &mut Attempts::default(), 403, write), RejectionReply::Wait));
    assert_eq!(world.run(), [(Ticket(3), Ok(()))]);
    assert!(world.form().ends_with("client_id=another"), "{}", world.form());
    world.unix += 5_000;
    assert!(world.want(4));
    world.run();
    let form = world.form();
    assert!(
        form.contains("grant_type=refresh_token") && form.ends_with("client_id=another"),
        "{form}"
    );
}

/// Each registration leaves a client at the authorization server.
#[test]
fn a_first_sign_in_that_is_declined_keeps_the_registration() {
    let mut world = World::new(interactive());
    let allow = std::mem::replace(&mut world.redirect, |url| {
        url.replace("code=c0de", "error=access_denied")
    });
    world.sign_in().unwrap_err();
    world.redirect = allow;
    world.sign_in().unwrap();
    assert_eq!(world.asked.iter().filter(|(url, _)| url == REGISTER).count(), 1);
}

#[test]
fn endless_rejections_end() {
    let mut world = World::new(interactive());
    world.want(1);
    world.run();
    let mut attempts = Attempts::default();
    for number in 0.. {
        let scope = format!("Bearer error=\"insufficient_scope\", scope=\"s{number}\"");
        let (status, header) = if number == 0 { (401, "Bearer") } else { (403, &*scope) };
        match world.reject(1, &mut attempts, status, header) {
            RejectionReply::Wait => drop(world.run()),
            RejectionReply::Fail(error) => {
                assert!(error.to_string().contains("every new token"), "{error}");
                break;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(world.opened.len(), 3);
}

#[test]
fn a_request_with_an_outdated_token_is_only_repeated() {
    let mut world = World::new(interactive());
    world.sign_in().unwrap();
    let rejection = Rejection {
        status: 401,
        challenges: challenge::parse(["Bearer error=\"invalid_token\""]),
        nonce: None,
        generation: None,
    };
    let moment = world.moment();
    let mut attempts = Attempts::default();
    for _ in 0..3 {
        let reply = world.machine.reject(&moment, Ticket(1), &mut attempts, &rejection);
        assert!(matches!(reply, RejectionReply::Repeat));
    }
    let reply = world.machine.reject(&moment, Ticket(1), &mut attempts, &rejection);
    assert!(matches!(reply, RejectionReply::Fail(_)));
}

#[test]
fn a_server_without_metadata_is_told_by_the_urls_that_have_none() {
    let mut world = World::new(interactive());
    world.documents.clear();
    let error = world.sign_in().unwrap_err();
    assert!(error.contains("no metadata were found"), "{error}");
    for path in
        ["oauth-protected-resource/mcp", "oauth-protected-resource", "oauth-authorization-server"]
    {
        let url =
            format!("https://mcp.example.com/.well-known/{path}: it answered with status 404");
        assert!(error.contains(&url), "{error}");
    }
    assert!(error.contains("RFC 9728") && !error.contains("client_id"), "{error}");
}

/// 2026-07-28, "Authorization Server Binding".
#[test]
fn credentials_of_one_authorization_server_do_not_reach_another() {
    let mut world = World::new(interactive());
    world.sign_in().unwrap();
    let other = "https://other.example.com";
    let metadata = json!({
        "issuer": other,
        "authorization_endpoint": format!("{other}/authorize"),
        "token_endpoint": TOKEN,
        "registration_endpoint": format!("{other}/register"),
        "code_challenge_methods_supported": ["S256"],
    });
    let resource = json!({ "resource": MCP, "authorization_servers": [other] });
    world.documents.insert(RESOURCE.into(), resource);
    world.documents.insert(format!("{other}/.well-known/oauth-authorization-server"), metadata);
    world.documents.insert(format!("{other}/register"), json!({ "client_id": "second" }));
    assert_eq!(world.sign_in(), Ok(()));
    assert!(world.opened[1].starts_with("https://other.example.com/authorize?"));
    assert!(world.opened[1].contains("client_id=second"));
    assert!(world.form().contains("client_id=second"));
    assert!(!world.form().contains("r1"));

    let client = RegisteredClient::with_secret("me", "s3cret");
    let grant = Grant::AuthorizationCode { client: Some(client), metadata_url: None, port: 0 };
    let mut given = World::new(settings(grant));
    given.sign_in().unwrap();
    given.documents = world.documents;
    let error = given.sign_in().unwrap_err();
    assert!(error.contains("changed from https://as.example.com"), "{error}");
    assert_eq!(given.opened.len(), 1);
}

#[test]
fn a_response_of_another_issuer_yields_no_token_request() {
    for redirect in [
        |url: String| format!("{url}&iss=https://evil.example"),
        |url: String| url.replace("state=", "state=x"),
        |url: String| url.replace("code=c0de", "error=access_denied"),
    ] {
        let mut world = World::new(interactive());
        world.redirect = redirect;
        let error = world.sign_in().unwrap_err();
        assert!(!world.urls().contains(&TOKEN), "{error}");
        assert_eq!(world.outcomes, [Err(error)]);
    }
}

#[test]
fn a_user_who_does_not_sign_in_is_given_up() {
    let mut world = World::new(interactive());
    world.want(1);
    world.run();
    let _ = world.reject(1, &mut Attempts::default(), 401, "Bearer");
    // Up to the browser.
    loop {
        match world.machine.poll() {
            Some(Output::Do(_, Task::Open { .. })) => break,
            Some(Output::Do(id, task)) => {
                let answer = world.carry_out(task);
                let moment = world.moment();
                world.machine.handle(&moment, Input::Done(id, answer));
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(world.machine.awaits_user());
    let deadline = world.machine.deadline().unwrap();
    assert_eq!(deadline, world.start + Duration::from_secs(300));
    world.unix += 299;
    let moment = world.moment();
    world.machine.handle(&moment, Input::Tick);
    assert!(world.run().is_empty());
    world.unix += 1;
    let moment = world.moment();
    world.machine.handle(&moment, Input::Tick);
    let ready = world.run();
    assert!(ready[0].1.as_ref().unwrap_err().contains("nobody signed in within 300 s"));
}

#[test]
fn a_corrupt_record_is_an_error_that_names_it() {
    let mut world = World::new(interactive());
    world.sign_in().unwrap();
    let key = format!("credentials https://as.example.com {MCP}");
    let good = world.store.clone();
    for (key, bytes, expected) in [
        (&key, &b"t0ken"[..], "is not valid"),
        (&key, &br#"{"version":2}"#[..], "version 2"),
        (&key, &br#"{"version":1,"tokens":"t0ken"}"#[..], "is not valid"),
        (&format!("server {MCP}"), &b""[..], "is not valid"),
    ] {
        let mut later = World::new(interactive());
        later.store = good.clone();
        later.store.insert(key.clone(), bytes.to_vec());
        later.want(1);
        let error = later.run().remove(0).1.unwrap_err();
        assert!(error.contains("the token store (memory)") && error.contains(expected), "{error}");
        assert!(error.contains(key.as_str()) && error.contains("delete"), "{error}");
        assert!(!error.contains("t0ken"), "{error}");
    }
}

#[test]
fn a_client_acts_for_itself() {
    let client = RegisteredClient::with_secret("me", "s3cret");
    let mut world = World::new(settings(Grant::ClientCredentials(client)));
    world.sign_in().unwrap();
    assert_eq!(world.urls(), [RESOURCE, METADATA, TOKEN]);
    let form =
        "grant_type=client_credentials&resource=https%3A%2F%2Fmcp.example.com%2Fmcp&client_id=me";
    assert_eq!(world.form(), form);
    world.unix += 3_541;
    assert!(world.want(1));
    world.run();
    assert_eq!(world.token().as_deref(), Some("Bearer t2"));
    assert_eq!(world.form(), form);
}

/// Enterprise-Managed Authorization, sections 4 and 5.
#[test]
fn an_identity_token_is_exchanged_twice() {
    let grant = Grant::EnterpriseManaged {
        client: RegisteredClient::with_secret("me", "s3cret"),
        idp: "https://idp.example.com".into(),
        idp_client: RegisteredClient::public("me-at-idp"),
    };
    let mut world = World::new(settings(grant));
    let idp = json!({ "issuer": "https://idp.example.com", "token_endpoint": TOKEN });
    world.documents.insert("https://idp.example.com/.well-known/openid-configuration".into(), idp);
    let exchanged = json!({
        "access_token": "jag", "token_type": "N_A",
        "issued_token_type": "urn:ietf:params:oauth:token-type:id-jag",
    });
    world.tokens = vec![(200, exchanged.clone()), granted("t1")];
    world.sign_in().unwrap();
    assert_eq!(world.token().as_deref(), Some("Bearer t1"));
    let forms: Vec<_> =
        world.asked.iter().filter(|(url, _)| url == TOKEN).map(|(_, body)| body.as_str()).collect();
    assert_eq!(
        forms[0],
        "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Atoken-exchange\
         &requested_token_type=urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3Aid-jag\
         &audience=https%3A%2F%2Fas.example.com&resource=https%3A%2F%2Fmcp.example.com%2Fmcp\
         &subject_token=ident1ty&subject_token_type=urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3Aid_token\
         &client_id=me-at-idp"
    );
    assert!(forms[1].contains("jwt-bearer") && forms[1].contains("assertion=jag"), "{}", forms[1]);

    let access = json!({ "access_token": "jag", "issued_token_type": "urn:ietf:params:oauth:token-type:access_token" });
    world.tokens = vec![(200, access)];
    assert!(world.sign_in().unwrap_err().contains("another type"));
    let profiles = json!(["urn:other"]);
    world.documents.get_mut(METADATA).unwrap()["authorization_grant_profiles_supported"] = profiles;
    assert!(world.sign_in().unwrap_err().contains("enterprise-managed"));
}

#[test]
fn a_failed_exchange_of_a_workloads_token_is_not_repeated() {
    let grant = Grant::WorkloadIdentity { client_id: Some("me".into()), issuer: None };
    let mut world = World::new(settings(grant));
    world.tokens =
        vec![(400, json!({ "error": "invalid_grant", "error_description": "ident1ty expired" }))];
    let error = world.sign_in().unwrap_err();
    assert!(error.contains("invalid_grant") && !error.contains("ident1ty"), "{error}");
    assert_eq!(world.urls(), [RESOURCE, METADATA, TOKEN]);
    assert!(world.form().contains("assertion=ident1ty"));
    assert!(world.form().contains("client_id=me"));
}

#[test]
fn a_bound_token_is_sent_with_proofs() {
    let mut world = World::new(SignInSettings { dpop: true, ..interactive() });
    let bound = json!({ "access_token": "t1", "token_type": "DPoP" });
    world.nonce = Some("n1");
    world.tokens = vec![(400, json!({ "error": "use_dpop_nonce" })), (200, bound)];
    world.sign_in().unwrap();
    assert_eq!(world.opened.len(), 1, "the authorization is not repeated");
    let first = world.headers().unwrap();
    assert_eq!(first.authorization, "DPoP t1");
    let second = world.headers().unwrap();
    assert_ne!(first.proof.unwrap(), second.proof.unwrap());
    let mut attempts = Attempts::default();
    let nonce = r#"DPoP error="use_dpop_nonce""#;
    for _ in 0..3 {
        assert!(matches!(world.reject(1, &mut attempts, 401, nonce), RejectionReply::Repeat));
    }
    assert!(matches!(world.reject(1, &mut attempts, 401, nonce), RejectionReply::Fail(_)));

    let mut later = World::new(SignInSettings { dpop: true, ..interactive() });
    later.store = world.store.clone();
    later.want(1);
    later.run();
    assert!(later.headers().unwrap().proof.is_some(), "the key is kept");

    let mut unbound = World::new(SignInSettings { dpop: true, ..interactive() });
    assert!(unbound.sign_in().unwrap_err().contains("not bound"));
}

#[test]
fn a_server_that_accepts_bound_tokens_only_gets_them() {
    let mut world = World::new(interactive());
    world.tokens = vec![(200, json!({ "access_token": "t1", "token_type": "DPoP" }))];
    world.want(1);
    world.run();
    let _ = world.reject(1, &mut Attempts::default(), 401, "DPoP algs=\"ES256\"");
    world.run();
    assert_eq!(world.token().as_deref(), Some("DPoP t1"));
}

#[test]
fn an_answer_to_a_step_that_is_over_is_ignored() {
    let mut world = World::new(interactive());
    world.sign_in().unwrap();
    let moment = world.moment();
    world.machine.handle(&moment, Input::Done(StepId(0), Answer::Text(Ok("x".into()))));
    world.machine.handle(&moment, Input::Done(StepId(3), Answer::Stored(Err("x".into()))));
    world.machine.handle(&moment, Input::Tick);
    assert!(world.run().is_empty());
    assert_eq!(world.token().as_deref(), Some("Bearer t1"));
}
