//! The page with boards, ids, addresses and nodes that are out of the ordinary: it shows nothing wrong,
//! nothing old, and never nothing. Each test opens the views in a real browser, where there is one.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use ureq::http::Method;

use crate::support::browser::Browser;
use crate::support::client::{Client, entry_path};
use crate::support::nats::Nats;
use crate::support::node::Node;
use crate::support::toggled_link::ToggledLink;
use crate::support::tokens::new_token;

/// The texts of the first row of the table with the top, cell by cell.
const FIRST_ROW: &str =
    "[...document.querySelectorAll('tbody tr')[0].cells].map((cell) => cell.textContent).join('|')";
const HEAD: &str =
    "[...document.querySelectorAll('thead tr')[0].cells].map((cell) => cell.textContent).join('|')";
const STATE: &str = "document.querySelector('.panel .state')?.textContent";

fn define(client: &Client, board: &str, definition: &Value) {
    let (status, answer) = client.put(&format!("/v1/boards/{board}"), definition);
    assert!([200, 201].contains(&status), "{answer}");
}

fn put(client: &Client, board: &str, member: &str, job: &Value) {
    let (status, answer) = client.put(&entry_path(board, member), job);
    assert_eq!(status, 200, "{answer}");
}

/// Opens a view of the page that is open.
fn go(browser: &mut Browser, hash: &str) {
    browser.eval(&format!("location.hash = {}", json!(hash)));
}

fn text(browser: &mut Browser, expression: &str) -> String {
    browser.eval(expression).as_str().map(str::to_owned).unwrap_or_default()
}

/// Nothing of a view is wider than a phone.
fn fits_a_phone(browser: &mut Browser, view: &str) {
    browser.resize(390, 844, "light");
    browser.wait("innerWidth === 390");
    let wide = browser.eval("document.scrollingElement.scrollWidth");
    assert!(wide.as_u64() <= Some(390), "{view} is {wide} wide");
    browser.resize(1_280, 900, "light");
}

#[test]
fn an_instance_that_has_ended_is_called_ended_or_final_and_never_live() {
    let Some(mut browser) = Browser::start() else { return };
    let node = Node::start();
    let client = node.client();
    let now = Timestamp::now();
    let ago = |hours: i64| (now - SignedDuration::from_hours(hours)).to_string();
    // The third season began twelve hours ago.
    let season = json!({"starts": ago(60), "every": "1d"});
    let with_grace = |grace: &str| {
        let (windows, keep, movement) = (["season", "all"], 12, true);
        json!({"windows": windows, "season": season, "keep": keep, "grace": grace, "movement": movement})
    };
    define(&client, "cup", &with_grace("30d"));
    for (member, hours) in [("first", 50), ("second", 30), ("third", 1)] {
        put(&client, "cup", member, &json!({"score": 7, "at": ago(hours)}));
    }
    browser.open(&format!("{}/#/boards/cup?window=s2", node.base()));
    browser.wait_for("ended, and open for scores that come late");
    browser.wait(&format!("{STATE} === 'Ended, open for late scores'"));
    // It closes while somebody looks at it.
    define(&client, "cup", &with_grace("5m"));
    browser.wait_for("closed: its standings are final");
    browser.wait(&format!("{STATE} === 'Final'"));
    assert_eq!(browser.eval("document.getElementById('instances').value"), "s2");
    go(&mut browser, "#/boards/cup?window=s1");
    browser.wait("document.querySelector('tbody td.member')?.textContent === 'first'");
    browser.wait(&format!("{STATE} === 'Final'"));
    assert!(!text(&mut browser, "document.body.innerText").contains("Live"));
    // The current one, by its name and by its window's.
    for hash in ["#/boards/cup?window=s3", "#/boards/cup?window=season", "#/boards/cup?window=all"] {
        go(&mut browser, hash);
        browser.wait("document.querySelector('tbody td.member')?.textContent !== 'first'");
        browser.wait(&format!("{STATE} === 'Live'"));
    }
    // None of them is there. The node says why, once, and the windows that there are can be chosen.
    for (window, why) in [
        ("s9", "s9 has not begun"),
        ("day", "the board has no window day"),
        ("2026-W01", "the board has no window week"),
        ("nonsense", "nonsense"),
    ] {
        go(&mut browser, &format!("#/boards/cup?window={window}"));
        browser.wait_for(why);
        browser.wait_for("Show all");
        assert_eq!(browser.eval("document.querySelectorAll('[role=alert]').length"), 1, "{window}");
        browser.wait("document.querySelectorAll('.tabs a').length === 2");
    }
    browser.click("a", "Show all");
    browser.wait(&format!("{STATE} === 'Live'"));
}

