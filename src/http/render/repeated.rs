//! What several entries of an answer say alike: it is made once, and copied from there on.
//!
//! The results of a request's jobs mostly have one `as_of`, and one time of their message. To make the texts
//! of these takes as long as a third of all else of an entry.

use std::ops::Range;

use crate::http::render::json::{self, Object};
use crate::types::{AsOf, Timestamp};

/// What was written last into one answer, and where it stands there.
#[derive(Default)]
pub struct Repeated<'a> {
    as_of: Option<(&'a AsOf, Range<usize>)>,
    time: Option<(Timestamp, Range<usize>)>,
}

impl<'a> Repeated<'a> {
    pub fn as_of(&mut self, object: &mut Object<'_>, value: &'a AsOf) {
        write(object.name("as_of"), &mut self.as_of, value, |out| json::as_of(out, value));
    }

    pub fn updated_at(&mut self, object: &mut Object<'_>, value: Timestamp) {
        write(object.name("updated_at"), &mut self.time, value, |out| json::time(out, value));
    }
}

fn write<T: PartialEq>(
    out: &mut Vec<u8>,
    last: &mut Option<(T, Range<usize>)>,
    value: T,
    make: impl FnOnce(&mut Vec<u8>),
) {
    match last {
        Some((known, place)) if *known == value => out.extend_from_within(place.clone()),
        _ => {
            let begin = out.len();
            make(out);
            *last = Some((value, begin..out.len()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{Sequence, ShardId};

    #[test]
    fn what_is_said_again_is_said_alike() {
        let as_of = [1, 1, 2, 1].map(|sequence| AsOf(vec![(ShardId(0), Sequence(sequence))]));
        let times = [5, 6, 6, 6].map(|micros| Timestamp::from_micros(micros).expect("in range"));
        let (mut out, mut expected) = (Vec::new(), Vec::new());
        let mut repeated = Repeated::default();
        for (as_of, time) in as_of.iter().zip(times) {
            let mut object = Object::begin(&mut out);
            repeated.updated_at(&mut object, time);
            repeated.as_of(&mut object, as_of);
            object.end();
            let mut object = Object::begin(&mut expected);
            object.time("updated_at", time);
            object.plain("as_of", as_of);
            object.end();
        }
        assert_eq!(String::from_utf8_lossy(&out), String::from_utf8_lossy(&expected));
    }
}
