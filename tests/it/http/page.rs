//! The page for people: its headers, and what it shows in a real browser.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::browser::Browser;
use crate::support::client::entry_path;
use crate::support::node::Node;
use crate::support::raw::{ask, get};
use crate::support::tokens::new_token;

/// Widths and heights of a phone and of a desk, and the colours.
const SIZES: [(u32, u32, &str); 4] =
    [(390, 844, "light"), (390, 844, "dark"), (1_280, 900, "light"), (1_280, 900, "dark")];

#[test]
fn the_page_comes_with_a_strict_policy_and_is_sent_once() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("tokens.toml");
    let (_, lines) = new_token(&["--scope", "read", "--name", "a"]);
    std::fs::write(&file, lines).expect("it can be written");
    let node = Node::flags(&["--tokens", file.to_str().expect("UTF-8")]).start();
    // It needs no token, as it says nothing of boards.
    let index = get(node.address(), "/");
    assert!(index.starts_with("HTTP/1.1 200 "), "{index}");
    let (head, body) = index.split_once("\r\n\r\n").expect("a head");
    for header in [
        "content-type: text/html; charset=utf-8",
        "cache-control: no-cache",
        "referrer-policy: no-referrer",
        "x-content-type-options: nosniff",
        "cross-origin-opener-policy: same-origin",
    ] {
        assert!(head.contains(header), "{header} in {head}");
    }
    let policy = head.lines().find_map(|line| line.strip_prefix("content-security-policy: "));
    let policy = policy.expect("there is one");
    assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self';"), "{policy}");
    for weakness in ["unsafe", "*", "http:", "https:", "data:", "blob:"] {
        assert!(!policy.contains(weakness), "{weakness} in {policy}");
    }
    assert!(body.contains("<title>ranktree</title>"));
    let script = get(node.address(), "/page/app.js");
    assert!(script.contains("content-type: text/javascript"), "{script}");
    let tag = script.lines().find_map(|line| line.strip_prefix("etag: ")).expect("a tag").trim();
    let again = format!(
        "GET /page/app.js HTTP/1.1\r\nhost: localhost\r\nif-none-match: {tag}\r\nconnection: close\r\n\r\n"
    );
    let again = ask(node.address(), &again);
    assert!(again.starts_with("HTTP/1.1 304 ") && again.ends_with("\r\n\r\n"), "{again}");
    assert!(get(node.address(), "/page/nothing.js").starts_with("HTTP/1.1 404 "));
}

/// Saves a picture of the view in each size, if `SCREENSHOTS` names a folder, and holds that nothing
/// of it is wider than the window.
fn look(browser: &mut Browser, name: &str) {
    for (width, height, scheme) in SIZES {
        browser.resize(width, height, scheme);
        browser.wait(&format!("innerWidth === {width}"));
        let wide = browser.eval("document.scrollingElement.scrollWidth");
        assert!(wide.as_u64() <= Some(u64::from(width)), "{name} is {wide} wide in a window of {width}");
        if let Some(folder) = std::env::var_os("SCREENSHOTS") {
            browser.picture(&Path::new(&folder).join(format!("{name}-{width}-{scheme}.png")));
        }
    }
    // A name for everything that can be used.
    let nameless = "[...document.querySelectorAll('button, a, input, select, textarea')].filter((element) => \
        !element.textContent.trim() && !element.getAttribute('aria-label') && !element.labels?.length).length";
    assert_eq!(browser.eval(nameless), 0, "{name} has something without a name");
    assert_eq!(browser.complaints(), Vec::<String>::new(), "{name}");
}

