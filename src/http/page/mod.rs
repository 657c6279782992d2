//! The page for people at `/`: its files, which are in the binary, and how they are served.
//!
//! There is nothing to build: what is in this folder is what a browser gets. The page loads nothing from
//! elsewhere and may not: its Content-Security-Policy names no other place than this node. What it shows, it
//! asks the API for like any other client, and sees what its token may see.

use std::fmt::Write as _;
use std::sync::LazyLock;

use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;

use crate::http::render::reply::body_response;

/// Only files of this node, no inline script or style, no frames, and no text that becomes markup.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
);
/// A browser asks whether the file is still the same each time: the next version of the service has others.
const ALWAYS_ASK: HeaderValue = HeaderValue::from_static("no-cache");
const NO_REFERRER: HeaderValue = HeaderValue::from_static("no-referrer");
const SAME_ORIGIN: HeaderValue = HeaderValue::from_static("same-origin");
const CROSS_ORIGIN_OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");

const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");
const CSS: HeaderValue = HeaderValue::from_static("text/css; charset=utf-8");
const SCRIPT: HeaderValue = HeaderValue::from_static("text/javascript; charset=utf-8");
const SVG: HeaderValue = HeaderValue::from_static("image/svg+xml");

const INDEX: &str = "index.html";

/// One file.
pub struct Asset {
    name: &'static str,
    text: &'static str,
    kind: HeaderValue,
    /// Says which content it is, in quotes.
    tag: String,
}

macro_rules! assets {
    ($($kind:ident $name:literal),* $(,)?) => {
        [$(Asset::new($name, include_str!($name), $kind)),*]
    };
}

static ASSETS: LazyLock<[Asset; 15]> = LazyLock::new(|| {
    assets![
        HTML "index.html",
        CSS "style.css",
        SVG "icon.svg",
        SCRIPT "app.js",
        SCRIPT "api.js",
        SCRIPT "board.js",
        SCRIPT "boards.js",
        SCRIPT "chart.js",
        SCRIPT "dom.js",
        SCRIPT "live.js",
        SCRIPT "member.js",
        SCRIPT "nodes.js",
        SCRIPT "parts.js",
        SCRIPT "rejects.js",
        SCRIPT "top.js",
    ]
});

impl Asset {
    fn new(name: &'static str, text: &'static str, kind: HeaderValue) -> Self {
        let digest = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
        let mut tag = String::from("\"");
        for byte in digest.as_ref().iter().take(16) {
            let _ = write!(tag, "{byte:02x}");
        }
        tag.push('"');
        Self { name, text, kind, tag }
    }

    fn serve(&'static self, headers: &HeaderMap) -> Response {
        let mut tags = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
        let is_same = |tag: &str| tag == "*" || tag.trim_start_matches("W/") == self.tag;
        let is_known = tags.any(|tags| tags.split(',').map(str::trim).any(is_same));
        let mut response = if is_known {
            let mut response = Response::default();
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            response
        } else {
            body_response(StatusCode::OK, self.kind.clone(), self.text)
        };
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_SECURITY_POLICY, POLICY);
        headers.insert(header::CACHE_CONTROL, ALWAYS_ASK);
        headers.insert(header::REFERRER_POLICY, NO_REFERRER);
        headers.insert(CROSS_ORIGIN_OPENER_POLICY, SAME_ORIGIN);
        // Digits and letters between quotes.
        HeaderValue::from_str(&self.tag).map(|tag| headers.insert(header::ETAG, tag)).ok();
        response
    }
}

/// All files.
#[cfg(test)]
pub fn assets() -> &'static [Asset] {
    &*ASSETS
}

