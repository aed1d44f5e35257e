//! The pages that users see in their browser while they sign in.

/// The value of the header `Content-Security-Policy`: the page has the style below, loads nothing, and is shown in no frame.
/// `form-action` is left out, because browsers apply it to the redirects after a form, too.
pub(crate) const POLICY: &str = "default-src 'none'; style-src 'sha256-FB+p88F7eB/fudJViSC75rDBaOt0yD2ztjEl1R7A+Jk='; base-uri 'none'; frame-ancestors 'none'";

const STYLE: &str = ":root{color-scheme:light dark;font:1rem/1.5 system-ui,sans-serif}\
    body{max-width:30rem;margin:12vh auto;padding:0 1.25rem;overflow-wrap:anywhere}\
    h1{font-size:1.5rem;line-height:1.25}\
    dt{font-size:.875rem;opacity:.75}\
    dd{margin:0 0 .75rem}\
    form{display:flex;gap:.75rem;margin:1.5rem 0}\
    button{flex:1;font:inherit;padding:.6rem;border:1px solid;border-radius:.5rem;background:none;color:inherit;cursor:pointer}\
    button:first-of-type{background:#1a5fb4;border-color:#1a5fb4;color:#fff}";

/// Returns a page. `content` is HTML: texts in it have to be [`escape`]d.
pub(crate) fn html(title: &str, content: &str) -> String {
    let title = escape(title);
    format!(
        "<!doctype html><html lang=en><meta charset=utf-8>\
         <meta name=viewport content=\"width=device-width,initial-scale=1\">\
         <title>{title}</title><style>{STYLE}</style><main><h1>{title}</h1>{content}</main></html>"
    )
}

/// Makes a string safe for HTML.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    use sha2::{Digest as _, Sha256};

    use super::*;

    #[test]
    fn the_policy_allows_the_style() {
        let hash = STANDARD.encode(Sha256::digest(STYLE));
        assert!(POLICY.contains(&format!("style-src 'sha256-{hash}';")), "{hash}");
    }

    #[test]
    fn texts_are_safe() {
        let page = html("<b>", &escape("\"&<script>"));
        assert!(page.contains("<title>&lt;b&gt;</title>"), "{page}");
        assert!(page.ends_with("&quot;&amp;&lt;script&gt;</main></html>"), "{page}");
    }
}
