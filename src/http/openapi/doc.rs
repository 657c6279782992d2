//! The description of one operation, put together by the functions in `operations`.
//!
//! Knows: how a summary, parameters, answers and problems become an OpenAPI operation. Must not know: which
//! operations there are.

use serde_json::{Map, Value, json};

use crate::http::guard::authorize::Needs;
use crate::http::openapi::parameters;
use crate::http::openapi::problems::{PROBLEM_STATUSES, REFUSED_TOKENS, meaning};
use crate::http::openapi::reference::component;
use crate::http::render::problem::FORBIDDEN_BOARD;

/// An operation's description.
#[derive(Debug)]
pub struct Doc {
    tag: &'static str,
    summary: &'static str,
    description: String,
    query: Vec<Value>,
    body: Option<Value>,
    answers: Vec<(u16, Value)>,
    problems: Vec<(u16, &'static str)>,
}

impl Doc {
    pub fn new(tag: &'static str, summary: &'static str) -> Self {
        let (description, query, body) = (String::new(), Vec::new(), None);
        Self { tag, summary, description, query, body, answers: Vec::new(), problems: Vec::new() }
    }

    /// Paragraphs of Markdown, of which only `code` and **bold** are used.
    pub fn describe(mut self, text: impl Into<String>) -> Self {
        self.description = text.into();
        self
    }

    pub fn query(mut self, parameter: Value) -> Self {
        self.query.push(parameter);
        self
    }

    /// A header of the request.
    pub fn header(mut self, name: &str, schema: &Value, description: &str) -> Self {
        let header = json!({
            "name": name, "in": "header", "required": false, "description": description, "schema": schema
        });
        self.query.push(header);
        self
    }

    /// A JSON body of a schema among the components.
    pub fn body(mut self, schema: &str, required: bool, description: &str) -> Self {
        self.body = Some(json!({
            "description": description,
            "required": required,
            "content": {"application/json": {"schema": component(schema)}}
        }));
        self
    }

    /// Whether requests have a body.
    pub fn takes_body(&self) -> bool {
        self.body.is_some()
    }

    /// A JSON answer of a schema among the components.
    pub fn answer(self, status: u16, schema: &str, description: &str) -> Self {
        self.answer_as(status, "application/json", &component(schema), description)
    }

    pub fn answer_as(mut self, status: u16, kind: &str, schema: &Value, description: &str) -> Self {
        let content = Map::from_iter([(kind.to_owned(), json!({"schema": schema}))]);
        self.answers.push((status, json!({"description": description, "content": content})));
        self
    }

    pub fn problem(mut self, status: u16, code: &'static str) -> Self {
        self.problems.push((status, code));
        self
    }

    pub fn problems(mut self, problems: &[(u16, &'static str)]) -> Self {
        self.problems.extend(problems);
        self
    }

    /// The operation as OpenAPI has it.
    pub fn write(&self, name: &str, path: &str, needs: Needs) -> Value {
        let mut operation = json!({
            "operationId": name,
            "tags": [self.tag],
            "summary": self.summary,
            "description": self.description,
        });
        let fields = operation.as_object_mut().expect("the value was built as an object");
        // A node without tokens asks for none: the empty alternative.
        let security = match needs {
            Needs::Nothing => json!([]),
            Needs::Token(scope, _) => json!([{}, {"bearer": [scope.name()]}]),
        };
        fields.insert("security".to_owned(), security);
        let parameters: Vec<Value> = parameters::of_path(path).chain(self.query.iter().cloned()).collect();
        if !parameters.is_empty() {
            fields.insert("parameters".to_owned(), parameters.into());
        }
        if let Some(body) = &self.body {
            fields.insert("requestBody".to_owned(), body.clone());
        }
        fields.insert("responses".to_owned(), self.responses(path, needs).into());
        operation
    }

    fn responses(&self, path: &str, needs: Needs) -> Map<String, Value> {
        let mut responses = Map::new();
        for (status, answer) in &self.answers {
            responses.insert(status.to_string(), answer.clone());
        }
        let mut problems = self.problems.clone();
        if needs != Needs::Nothing {
            problems.extend(REFUSED_TOKENS);
            // Boards, and members, which are on boards; and snapshots and metrics, which are of all boards.
            if ["/boards", "/members", "/jobs", "/snapshots", "/metrics"]
                .iter()
                .any(|part| path.contains(part))
            {
                problems.push((403, FORBIDDEN_BOARD));
            }
        }
        for status in PROBLEM_STATUSES {
            let mut codes: Vec<&str> = Vec::new();
            for (_, code) in problems.iter().filter(|(known, _)| known == status) {
                if !codes.contains(code) {
                    codes.push(code);
                }
            }
            if !codes.is_empty() {
                responses.insert(status.to_string(), problem_response(*status, &codes));
            }
        }
        responses
    }
}

fn problem_response(status: u16, codes: &[&str]) -> Value {
    let meanings: Vec<String> = codes.iter().map(|code| format!("`{code}`: {}", meaning(code))).collect();
    let mut response = json!({"description": meanings.join("\n\n")});
    let fields = response.as_object_mut().expect("the value was built as an object");
    if status == 503 && codes != ["not_ready"] {
        fields.insert(
            "headers".to_owned(),
            json!({"Retry-After": {"$ref": "#/components/headers/RetryAfter"}}),
        );
    }
    let schema = json!({
        "allOf": [component("Problem")],
        "properties": {"status": {"const": status}, "code": {"enum": codes}}
    });
    fields.insert("content".to_owned(), json!({"application/problem+json": {"schema": schema}}));
    response
}
