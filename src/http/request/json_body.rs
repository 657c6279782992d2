//! Bodies that are no jobs: objects of few fields, and lists.

use serde::Deserialize;
use serde_json::error::Category;
use serde_json::value::RawValue;

use crate::http::render::problem::Problem;
use crate::types::shown;
use crate::wire::json_words;
use crate::wire::lenient::JsonFields;

/// The most items of a batch.
pub const BATCH_MAX: usize = 1_000;

/// Reads a body of a shape of its own.
///
/// # Errors
/// When it is not JSON, or not of that shape.
pub fn parse_body<'a, B: Deserialize<'a>>(body: &'a [u8]) -> Result<B, Problem> {
    serde_json::from_slice(body).map_err(|error| match error.classify() {
        Category::Data => {
            let why = json_words(body, &error);
            Problem::bad_parameter(format!("the body is not valid: {why}"))
        }
        Category::Syntax | Category::Eof | Category::Io => Problem::not_json(body, &error),
    })
}

/// Reads a body `{"name": [...]}` of up to [`BATCH_MAX`] items, each as its JSON.
///
/// # Arguments
/// `form`: an example of such a body, for messages.
///
/// # Errors
/// When it is not such a body.
pub fn parse_list<'a>(body: &'a [u8], name: &str, form: &str) -> Result<Vec<&'a str>, Problem> {
    let wrong = |found: &str| {
        Problem::bad_parameter(format!("the body must be a JSON object such as {form}; got {}", shown(found)))
    };
    let json: &RawValue = serde_json::from_slice(body).map_err(|error| Problem::not_json(body, &error))?;
    if !json.get().starts_with('{') {
        return Err(wrong(json.get()));
    }
    let read = serde_json::from_str(json.get());
    let JsonFields(fields) = read.map_err(|error| Problem::not_json(body, &error))?;
    let list = match fields.as_slice() {
        [(only, list)] if only == name && list.get().starts_with('[') => list.get(),
        _ => return Err(wrong(json.get())),
    };
    let items: Vec<&RawValue> =
        serde_json::from_str(list).map_err(|error| Problem::not_json(body, &error))?;
    if items.len() > BATCH_MAX {
        return Err(Problem::over_limit(format!(
            "at most {BATCH_MAX} {name} are allowed at a time; got {}",
            items.len()
        )));
    }
    Ok(items.into_iter().map(RawValue::get).collect())
}
