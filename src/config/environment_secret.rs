//! Secrets without a flag and without a key in the configuration file.

/// A secret that only the environment can give, besides a file of its own: it has no flag, and no key in the
/// configuration file.
pub struct EnvironmentSecret {
    /// Its name, also where settings are listed; the keys of other settings can stand in the configuration
    /// file.
    pub variable: &'static str,
    /// The setting that names its file; the secret is listed behind that.
    pub listed_after: &'static str,
    pub help: &'static str,
}