#[test]
fn each_key_of_a_score_has_a_column_and_a_card_of_its_own() {
    let Some(mut browser) = Browser::start() else { return };
    let node = Node::start();
    let client = node.client();
    let key = |number: usize| {
        let order = if number.is_multiple_of(2) { "desc" } else { "asc" };
        json!({"name": format!("key {number}"), "order": order})
    };
    let keys: Vec<Value> = (0..8).map(key).collect();
    define(&client, "wide", &json!({"keys": keys, "windows": ["all", "day"], "movement": true}));
    let score = json!([i64::MAX, i64::MIN, 0, -1, 9_007_199_254_740_993_i64, 1, 2, 3]);
    put(&client, "wide", "a", &json!({ "score": score }));
    browser.open(&format!("{}/#/boards/wide?member=a", node.base()));
    browser.wait("document.querySelectorAll('.card').length >= 8");
    browser.wait("document.querySelectorAll('tbody td.member').length >= 2");
    let head =
        "Position|Rank|Member|key 0|key 1 ↑|key 2|key 3 ↑|key 4|key 5 ↑|key 6|key 7 ↑|Moved, day|Updated";
    browser.wait(&format!("{HEAD} === {}", json!(head)));
    let row = text(&mut browser, FIRST_ROW);
    let cells =
        "1|1|a|9,223,372,036,854,775,807|-9,223,372,036,854,775,808|0|-1|9,007,199,254,740,993|1|2|3|new|";
    assert!(row.starts_with(cells), "{row}");
    let cards = text(
        &mut browser,
        "[...document.querySelectorAll('.card')].map((card) => [...card.children].map((part) => part.textContent).join('=')).join('|')",
    );
    assert!(cards.contains("9,007,199,254,740,993=key 4|1=key 5 ↑|"), "{cards}");
    browser.wait_for("Distribution of key 0");
    browser.wait("document.querySelector('.chart .place-name')?.textContent === 'a'");
    fits_a_phone(&mut browser, "a board of eight keys");
    // Scores that may be too high say by how much.
    define(&client, "counted", &json!({"kind": "top_k", "capacity": 2}));
    for member in ["a", "b", "c"] {
        put(&client, "counted", member, &json!({ "score": 5 }));
    }
    go(&mut browser, "#/boards/counted?member=c");
    browser.wait_for("too high by at most");
    browser.wait(&format!("{HEAD}.includes('Too high by')"));
}

