//! Finds the authorization server of an MCP server (spec: "Authorization Server Discovery").

use std::{collections::VecDeque, net::IpAddr};

use super::{failure, records::ServerRecord};
use crate::{
    auth::{
        fetch::{FetchError, FetchRequest, FetchResponse, MAX_DOCUMENT, check_url, without_query},
        metadata::{ResourceMetadata, ServerMetadata, issuer_locations, resource_locations, split},
        url::{WebUrl, is_loopback},
    },
    error::Error,
};

/// The maximum number of authorization servers of which metadata are requested.
const MAX_SERVERS: usize = 8;

/// A search in progress.
#[derive(Debug)]
pub(super) struct Discovery {
    /// The URL of the MCP server; for an identity provider its issuer.
    target: String,
    /// True if the target is on this machine, so that the URLs that it names may be there as well.
    is_local: bool,
    /// The only issuer of interest.
    issuer: Option<String>,
    stage: Stage,
    /// The locations that were not tried yet.
    left: VecDeque<String>,
    /// The location whose answer is awaited.
    current: String,
    /// The locations that were tried, and the failure of each.
    problems: Vec<String>,
    /// True if a location failed otherwise than by having no document: there may be metadata.
    is_unreadable: bool,
}

#[derive(Debug)]
enum Stage {
    /// The metadata of the resource are looked for.
    Resource,
    /// The metadata of one of its authorization servers are looked for.
    Issuer { resource: Box<ResourceMetadata>, issuer: String, others: VecDeque<String> },
    /// The metadata of the authorization server at the MCP server's origin are looked for (2025-03-26).
    Origin(String),
}

/// The next step of a search.
#[derive(Debug)]
pub(super) enum Next {
    Fetch(Box<FetchRequest>),
    Found(Box<ServerRecord>),
}

impl Discovery {
    /// Begins with the metadata of the resource: at the URL that the challenge named, or else at the well-known ones. `issuer`
    /// is the authorization server at which the client is registered.
    pub(super) fn of_resource(
        target: &str,
        advertised: Option<&str>,
        issuer: Option<&str>,
    ) -> Result<(Self, FetchRequest), Error> {
        let mut left: VecDeque<_> = advertised.map(ToOwned::to_owned).into_iter().collect();
        left.extend(resource_locations(target));
        let mut found = Self {
            target: target.to_owned(),
            is_local: is_on_this_machine(target),
            issuer: issuer.map(ToOwned::to_owned),
            stage: Stage::Resource,
            left,
            current: String::new(),
            problems: Vec::new(),
            is_unreadable: false,
        };
        match found.next()? {
            Next::Fetch(request) => Ok((found, *request)),
            Next::Found(_) => Err(failure("the server's URL has no metadata")),
        }
    }

    /// Looks for the metadata of an issuer.
    pub(super) fn of_issuer(issuer: &str) -> Result<(Self, FetchRequest), Error> {
        let mut found = Self {
            target: issuer.to_owned(),
            is_local: is_on_this_machine(issuer),
            issuer: None,
            stage: Stage::Issuer {
                resource: Box::default(),
                issuer: issuer.to_owned(),
                others: VecDeque::new(),
            },
            left: issuer_locations(issuer).into(),
            current: String::new(),
            problems: Vec::new(),
            is_unreadable: false,
        };
        match found.next()? {
            Next::Fetch(request) => Ok((found, *request)),
            Next::Found(_) => Err(failure(format!("{issuer} is not a URL"))),
        }
    }

    /// Takes the answer to the last request.
    pub(super) fn take(
        &mut self,
        answer: Result<FetchResponse, FetchError>,
    ) -> Result<Next, Error> {
        match &self.stage {
            Stage::Resource => self.take_resource(answer),
            Stage::Issuer { resource, issuer, .. } => {
                let read = answer.and_then(|answer| ServerMetadata::read(&answer, issuer));
                match read.and_then(|metadata| self.check_endpoints(metadata)) {
                    Ok(metadata) => {
                        let wants_dpop = resource.dpop_bound_access_tokens_required == Some(true);
                        Ok(Next::Found(Box::new(ServerRecord {
                            resource: resource.resource.clone(),
                            scopes_supported: resource.scopes_supported.clone(),
                            metadata,
                            is_legacy: false,
                            problems: Vec::new(),
                            wants_dpop,
                        })))
                    }
                    // Metadata that contradict themselves are not looked for elsewhere.
                    Err(error @ FetchError::Url(_)) => {
                        self.note(&error);
                        self.left.clear();
                        self.next()
                    }
                    Err(error) => {
                        self.note(&error);
                        self.next()
                    }
                }
            }
            Stage::Origin(origin) => self.take_origin(&origin.clone(), answer),
        }
    }

    fn take_resource(&mut self, answer: Result<FetchResponse, FetchError>) -> Result<Next, Error> {
        match answer.and_then(|answer| ResourceMetadata::read(&answer, &self.target)) {
            Ok(resource) => self.choose_issuer(resource),
            // Metadata about another resource, or with unusable authorization servers.
            Err(FetchError::Url(problem)) => {
                Err(failure(format!("{}: {problem}", self.current)).with_hint(
                    "the server's operator must correct the metadata; nothing was sent to the authorization server",
                ))
            }
            Err(error) => {
                self.note(&error);
                self.next()
            }
        }
    }

