//! The client against real nodes and a real nats-server, which are killed, and lose what they say.

mod examples;
mod http;
mod live;
mod nats;
mod secured;
mod support;
mod vectors;
