//! Where spans are sent, what is said with them, and which are chosen.

use std::fmt;
use std::path::PathBuf;

use percent_encoding::percent_decode_str;
use thiserror::Error;

/// Where an endpoint takes traces, as the protocol has it.
const PATH: &str = "/v1/traces";
/// What a ratio is a part of.
const WHOLE: u64 = 1 << 63;

/// Where spans are sent, and which are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Where they are posted.
    pub url: String,
    /// A PEM file of the certificates that https accepts in place of the system's.
    pub certificate: Option<PathBuf>,
    pub headers: Headers,
    /// What the service is called, and which of its nodes this is.
    pub service: String,
    /// What else is said of all spans.
    pub attributes: Vec<(String, String)>,
    pub sampler: Sampler,
}

/// Headers of a request to the collector. They may be secrets, so they are not shown.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Headers(pub Vec<(String, String)>);

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SettingsError {
    #[error("a URL such as http://127.0.0.1:4318 is expected; got {0:?}")]
    Url(String),
    #[error("pairs such as name=value are expected, joined by commas; number {0} is none")]
    Pairs(usize),
    #[error("{} are known; got {got:?}", NAMES.join(", "))]
    Sampler { got: String },
    #[error("a number from 0 to 1 is expected; got {0:?}")]
    Ratio(String),
}

/// The names of the samplers, as OpenTelemetry has them.
const NAMES: [&str; 6] = [
    "always_on",
    "always_off",
    "traceidratio",
    "parentbased_always_on",
    "parentbased_always_off",
    "parentbased_traceidratio",
];

/// Which spans are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sampler {
    /// Of 2^63 traces, so many are chosen.
    threshold: u64,
    /// Callers that say whether they are sampled have decided it.
    follows_callers: bool,
}

impl Sampler {
    /// # Arguments
    /// - `name`: as OpenTelemetry has them.
    /// - `ratio`: the part of the traces that is chosen, where the name asks for it.
    ///
    /// # Errors
    /// When there is no such sampler, or the ratio is none.
    pub fn parse(name: &str, ratio: &str) -> Result<Self, SettingsError> {
        let threshold = threshold(ratio)?;
        let rest = name.strip_prefix("parentbased_");
        let threshold = match rest.unwrap_or(name) {
            "always_on" => WHOLE,
            "always_off" => 0,
            "traceidratio" => threshold,
            _ => return Err(SettingsError::Sampler { got: name.to_owned() }),
        };
        Ok(Self { threshold, follows_callers: rest.is_some() })
    }

    pub fn follows_callers(self) -> bool {
        self.follows_callers
    }

    /// Whether a trace is chosen, by its id: every service that has the same ratio chooses the same.
    pub fn chooses(self, trace: u128) -> bool {
        let low = u64::try_from(trace & u128::from(u64::MAX)).unwrap_or(u64::MAX);
        low >> 1 < self.threshold
    }
}

/// Bit by bit, because a product of floating-point numbers is no whole number.
fn threshold(ratio: &str) -> Result<u64, SettingsError> {
    let refused = || SettingsError::Ratio(ratio.to_owned());
    let mut rest: f64 = ratio.trim().parse().map_err(|_| refused())?;
    if !(0.0..=1.0).contains(&rest) {
        return Err(refused());
    }
    if rest >= 1.0 {
        return Ok(WHOLE);
    }
    let mut threshold = 0;
    for bit in (0..63).rev() {
        rest *= 2.0;
        if rest >= 1.0 {
            rest -= 1.0;
            threshold |= 1 << bit;
        }
    }
    Ok(threshold)
}

impl Settings {
    /// The URL without a name and a password.
    pub fn shown_url(&self) -> String {
        match self.url.split_once("://").zip(self.url.rsplit_once('@')) {
            Some(((scheme, _), (_, rest))) => format!("{scheme}://{rest}"),
            None => self.url.clone(),
        }
    }

