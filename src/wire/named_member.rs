//! Whose a rejected job is, whatever else is wrong with it: for the erasure of what is stored, and for lists
//! of one member's rejects.
//!
//! Knows: the field of a job that names its member. Must not know: where rejected jobs are kept.
//!
//! All of it takes time in proportion to the bytes: they come from whoever may publish.

use std::collections::HashSet;

use crate::job::MAX_BOARDS_PER_JOB;
use crate::types::MAX_MEMBER_BYTES;
use crate::wire::lenient::{JsonFields, text_of};

const JOB_BYTES_KEPT: usize = 4_096;
/// What the names take that are added to it: more are those of a message of many jobs, which is refused as a
/// whole.
const NAMES_BYTES_KEPT: usize = 1_024;
const FIELD: &str = "member";
/// The most bytes that such a text takes: each may be written as an escape of six.
const TEXT_BYTES_MAX: usize = 6 * MAX_MEMBER_BYTES + 2;

/// The members that a job is of, or may be: what its field names, of which each occurrence counts. Of bytes
/// that are no JSON object, such as a job that was cut or an array of jobs, every text that is not the
/// name of a field.
pub fn members_named(job: &[u8]) -> HashSet<String> {
    match serde_json::from_slice::<JsonFields<'_>>(job) {
        // Of longer lists, not all fields were read.
        Ok(JsonFields(fields)) if fields.len() <= MAX_BOARDS_PER_JOB => {
            let named = fields.iter().filter(|(name, _)| name == FIELD);
            named.filter_map(|(_, value)| text_of(value.get())).map(std::borrow::Cow::into_owned).collect()
        }
        Ok(_) | Err(_) => {
            let quotes = Quotes::of(job);
            (0..quotes.at.len()).filter_map(|nth| quotes.value(nth)).collect()
        }
    }
}

/// What is kept of a rejected job: its first 4 KiB, and behind them the members that only the rest names, as
/// JSON strings, because whose it is must be found in what is kept.
pub fn cut_job(job: &[u8]) -> Vec<u8> {
    cut_at(job, JOB_BYTES_KEPT)
}

fn cut_at(job: &[u8], max: usize) -> Vec<u8> {
    let Some(kept) = job.get(..max).filter(|kept| kept.len() < job.len()) else { return job.to_vec() };
    let (mut cut, mut known) = (kept.to_vec(), members_named(kept));
    let quotes = Quotes::of(job);
    for name in (0..quotes.at.len()).filter_map(|nth| quotes.named_behind(nth)) {
        let field = format!(r#" "{FIELD}":{}"#, serde_json::Value::from(name.as_str()));
        if known.insert(name) && cut.len() + field.len() <= max + NAMES_BYTES_KEPT {
            cut.extend_from_slice(field.as_bytes());
        }
    }
    cut
}

/// Where quotation marks stand that are not escaped, in bytes that need not be JSON. Each may begin a text,
/// since one may be missing before it.
struct Quotes<'a> {
    bytes: &'a [u8],
    at: Vec<usize>,
}

impl<'a> Quotes<'a> {
    fn of(bytes: &'a [u8]) -> Self {
        let (mut at, mut is_escaped) = (Vec::new(), false);
        for (place, byte) in bytes.iter().enumerate() {
            if *byte == b'"' && !is_escaped {
                at.push(place);
            }
            is_escaped = *byte == b'\\' && !is_escaped;
        }
        Self { bytes, at }
    }