/// What is at a path, if it is one of the page's.
///
/// # Arguments
/// `headers`: of the request. A browser that has the file already gets no second one.
pub fn at(path: &str, headers: &HeaderMap) -> Option<Response> {
    let name = if path == "/" { INDEX } else { path.strip_prefix("/page/")? };
    Some(ASSETS.iter().find(|asset| asset.name == name)?.serve(headers))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn text(name: &str) -> &'static str {
        assets().iter().find(|asset| asset.name == name).expect("it is one of them").text
    }

    fn scripts() -> impl Iterator<Item = &'static Asset> {
        assets().iter().filter(|asset| asset.kind == SCRIPT)
    }

    #[test]
    fn every_file_of_the_folder_is_served_and_every_file_that_is_asked_for_is_there() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/http/page");
        let files = std::fs::read_dir(folder).expect("the source is there");
        let names = files.map(|file| file.expect("it can be read").file_name().into_string().expect("UTF-8"));
        let there: BTreeSet<String> = names.filter(|name| name != "mod.rs").collect();
        let served: BTreeSet<String> = assets().iter().map(|asset| asset.name.to_owned()).collect();
        assert_eq!(there, served);
        for asset in assets() {
            for part in asset.text.split(['"', '\'']) {
                // Modules name one another beside them; in paths of the API a dot is no beginning.
                let beside = part.strip_prefix("./").filter(|_| asset.kind == SCRIPT);
                let name = part.strip_prefix("/page/").or(beside);
                assert!(name.is_none_or(|name| served.contains(name)), "{} asks for {part}", asset.name);
            }
        }
    }

    #[test]
    fn nothing_names_another_host_or_leaves_a_way_around_the_policy() {
        for asset in assets() {
            // The one address is a name of the SVG format, which nothing is loaded from.
            let text = asset.text.replace("http://www.w3.org/2000/svg", "");
            for word in ["http://", "https://", "//cdn", "@import", "innerHTML", "outerHTML"] {
                assert!(!text.contains(word), "{} has {word}", asset.name);
            }
            for word in ["insertAdjacentHTML", "document.write", "eval(", "localStorage", "document.cookie"] {
                assert!(!text.contains(word), "{} has {word}", asset.name);
            }
        }
        let index = text("index.html");
        assert!(!index.contains("style=") && !index.contains("<style"), "no inline style");
        let inline = index.split("<script").skip(1).any(|script| !script.contains("\"></script>"));
        assert!(!inline, "no inline script");
        let handlers = index.split_whitespace().filter(|word| word.starts_with("on") && word.contains('='));
        assert_eq!(handlers.count(), 0, "nor in an attribute");
        assert!(!text("style.css").contains("url("), "the style loads nothing");
    }

    #[test]
    fn every_path_that_the_page_asks_for_is_in_the_openapi_document() {
        let document: serde_json::Value =
            serde_json::from_str(&crate::http::openapi_json()).expect("it is JSON");
        let paths = document["paths"].as_object().expect("paths");
        let mut asked = BTreeSet::new();
        for script in scripts() {
            let texts = script.text.split('"').filter(|text| text.starts_with("/v1/"));
            asked.extend(texts.map(|text| text.split('?').next().unwrap_or_default()));
        }
        assert!(asked.len() >= 9, "{asked:?}");
        for path in asked {
            assert!(paths.contains_key(path), "{path} is none of the API");
        }
    }

    #[test]
    fn a_file_that_the_browser_has_is_not_sent_again() {
        let mut headers = HeaderMap::new();
        let first = at("/page/app.js", &headers).expect("it is there");
        let tag = first.headers().get(header::ETAG).expect("a tag").clone();
        headers.insert(header::IF_NONE_MATCH, tag);
        let again = at("/page/app.js", &headers).expect("it is there");
        assert_eq!((first.status(), again.status()), (StatusCode::OK, StatusCode::NOT_MODIFIED));
        assert_eq!(at("/page/style.css", &headers).expect("another").status(), StatusCode::OK);
        for other in ["/page/", "/page/mod.rs", "/page/../mod.rs", "/pages", "/page/app.js/"] {
            assert!(at(other, &headers).is_none(), "{other}");
        }
    }
}
