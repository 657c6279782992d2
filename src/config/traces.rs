//! Settings of traces: the collector, what it is told of this service, and which traces are sent. The
//! variables are those of OpenTelemetry.

use std::path::PathBuf;

use clap::Args;

use crate::config::ConfigError;
use crate::traces::{Headers, Sampler, Settings, SettingsError};

#[derive(Debug, Clone, Args)]
pub struct TracesArgs {
    /// Send traces to this OpenTelemetry collector, such as `http://127.0.0.1:4318`: OTLP over HTTP,
    /// protobuf, to its path `/v1/traces`. Without it nothing is traced
    #[arg(long, env = "OTEL_EXPORTER_OTLP_ENDPOINT", value_name = "URL", hide_env_values = true)]
    pub otlp_endpoint: Option<String>,
    /// Accept an https collector whose certificate an authority in this PEM file has signed, in place of
    /// those that the system trusts
    #[arg(long, env = "OTEL_EXPORTER_OTLP_CERTIFICATE", value_name = "FILE")]
    pub otlp_certificate: Option<String>,
    /// Headers of requests to the collector, such as authorization=Bearer%20TOKEN: pairs joined by commas,
    /// escaped as in URLs
    #[arg(long, env = "OTEL_EXPORTER_OTLP_HEADERS", value_name = "PAIRS", hide_env_values = true)]
    pub otlp_headers: Option<String>,
    /// What traces call the service. Its instance is the name of the node
    #[arg(long, env = "OTEL_SERVICE_NAME", value_name = "NAME", default_value = "ranktree")]
    pub otlp_service_name: String,
    /// What traces say of the service besides, such as deployment.environment.name=eu: pairs joined by commas
    #[arg(long, env = "OTEL_RESOURCE_ATTRIBUTES", value_name = "PAIRS")]
    pub otlp_attributes: Option<String>,
    /// Which traces are sent: `always_on`, `always_off` or `traceidratio`, of all requests and messages, or
    /// with `parentbased_` before it, of those whose caller does not say
    #[arg(
        long,
        env = "OTEL_TRACES_SAMPLER",
        value_name = "NAME",
        default_value = "parentbased_traceidratio"
    )]
    pub otlp_sampler: String,
    /// Which part of them `traceidratio` chooses, from 0 to 1
    #[arg(long, env = "OTEL_TRACES_SAMPLER_ARG", value_name = "RATIO", default_value = "0.01")]
    pub otlp_sampler_arg: String,
}

impl TracesArgs {
    /// Where traces are sent; `None`: nowhere, and then nothing else is looked at: the variables may be for
    /// other programs.
    ///
    /// # Errors
    /// When a setting cannot be read, or this program cannot send traces.
    pub fn resolve(self) -> Result<Option<Settings>, ConfigError> {
        let Some(endpoint) = self.otlp_endpoint.filter(|endpoint| !endpoint.trim().is_empty()) else {
            return Ok(None);
        };
        if cfg!(not(feature = "otlp")) {
            return Err(ConfigError::WithoutTraces);
        }
        let of = |flag: &'static str| move |why: SettingsError| ConfigError::Traces(flag, why);
        let pairs = |text: Option<String>| Settings::pairs(&text.unwrap_or_default());
        Ok(Some(Settings {
            url: Settings::url_of(&endpoint).map_err(of("--otlp-endpoint"))?,
            certificate: self.otlp_certificate.filter(|path| !path.trim().is_empty()).map(PathBuf::from),
            headers: Headers(pairs(self.otlp_headers).map_err(of("--otlp-headers"))?),
            service: self.otlp_service_name,
            attributes: pairs(self.otlp_attributes).map_err(of("--otlp-attributes"))?,
            sampler: Sampler::parse(&self.otlp_sampler, &self.otlp_sampler_arg).map_err(|why| {
                let is_ratio = matches!(why, SettingsError::Ratio(_));
                of(if is_ratio { "--otlp-sampler-arg" } else { "--otlp-sampler" })(why)
            })?,
        }))
    }
}

#[cfg(test)]
mod tests {
    use crate::config::ServeConfig;

    /// Without the feature an endpoint is refused before anything else is looked at.
    #[cfg_attr(not(feature = "otlp"), ignore = "an endpoint is refused")]
    #[test]
    fn traces_go_where_the_endpoint_says_and_nowhere_without_it() {
        let of = |arguments: &[&str]| {
            ServeConfig::of(arguments).map(|config| config.traces).map_err(|error| error.to_string())
        };
        assert_eq!(of(&["--otlp-sampler", "none", "--otlp-headers", "x"]), Ok(None));
        assert_eq!(of(&["--otlp-endpoint", ""]), Ok(None));
        let without = ["--otlp-endpoint", "https://collector", "--otlp-certificate", ""];
        assert_eq!(of(&without).expect("good settings").expect("an endpoint").certificate, None);
        let endpoint = ["--otlp-endpoint", "http://127.0.0.1:4318"];
        let settings = of(&endpoint).expect("good settings").expect("an endpoint");
        assert_eq!(settings.url, "http://127.0.0.1:4318/v1/traces");
        assert!(settings.sampler.follows_callers());
        for (arguments, said) in [
            (["--otlp-endpoint", "collector:4318"], "--otlp-endpoint: a URL such as"),
            (["--otlp-sampler", "some"], "--otlp-sampler: always_on, always_off,"),
            (["--otlp-sampler-arg", "2"], "--otlp-sampler-arg: a number from 0 to 1 is expected; got \"2\""),
            (["--otlp-headers", "a=b,hunter2"], "--otlp-headers: pairs such as name=value are expected"),
        ] {
            let given = if arguments[0] == "--otlp-endpoint" { vec![] } else { endpoint.to_vec() };
            let refused = of(&[&given[..], &arguments].concat()).expect_err(said);
            assert!(refused.starts_with(said) && !refused.contains("hunter2"), "{refused}");
        }
    }
}
