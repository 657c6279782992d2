//! The OpenAPI 3.1 document of the API, made from the routes, and a page to read it on.
//!
//! `operations` describes operations, `schemas` describes values, `problems` describes what goes wrong, and
//! `examples` are exchanges with a real node. `document` puts them together.

pub mod doc;
pub mod document;
mod examples;
mod html;
mod notation;
pub mod operation;
pub mod operations;
mod page;
mod parameters;
mod problems;
mod reference;
mod schemas;
pub mod served;

#[cfg(test)]
mod tests;
#[cfg(test)]
pub mod validator;
