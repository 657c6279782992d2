//! The headers of a message that say which traces it belongs to: W3C Trace Context, as over HTTP.
//!
//! Requests of the same moment share a message, so it may have several values of each. A reader that knows of
//! one takes the first.

use async_nats::{HeaderMap, HeaderName, HeaderValue};

use crate::traces::{
    self, Caller, TRACEPARENT, TRACEPARENT_OF_GO, TRACESTATE, TRACESTATE_OF_GO, TraceContext,
};

/// Adds the headers of spans that have caused a message.
pub fn put<'a>(headers: &mut HeaderMap, callers: impl IntoIterator<Item = &'a TraceContext> + Clone) {
    let have_state = callers.clone().into_iter().any(|caller| caller.state.is_some());
    for caller in callers {
        headers.append(TRACEPARENT, caller.to_string());
        if have_state {
            // Each value belongs to the one of `traceparent` at the same place.
            headers.append(TRACESTATE, caller.state.as_deref().unwrap_or_default());
        }
    }
}

/// The headers of a message that these spans have caused. Without any they say that it is not sampled, or the
/// node that gets it would choose once more. `None`: nothing is traced.
pub fn of_message(callers: &[TraceContext]) -> Option<HeaderMap> {
    if !traces::is_on() {
        return None;
    }
    let mut headers = HeaderMap::new();
    put(&mut headers, callers);
    if callers.is_empty() {
        headers.append(TRACEPARENT, traces::not_sampled());
    }
    Some(headers)
}

/// What headers take in a message, at most.
pub fn bytes(headers: &HeaderMap) -> usize {
    let line = |(name, values): (&HeaderName, &Vec<HeaderValue>)| -> usize {
        values.iter().map(|value| AsRef::<str>::as_ref(name).len() + value.as_str().len() + 4).sum()
    };
    headers.iter().map(line).sum()
}

/// Headers with one span that has caused a message, if there is one.
pub fn of(caller: Option<&TraceContext>) -> Option<HeaderMap> {
    caller.map(|caller| {
        let mut headers = HeaderMap::new();
        put(&mut headers, [caller]);
        headers
    })
}

/// The spans that have caused a message.
pub fn read(headers: Option<&HeaderMap>) -> Vec<Caller> {
    let Some(headers) = headers else { return Vec::new() };
    let values = |name: &'static str, of_go: &'static str| -> Vec<&str> {
        let values = headers.get_all(name).chain(headers.get_all(of_go));
        values.map(HeaderValue::as_str).collect()
    };
    let parents = values(TRACEPARENT, TRACEPARENT_OF_GO);
    if parents.is_empty() {
        return Vec::new();
    }
    let states = values(TRACESTATE, TRACESTATE_OF_GO);
    if let [parent] = parents[..] {
        return vec![Caller::read(Some(parent), Some(&states.join(",")))];
    }
    let are_pairs = parents.len() == states.len();
    let state = |index: usize| states.get(index).copied().filter(|_| are_pairs);
    parents.iter().enumerate().map(|(index, parent)| Caller::read(Some(parent), state(index))).collect()
}

/// The span that has caused a message, where there can be one only.
pub fn read_one(headers: Option<&HeaderMap>) -> Caller {
    read(headers).into_iter().next().unwrap_or(Caller::None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context(span: u64, state: Option<&str>) -> TraceContext {
        TraceContext { span, state: state.map(Into::into), is_remote: true, ..TraceContext::begin(7) }
    }

    #[test]
    fn several_spans_read_back_as_they_were() {
        for states in [[None, None], [Some("a=1"), None], [None, Some("b=2,c=3")]] {
            let [first, second] = [context(1, states[0]), context(2, states[1])];
            let mut headers = HeaderMap::new();
            put(&mut headers, [&first, &second]);
            assert_eq!(read(Some(&headers)), [Caller::Sampled(first.clone()), Caller::Sampled(second)]);
            assert_eq!(read_one(Some(&headers)), Caller::Sampled(first));
        }
        assert_eq!(read(None), []);
        assert_eq!(read(Some(&HeaderMap::new())), []);
    }

    #[test]
    fn headers_are_found_as_programs_in_go_write_them() {
        let mut headers = HeaderMap::new();
        headers.append(TRACEPARENT_OF_GO, context(1, None).to_string());
        headers.append(TRACESTATE_OF_GO, "a=1");
        headers.append(TRACESTATE_OF_GO, "b=2");
        assert_eq!(read(Some(&headers)), [Caller::Sampled(context(1, Some("a=1,b=2")))]);
    }
}
