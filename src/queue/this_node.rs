//! What a node says of itself to others: its name, where it answers, and which data directory it has.

use crate::types::NodeName;

/// This node, as others know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThisNode {
    pub name: NodeName,
    /// Where it answers over HTTP: a URL of scheme, host and port.
    pub address: String,
    /// The machine and the path of its data directory. One directory is used by one process at a time, so two
    /// processes with the same directory are one node that was started again.
    pub directory: String,
}

impl ThisNode {
    pub const VERSION: &str = env!("CARGO_PKG_VERSION");

    /// A node that no other knows of.
    pub fn unnamed() -> Self {
        let name = NodeName::new("node").expect("it is a good name");
        Self { name, address: String::new(), directory: String::new() }
    }
}