#[test]
fn a_person_makes_the_first_board_and_sees_it_change() {
    let Some(mut browser) = Browser::start() else { return };
    let node = Node::shards(2).start();
    let client = node.client();
    browser.open(node.base());
    browser.wait_for("There are no boards yet");
    look(&mut browser, "empty");
    browser.click("button", "Load the sample");
    browser.wait("location.hash === '#/boards/sample'");
    browser.wait_for("500 entries");
    browser.wait("document.querySelector('.chart .column')");
    look(&mut browser, "board");
    // Without anything being loaded again.
    assert_eq!(client.put(&entry_path("sample", "zoë <b>"), &json!({"score": 999_999})).0, 200);
    browser.wait("document.querySelector('tbody td.member')?.textContent === 'zoë <b>'");
    browser.wait_for("501 entries");
    browser.click("td.member button", "zoë <b>");
    browser.wait_for("percentile");
    browser.wait("document.querySelector('.chart .place-name')?.textContent === 'zoë <b>'");
    assert_eq!(browser.eval("document.querySelector('tr[aria-current] td').textContent"), "1");
    look(&mut browser, "member");
    let friends = "document.getElementById('friends').value = 'oak-206\\nnobody\\n zoë <b> '";
    browser.eval(friends);
    browser.click("button", "Compare");
    browser.wait_for("Not on the board: nobody");
    browser.click("a", "Last");
    browser.wait_for("Page 21 of 21");
    browser.click(".tabs a", "day");
    browser.wait("document.querySelector('.tabs a[aria-current]')?.textContent === 'day'");
    browser.wait_for("501 entries");
    // What no board has is told in the words of the node.
    browser.eval("location.hash = '#/boards/nowhere'");
    browser.wait_for("there is no board of this name");
    assert!(
        browser.complaints().iter().all(|complaint| complaint.contains("404")),
        "the browser says so too"
    );

    assert_eq!(client.put(&entry_path("sample", "late"), &json!({"score": 1, "version": 5})).0, 200);
    assert_eq!(client.put(&entry_path("sample", "late"), &json!({"score": 1, "version": 5})).0, 409);
    browser.click("nav a", "Rejects");
    browser.wait("document.querySelector('td code')?.textContent === 'stale_version'");
    look(&mut browser, "rejects");
    browser.click("nav a", "Shards and nodes");
    browser.wait_for("Ready");
    browser.wait("document.querySelectorAll('tbody tr').length >= 2");
    look(&mut browser, "nodes");
    browser.click("nav a", "Boards");
    browser.wait("document.querySelector('td.member a')?.textContent === 'sample'");
    look(&mut browser, "boards");
    browser.eval("document.activeElement.blur()");
    browser.open(&format!("{}/#/rejects", node.base()));
    browser.wait_for("Jobs that were refused");
    assert_eq!(
        client.send(ureq::http::Method::DELETE, "/v1/boards/sample", None).expect("it answers").0,
        200
    );
}

#[test]
fn a_token_is_asked_for_and_kept_in_no_storage() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("tokens.toml");
    let (reader, reader_lines) = new_token(&["--name", "reader", "--scope", "read", "--board-prefix", "eu-"]);
    let (game, game_lines) = new_token(&["--name", "game", "--scope", "write"]);
    std::fs::write(&file, format!("{reader_lines}\n{game_lines}")).expect("it can be written");
    let node = Node::flags(&["--tokens", file.to_str().expect("UTF-8")]).start();
    let client = node.client().with_token(&game);
    for board in ["eu-arena", "us-arena"] {
        assert_eq!(client.put(&entry_path(board, "a"), &json!({"score": 1})).0, 200);
    }
    browser.open(node.base());
    browser.wait("document.getElementById('token-dialog').open");
    let enter = |browser: &mut Browser, token: &str| {
        browser.eval(&format!("document.getElementById('token-input').value = {}", json!(token)));
        browser.click("dialog button", "Use this token");
    };
    enter(&mut browser, "rkt_no-such-token-0123456789abcdef");
    browser.wait("document.getElementById('token-dialog').open");
    browser.wait("document.getElementById('token-why').textContent.includes('does not know this token')");
    enter(&mut browser, &reader);
    browser.wait_for("eu-arena");
    let text = browser.eval("document.body.innerText");
    assert!(!text.as_str().expect("text").contains("us-arena"), "only what it may see");
    browser.click("td.member a", "eu-arena");
    browser.wait_for("Live");
    let stored = browser
        .eval("JSON.stringify([Object.keys(localStorage), Object.keys(sessionStorage), document.cookie])");
    assert_eq!(stored, r#"[[],[],""]"#);
    assert_eq!(browser.eval("document.documentElement.outerHTML.includes('rkt_') && !document.querySelector('[placeholder^=rkt_]')"), Value::Bool(false));
    // A token that is taken back ends the watch, and another one is asked for.
    std::fs::write(&file, game_lines).expect("it can be written");
    browser.wait("document.getElementById('token-dialog').open");
    browser.wait("document.getElementById('token-why').textContent.includes('does not know this token')");
    // The first thing that the keyboard reaches leads past the header.
    browser.open(&format!("{}/?keyboard#/boards", node.base()));
    browser.wait("document.getElementById('token-dialog').open");
    browser.click("dialog button", "Cancel");
    browser.eval("document.activeElement.blur(), scrollTo(0, 0)");
    browser.press_tab();
    browser.wait("document.activeElement !== document.body");
}