#[test]
fn an_address_that_is_none_says_so() {
    let Some(mut browser) = Browser::start() else { return };
    let node = Node::start();
    let client = node.client();
    put(&client, "arena", "m", &json!({ "score": 1 }));
    browser.open(node.base());
    let is_list = "document.querySelector('td.member a')?.textContent === 'arena'";
    browser.wait(is_list);
    for nonsense in
        ["#/constructor", "#/boards/%", "#/nodes/1", "#nonsense", "#/board", "#/rejects?reason=%E0%A4"]
    {
        go(&mut browser, nonsense);
        browser.wait("document.title.startsWith('Not found')");
        browser.wait(&format!(
            "document.querySelector('[role=alert] code').textContent === {}",
            json!(nonsense)
        ));
        browser.click("a", "Boards");
        browser.wait(is_list);
    }
    // A slash is part of a board's name, encoded or not: these are addresses of a board that is not there.
    for hash in ["#/boards/arena%2Fb", "#/boards/arena/b"] {
        go(&mut browser, hash);
        browser.wait("document.title === 'arena/b · ranktree' && document.querySelector('[role=alert]')");
        assert_eq!(browser.eval("document.querySelector('tbody')"), Value::Null);
        go(&mut browser, "#/nodes");
        browser.wait_for("Ready");
    }
    for (hash, why) in [
        ("#/boards/arena?windw=day", "this view has nothing called “windw”"),
        ("#/boards/arena?page=0", "“page” is a whole number from 1 on, and not “0”"),
        ("#/boards/arena?page=abc", "and not “abc”"),
        ("#/boards/arena?page=1.5", "and not “1.5”"),
        ("#/boards/arena?window=all&window=day", "“window” is there more than once"),
        ("#/nodes?page=2", "this view has nothing called “page”"),
        ("#/boards/nowhere", "there is no board of this name"),
        ("#/boards/a b", "board"),
        ("#/rejects?reason=nonsense", "there is no reason \"nonsense\""),
        ("#/boards/arena?page=77", "The board ends before this page."),
        ("#/boards/arena?member=nobody", "the member has no entry on this board"),
    ] {
        go(&mut browser, hash);
        browser.wait_for(why);
    }
    // The link past the header is no address of another view.
    go(&mut browser, "#/boards/arena");
    browser.wait("document.title === 'arena · ranktree'");
    browser.eval("document.querySelector('.skip').click()");
    assert_eq!(browser.eval("document.activeElement.id"), "main");
    assert_eq!(browser.eval("location.hash"), "#/boards/arena");
}

#[test]
fn the_column_of_movement_names_its_window_and_another_can_be_chosen() {
    let Some(mut browser) = Browser::start() else { return };
    let node = Node::start();
    let client = node.client();
    define(&client, "climb", &json!({"windows": ["all", "day", "week"], "movement": true}));
    put(&client, "climb", "a", &json!({ "score": 1 }));
    browser.open(&format!("{}/#/boards/climb", node.base()));
    browser.wait(&format!("{HEAD}.includes('|Moved, day|')"));
    browser.wait(&format!("{FIRST_ROW}.includes('|new|')"));
    go(&mut browser, "#/boards/climb?moved=week&member=a");
    browser.wait(&format!("{HEAD}.includes('|Moved, week|')"));
    browser.wait_for("moved, week");
    // Of a new member it is known, too, without a look at the page anew.
    put(&client, "climb", "b", &json!({ "score": 2 }));
    browser.wait(&format!("{FIRST_ROW}.startsWith('1|1|b|2|new|')"));
    // A window that has not begun has none, and takes nothing else away.
    define(&client, "league", &json!({"windows": ["all", "season"], "season": "manual", "movement": true}));
    put(&client, "league", "a", &json!({ "score": 1 }));
    go(&mut browser, "#/boards/league?member=a");
    browser.wait_for("percentile");
    assert_eq!(text(&mut browser, HEAD), "Position|Rank|Member|score|Updated");
    go(&mut browser, "#/boards/league?window=season");
    browser.wait_for("the board's first season has not begun");
}

