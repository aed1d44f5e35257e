//! The server as a protected resource: its identifier and its Protected Resource Metadata (RFC 9728).

use serde_json::{Value, json};

use crate::auth::metadata::{RESOURCE_PATH, split};

/// The rules by which a server finds its own identifier.
#[derive(Clone, Debug, Default)]
pub struct Resource {
    /// The origin of the server's public URL, if it is configured.
    origin: Option<String>,
    /// The path of that URL, if it has one, without a slash at its end.
    public_path: Option<String>,
    /// The path of the endpoint; `None`: the path at which the host mounted it.
    path: Option<String>,
}

/// The address of a request.
#[derive(Clone, Copy, Debug)]
pub struct Arrived<'a> {
    /// The `Host` header, or the host that a trusted proxy names.
    pub host: &'a str,
    /// `true` if it names this server: the address on the loopback interface at which the request arrived, or a configured
    /// host. Otherwise it does not count.
    pub is_own: bool,
    pub is_encrypted: bool,
    pub path: &'a str,
    /// The prefix below which the host has mounted the endpoint; it may be empty.
    pub mount: &'a str,
}

/// The URLs of a request's resource.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ResourceUrls {
    /// The identifier of the resource, which tokens name as their audience.
    pub resource: String,
    /// The URL of its document.
    pub metadata: String,
    /// The URL of the request, as its client knows it.
    pub url: String,
}

/// The facts that a document has beside the identifier.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Facts {
    /// The issuers whose tokens are accepted.
    pub issuers: Vec<String>,
    /// `true` if the server is an issuer itself, by its OAuth proxy.
    pub is_issuer: bool,
    pub scopes: Vec<String>,
    pub name: Option<String>,
    /// The algorithms of proofs; empty if tokens are not bound to keys.
    pub dpop_algorithms: Vec<&'static str>,
    pub needs_dpop: bool,
}

impl Resource {
    /// Creates the rules from the server's public URL and the path of its endpoint.
    pub fn new(public_url: Option<&str>, path: Option<&str>) -> Self {
        let (origin, rest) = public_url.and_then(split).unzip();
        let public_path = rest.map(|rest| rest.split(['?', '#']).next().unwrap_or_default());
        let public_path = public_path.map(trimmed).filter(|path| !path.is_empty());
        Self {
            origin: origin.map(str::to_ascii_lowercase),
            public_path: public_path.map(ToOwned::to_owned),
            path: path.map(|path| trimmed(path).to_owned()),
        }
    }

    /// Returns the URLs for a request. Returns `None` if the server's URL is not configured and the request came from another
    /// machine, because its `Host` header could name any resource.
    pub fn place(&self, arrived: &Arrived<'_>) -> Option<ResourceUrls> {
        let origin = match &self.origin {
            Some(origin) => origin.clone(),
            None if arrived.is_own && !arrived.host.is_empty() => {
                let scheme = if arrived.is_encrypted { "https" } else { "http" };
                format!("{scheme}://{}", arrived.host.to_ascii_lowercase())
            }
            None => return None,
        };
        let below = match document_path(arrived.path) {
            // The request is for the document itself.
            Some((before, behind)) => format!("{before}{behind}"),
            None => arrived.path.to_owned(),
        };
        let path = match (&self.public_path, &self.path) {
            (Some(path), _) | (None, Some(path)) => path.clone(),
            (None, None) => trimmed(&below).to_owned(),
        };
        // A proxy or a host forwards only what is below its prefix, so the document is there as well.
        let (removed, rest) = removed_prefix(&path, trimmed(&below));
        let mount = trimmed(arrived.mount);
        let (mount, rest) = match rest.strip_prefix(mount) {
            Some(below) if below.is_empty() || below.starts_with('/') => (mount, below),
            _ => ("", rest),
        };
        // Behind a proxy that rewrites paths, the endpoint has another path than clients know.
        let own = self.path.as_ref().filter(|own| trimmed(arrived.path) == **own);
        let url = match (&self.public_path, own) {
            (Some(public), Some(own)) => format!("{origin}{public}{}", &arrived.path[own.len()..]),
            _ => format!("{origin}{}", arrived.path),
        };
        Some(ResourceUrls {
            metadata: format!("{origin}{removed}{mount}{RESOURCE_PATH}{rest}"),
            url,
            resource: format!("{origin}{path}"),
        })
    }

    /// Returns whether this is the path of the endpoint: its own, the one that clients use, or the root of the host.
    pub fn has_path(&self, path: &str) -> bool {
        let path = trimmed(path);
        match &self.path {
            None => true,
            Some(own) => {
                path.is_empty() || path == own || Some(path) == self.public_path.as_deref()
            }
        }
    }

