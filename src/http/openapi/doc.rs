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
    /// Whether requests write jobs, so that they are recognised by a key.
    has_key: bool,
    answers: Vec<(u16, Value)>,
    problems: Vec<(u16, &'static str)>,
}

impl Doc {
    pub fn new(tag: &'static str, summary: &'static str) -> Self {
        let (description, query, body) = (String::new(), Vec::new(), None);
        let (answers, problems) = (Vec::new(), Vec::new());
        Self { tag, summary, description, query, body, has_key: false, answers, problems }
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

    /// Its requests write jobs: the header `Idempotency-Key` gives them ids.
    pub fn by_key(self) -> Self {
        let schema = json!({"type": "string", "minLength": 1, "maxLength": 60, "pattern": "^[ -~]+$"});
        let told = "Gives each job of the request that has no `id` one: the key, and of several jobs the key, `#` \
                    and its index. So a request that comes again counts once.";
        let described = self.header("Idempotency-Key", &schema, told).problem(422, "bad_parameter");
        Self { has_key: true, ..described }
    }

    /// Whether requests are recognised by a key.
    pub fn has_key(&self) -> bool {
        self.has_key
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