    /// Where an endpoint takes traces: below its path, as the protocol has it, unless it names that itself.
    ///
    /// # Errors
    /// When it is no URL.
    pub fn url_of(endpoint: &str) -> Result<String, SettingsError> {
        // What is before an @ is a secret.
        let refused = || SettingsError::Url(endpoint.rsplit('@').next().unwrap_or_default().to_owned());
        let endpoint = endpoint.trim().trim_end_matches('/');
        let rest = endpoint.strip_prefix("http://").or_else(|| endpoint.strip_prefix("https://"));
        let uri: ureq::http::Uri = endpoint.parse().map_err(|_| refused())?;
        let has_host = uri.host().is_some_and(|host| !host.is_empty());
        if rest.is_none() || !has_host || uri.query().is_some() {
            return Err(refused());
        }
        if uri.path().ends_with(PATH) { Ok(endpoint.to_owned()) } else { Ok(format!("{endpoint}{PATH}")) }
    }

    /// Reads `name=value,name=value`, where bytes may be escaped as in URLs.
    ///
    /// # Errors
    /// When one of them has no name, or its value is not UTF-8.
    pub fn pairs(text: &str) -> Result<Vec<(String, String)>, SettingsError> {
        let parts = text.split(',').map(str::trim).enumerate().filter(|(_, part)| !part.is_empty());
        let pair = |(index, part): (usize, &str)| {
            let decode = |text: &str| {
                percent_decode_str(text.trim()).decode_utf8().ok().map(std::borrow::Cow::into_owned)
            };
            part.split_once('=')
                .and_then(|(name, value)| Some((decode(name)?, decode(value)?)))
                .filter(|(name, _)| !name.is_empty())
                .ok_or(SettingsError::Pairs(index + 1))
        };
        parts.map(pair).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_the_part_of_the_traces_that_it_chooses() {
        let chosen = |name: &str, ratio: &str| {
            let sampler = Sampler::parse(name, ratio).expect("a good sampler");
            (0..1_000_u128).filter(|part| sampler.chooses(part * (u128::from(u64::MAX) / 1_000))).count()
        };
        for (ratio, expect) in [("0", 0), ("0.01", 10), ("0.25", 250), ("1", 1_000), ("1.0", 1_000)] {
            let found = chosen("traceidratio", ratio);
            assert!(found.abs_diff(expect) <= 1, "{ratio} chooses {found}");
            assert_eq!(found, chosen("parentbased_traceidratio", ratio));
            assert_eq!(chosen("parentbased_always_on", ratio), 1_000);
            assert_eq!(chosen("always_off", ratio), 0);
        }
        assert!(Sampler::parse("parentbased_always_off", "1").expect("good").follows_callers());
        assert!(!Sampler::parse("always_on", "1").expect("good").follows_callers());
        for (name, ratio) in [("jaeger_remote", "1"), ("", "1"), ("always_on", "2"), ("always_on", "NaN")] {
            assert!(Sampler::parse(name, ratio).is_err(), "{name} {ratio}");
        }
    }

    #[test]
    fn an_endpoint_is_a_url_and_traces_are_below_it() {
        for (endpoint, url) in [
            ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"),
            ("https://otlp.example/base/", "https://otlp.example/base/v1/traces"),
            ("http://[::1]:4318/v1/traces", "http://[::1]:4318/v1/traces"),
        ] {
            assert_eq!(Settings::url_of(endpoint).as_deref(), Ok(url));
        }
        let url = Settings::url_of("http://name:hunter2@collector:4318").expect("a URL");
        let sampler = Sampler::parse("always_on", "1").expect("a good sampler");
        let (headers, service, attributes) = (Headers::default(), String::new(), Vec::new());
        let settings = Settings { url, certificate: None, headers, service, attributes, sampler };
        assert_eq!(settings.shown_url(), "http://collector:4318/v1/traces");
        for bad in ["", "collector:4318", "grpc://collector:4317", "http://", "http://a b", "http://a?b=c"] {
            assert!(Settings::url_of(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn pairs_are_joined_by_commas() {
        let pairs = Settings::pairs("a=1, b = x%20y%2Cz,,").expect("good pairs");
        assert_eq!(pairs, [("a".to_owned(), "1".to_owned()), ("b".to_owned(), "x y,z".to_owned())]);
        assert_eq!(Settings::pairs("a=1,hunter2"), Err(SettingsError::Pairs(2)));
        assert!(Settings::pairs("=1").is_err() && Settings::pairs("a=%ff").is_err());
        let shown = format!("{:?}", Headers(vec![("authorization".to_owned(), "hunter2".to_owned())]));
        assert!(shown.contains("authorization") && !shown.contains("hunter2"), "{shown}");
    }
}
