//! A route, as the document has it.

use crate::http::guard::authorize::Needs;
use crate::http::openapi::doc::Doc;

/// Methods that the API has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    Get,
    Put,
    Post,
    Delete,
}

impl Method {
    /// As OpenAPI names it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Put => "put",
            Self::Post => "post",
            Self::Delete => "delete",
        }
    }
}

/// A method of a path, and its description.
#[derive(Debug)]
pub struct Operation {
    pub method: Method,
    pub path: &'static str,
    /// Its label in metrics, and its `operationId` in the document.
    pub name: &'static str,
    pub needs: Needs,
    pub doc: Doc,
}
