//! The proxies that the environment names, as other programs read it too: `http_proxy`, `https_proxy`,
//! `all_proxy` and `no_proxy`, in small or large letters.
//!
//! Knows: which variable counts for which URL, and what is exempt. Must not know: what is sent.

use std::net::IpAddr;

/// What the variables say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProxyVariables {
    http: Option<NamedProxy>,
    https: Option<NamedProxy>,
    all: Option<NamedProxy>,
    /// Hosts that are asked without a proxy.
    exempt: Vec<String>,
}

/// A proxy, and the variable that names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedProxy {
    pub variable: String,
    /// May hold a password.
    pub url: String,
}

impl ProxyVariables {
    /// Those of this process.
    pub fn of_environment() -> Self {
        Self::read(|name| std::env::var(name).ok())
    }

    fn read(variable: impl Fn(&str) -> Option<String>) -> Self {
        let value = |name: &str| {
            // As elsewhere, the small letters count if both are there.
            [name.to_owned(), name.to_ascii_uppercase()].into_iter().find_map(|name| {
                let value = variable(&name)?.trim().to_owned();
                (!value.is_empty()).then_some((name, value))
            })
        };
        let proxy = |name| value(name).map(|(variable, url)| NamedProxy { variable, url });
        let exempt = value("no_proxy").map(|(_, list)| list).unwrap_or_default();
        let exempt = exempt.split([',', ' ']).map(str::trim).filter(|entry| !entry.is_empty());
        Self {
            http: proxy("http_proxy"),
            https: proxy("https_proxy"),
            all: proxy("all_proxy"),
            exempt: exempt.map(str::to_ascii_lowercase).collect(),
        }
    }

    /// One proxy for everything but a list of hosts.
    #[cfg(test)]
    pub fn for_all(url: &str, exempt: &str) -> Self {
        Self::read(|name| match name {
            "all_proxy" => Some(url.to_owned()),
            "no_proxy" => Some(exempt.to_owned()),
            _ => None,
        })
    }

    /// The proxy by which a host is asked, if there is one.
    ///
    /// # Arguments
    /// `host`: a name or an address, without brackets.
    pub fn proxy_of(&self, is_https: bool, host: &str, port: u16) -> Option<&NamedProxy> {
        let own = if is_https { &self.https } else { &self.http };
        let proxy = own.as_ref().or(self.all.as_ref())?;
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        (!self.exempt.iter().any(|entry| is_exempt(entry, &host, port))).then_some(proxy)
    }
}

/// Whether an entry of `no_proxy` means a host: `*`, an address, a network such as 10.0.0.0/8, a name and
/// what is below it. Each may have a port.
fn is_exempt(entry: &str, host: &str, port: u16) -> bool {
    if entry == "*" {
        return true;
    }
    let (entry, of_port) = without_port(entry);
    if of_port.is_some_and(|of_port| of_port != port) {
        return false;
    }
    if let Ok(address) = host.parse::<IpAddr>() {
        return match entry.split_once('/') {
            Some((network, bits)) => {
                let (network, bits) = (network.parse::<IpAddr>().ok(), bits.parse::<u32>().ok());
                network.zip(bits).is_some_and(|(network, bits)| is_within(address, network, bits))
            }
            None => entry.parse::<IpAddr>().is_ok_and(|listed| listed == address),
        };
    }
    let name = entry.trim_start_matches('*').trim_start_matches('.').trim_end_matches('.');
    let below = host.strip_suffix(name);
    !name.is_empty() && below.is_some_and(|below| below.is_empty() || below.ends_with('.'))
}

/// An entry without its port and brackets, and the port.
fn without_port(entry: &str) -> (&str, Option<u16>) {
    let bare = |entry: &str| entry.parse::<IpAddr>().is_ok() || entry.contains('/');
    if bare(entry) {
        return (entry, None);
    }
    match entry.rsplit_once(':').map(|(host, port)| (host, port.parse())) {
        Some((host, Ok(port))) => (host.trim_start_matches('[').trim_end_matches(']'), Some(port)),
        _ => (entry.trim_start_matches('[').trim_end_matches(']'), None),
    }
}

fn is_within(address: IpAddr, network: IpAddr, bits: u32) -> bool {
    match (address, network) {
        (IpAddr::V4(address), IpAddr::V4(network)) if bits <= 32 => {
            let mask = u32::MAX.checked_shl(32 - bits).unwrap_or_default();
            address.to_bits() & mask == network.to_bits() & mask
        }
        (IpAddr::V6(address), IpAddr::V6(network)) if bits <= 128 => {
            let mask = u128::MAX.checked_shl(128 - bits).unwrap_or_default();
            address.to_bits() & mask == network.to_bits() & mask
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> ProxyVariables {
        ProxyVariables::read(|name| {
            variables.iter().find(|(of, _)| *of == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn the_variable_of_the_scheme_counts_before_that_of_all() {
        let named = |variables: &[(&str, &str)], is_https| {
            of(variables).proxy_of(is_https, "ranks.example", 80).map(|proxy| proxy.variable.clone())
        };
        let all = [("http_proxy", "a"), ("HTTPS_PROXY", "b"), ("ALL_PROXY", "c")];
        assert_eq!(named(&all, false).as_deref(), Some("http_proxy"));
        assert_eq!(named(&all, true).as_deref(), Some("HTTPS_PROXY"));
        assert_eq!(named(&all[2..], true).as_deref(), Some("ALL_PROXY"));
        assert_eq!(named(&all[..1], true), None);
        assert_eq!(named(&[("http_proxy", " ")], false), None);
        assert_eq!(named(&[], false), None);
    }

    #[test]
    fn what_no_proxy_lists_is_asked_directly() {
        for (list, host, port, is_direct) in [
            ("*", "ranks.example", 80, true),
            ("ranks.example", "ranks.example", 80, true),
            ("ranks.example", "eu.ranks.example", 80, true),
            (".ranks.example", "eu.RANKS.example.", 80, true),
            ("*.ranks.example", "eu.ranks.example", 80, true),
            ("ranks.example", "otherranks.example", 80, false),
            ("other.example, ranks.example:8080", "ranks.example", 8080, true),
            ("ranks.example:8080", "ranks.example", 80, false),
            ("10.0.0.0/8", "10.1.2.3", 80, true),
            ("10.0.0.0/8", "11.1.2.3", 80, false),
            ("10.0.0.0/8", "10.example", 80, false),
            ("10.1.2.3", "10.1.2.3", 80, true),
            ("10.1.2.3:81", "10.1.2.3", 80, false),
            ("0.0.0.0/0", "10.1.2.3", 80, true),
            ("fd00::/8", "fd12::1", 80, true),
            ("fd00::/8", "fe12::1", 80, false),
            ("[fd12::1]:80", "fd12::1", 80, true),
            ("fd12::1", "fd12::1", 80, true),
            ("10.0.0.0/33,10.0.0.0/x,/,:,.", "10.1.2.3", 80, false),
            ("10.0.0.0/33,10.0.0.0/x,/,:,.", "ranks.example", 80, false),
        ] {
            let variables = of(&[("http_proxy", "http://proxy"), ("NO_PROXY", list)]);
            assert_eq!(variables.proxy_of(false, host, port).is_none(), is_direct, "{list} {host}:{port}");
        }
    }
}
