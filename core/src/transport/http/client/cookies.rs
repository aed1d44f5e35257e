//! The cookies of one origin, which load balancers set to send all requests of a client to the same server.
//!
//! They follow RFC 6265 as far as a client of one origin needs it: cookies are for the host that set them and no other, whatever
//! `Domain` allows.

use std::{
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use http::{HeaderMap, HeaderValue, header};

use crate::{clock, transport::Url};

/// The maximum number of cookies. The oldest makes room for another.
const MAX_COOKIES: usize = 32;
/// The maximum size of all names and values together, in bytes.
const MAX_SIZE: usize = 8192;
/// The maximum size of a cookie with its attributes, in bytes. A larger one is left out.
const MAX_COOKIE: usize = 4096;
/// The longest time for which a cookie is kept, as in browsers.
const MAX_AGE: Duration = Duration::from_secs(400 * 24 * 60 * 60);

/// The cookies that a server set.
#[derive(Default)]
pub(super) struct Cookies(Mutex<Vec<Cookie>>);

struct Cookie {
    name: String,
    value: String,
    path: String,
    /// The time at which it is no longer sent; `None` if it lasts as long as the client.
    expires: Option<Instant>,
}

/// A `Set-Cookie` header.
struct SetCookie {
    cookie: Cookie,
    /// `true` if the server removes the cookie.
    is_removed: bool,
}

impl Cookies {
    /// Takes the cookies of a response to a request for `path`. Those that the server may not set are left out.
    pub(super) fn take(&self, url: &Url, path: &str, headers: &HeaderMap) {
        let mut values = headers.get_all(header::SET_COOKIE).iter().peekable();
        if values.peek().is_none() {
            return;
        }
        let (now, date) = (clock::now(), clock::date());
        let mut cookies = self.lock();
        for value in values {
            let Some(set) = value.to_str().ok().and_then(|text| read(text, url, path, now, date))
            else {
                tracing::debug!("left out a cookie that is not valid for its server");
                continue;
            };
            cookies.retain(|known| known.name != set.cookie.name || known.path != set.cookie.path);
            if !set.is_removed {
                cookies.push(set.cookie);
            }
            while cookies.len() > MAX_COOKIES || size(&cookies) > MAX_SIZE {
                cookies.remove(0);
            }
        }
    }

    /// Adds the cookies for `path` to the headers of a request. Those in the headers that the user gave have precedence.
    pub(super) fn add(&self, path: &str, headers: &mut HeaderMap) {
        let mut cookies = self.lock();
        if cookies.is_empty() {
            return;
        }
        let now = clock::now();
        cookies.retain(|cookie| cookie.expires.is_none_or(|expires| expires > now));
        let given = headers.get(header::COOKIE).and_then(|value| value.to_str().ok());
        let given_names: Vec<_> = given
            .into_iter()
            .flat_map(|given| given.split(';'))
            .map(|pair| pair.split('=').next().unwrap_or_default().trim())
            .collect();
        let mut sent: Vec<_> = cookies
            .iter()
            .filter(|cookie| is_below(path, &cookie.path))
            .filter(|cookie| !given_names.contains(&cookie.name.as_str()))
            .collect();
        // Longer paths first (RFC 6265, section 5.4).
        sent.sort_by_key(|cookie| std::cmp::Reverse(cookie.path.len()));
        let pairs = sent.iter().map(|cookie| format!("{}={}", cookie.name, cookie.value));
        let pairs: Vec<_> = given.map(str::to_owned).into_iter().chain(pairs).collect();
        if let Ok(mut value) = HeaderValue::try_from(pairs.join("; "))
            && !pairs.is_empty()
        {
            value.set_sensitive(true);
            headers.insert(header::COOKIE, value);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Cookie>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Leaves out names and values, which may be secret.
impl fmt::Debug for Cookies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cookies").finish_non_exhaustive()
    }
}

/// Reads a `Set-Cookie` header. Returns `None` if it is not valid, or not for the server at `url`.
fn read(text: &str, url: &Url, path: &str, now: Instant, date: SystemTime) -> Option<SetCookie> {
    if text.len() > MAX_COOKIE {
        return None;
    }
    let mut parts = text.split(';').map(str::trim);
    let (name, value) = parts.next()?.split_once('=')?;
    let (name, value) = (name.trim(), value.trim());
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic());
    if !is_name || value.contains(|letter: char| letter.is_ascii_control()) {
        return None;
    }
    let mut is_secure = false;
    let (mut domain, mut given_path, mut age, mut expires) = (None, None, None, None);
    for part in parts {
        let (attribute, value) = part.split_once('=').unwrap_or((part, ""));
        let value = value.trim();
        match attribute.trim().to_ascii_lowercase().as_str() {
            "secure" => is_secure = true,
            "domain" if !value.is_empty() => domain = Some(value),
            "path" => given_path = Some(value).filter(|path| path.starts_with('/')),
            "max-age" => age = seconds(value).or(age),
            "expires" => expires = time_until(value, date).or(expires),
            _ => (),
        }
    }
    let is_own = domain.is_none_or(|domain| is_domain_of(url.host(), domain));
    let needs_secure = name.starts_with("__Secure-") || name.starts_with("__Host-");
    let is_host_only = domain.is_none() && given_path == Some("/");
    if !is_own
        || is_secure && !url.scheme().is_secure()
        || needs_secure && !is_secure
        || name.starts_with("__Host-") && !is_host_only
    {
        return None;
    }
    let lifetime = age.or(expires);
    Some(SetCookie {
        is_removed: lifetime.is_some_and(|lifetime| lifetime.is_zero()),
        cookie: Cookie {
            name: name.to_owned(),
            value: value.to_owned(),
            path: given_path.unwrap_or(default_path(path)).to_owned(),
            expires: lifetime.map(|lifetime| now + lifetime.min(MAX_AGE)),
        },
    })
}

/// Reads `Max-Age`; a negative number is zero.
fn seconds(text: &str) -> Option<Duration> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let count = if digits.len() < text.len() { 0 } else { digits.parse().unwrap_or(u64::MAX) };
    Some(Duration::from_secs(count))
}

