//! Server-sent events, as the service writes them: lines end in a line feed, with or without a carriage return.

use std::collections::VecDeque;

/// An event.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) id: Option<String>,
    pub(super) name: String,
    pub(super) data: String,
}

/// Takes bytes as they come, and makes events of them.
#[derive(Default)]
pub(super) struct Events {
    /// A line that has not ended yet.
    begun: Vec<u8>,
    /// An event that has not ended yet.
    id: Option<String>,
    name: String,
    data: Option<String>,
    whole: VecDeque<Event>,
}

impl Events {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let mut lines = bytes.split(|byte| *byte == b'\n');
        let mut line = lines.next().unwrap_or_default();
        for next in lines {
            self.begun.extend_from_slice(line);
            let whole = std::mem::take(&mut self.begun);
            let whole = String::from_utf8_lossy(&whole);
            self.line(whole.strip_suffix('\r').unwrap_or(&whole));
            line = next;
        }
        self.begun.extend_from_slice(line);
    }

    fn line(&mut self, line: &str) {
        if line.is_empty() {
            let name = std::mem::take(&mut self.name);
            if let Some(data) = self.data.take() {
                self.whole.push_back(Event { id: self.id.clone(), name, data });
            }
            return;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "id" => self.id = Some(value.to_owned()),
            "event" => value.clone_into(&mut self.name),
            "data" => match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => self.data = Some(value.to_owned()),
            },
            // A comment has no field. Others are for browsers.
            _ => {}
        }
    }

    pub(super) fn next(&mut self) -> Option<Event> {
        self.whole.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_the_same_wherever_their_bytes_are_cut() {
        let text = "retry: 1000\n: hello\n\nid: 1\nevent: state\ndata: {\"member\":\"日本\"}\n\n\
                    :\n\nid:2\r\nevent:changes\r\ndata:a\r\ndata: b\r\n\r\nevent: none\n\ndata: last\n\nid: 9\n";
        let event = |id: &str, name: &str, data: &str| Event {
            id: Some(id.to_owned()),
            name: name.to_owned(),
            data: data.to_owned(),
        };
        let expected = [
            event("1", "state", "{\"member\":\"日本\"}"),
            event("2", "changes", "a\nb"),
            event("2", "", "last"),
        ];
        for size in 1..=text.len() {
            let mut events = Events::default();
            text.as_bytes().chunks(size).for_each(|chunk| events.push(chunk));
            let found: Vec<_> = std::iter::from_fn(|| events.next()).collect();
            assert_eq!(found, expected, "in pieces of {size}");
        }
    }
}
