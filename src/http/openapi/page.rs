//! The document as a page: one HTML file without scripts, which loads nothing.
//!
//! Knows: HTML. Everything on the page comes from the document.

use std::fmt::Write as _;

use serde_json::Value;

use crate::http::openapi::html::{escape, markdown, text};
use crate::http::openapi::notation::{describe, fields, inline};
use crate::http::openapi::problems::PROBLEMS;

const STYLE: &str = include_str!("page.css");

fn members<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    value.get(name).and_then(Value::as_object).into_iter().flatten()
}

fn items<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    value.get(name).and_then(Value::as_array).into_iter().flatten()
}

/// The page.
pub fn write(document: &Value) -> String {
    let mut out = String::with_capacity(256 << 10);
    let info = document.get("info").unwrap_or(&Value::Null);
    let (title, version) = (escape(text(info, "title")), escape(text(info, "version")));
    let _ = write!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title} {version}: the API</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n"
    );
    navigation(&mut out, document);
    let _ = write!(
        out,
        "<main>\n<header><h1>{title} <small>{version}</small></h1>\n<p class=\"lead\">{}</p>\n\
         <p>For programs: <a href=\"/openapi.json\">/openapi.json</a>, OpenAPI 3.1.</p></header>\n",
        escape(text(info, "summary"))
    );
    let _ = write!(out, "<section id=\"about\">\n{}</section>\n", markdown(text(info, "description")));
    for tag in items(document, "tags") {
        let name = text(tag, "name");
        let _ = write!(
            out,
            "<section>\n<h2 id=\"{}\">{}</h2>\n{}",
            anchor(name),
            escape(name),
            markdown(text(tag, "description"))
        );
        for (method, path, details) in operations(document, name) {
            operation(&mut out, document, method, path, details);
        }
        out.push_str("</section>\n");
    }
    problems(&mut out);
    out.push_str("<section>\n<h2 id=\"schemas\">Schemas</h2>\n");
    let none = Value::Null;
    for (name, schema) in members(document.get("components").unwrap_or(&none), "schemas") {
        let _ = write!(
            out,
            "<article id=\"schema-{0}\"><h3>{0}</h3>\n{1}{2}</article>\n",
            escape(name),
            markdown(text(schema, "description")),
            fields(schema)
        );
    }
    out.push_str("</section>\n</main>\n</body>\n</html>\n");
    out
}

/// The operations of a tag, as method, path and description.
fn operations<'a>(
    document: &'a Value,
    tag: &'a str,
) -> impl Iterator<Item = (&'a String, &'a String, &'a Value)> {
    members(document, "paths")
        .flat_map(|(path, methods)| {
            methods.as_object().into_iter().flatten().map(move |(method, details)| (method, path, details))
        })
        .filter(move |(_, _, details)| items(details, "tags").any(|known| known == tag))
}

fn navigation(out: &mut String, document: &Value) {
    out.push_str("<nav>\n<a class=\"home\" href=\"#about\">ranktree</a>\n");
    for tag in items(document, "tags") {
        let name = text(tag, "name");
        let _ = write!(out, "<h2><a href=\"#{}\">{}</a></h2>\n<ul>\n", anchor(name), escape(name));
        for (method, _, details) in operations(document, name) {
            let _ = writeln!(
                out,
                "<li><a href=\"#{}\"><b class=\"{method}\">{method}</b> {}</a></li>",
                escape(text(details, "operationId")),
                escape(text(details, "summary"))
            );
        }
        out.push_str("</ul>\n");
    }
    out.push_str(
        "<h2><a href=\"#problems\">Problems</a></h2>\n<h2><a href=\"#schemas\">Schemas</a></h2>\n</nav>\n",
    );
}

