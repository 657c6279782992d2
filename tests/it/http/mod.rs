//! The HTTP API: the contract, tokens, and clients that are slow or disconnect.
//!
//! - [`api`]: names, shapes and refusals of the contract, and what holds while scores change
//! - [`audit`]: the log has whose token took something away
//! - [`openapi`]: the examples of the document are what a node answers, and a fuzzer finds no violation of it
//! - [`tokens`]: who may do what, and tokens that are replaced while the service runs
//! - [`prefixes`]: what the prefixes of a token hide and keep from change, over all routes
//! - [`tls`]: HTTPS, and certificates that are replaced while it runs
//! - [`origins`]: pages of other sites change nothing, and allowed ones are answered as browsers need it
//! - [`framing`]: where a request's body ends, and when the client is asked for it
//! - [`slow_clients`]: clients that keep the service waiting, and floods of them
//! - [`gone_clients`]: a client that leaves before its answer gives its permits back
//! - [`half_closed`]: a client that only ends its sending half gets its answers
//! - [`long_heads`]: long heads of requests take a limited amount of memory together
//! - [`live`]: boards that are watched
//! - [`page`]: the page for people, also in a browser, where there is one
//! - [`page_views`]: the same with boards, ids, addresses and nodes that are out of the ordinary
//! - [`overload`]: requests beyond the limit are shed, while probes and metrics answer

mod api;
mod audit;
mod framing;
mod gone_clients;
mod half_closed;
mod live;
mod long_heads;
mod openapi;
mod origins;
mod overload;
mod page;
mod page_views;
mod prefixes;
mod slow_clients;
mod tls;
mod tokens;