/// Reads `Expires`; a time that has passed is zero.
fn time_until(text: &str, date: SystemTime) -> Option<Duration> {
    // Some servers write hyphens between day, month and year, as the first specification did.
    let read = httpdate::parse_http_date(text);
    let read = read.or_else(|_| httpdate::parse_http_date(&text.replace('-', " "))).ok()?;
    Some(read.duration_since(date).unwrap_or_default())
}

/// Returns the folder of a path (RFC 6265, section 5.1.4).
fn default_path(path: &str) -> &str {
    match path.rfind('/') {
        Some(end @ 1..) => &path[..end],
        _ => "/",
    }
}

/// Returns whether a request for `path` gets the cookies of another path.
fn is_below(path: &str, of: &str) -> bool {
    path.strip_prefix(of)
        .is_some_and(|rest| rest.is_empty() || of.ends_with('/') || rest.starts_with('/'))
}

/// Returns whether a host has this domain, or is below it. Addresses have no domains.
fn is_domain_of(host: &str, domain: &str) -> bool {
    let domain = domain.strip_prefix('.').unwrap_or(domain).to_ascii_lowercase();
    let host = host.to_ascii_lowercase();
    let is_name = host.parse::<std::net::IpAddr>().is_err();
    host == domain || is_name && host.strip_suffix(&domain).is_some_and(|rest| rest.ends_with('.'))
}

