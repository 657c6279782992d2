//! A request as handlers see it: its path, parameters and body, and the boards that it asks.

pub mod ask;
pub mod body;
pub mod call;
pub mod definition;
pub mod head;
pub mod json_body;
pub mod metrics;
pub mod params;