    /// Returns whether a path is that of the document: of the endpoint, or of the whole host.
    pub fn has_document_at(&self, path: &str) -> bool {
        let Some((before, behind)) = document_path(path) else { return false };
        match &self.path {
            None => true,
            Some(_) if !before.is_empty() => false,
            Some(_) => self.has_path(behind),
        }
    }
}

impl Facts {
    /// Returns whether there is a document, which is the case if clients can learn from it where to sign in.
    pub fn has_document(&self) -> bool {
        self.is_issuer || !self.issuers.is_empty()
    }

    /// Returns the document as JSON.
    pub fn document(&self, resource: &str) -> Value {
        let own = self.is_issuer.then_some(resource);
        let issuers: Vec<_> =
            own.into_iter().chain(self.issuers.iter().map(String::as_str)).collect();
        let mut document = json!({
            "resource": resource,
            "authorization_servers": issuers,
            "bearer_methods_supported": ["header"],
        });
        if !self.scopes.is_empty() {
            document["scopes_supported"] = json!(self.scopes);
        }
        if let Some(name) = self.name.as_ref().filter(|name| !name.is_empty()) {
            document["resource_name"] = json!(name);
        }
        if !self.dpop_algorithms.is_empty() {
            document["dpop_signing_alg_values_supported"] = json!(self.dpop_algorithms);
        }
        if self.needs_dpop {
            document["dpop_bound_access_tokens_required"] = json!(true);
        }
        document
    }
}

/// Splits a path around the well-known part of a document's path.
fn document_path(path: &str) -> Option<(&str, &str)> {
    let (before, behind) = path.split_once(RESOURCE_PATH)?;
    (behind.is_empty() || behind.starts_with('/')).then_some((before, behind))
}

/// Splits the path that clients know into the prefix that was removed on the way, which may be empty, and the path that arrived.
fn removed_prefix<'a>(public: &'a str, arrived: &str) -> (&'a str, &'a str) {
    match public.strip_suffix(arrived) {
        Some(removed) if arrived.starts_with('/') => public.split_at(removed.len()),
        _ => ("", public),
    }
}

