//! The authorization endpoint, and the page that asks the user.

use http::{Method, StatusCode};

use super::{
    super::{
        authorization_request::{AuthorizationRequest, Redirect},
        message::{Form, OAuthError, Request, Response, escape},
    },
    Interruption, Outcome, TestServer,
    config::Consent,
};
use crate::auth::{moment::Moment, scopes};

/// The path to which the page sends the user's decision.
pub(super) const DECISION: &str = "/authorize/decision";

impl TestServer {
    pub(super) fn authorize(&mut self, at: &Moment, request: &Request) -> Outcome {
        let form = match request.method {
            Method::POST => Form::of_body(request)?,
            _ => Form::of_query(request)?,
        };
        let client = match self.client(form.require("client_id").map_err(shown)?) {
            Ok(client) => client,
            Err(Interruption::Refused(error)) => return Err(shown(error)),
            Err(fetch) => return Err(fetch),
        };
        // Without a registered redirect URL, the browser stays here.
        let redirect = Redirect::read(&form, &client).map_err(shown)?;
        let read = AuthorizationRequest::read(&form, &client, redirect.clone());
        let read = read.and_then(|request| {
            self.check_target(&request.scopes, request.resource.as_deref())?;
            Ok(request)
        });
        let request = match read {
            Ok(request) => request,
            Err(error) => return Ok(self.redirected(&redirect, Err(&error))),
        };
        match self.config.consent {
            Consent::Automatic => Ok(self.approve(at, &request)),
            Consent::Deny => Ok(self.deny(&request)),
            Consent::Page => {
                let id = at.id("consent");
                let page = consent_page(&id, &request);
                self.consents.insert(id, request);
                Ok(page)
            }
        }
    }

    /// Takes the user's decision on the page.
    pub(super) fn decide(&mut self, at: &Moment, request: &Request) -> Outcome {
        let form = Form::of_body(request)?;
        let asked = self.consents.remove(&form.require("id")?.to_owned());
        let unknown =
            || OAuthError::new("invalid_request", "the request is unknown, or was decided");
        let asked = asked.ok_or_else(unknown)?;
        Ok(match form.get("decision")? {
            Some("allow") => self.approve(at, &asked),
            _ => self.deny(&asked),
        })
    }

    fn approve(&mut self, at: &Moment, request: &AuthorizationRequest) -> Response {
        let code = at.id("code");
        self.codes.issue(&code, request, &self.config.subject, at.unix);
        self.redirected(&request.redirect, Ok(&code))
    }

    fn deny(&self, request: &AuthorizationRequest) -> Response {
        let error = OAuthError::new("access_denied", "the user declined");
        self.redirected(&request.redirect, Err(&error))
    }

    fn redirected(&self, redirect: &Redirect, outcome: Result<&str, &OAuthError>) -> Response {
        redirect.response(self.faults.response_issuer.as_deref().unwrap_or(&self.issuer), outcome)
    }
}

/// Makes an error one that the user sees, because it may not be sent to a redirect URL.
pub(super) fn shown(error: OAuthError) -> Interruption {
    OAuthError { status: StatusCode::BAD_REQUEST, header: None, ..error }.into()
}

fn consent_page(id: &str, request: &AuthorizationRequest) -> Response {
    let client = escape(request.client_name.as_deref().unwrap_or(&request.client_id));
    let fact = |name: &str, value: &str| match value.is_empty() {
        true => String::new(),
        false => format!("<dt>{name}<dd>{}", escape(value)),
    };
    let content = format!(
        "<p><strong>{client}</strong> wants to act for you.</p><dl>{}{}{}</dl>\
         <form method=post action=\"{DECISION}\"><input type=hidden name=id value=\"{id}\">\
         <button name=decision value=allow>Allow</button>\
         <button name=decision value=deny>Deny</button></form>",
        fact("Server", request.resource.as_deref().unwrap_or_default()),
        fact("Scopes", &scopes::join(&request.scopes)),
        fact("Returns to", &request.redirect.uri),
    );
    Response::page(StatusCode::OK, "Allow access?", &content)
}