    fn choose_issuer(&mut self, resource: ResourceMetadata) -> Result<Next, Error> {
        let all = &resource.authorization_servers;
        let mut others: VecDeque<_> = match &self.issuer {
            Some(own) if all.contains(own) => [own.clone()].into(),
            _ => all.iter().take(MAX_SERVERS).cloned().collect(),
        };
        let Some(issuer) = others.pop_front() else {
            return Err(failure(format!(
                "{}: the metadata name no authorization server",
                self.current
            )));
        };
        self.problems.clear();
        self.left = issuer_locations(&issuer).into();
        self.stage = Stage::Issuer { resource: Box::new(resource), issuer, others };
        self.next()
    }

    /// 2025-03-26, "Server Metadata Discovery": the MCP server's origin is the authorization server, with or without
    /// metadata.
    fn take_origin(
        &mut self,
        origin: &str,
        answer: Result<FetchResponse, FetchError>,
    ) -> Result<Next, Error> {
        let read = answer.and_then(|answer| {
            // The specification derives the URL from the origin, whose root some servers write with a slash.
            let exact = ServerMetadata::read(&answer, origin);
            exact.or_else(|error| {
                ServerMetadata::read(&answer, &format!("{origin}/")).map_err(|_| error)
            })
        });
        let metadata = match read.and_then(|metadata| self.check_endpoints(metadata)) {
            Ok(metadata) => metadata,
            Err(error @ FetchError::Status(status)) if status.is_client_error() => {
                self.note(&error);
                check_url(origin).map_err(|error| failure(error.to_string()))?;
                ServerMetadata {
                    issuer: origin.to_owned(),
                    authorization_endpoint: Some(format!("{origin}/authorize")),
                    token_endpoint: Some(format!("{origin}/token")),
                    registration_endpoint: Some(format!("{origin}/register")),
                    // 2025-03-26 requires PKCE of all clients, and no metadata could say so.
                    code_challenge_methods_supported: Some(vec!["S256".into()]),
                    ..ServerMetadata::default()
                }
            }
            Err(error) => {
                self.note(&error);
                return Err(failure(format!(
                    "the server requires authorization, but its metadata can't be read; {}",
                    self.problems.join("; ")
                )));
            }
        };
        Ok(Next::Found(Box::new(ServerRecord {
            resource: self.target.clone(),
            metadata,
            is_legacy: true,
            problems: std::mem::take(&mut self.problems),
            scopes_supported: None,
            wants_dpop: false,
        })))
    }

    /// Errors if a URL is on this machine but the target is not: a server elsewhere could otherwise send requests, through the
    /// client, to programs that listen here.
    fn check_place(&self, url: &str) -> Result<(), FetchError> {
        if self.is_local || !is_on_this_machine(url) {
            return Ok(());
        }
        Err(FetchError::Url(format!(
            "{}: a URL on this machine is allowed only if the server is on this machine",
            without_query(url)
        )))
    }

    fn check_endpoints(&self, metadata: ServerMetadata) -> Result<ServerMetadata, FetchError> {
        let endpoints = [
            &metadata.authorization_endpoint,
            &metadata.token_endpoint,
            &metadata.registration_endpoint,
        ];
        for endpoint in endpoints.into_iter().flatten() {
            self.check_place(endpoint)?;
        }
        Ok(metadata)
    }

    fn note(&mut self, error: &FetchError) {
        self.is_unreadable |=
            !matches!(error, FetchError::Status(status) if status.is_client_error());
        self.problems.push(format!("{}: {error}", without_query(&self.current)));
    }

    /// Continues at the next location.
    fn next(&mut self) -> Result<Next, Error> {
        loop {
            while let Some(url) = self.left.pop_front() {
                let allowed = self.check_place(&url);
                match allowed.and_then(|()| FetchRequest::get(&url, MAX_DOCUMENT)) {
                    Ok(request) => {
                        self.current = url;
                        return Ok(Next::Fetch(Box::new(request)));
                    }
                    Err(error) => {
                        self.is_unreadable = true;
                        self.problems.push(error.to_string());
                    }
                }
            }
            match &mut self.stage {
                Stage::Issuer { issuer, others, .. } => {
                    let Some(other) = others.pop_front() else {
                        return Err(failure(format!(
                            "the authorization server {issuer} has no usable metadata; {}",
                            self.problems.join("; ")
                        )));
                    };
                    self.left = issuer_locations(&other).into();
                    *issuer = other;
                }
                Stage::Resource => {
                    if self.is_unreadable {
                        return Err(failure(format!(
                            "the server requires authorization, but its metadata can't be read; {}",
                            self.problems.join("; ")
                        )));
                    }
                    let (origin, _) = split(&self.target)
                        .ok_or_else(|| failure("authorization needs a server at an https URL"))?;
                    let locations = issuer_locations(origin);
                    self.left = locations.into_iter().take(1).collect();
                    self.stage = Stage::Origin(origin.to_owned());
                }
                Stage::Origin(_) => {
                    return Err(failure(self.problems.join("; ")));
                }
            }
        }
    }
}

fn is_on_this_machine(url: &str) -> bool {
    let Ok(url) = WebUrl::parse(url) else { return false };
    let host = url.host().trim_start_matches('[').trim_end_matches([']', '.']);
    // Connections to an unspecified address reach this machine.
    is_loopback(host)
        || host.parse::<IpAddr>().is_ok_and(|address| address.to_canonical().is_unspecified())
}

#[cfg(test)]
mod tests;
