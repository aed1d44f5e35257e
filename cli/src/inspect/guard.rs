//! Decides which requests are of the user's own page: the address has a secret path, the first visit a token that is
//! good once, and every later request a cookie.
//!
//! The cookie is bound to the path because browsers send the cookies of 127.0.0.1 to every port of it.

use std::sync::atomic::{AtomicBool, Ordering};

use gudgeon::auth::is_equal;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header, request::Parts};

const COOKIE: &str = "gudgeon-inspect";
/// Headers of every response.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
    img-src data: blob:; media-src data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
    require-trusted-types-for 'script'; trusted-types 'none'";
const HEADERS: [(&str, &str); 7] = [
    ("content-security-policy", POLICY),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cache-control", "no-store"),
];

/// The secrets of one inspector.
pub struct Guard {
    port: u16,
    path: String,
    token: String,
    cookie: String,
    is_token_used: AtomicBool,
}

/// A request that may be answered.
#[derive(Debug, Eq, PartialEq)]
pub struct Admitted<'a> {
    /// The path below the secret one, without a slash at its start.
    pub path: &'a str,
    /// The cookie to set, for the first visit.
    pub cookie: Option<String>,
}

/// The status and the reason of a request that is refused.
pub type Refusal = (StatusCode, &'static str);

impl Guard {
    pub fn new(port: u16) -> Result<Self, getrandom::Error> {
        let (path, token, cookie) = (secret()?, secret()?, secret()?);
        Ok(Self { port, path, token, cookie, is_token_used: AtomicBool::new(false) })
    }

    /// Returns the URL that opens the page once.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/{}/?token={}", self.port, self.path, self.token)
    }

    /// Checks a request.
    pub fn admit<'a>(&self, head: &'a Parts) -> Result<Admitted<'a>, Refusal> {
        self.check_origin(head)?;
        let unknown = (
            StatusCode::FORBIDDEN,
            "This address needs the token of the URL that `gudgeon inspect` printed.",
        );
        let path = head.uri.path().strip_prefix('/').ok_or(unknown)?;
        let (given, path) = path.split_once('/').ok_or(unknown)?;
        if !is_equal(given.as_bytes(), self.path.as_bytes()) {
            return Err(unknown);
        }
        if self.has_cookie(&head.headers) {
            return Ok(Admitted { path, cookie: None });
        }
        let token =
            head.uri.query().and_then(|query| query.strip_prefix("token=")).ok_or(unknown)?;
        let is_visit = head.method == Method::GET && path.is_empty();
        if !is_visit || !is_equal(token.as_bytes(), self.token.as_bytes()) {
            return Err(unknown);
        }
        if self.is_token_used.swap(true, Ordering::Relaxed) {
            return Err((
                StatusCode::FORBIDDEN,
                "This URL was opened before, and works once. Use the page that it opened, or start `gudgeon inspect` again.",
            ));
        }
        // Not `Strict`: browsers leave such a cookie out where the page is loaded again that a file led to.
        let cookie =
            format!("{COOKIE}={}; Path=/{}/; HttpOnly; SameSite=Lax", self.cookie, self.path);
        Ok(Admitted { path, cookie: Some(cookie) })
    }

    /// Rejects the requests of other pages (`Origin`), and names that were pointed at this machine (`Host`).
    fn check_origin(&self, head: &Parts) -> Result<(), Refusal> {
        let hosts = ["127.0.0.1", "localhost"].map(|host| format!("{host}:{}", self.port));
        let text = |name| head.headers.get(name).map(|value| value.to_str().unwrap_or_default());
        let host = text(header::HOST).unwrap_or_default();
        if !hosts.iter().any(|known| known == host) {
            return Err((
                StatusCode::MISDIRECTED_REQUEST,
                "The Host header is not of this inspector.",
            ));
        }
        let of_other = (StatusCode::FORBIDDEN, "The request comes from a page of another origin.");
        match text(header::ORIGIN) {
            Some(origin) if origin.strip_prefix("http://") != Some(host) => return Err(of_other),
            // Browsers send it with every POST.
            None if head.method != Method::GET => return Err(of_other),
            _ => (),
        }
        // A link to the page is the only request that another page may make; without the cookie it needs the token.
        let is_navigation =
            text(header::HeaderName::from_static("sec-fetch-mode")) == Some("navigate");
        match text(header::HeaderName::from_static("sec-fetch-site")) {
            None | Some("same-origin" | "none") => Ok(()),
            Some(_) if is_navigation => Ok(()),
            Some(_) => Err(of_other),
        }
    }

    fn has_cookie(&self, headers: &HeaderMap) -> bool {
        let cookies =
            headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut values =
            cookies.flat_map(|value| value.split("; ")).filter_map(|cookie| cookie.split_once('='));
        values.any(|(name, value)| {
            name == COOKIE && is_equal(value.as_bytes(), self.cookie.as_bytes())
        })
    }
}