fn size(cookies: &[Cookie]) -> usize {
    cookies.iter().map(|cookie| cookie.name.len() + cookie.value.len()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: &http::HeaderName, values: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(name, HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    /// Returns the cookies that a request for `path` gets after a response set some for `/a/mcp`.
    fn sent(url: &str, set: &[&str], path: &str) -> String {
        let cookies = Cookies::default();
        cookies.take(&Url::parse(url).unwrap(), "/a/mcp", &headers(&header::SET_COOKIE, set));
        let mut headers = HeaderMap::new();
        cookies.add(path, &mut headers);
        let value = headers.get(header::COOKIE).map(|value| value.to_str().unwrap().to_owned());
        value.unwrap_or_default()
    }

    const URL: &str = "https://mcp.shelf.example/a/mcp";

    #[test]
    fn a_cookie_is_sent_back_with_its_path() {
        for (set, path, expected) in [
            (&["A=b; HttpOnly; SameSite=Lax"][..], "/a/mcp", "A=b"),
            (&["A=b"], "/a", "A=b"),
            (&["A=b"], "/ab", ""),
            (&["A=b"], "/", ""),
            (&["A=b; Path=/"], "/c", "A=b"),
            (&["A=b; Path=/a/mcp"], "/a/mcp/x", "A=b"),
            (&["A=b; Path=c"], "/a/mcp", "A=b"),
            (&["A=b", "A=c", "D=\"e f\"", "G=; Path=/"], "/a/mcp", "A=c; D=\"e f\"; G="),
            (&["A=b; Path=/", "A=c; Path=/a/mcp"], "/a/mcp", "A=c; A=b"),
            (&["A=b=c=="], "/a/mcp", "A=b=c=="),
        ] {
            assert_eq!(sent(URL, set, path), expected, "{set:?}");
        }
    }

    #[test]
    fn a_cookie_is_for_its_own_host_and_channel_only() {
        for (url, set, is_sent) in [
            (URL, "A=b; Domain=mcp.shelf.example", true),
            (URL, "A=b; Domain=.SHELF.example", true),
            (URL, "A=b; Domain=example", true),
            (URL, "A=b; Domain=other.example", false),
            (URL, "A=b; Domain=cp.shelf.example", false),
            (URL, "A=b; Domain=x.mcp.shelf.example", false),
            ("http://127.0.0.1:1/", "A=b; Domain=0.0.1", false),
            ("http://127.0.0.1:1/", "A=b; Domain=127.0.0.1", true),
            (URL, "A=b; Secure", true),
            ("http://a.example/", "A=b; Secure", false),
            (URL, "__Secure-A=b", false),
            (URL, "__Secure-A=b; Secure", true),
            (URL, "__Host-A=b; Secure; Path=/", true),
            (URL, "__Host-A=b; Secure", false),
            (URL, "__Host-A=b; Secure; Path=/; Domain=shelf.example", false),
            (URL, "=b", false),
            (URL, "A", false),
            (URL, "A b=c", false),
        ] {
            assert_eq!(!sent(url, &[set], "/a/mcp").is_empty(), is_sent, "{url} {set}");
        }
    }

    #[test]
    fn a_cookie_expires() {
        let url = Url::parse(URL).unwrap();
        let (now, date) =
            (Instant::now(), httpdate::parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").unwrap());
        for (attributes, seconds) in [
            ("", None),
            ("; Max-Age=60", Some(60)),
            ("; Max-Age=0", Some(0)),
            ("; Max-Age=-5", Some(0)),
            ("; Max-Age=x", None),
            ("; Max-Age=99999999999999999999999", Some(400 * 86400)),
            ("; Expires=Sun, 06 Nov 1994 08:50:37 GMT", Some(60)),
            ("; expires=Sun, 06-Nov-1994 08:50:37 GMT", Some(60)),
            ("; Expires=Thu, 01 Jan 1970 00:00:00 GMT", Some(0)),
            ("; Expires=soon", None),
            ("; Max-Age=60; Expires=Thu, 01 Jan 1970 00:00:00 GMT", Some(60)),
        ] {
            let set = read(&format!("A=b{attributes}"), &url, "/", now, date).unwrap();
            let lifetime = set.cookie.expires.map(|expires| expires - now);
            assert_eq!(lifetime, seconds.map(Duration::from_secs), "{attributes}");
            assert_eq!(set.is_removed, seconds == Some(0), "{attributes}");
        }
        assert_eq!(sent(URL, &["A=b", "C=d", "A=; Max-Age=0"], "/a"), "C=d");
    }

    #[test]
    fn cookies_are_bounded_by_number_and_bytes() {
        let many: Vec<_> = (0..100).map(|number| format!("A{number}=b")).collect();
        let sent_back = sent(URL, &many.iter().map(String::as_str).collect::<Vec<_>>(), "/a");
        assert_eq!(sent_back.split("; ").count(), MAX_COOKIES);
        assert!(sent_back.starts_with("A68=b") && sent_back.ends_with("A99=b"), "{sent_back}");
        let large: Vec<_> =
            (0..5).map(|number| format!("A{number}={}", "b".repeat(3000))).collect();
        let sent_back = sent(URL, &large.iter().map(String::as_str).collect::<Vec<_>>(), "/a");
        assert_eq!(sent_back.split("; ").count(), 2);
        assert_eq!(sent(URL, &[&format!("A={}", "b".repeat(MAX_COOKIE))], "/a"), "");
    }

    #[test]
    fn a_cookie_that_the_user_gave_has_precedence() {
        let cookies = Cookies::default();
        let set = headers(&header::SET_COOKIE, &["A=server", "B=server"]);
        cookies.take(&Url::parse(URL).unwrap(), "/a", &set);
        let mut headers = headers(&header::COOKIE, &["A=user; C=user"]);
        cookies.add("/a", &mut headers);
        assert_eq!(headers[header::COOKIE], "A=user; C=user; B=server");
        assert!(!format!("{cookies:?} {headers:?}").contains("server"));
    }
}