fn trimmed(path: &str) -> &str {
    path.trim_end_matches('/')
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that fails here says where")]

    use super::*;

    fn arrived<'a>(host: &'a str, path: &'a str, mount: &'a str) -> Arrived<'a> {
        Arrived { host, is_own: true, is_encrypted: false, path, mount }
    }

    #[test]
    fn an_endpoint_on_this_machine_has_the_url_of_the_request() {
        let resource = Resource::new(None, Some("/mcp"));
        let place = resource.place(&arrived("LOCALHOST:8000", "/mcp/", "")).unwrap();
        assert_eq!(place.resource, "http://localhost:8000/mcp");
        assert_eq!(place.url, "http://localhost:8000/mcp/");
        let expected = "http://localhost:8000/.well-known/oauth-protected-resource/mcp";
        assert_eq!(place.metadata, expected);
        let root = Resource::new(None, Some("/"));
        let place = root.place(&arrived("localhost", "/", "")).unwrap();
        assert_eq!(place.resource, "http://localhost");
        assert_eq!(place.metadata, "http://localhost/.well-known/oauth-protected-resource");
        // Anyone can write any host into a request.
        let foreign = Arrived { is_own: false, ..arrived("evil.example", "/mcp", "") };
        assert_eq!(resource.place(&foreign), None);
    }

    #[test]
    fn a_public_url_counts_before_the_request() {
        for (public_url, resource) in [
            ("https://Mcp.Example.com", "https://mcp.example.com/mcp"),
            ("https://mcp.example.com/", "https://mcp.example.com/mcp"),
            ("https://mcp.example.com/team/mcp/", "https://mcp.example.com/team/mcp"),
        ] {
            let rules = Resource::new(Some(public_url), Some("/mcp"));
            let foreign = Arrived { is_own: false, ..arrived("evil.example", "/mcp", "") };
            assert_eq!(rules.place(&foreign).unwrap().resource, resource);
        }
    }

    /// A proof names the URL that its client called (RFC 9449, section 4.2).
    #[test]
    fn behind_a_proxy_that_rewrites_paths_a_request_has_the_public_url() {
        let rules = Resource::new(Some("https://x.example/api/mcp"), Some("/mcp"));
        for (path, url) in [
            ("/mcp", "https://x.example/api/mcp"),
            ("/mcp/", "https://x.example/api/mcp/"),
            ("/api/mcp", "https://x.example/api/mcp"),
            ("/sse", "https://x.example/sse"),
        ] {
            assert_eq!(rules.place(&arrived("localhost", path, "")).unwrap().url, url);
        }
    }

    #[test]
    fn a_document_is_at_the_path_of_its_resource_and_at_the_root() {
        let resource = Resource::new(None, Some("/mcp"));
        for path in [RESOURCE_PATH, "/.well-known/oauth-protected-resource/mcp"] {
            assert!(resource.has_document_at(path));
            let place = resource.place(&arrived("localhost", path, "")).unwrap();
            assert_eq!(place.resource, "http://localhost/mcp");
        }
        for path in [
            "/mcp",
            "/.well-known/oauth-protected-resource/other",
            "/x/.well-known/oauth-protected-resource",
            "/.well-known/oauth-protected-resources",
        ] {
            assert!(!resource.has_document_at(path), "{path}");
        }
    }

    #[test]
    fn below_a_prefix_the_document_is_below_it_too() {
        let resource = Resource::new(None, None);
        let place = resource.place(&arrived("localhost", "/sub/mcp", "/sub")).unwrap();
        assert_eq!(place.resource, "http://localhost/sub/mcp");
        let expected = "http://localhost/sub/.well-known/oauth-protected-resource/mcp";
        assert_eq!(place.metadata, expected);
        let path = "/sub/.well-known/oauth-protected-resource/mcp";
        assert!(resource.has_document_at(path));
        let asked = resource.place(&arrived("localhost", path, "/sub")).unwrap();
        assert_eq!((asked.resource, asked.metadata), (place.resource, place.metadata));
        let whole = resource.place(&arrived("localhost", "/sub/", "/sub/")).unwrap();
        assert_eq!(whole.resource, "http://localhost/sub");
        assert_eq!(whole.metadata, "http://localhost/sub/.well-known/oauth-protected-resource");
        let other = resource.place(&arrived("localhost", "/mcp", "")).unwrap();
        assert_eq!(other.metadata, "http://localhost/.well-known/oauth-protected-resource/mcp");
    }

    /// A proxy or a host that removes a prefix forwards nothing at the root.
    #[test]
    fn below_a_prefix_that_is_removed_the_document_is_below_it_too() {
        let metadata = |public: &str, own: Option<&str>, path: &str, mount: &str| {
            let rules = Resource::new(Some(&format!("https://x.example{public}")), own);
            let place = rules.place(&arrived("localhost", path, mount)).unwrap();
            assert_eq!(place.resource, format!("https://x.example{public}"));
            place.metadata.strip_prefix("https://x.example").unwrap().to_owned()
        };
        let below = "/api/.well-known/oauth-protected-resource/mcp";
        assert_eq!(metadata("/api/mcp", Some("/mcp"), "/mcp", ""), below);
        assert_eq!(metadata("/api/mcp", Some("/mcp"), "/mcp/", ""), below);
        assert_eq!(metadata("/api/mcp", None, "/mcp", ""), below);
        assert_eq!(
            metadata("/api/mcp", Some("/mcp"), "/.well-known/oauth-protected-resource/mcp", ""),
            below
        );
        assert_eq!(
            metadata("/api/app/mcp", None, "/app/mcp", "/app"),
            "/api/app/.well-known/oauth-protected-resource/mcp"
        );
        // A path that arrives unchanged, or is replaced by another.
        let at_root = "/.well-known/oauth-protected-resource/api/mcp";
        assert_eq!(metadata("/api/mcp", Some("/api/mcp"), "/api/mcp", ""), at_root);
        assert_eq!(metadata("/api/mcp", Some("/other"), "/other", ""), at_root);
        assert!(
            Resource::new(Some("https://x.example/api/mcp"), Some("/mcp"))
                .has_document_at(RESOURCE_PATH)
        );
    }

    #[test]
    fn a_document_names_what_there_is() {
        let facts = Facts { issuers: vec!["https://as.example.com".into()], ..Facts::default() };
        assert_eq!(
            facts.document("https://mcp.example.com/mcp").to_string(),
            r#"{"resource":"https://mcp.example.com/mcp","authorization_servers":["https://as.example.com"],"bearer_methods_supported":["header"]}"#
        );
        let facts = Facts {
            scopes: vec!["a".into()],
            name: Some("Shelf".into()),
            dpop_algorithms: vec!["ES256"],
            needs_dpop: true,
            ..facts
        };
        let document = facts.document("x");
        assert_eq!(document["scopes_supported"], json!(["a"]));
        assert_eq!(document["resource_name"], "Shelf");
        assert_eq!(document["dpop_signing_alg_values_supported"], json!(["ES256"]));
        assert_eq!(document["dpop_bound_access_tokens_required"], true);
    }
}
