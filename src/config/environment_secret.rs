//! Secrets that only the environment can set.

/// A secret that has a variable, and neither a flag nor a key in the file: a file of its own is the other way to say it.
pub struct OfEnvironment {
    /// It is listed by this name: whatever else is listed, a file takes.
    pub variable: &'static str,
    /// The setting that names that file, which it is listed behind.
    pub beside: &'static str,
    pub help: &'static str,
}
