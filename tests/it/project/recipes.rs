//! The recipes work: every command of docs/recipes.md is run by a shell, and every answer on the page is part
//! of the answer that came. The commands of docs/boards.md work in their order, too.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::project::documents::root;
use crate::support::node::Node;

/// Where the page says that the service is.
const ON_THE_PAGE: &str = "http://127.0.0.1:8080";

#[derive(Debug, Default)]
struct Step {
    command: String,
    /// As the page has it; empty if it shows none.
    answer: String,
}

/// The commands of a page in their order, each with its answer: indented lines after `$ `, of which those
/// belong to the command that its quotation marks or a backslash take in.
fn steps(page: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut is_open = false;
    for line in page.lines() {
        let Some(text) = line.strip_prefix("    ") else { continue };
        if let Some(command) = text.strip_prefix("$ ") {
            steps.push(Step { command: command.to_owned(), answer: String::new() });
        } else {
            let step = steps.last_mut().expect("a block of the page begins with a command");
            let part = if is_open { &mut step.command } else { &mut step.answer };
            part.push('\n');
            part.push_str(text);
        }
        let command = &steps.last().expect("there is one").command;
        is_open = command.matches('\'').count() % 2 == 1 || command.ends_with('\\');
    }
    steps
}

/// Whether all that is expected is there: fields of objects may be left out, entries of lists may not.
fn is_part_of(expected: &Value, found: &Value) -> bool {
    match (expected, found) {
        (Value::Object(expected), Value::Object(found)) => expected
            .iter()
            .all(|(name, expected)| found.get(name).is_some_and(|found| is_part_of(expected, found))),
        (Value::Array(expected), Value::Array(found)) => {
            expected.len() == found.len()
                && expected.iter().zip(found).all(|(one, other)| is_part_of(one, other))
        }
        (expected, found) => expected == found,
    }
}

fn shell(script: &str) -> String {
    let mut shell = Command::new("sh");
    shell.args(["-ec", script]).env("NO_PROXY", "*").env("no_proxy", "*");
    let output = shell.output().expect("there is a shell");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{script}\n{said}");
    String::from_utf8(output.stdout).expect("it is text")
}

/// Runs the page, and says what of it is not so.
fn run(page: &str) -> Vec<String> {
    let node = Node::shards(3).start();
    let page = page.replace(ON_THE_PAGE, node.base());
    let (mut variables, mut wrong, mut answers) = (String::new(), Vec::new(), 0);
    let steps = steps(&page);
    assert!(steps.len() > 30, "{} commands", steps.len());
    for Step { command, answer } in &steps {
        let name = command.split('=').next().unwrap_or_default();
        if name.chars().all(|c| c.is_ascii_uppercase()) {
            // What a variable is follows once, as in a reader's own shell.
            let value = shell(&format!("{variables}{command}\nprintf %s \"${name}\""));
            variables = format!("{variables}{name}='{value}'\n");
            continue;
        }
        let said = shell(&format!("{variables}{command}"));
        if command.starts_with("sleep ") {
            continue;
        }
        let found: Value =
            serde_json::from_str(&said).unwrap_or_else(|why| panic!("{command}: {why}: {said}"));
        let refused = found["code"].is_string()
            || found["results"]
                .as_array()
                .is_some_and(|all| all.iter().any(|one| !one["rejected"].is_null()));
        let expected = if answer.is_empty() { "{}" } else { answer.as_str() };
        let expected = serde_json::from_str(expected).unwrap_or_else(|why| panic!("{answer}: {why}"));
        answers += usize::from(!answer.is_empty());
        if refused || !is_part_of(&expected, &found) {
            wrong.push(format!("$ {command}\nthe page says {answer}\nthe answer is {said}"));
        }
    }
    assert!(answers > 15, "{answers} answers");
    wrong
}

#[test]
fn the_recipes_do_what_their_page_says() {
    let page = fs::read_to_string(root().join("docs/recipes.md")).expect("the page is there");
    // Days and weeks of whole offsets begin with an hour.
    let this_hour = || jiff::Timestamp::now().as_second() / 3_600;
    loop {
        let before = this_hour();
        let wrong = run(&page);
        if wrong.is_empty() {
            break;
        }
        // Its days and weeks are those of the clock, and may end while it runs.
        assert!(this_hour() != before, "{}", wrong.join("\n\n"));
    }
}

/// The commands of a page that shows nothing else in blocks that begin with them.
fn curl_lines(page: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut is_open = false;
    for text in page.lines().filter_map(|line| line.strip_prefix("    ")) {
        match lines.last_mut().filter(|_| is_open) {
            Some(command) => {
                command.push('\n');
                command.push_str(text);
            }
            None if text.starts_with("curl ") || text.starts_with("URL=") => lines.push(text.to_owned()),
            None => continue,
        }
        let command = lines.last().expect("there is one");
        is_open = command.matches('\'').count() % 2 == 1 || command.ends_with('\\');
    }
    lines
}

#[test]
fn the_commands_about_boards_work_in_the_order_of_their_page() {
    let page = fs::read_to_string(root().join("docs/boards.md")).expect("the page is there");
    let node = Node::shards(3).start();
    let lines = curl_lines(&page.replace(ON_THE_PAGE, node.base()));
    let (variables, commands) = lines.split_first().expect("there are some");
    assert!(variables.starts_with("URL=") && commands.len() > 30, "{variables}: {} commands", commands.len());
    let mut refused = Vec::new();
    // What goes on until the client leaves is shown to a reader, and not to a test.
    for command in commands.iter().filter(|command| !command.starts_with("curl -N ")) {
        let said = shell(&format!("{variables}\n{command}"));
        let found: Value =
            serde_json::from_str(&said).unwrap_or_else(|why| panic!("{command}: {why}: {said}"));
        if let Some(code) = found["code"].as_str() {
            refused.push((code.to_owned(), command));
        }
    }
    // The page says so of one.
    let as_told = |(code, command): &(String, &String)| code == "out_of_range" && command.contains("5001");
    assert!(refused.len() == 1 && refused.iter().all(as_told), "{refused:?}");
}

#[test]
fn commands_of_a_page_end_where_their_quotation_marks_do() {
    let page = "# A\n\n    $ A=1\n    $ curl x '{\n      \"a\": 1}'\n    {\"b\":\n     2}\nmore\n\n    $ go \\\n      on\n";
    let found: Vec<_> = steps(page).into_iter().map(|step| (step.command, step.answer)).collect();
    let expect = [("A=1", ""), ("curl x '{\n  \"a\": 1}'", "\n{\"b\":\n 2}"), ("go \\\n  on", "")];
    assert_eq!(found, expect.map(|(command, answer)| (command.to_owned(), answer.to_owned())));
    let json = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
    assert!(is_part_of(&json(r#"{"a": [{"b": 1}]}"#), &json(r#"{"a": [{"b": 1, "c": 2}], "d": 3}"#)));
    for (expected, found) in [(r#"{"a": []}"#, r#"{"a": [1]}"#), (r#"{"a": 1}"#, r#"{"b": 1}"#), ("1", "2")] {
        assert!(!is_part_of(&json(expected), &json(found)), "{expected} in {found}");
    }
}
