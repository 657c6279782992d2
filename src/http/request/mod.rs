//! A request as handlers see it: its path, parameters and body.

pub mod call;
pub mod definition;
pub mod params;