#[test]
fn every_id_is_found_and_is_not_taken_for_another() {
    let Some(mut browser) = Browser::start() else { return };
    let node = Node::shards(2).start();
    let client = node.client();
    let longest = "W".repeat(128);
    let ids = [
        " ",
        " a",
        "a ",
        "a",
        "a  b",
        "a b",
        "a/b",
        "a%2Fb",
        "%",
        "a?b#c&d=e+f",
        "<b>x</b>",
        "שלום",
        "\u{202e}abc",
        "\u{200b}",
        "日本",
        "🏳️‍🌈",
        "..",
        ".",
        "live",
        longest.as_str(),
    ];
    let jobs: Vec<Value> =
        ids.iter().map(|id| json!({"board": "odd", "member": id, "score": 5, "meta": {"id": id}})).collect();
    assert_eq!(client.post("/v1/jobs?results=changed", &jobs.into()).0, 200);
    browser.open(&format!("{}/#/boards/odd", node.base()));
    browser.wait_for("20 entries");
    // Each has a text to click on, by itself, whatever way its letters run.
    let unseen = "[...document.querySelectorAll('td.member button bdi')].filter((id) => !id.textContent.trim()).length";
    assert_eq!(browser.eval(unseen), 0);
    assert_eq!(browser.eval("document.querySelectorAll('td.member button bdi').length"), 20);
    for id in ids {
        let query = percent_encoding::utf8_percent_encode(id, percent_encoding::NON_ALPHANUMERIC);
        go(&mut browser, &format!("#/boards/odd?member={query}"));
        browser.wait(&format!("document.getElementById('find-member')?.value === {}", json!(id)));
        browser.wait("document.querySelectorAll('.card').length >= 3");
        let meta = browser.eval("JSON.parse(document.querySelector('pre.wrapped').textContent).id");
        assert_eq!(meta, id, "it is the entry of this member");
        browser.wait("document.querySelector('tr[aria-current=true]')");
        fits_a_phone(&mut browser, id);
    }
    // Spaces around an id are of the id, if there is one with them.
    let asked = json!(" a\n  日本  \nnobody");
    browser.eval(&format!("document.getElementById('friends').value = {asked}"));
    browser.click("button", "Compare");
    browser.wait_for("Not on the board: nobody");
    let friends = "[...[...document.querySelectorAll('table')].at(-1).querySelectorAll('td.member')].map((cell) => cell.textContent).sort().join('|')";
    assert_eq!(text(&mut browser, friends), " a|日本");
}