    fn between(&self, nth: usize) -> Option<&'a [u8]> {
        self.bytes.get(*self.at.get(nth)?..=*self.at.get(nth + 1)?)
    }

    /// The text from one to the next, if it is short enough for a member's id.
    fn text(&self, nth: usize) -> Option<String> {
        let quoted = self.between(nth).filter(|quoted| quoted.len() <= TEXT_BYTES_MAX)?;
        let text = text_of(std::str::from_utf8(quoted).ok()?)?;
        (text.len() <= MAX_MEMBER_BYTES).then(|| text.into_owned())
    }

    /// The same, unless it is the name of a field.
    fn value(&self, nth: usize) -> Option<String> {
        let behind = self.bytes.get(self.at.get(nth + 1)? + 1..)?;
        let next = behind.iter().find(|byte| !byte.is_ascii_whitespace());
        if next == Some(&b':') { None } else { self.text(nth) }
    }

    /// The text that a field has whose name is between one and the next, if that is the member's.
    fn named_behind(&self, nth: usize) -> Option<String> {
        let name = self.between(nth)?;
        let may_be_field = name.len() == FIELD.len() + 2 || name.contains(&b'\\');
        if !may_be_field || self.text(nth)? != FIELD {
            return None;
        }
        let colon = self.between(nth + 1)?.trim_ascii_start();
        let colon = colon.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
        if colon.trim_ascii() == b":" { self.text(nth + 2) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_of_the_member_that_it_names_and_of_nobody_that_it_mentions() {
        let is_of = |job: &[u8]| members_named(job).contains("p \"4\"");
        let many = (0..70).fold(String::new(), |text, number| text + &format!("\"f{number}\":1,"));
        for job in [
            r#"{"member":"p \"4\"","board":"b","score":1.5}"#,
            r#"{"board":"b","member":"q","member":"p \u00224\u0022"}"#,
            r#"{"member":"p \"4\"","scores":{"a":1,"b"#,
            r#"{"member":"\u0070 \u00224\u0022","scores":{"a":1,"b"#,
            r#"{"board:"b","member":"p \"4\"","#,
            r#"[{"member":"q","score":1},{"member":"p \"4\"","score":2}]"#,
            &format!("{{{many}\"member\":\"p \\\"4\\\"\"}}"),
        ] {
            assert!(is_of(job.as_bytes()), "{job}");
        }
        for job in [
            r#"{"member":"q","board":"b","score":1,"meta":{"friend":"p \"4\""}}"#,
            r#"{"member":"p","score":4}"#,
            r#"[{"member":"q","p \"4\"" : 1},{"a":1"#,
            r#"{"member":"p \"4\"5","scores":{"a"#,
            "",
            "p \"4\"",
        ] {
            assert!(!is_of(job.as_bytes()), "{job}");
        }
        assert!(is_of(b"\xff{\"member\":\"p \\\"4\\\"\""), "bytes that are no text");
    }

    #[test]
    fn who_is_named_behind_the_cut_is_found_in_what_is_kept() {
        let filler = "x".repeat(100);
        let is_found = |job: &str, member: &str| {
            let cut = cut_at(job.as_bytes(), 64);
            assert!(cut.starts_with(&job.as_bytes()[..64]), "{job}");
            members_named(&cut).contains(member)
        };
        for job in [
            format!(r#"{{"meta":{{"a":"{filler}"}},"member":"p42","score":true}}"#),
            format!(r#"{{"meta":{{"a":"{filler}"}},"member" : "q","member":"p42"}}"#),
            format!(r#"{{"meta":{{"a":"{filler}"}},"member":"p\u00342""#),
            format!(r#"{{"meta":"{filler}","memb\u0065r":"\u0070\u0034\u0032","score":true}}"#),
            format!(r#"{{"meta":"{filler}","broken,"member":"p42"}}"#),
            format!(r#"{{"meta":"{}","member":"p42"}}"#, &filler[..38]),
            format!(r#"{{"meta":"{}","member":"p42"}}"#, &filler[..44]),
        ] {
            assert!(is_found(&job, "p42"), "{job}");
            assert!(!is_found(&job, "p4"), "{job}");
        }
        let long = "y".repeat(300);
        assert!(is_found(&format!(r#"{{"m":"{filler}","member":"{long}","member":"p42","x"#), "p42"));
        let others = format!(r#"{{"meta":{{"a":"{filler}"}},"members":"p42","memb\"member":5}}"#);
        assert!(!is_found(&others, "p42"));
        let short = br#"{"member":"p42","score":true}"#;
        assert_eq!(cut_at(short, 64), short);
        let many = (0..1_000).fold(String::new(), |text, number| text + &format!(r#""member":"m{number}","#));
        assert!(cut_at(many.as_bytes(), 64).len() <= 64 + NAMES_BYTES_KEPT);
    }
}
