//! Where a span is in its trace, as W3C Trace Context has it (<https://www.w3.org/TR/trace-context/>).

use std::fmt;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::Arc;

/// The header with the trace and the span.
pub const TRACEPARENT: &str = "traceparent";
/// The header with what others note about the trace. It is handed on as it came.
pub const TRACESTATE: &str = "tracestate";
/// Names of headers are case-sensitive in NATS, and programs in Go write them so.
pub const TRACEPARENT_OF_GO: &str = "Traceparent";
pub const TRACESTATE_OF_GO: &str = "Tracestate";

/// What the specification asks everybody to hand on at least.
const STATE_BYTES_MAX: usize = 512;
/// The length of a `traceparent` of version 00.
const BYTES: usize = 55;

/// A sampled span, as others refer to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceContext {
    /// Not 0.
    pub trace: u128,
    /// 0: the trace has no span yet.
    pub span: u64,
    pub state: Option<Arc<str>>,
    /// Whether the span is of another process.
    pub is_remote: bool,
}

impl TraceContext {
    /// Where a trace begins.
    pub fn begin(trace: u128) -> Self {
        Self { trace, span: 0, state: None, is_remote: false }
    }
}

/// What a request or a message says of the span that has caused it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Caller {
    /// There is none, or it cannot be read.
    None,
    NotSampled(TraceContext),
    Sampled(TraceContext),
}

impl Caller {
    /// Reads the headers.
    pub fn read(traceparent: Option<&str>, tracestate: Option<&str>) -> Self {
        let Some((trace, span, is_sampled)) = traceparent.and_then(read_traceparent) else {
            return Self::None;
        };
        let state = tracestate.filter(|state| is_state(state)).map(Arc::from);
        let context = TraceContext { trace, span, state, is_remote: true };
        if is_sampled { Self::Sampled(context) } else { Self::NotSampled(context) }
    }
}

/// The value of `traceparent`.
impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{:032x}-{:016x}-01", self.trace, self.span)
    }
}

/// Later versions begin as version 00 does.
fn read_traceparent(text: &str) -> Option<(u128, u64, bool)> {
    let text = text.trim();
    let (version, rest) = text.split_once('-')?;
    let (trace, rest) = rest.split_once('-')?;
    let (span, rest) = rest.split_once('-')?;
    let flags = match version {
        "00" if text.len() == BYTES => rest,
        "00" | "ff" => return None,
        _ => rest.split('-').next()?,
    };
    let is_hex = |text: &str, length: usize| {
        text.len() == length && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    if !(is_hex(version, 2) && is_hex(trace, 32) && is_hex(span, 16) && is_hex(flags, 2)) {
        return None;
    }
    let (trace, span) = (u128::from_str_radix(trace, 16).ok()?, u64::from_str_radix(span, 16).ok()?);
    let flags = u8::from_str_radix(flags, 16).ok()?;
    (trace != 0 && span != 0).then_some((trace, span, flags & 1 == 1))
}

fn is_state(text: &str) -> bool {
    (1..=STATE_BYTES_MAX).contains(&text.len()) && text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

/// A number that nobody else has, other than 0. The standard library seeds its hashers from the system, and
/// each differs from the one before.
pub fn random_id() -> u64 {
    RandomState::new().build_hasher().finish().max(1)
}

/// The same for a trace.
pub fn random_trace() -> u128 {
    u128::from(random_id()) << 64 | u128::from(random_id())
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_traceparent_reads_back_as_it_was() {
        let Caller::Sampled(context) = Caller::read(Some(GOOD), Some("a=1,b=2")) else { panic!("{GOOD}") };
        assert_eq!(context.to_string(), GOOD);
        assert_eq!(context.state.as_deref(), Some("a=1,b=2"));
        assert!(context.is_remote);
        let not_sampled = GOOD.replace("-01", "-00");
        assert!(matches!(Caller::read(Some(&not_sampled), None), Caller::NotSampled(_)));
        let later = format!("cc{}-what-comes-then", GOOD.trim_start_matches("00"));
        assert!(matches!(Caller::read(Some(&later), None), Caller::Sampled(_)));
    }

    #[test]
    fn what_is_no_traceparent_is_passed_over() {
        for bad in [
            "",
            "00",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-+bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0g",
        ] {
            assert_eq!(Caller::read(Some(bad), Some("a=1")), Caller::None, "{bad}");
        }
        for bad in [String::new(), "ä=1".to_owned(), "a=1\r\nx: y".to_owned(), "a".repeat(513)] {
            let Caller::Sampled(context) = Caller::read(Some(GOOD), Some(&bad)) else { panic!("{bad}") };
            assert_eq!(context.state, None, "{bad:?}");
        }
    }
}