#[test]
fn numbers_of_a_game_are_shown_as_they_were_sent() {
    let Some(mut browser) = Browser::start() else { return };
    let node = Node::start();
    let client = node.client();
    // Not by `json!`: these are digits that JavaScript rounds.
    let meta =
        r#"{"big": 12345678901234567890, "text": "9007199254740993", "list": [-9007199254740993, 1.5, 2]}"#;
    let job = format!(r#"{{"score": 1, "version": 9007199254740995, "meta": {meta}}}"#);
    let job: Value = serde_json::from_str(&job).expect("JSON");
    put(&client, "exact", "a", &job);
    assert_eq!(client.put(&entry_path("exact", "a"), &job).0, 409, "the version is not greater");
    browser.open(&format!("{}/#/boards/exact?member=a", node.base()));
    browser.wait("document.querySelector('pre.wrapped')");
    let shown = text(&mut browser, "document.querySelector('pre.wrapped').textContent.replace(/\\s+/g, '')");
    let sent: String = meta.chars().filter(|letter| !letter.is_whitespace()).collect();
    assert_eq!(shown, sent);
    go(&mut browser, "#/rejects");
    browser.wait("document.querySelector('td code')?.textContent === 'stale_version'");
    let shown = text(&mut browser, "document.querySelector('td pre').textContent.replace(/\\s+/g, '')");
    assert!(
        shown.contains(r#""version":9007199254740995"#) && shown.contains("12345678901234567890"),
        "{shown}"
    );
}

#[test]
fn what_is_shown_follows_what_is_written() {
    let Some(mut browser) = Browser::start() else { return };
    let node = Node::start();
    let client = node.client();
    for member in 0..30 {
        put(&client, "moving", &format!("m{member:02}"), &json!({"score": 1_000 - member}));
    }
    browser.open(&format!("{}/#/boards/moving?member=m05", node.base()));
    browser.wait_for("30, exact");
    browser.wait("document.querySelector('.card b')?.textContent === '6'");
    browser.eval("document.querySelector('details summary').click()");
    put(&client, "moving", "m29", &json!({"score": 5_000}));
    put(&client, "moving", "new", &json!({"score": 5_001}));
    // The member, its neighbours and the distribution, and what somebody has opened stays open.
    browser.wait("document.querySelector('.card b')?.textContent === '8'");
    browser.wait_for("31, exact");
    assert_eq!(browser.eval("document.querySelector('details').open"), true);
    // A page further down, rejects and boards are read again, too.
    go(&mut browser, "#/boards/moving?page=2");
    browser.wait_for("31 entries");
    put(&client, "moving", "newer", &json!({"score": 1}));
    browser.wait_for("32 entries");
    browser.wait("[...document.querySelectorAll('td.member')].at(-1).textContent === 'newer'");
    go(&mut browser, "#/boards");
    browser.wait("document.querySelector('td.number')?.textContent === '32'");
    put(&client, "another", "a", &json!({"score": 1}));
    browser.wait("document.querySelector('td.member a')?.textContent === 'another'");
    // A board that is dropped leaves nothing that looks as if it were there, and comes back by itself.
    go(&mut browser, "#/boards/moving");
    browser.wait_for("32 entries");
    assert_eq!(client.send(Method::DELETE, "/v1/boards/moving", None).expect("it answers").0, 200);
    browser.wait_for("there is no board of this name");
    browser.wait("!document.body.innerText.includes('32 entries') && !document.querySelector('tbody')");
    put(&client, "moving", "again", &json!({"score": 1}));
    browser.wait_for("1 entry");
    browser.wait("document.querySelector('tbody td.member')?.textContent === 'again'");
}

#[test]
fn a_node_that_is_away_is_asked_again_until_it_answers() {
    let Some(mut browser) = Browser::start() else { return };
    let node = Node::start();
    put(&node.client(), "arena", "a", &json!({"score": 1}));
    let link = ToggledLink::start(node.address());
    browser.open(&format!("http://{}/#/boards/arena?member=a", link.address()));
    browser.wait_for("percentile");
    browser.wait(&format!("{STATE} === 'Live'"));
    for view in
        ["#/boards", "#/rejects", "#/nodes", "#/boards/arena?member=a&page=2", "#/boards/arena?member=a"]
    {
        link.cut();
        go(&mut browser, view);
        browser.wait_for("The node does not answer");
        browser.wait_for("It is asked again.");
        link.join();
        browser
            .wait("!document.body.innerText.includes('does not answer') && document.querySelector('.panel')");
    }
    browser.wait(&format!("{STATE} === 'Live'"));
    // What is shown when it leaves stays, and is said to be old.
    link.cut();
    browser.wait(&format!("{STATE} === 'Connection lost; trying again'"));
    browser.wait_for("What is shown was read before.");
    browser.wait("document.querySelector('tbody td.member')?.textContent === 'a'");
    link.join();
    browser.wait(&format!("{STATE} === 'Live'"));
    browser.wait("!document.body.innerText.includes('read before')");
}

#[test]
fn a_shard_that_nobody_answers_for_is_named_and_the_rest_is_shown() {
    let Some(mut browser) = Browser::start() else { return };
    let nats = Nats::start();
    let both = Node::with_nats(&nats).shards(2).flags(&["--node", "both"]).start();
    let client = both.client().waiting_for_writes();
    for member in 0..40 {
        put(&client, "arena", &format!("m{member}"), &json!({"score": member}));
    }
    drop(both);
    let soon = ["--nats-forget", "600s"];
    let one = Node::with_nats(&nats).flags(&["--node", "one", "--own", "0"]).flags(&soon).start();
    let mut other = Node::with_nats(&nats).flags(&["--node", "other", "--own", "1"]).flags(&soon).start();
    browser.open(&format!("{}/#/boards/arena", one.base()));
    browser.wait_for("40 entries");
    browser.wait(&format!("{STATE} === 'Live'"));
    other.kill9();
    // The node has the whole board for a while, as it was.
    for (view, told, rows) in [
        ("#/boards", "Shard 1 does not answer", 1),
        ("#/boards/arena", "does not answer", 20),
        ("#/boards/arena?window=all&member=m1", "does not answer", 20),
        ("#/boards/arena?page=2", "Shard 1 does not answer", 0),
        ("#/rejects", "Shard 1 does not answer", 0),
    ] {
        go(&mut browser, "#/nodes");
        browser.wait_for("other");
        go(&mut browser, view);
        browser.wait_for(told);
        browser.wait(&format!("document.querySelectorAll('tbody tr').length >= {rows}"));
        let state = text(&mut browser, STATE);
        assert!(!state.contains("Live"), "{view}: {state}");
    }
    other.restart();
    go(&mut browser, "#/boards/arena");
    browser.wait_for("40 entries");
    browser.wait("!document.body.innerText.includes('does not answer')");
    browser.wait(&format!("{STATE} === 'Live'"));
}

#[test]
fn a_token_that_none_is_and_a_dialog_that_was_closed_are_minded() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("tokens.toml");
    let (reader, lines) = new_token(&["--name", "reader", "--scope", "read"]);
    std::fs::write(&file, lines).expect("it can be written");
    let node = Node::flags(&["--tokens", file.to_str().expect("UTF-8")]).start();
    browser.open(&format!("{}/#/nodes", node.base()));
    browser.wait("document.getElementById('token-dialog').open");
    let enter = |browser: &mut Browser, token: &str| {
        browser.eval(&format!("document.getElementById('token-input').value = {}", json!(token)));
        browser.click("dialog button", "Use this token");
    };
    // A program that writes letters has made its own quotes of them.
    enter(&mut browser, &format!("“{reader}”"));
    browser.wait("document.getElementById('token-why').textContent.includes('Latin letters')");
    browser.wait("document.getElementById('token-dialog').open");
    browser.click("dialog button", "Cancel");
    browser.wait_for("a token is needed");
    // The view is not read again, and nobody asked, until somebody does something.
    let shown = text(&mut browser, "document.body.innerText");
    assert!(!shown.contains("It is asked again"), "{shown}");
    browser.click("button", "Token");
    enter(&mut browser, &reader);
    browser.wait_for("Ready");
}

/// Where there is nothing to show, the page says so and leads to what there is.
#[test]
fn what_is_not_there_yet_is_told_and_nothing_leads_back_to_it() {
    let Some(mut browser) = Browser::start() else { return };
    let node = Node::start();
    let client = node.client();
    define(&client, "league", &json!({"windows": ["season"], "season": "manual"}));
    browser.open(&format!("{}/#/boards/league", node.base()));
    browser.wait_for("the board's first season has not begun");
    assert!(!text(&mut browser, "document.body.innerText").contains("Show season"));
    // Once another window can be shown, that is where the link leads.
    define(&client, "league", &json!({"windows": ["season", "day"]}));
    browser.wait_for("Show day");
    let begin = (Timestamp::now() + SignedDuration::from_hours(2)).to_string();
    assert_eq!(client.post("/v1/boards/league/seasons", &json!({"name": "s1", "at": begin})).0, 201);
    browser.wait("document.getElementById('planned')?.textContent.startsWith('Planned: s1 from ')");
    browser.click("a", "Show day");
    browser.wait_for("Nobody is on the board yet.");
    browser.wait("document.getElementById('planned') !== null");
    // A page behind the last one is not one of those that there are.
    go(&mut browser, "#/boards/league?window=day&page=99");
    browser.wait_for("The last page is 1");
    assert!(!text(&mut browser, "document.body.innerText").contains("Page 99 of"));
    // The kind is not the policy.
    define(&client, "counted", &json!({"kind": "top_k", "capacity": 2}));
    go(&mut browser, "#/");
    browser.wait("[...document.querySelectorAll('td')].some((cell) => cell.textContent === 'incr (top_k)')");
}

#[test]
fn pages_further_down_say_how_far_their_members_have_moved() {
    let Some(mut browser) = Browser::start() else { return };
    let node = Node::start();
    let client = node.client();
    define(&client, "climb", &json!({"windows": ["all", "day"], "movement": true}));
    let jobs: Vec<Value> = (0..30)
        .map(|number| json!({"board": "climb", "member": format!("m{number:02}"), "score": 100 - number}))
        .collect();
    assert_eq!(client.post("/v1/jobs", &json!(jobs)).0, 200);
    browser.open(&format!("{}/#/boards/climb?page=2", node.base()));
    browser.wait(&format!("{HEAD}.includes('|Moved, day|')"));
    browser.wait(&format!("{FIRST_ROW}.startsWith('26|26|m25|75|new|')"));
}
