//! Which paths there are, and what happens to a request before and after its handler.
//!
//! - `routes`: every route
//! - `router_builder`: makes the router of them; `router`: finds the route of a request
//! - `endpoint`: a request on its way through its route: authorized, read, admitted, answered, measured
//! - `taken`: what a route takes of a request, and the refusal of the rest
//! - `unrouted`: requests that no route takes
//! - `verbs`: verbs behind a board's name, such as `:clear`

pub mod endpoint;
pub mod request_span;
pub mod router;
mod router_builder;
pub mod routes;
pub mod taken;
pub mod unrouted;
pub mod verbs;
