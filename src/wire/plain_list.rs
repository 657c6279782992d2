//! The fast path of bodies that are one list, `{"scores": [...]}`: items in their commonest form are read
//! where they stand, and the body is gone through once.
//!
//! Knows: plain integers, and texts without escapes. Must not know: why a body is refused; whoever asks for a
//! list reads any other body by `lenient`, which may be right or wrong.

use crate::types::{MemberId, Score};
use crate::wire::fast_path::Reader;

/// The scores of a body `{"name": [865, [1200, 90000], ...]}` of 1 to `most` items, if all of it is plain.
pub fn plain_scores(body: &[u8], name: &str, most: usize) -> Option<Vec<Score>> {
    plain_items(body, name, most, Reader::score)
}

/// The members of a body `{"name": ["p42", ...]}` of 1 to `most` items, if all of it is plain.
pub fn plain_members(body: &[u8], name: &str, most: usize) -> Option<Vec<MemberId>> {
    plain_items(body, name, most, |text| MemberId::new(text.utf8()?).ok())
}

fn plain_items<'a, T>(
    body: &'a [u8],
    name: &str,
    most: usize,
    mut item: impl FnMut(&mut Reader<'a>) -> Option<T>,
) -> Option<Vec<T>> {
    let mut text = Reader::new(body)?;
    text.skip_space();
    text.expect(b'{')?;
    text.skip_space();
    if text.text()? != name.as_bytes() {
        return None;
    }
    text.skip_space();
    text.expect(b':')?;
    text.skip_space();
    if !text.begins_with(b'[') {
        return None;
    }
    // An item and its comma have two bytes at least; most have more.
    let mut items = Vec::with_capacity(most.min(body.len() / EXPECTED_BYTES));
    text.each(|text| {
        if items.len() == most {
            return None;
        }
        items.push(item(text)?);
        Some(())
    })?;
    text.skip_space();
    text.expect(b'}')?;
    text.skip_space();
    text.is_at_end().then_some(items)
}

/// What most items take at least, with their commas.
const EXPECTED_BYTES: usize = 4;

impl Reader<'_> {
    /// Reads the one item that comes, or those of an array that has some.
    fn each(&mut self, mut item: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        if !self.begins_with(b'[') {
            return item(self);
        }
        self.next()?;
        loop {
            self.skip_space();
            item(self)?;
            self.skip_space();
            match self.next()? {
                b']' => return Some(()),
                b',' => {}
                _ => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_bodies_are_read_and_no_others() {
        let scores = |body: &str| {
            let scores = plain_scores(body.as_bytes(), "scores", 3)?;
            Some(scores.iter().map(|score| score.keys().to_vec()).collect::<Vec<_>>())
        };
        assert_eq!(scores(r#"{"scores":[1,-20,0]}"#), Some(vec![vec![1], vec![-20], vec![0]]));
        assert_eq!(
            scores(" {\t\"scores\" : [ [1 , 2] ,\n9223372036854775807 ] } "),
            Some(vec![vec![1, 2], vec![i64::MAX]])
        );
        assert_eq!(scores(r#"{"scores":[-9223372036854775808]}"#), Some(vec![vec![i64::MIN]]));
        for other in [
            "",
            "{}",
            "[1]",
            r#"{"scores":1}"#,
            r#"{"scores":[]}"#,
            r#"{"scores":[[]]}"#,
            r#"{"scores":[[[1]]]}"#,
            r#"{"scores":[1,2,3,4]}"#,
            r#"{"scores":[1,]}"#,
            r#"{"scores":[1],}"#,
            r#"{"scores":[1]} x"#,
            r#"{"scores":[1],"more":1}"#,
            r#"{"Scores":[1]}"#,
            r#"{"scores":[1.0]}"#,
            r#"{"scores":[1e2]}"#,
            r#"{"scores":[01]}"#,
            r#"{"scores":[-0]}"#,
            r#"{"scores":[+1]}"#,
            r#"{"scores":["1"]}"#,
            r#"{"scores":[null]}"#,
            r#"{"scores":[9223372036854775808]}"#,
            r#"{"scores":[[1,2,3,4,5,6,7,8,9]]}"#,
            r#"{"scores":[1"#,
        ] {
            assert_eq!(scores(other), None, "{other}");
        }
        let members = |body: &str| plain_members(body.as_bytes(), "members", 2);
        let found = members("{\"members\":[\"p42\", \"日本 a\"]}").expect("it is plain");
        assert_eq!(found.iter().map(MemberId::as_str).collect::<Vec<_>>(), ["p42", "日本 a"]);
        for other in [
            r#"{"members":"p42"}"#,
            r#"{"members":[""]}"#,
            r#"{"members":["a\u0041"]}"#,
            r#"{"members":["a","b","c"]}"#,
            r#"{"members":[1]}"#,
            r#"{"members":[["a"]]}"#,
            "{\"members\":[\"\u{85}\"]}",
        ] {
            assert_eq!(members(other), None, "{other}");
        }
        assert_eq!(plain_members(b"{\"members\":[\"\xff\"]}", "members", 2), None);
    }
}