fn operation(out: &mut String, document: &Value, method: &str, path: &str, details: &Value) {
    let id = escape(text(details, "operationId"));
    let _ = write!(
        out,
        "<article id=\"{id}\">\n<h3>{}</h3>\n<p class=\"route\"><b class=\"{method}\">{method}</b> <code>{}</code>",
        escape(text(details, "summary")),
        escape(path)
    );
    let scopes = items(details, "security").flat_map(|scheme| items(scheme, "bearer"));
    for scope in scopes.filter_map(Value::as_str) {
        let _ = write!(out, " <span class=\"scope\">token: {}</span>", escape(scope));
    }
    let _ = write!(out, "</p>\n{}", markdown(text(details, "description")));
    parameters(out, document, details);
    if let Some(body) = details.get("requestBody") {
        let optional = body.get("required") != Some(&Value::Bool(true));
        let _ = write!(
            out,
            "<h4>Body{}</h4>\n{}",
            if optional { ", optional" } else { "" },
            markdown(text(body, "description"))
        );
        content(out, body);
    }
    out.push_str("<h4>Answers</h4>\n<dl class=\"answers\">\n");
    for (status, answer) in members(details, "responses") {
        let kind = if status.starts_with('2') { "good" } else { "bad" };
        let _ = write!(
            out,
            "<dt class=\"{kind}\">{}</dt><dd>{}",
            escape(status),
            markdown(text(answer, "description"))
        );
        content(out, answer);
        out.push_str("</dd>\n");
    }
    out.push_str("</dl>\n</article>\n");
}

fn parameters(out: &mut String, document: &Value, details: &Value) {
    let mut rows = String::new();
    for parameter in items(details, "parameters") {
        let target =
            parameter.get("$ref").and_then(Value::as_str).and_then(|target| target.strip_prefix('#'));
        let parameter = target.and_then(|target| document.pointer(target)).unwrap_or(parameter);
        let required = parameter.get("required") == Some(&Value::Bool(true));
        let _ = writeln!(
            rows,
            "<tr><td><code>{}</code>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            escape(text(parameter, "name")),
            if required { "<span class=\"required\" title=\"required\">*</span>" } else { "" },
            escape(text(parameter, "in")),
            inline(parameter.get("schema").unwrap_or(&Value::Null)),
            markdown(text(parameter, "description"))
        );
    }
    if !rows.is_empty() {
        let _ = write!(
            out,
            "<h4>Parameters</h4>\n<div class=\"wide\"><table>\n<thead><tr><th>Name</th><th>In</th><th>Type</th>\
             <th>Meaning</th></tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n"
        );
    }
}

/// A body's or an answer's schema and examples.
fn content(out: &mut String, body: &Value) {
    for (kind, content) in members(body, "content") {
        let schema = content.get("schema").unwrap_or(&Value::Null);
        // The codes of a problem stand above already.
        if kind == "application/problem+json" {
            let _ = writeln!(out, "<p class=\"kind\">{kind}: <a href=\"#schema-Problem\">Problem</a></p>");
        } else {
            let _ = writeln!(out, "<p class=\"kind\">{}: {}</p>", escape(kind), describe(schema));
        }
        for (_, example) in members(content, "examples") {
            let value = example.get("value").unwrap_or(&Value::Null);
            let value = serde_json::to_string_pretty(value).unwrap_or_default();
            let _ = writeln!(
                out,
                "<details><summary>{}</summary><pre>{}</pre></details>",
                escape(text(example, "summary")),
                escape(&value)
            );
        }
    }
}

fn problems(out: &mut String) {
    out.push_str(
        "<section>\n<h2 id=\"problems\">Problems</h2>\n<div class=\"wide\"><table>\n<thead><tr><th>Code</th>\
         <th>Status</th><th>Meaning</th></tr></thead>\n<tbody>\n",
    );
    for problem in PROBLEMS {
        let statuses: Vec<String> = problem.statuses.iter().map(u16::to_string).collect();
        let _ = writeln!(
            out,
            "<tr><td><code>{}</code></td><td>{}</td><td>{}</td></tr>",
            problem.code,
            statuses.join(", "),
            markdown(problem.meaning)
        );
    }
    out.push_str("</tbody></table></div>\n</section>\n");
}

/// A name as the end of a link.
fn anchor(name: &str) -> String {
    name.to_lowercase().replace(' ', "-")
}