/// Adds the headers that every response has.
pub fn protect(headers: &mut HeaderMap) {
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

/// Returns 32 random bytes in hexadecimal.
fn secret() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)?;
    Ok(bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}")))
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn head(guard: &Guard, method: &str, path: &str, headers: &[(&str, &str)]) -> Parts {
        let mut request = Request::builder().method(method).uri(format!("/{}{path}", guard.path));
        if !headers.iter().any(|header| header.0 == "host") {
            request = request.header("host", "127.0.0.1:80");
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    fn status(guard: &Guard, method: &str, path: &str, headers: &[(&str, &str)]) -> u16 {
        guard
            .admit(&head(guard, method, path, headers))
            .map_or_else(|refusal| refusal.0.as_u16(), |_| 200)
    }

    #[test]
    fn the_token_opens_the_page_once() {
        let guard = Guard::new(80).unwrap();
        assert_eq!(status(&guard, "GET", "/", &[]), 403);
        assert_eq!(status(&guard, "GET", "/?token=guess", &[]), 403);
        let visit = format!("/?token={}", guard.token);
        assert_eq!(status(&guard, "GET", &format!("/api/events?token={}", guard.token), &[]), 403);
        let first = head(&guard, "GET", &visit, &[]);
        let cookie = guard.admit(&first).unwrap().cookie.unwrap();
        assert!(cookie.ends_with("; HttpOnly; SameSite=Lax"));
        assert_eq!(status(&guard, "GET", &visit, &[]), 403);
        let cookie = cookie.split(';').next().unwrap();
        assert_eq!(status(&guard, "GET", "/", &[("cookie", cookie)]), 200);
        assert_eq!(status(&guard, "GET", "/", &[("cookie", "gudgeon-inspect=guess")]), 403);
    }

    #[test]
    fn other_origins_and_hosts_are_refused() {
        let guard = Guard::new(80).unwrap();
        let cookie = format!("{COOKIE}={}", guard.cookie);
        let with = |name, value| {
            let headers = [("cookie", &*cookie), (name, value)];
            status(&guard, "POST", "/api/call", &headers)
        };
        assert_eq!(with("origin", "http://127.0.0.1:80"), 200);
        assert_eq!(with("origin", "http://localhost:80"), 403);
        assert_eq!(with("origin", "http://127.0.0.1:81"), 403);
        assert_eq!(with("origin", "null"), 403);
        assert_eq!(with("x", "no origin"), 403);
        let get = |headers: &[(&str, &str)]| status(&guard, "GET", "/", headers);
        assert_eq!(get(&[("cookie", &cookie), ("host", "evil.example:80")]), 421);
        assert_eq!(get(&[("cookie", &cookie), ("sec-fetch-site", "cross-site")]), 403);
        assert_eq!(
            get(&[
                ("cookie", &cookie),
                ("sec-fetch-site", "same-site"),
                ("sec-fetch-mode", "no-cors")
            ]),
            403
        );
        assert_eq!(get(&[("cookie", &cookie), ("sec-fetch-site", "none")]), 200);
    }

    #[test]
    fn another_path_is_refused() {
        let guard = Guard::new(80).unwrap();
        let request =
            Request::builder().uri("/other/").header("host", "localhost:80").body(()).unwrap();
        assert!(guard.admit(&request.into_parts().0).is_err());
    }
}
