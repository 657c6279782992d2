//! Whose a rejected job is, whatever else is wrong with it: for the erasure of what is stored.
//!
//! Knows: the field of a job that names its member. Must not know: where rejected jobs are kept.

use crate::job::MAX_BOARDS_PER_JOB;
use crate::types::MAX_MEMBER_BYTES;
use crate::wire::lenient::{JsonFields, text_of};

const JOB_BYTES_KEPT: usize = 4_096;
const FIELD: &[u8] = b"\"member\"";
/// What the names take that are added to it: more are those of a message of many jobs, which is refused as a
/// whole.
const NAMES_BYTES_KEPT: usize = 1_024;

/// What is kept of a rejected job: its first 4 KiB, and behind them the members that only the rest names, as
/// JSON strings, because whose it is must be found in what is kept.
pub fn cut_job(job: &[u8]) -> Vec<u8> {
    cut_at(job, JOB_BYTES_KEPT)
}

fn cut_at(job: &[u8], max: usize) -> Vec<u8> {
    let Some(kept) = job.get(..max).filter(|kept| kept.len() < job.len()) else { return job.to_vec() };
    let (mut cut, known) = (kept.to_vec(), NamedMember::Unknown(kept));
    let mut names = Vec::new();
    // One may begin in the one part and end in the other.
    let from = max.saturating_sub(FIELD.len() + 2 * MAX_MEMBER_BYTES);
    for name in named_from(job, from).filter(|name| !known.may_be(name)) {
        if !names.contains(&name) {
            let field = format!(r#" "member":{}"#, serde_json::Value::from(name.as_str()));
            if cut.len() + field.len() > max + NAMES_BYTES_KEPT {
                break;
            }
            cut.extend_from_slice(field.as_bytes());
            names.push(name);
        }
    }
    cut
}

/// The texts that fields named `member` have from a place on, in bytes that need not be JSON.
fn named_from(bytes: &[u8], from: usize) -> impl Iterator<Item = String> {
    let mut rest = bytes.get(from..).unwrap_or_default();
    std::iter::from_fn(move || {
        loop {
            let at = rest.windows(FIELD.len()).position(|window| window == FIELD)?;
            rest = rest.get(at + FIELD.len()..)?.trim_ascii_start();
            if let Some(value) = rest.strip_prefix(b":") {
                let mut texts = serde_json::Deserializer::from_slice(value).into_iter::<String>();
                if let Some(Ok(name)) = texts.next() {
                    return Some(name);
                }
            }
        }
    })
}

/// Whose a rejected job is. Of bytes that are no JSON object, such as a job that was cut or an array of jobs,
/// it is only known which texts stand in them.
pub enum NamedMember<'a> {
    /// What the field names. It may be given twice: each occurrence counts.
    These(Vec<String>),
    Unknown(&'a [u8]),
}

impl<'a> NamedMember<'a> {
    pub fn of(job: &'a [u8]) -> Self {
        match serde_json::from_slice::<JsonFields<'_>>(job) {
            // Of longer lists, not all fields were read.
            Ok(JsonFields(fields)) if fields.len() <= MAX_BOARDS_PER_JOB => {
                let named = fields.iter().filter(|(name, _)| name == "member");
                let texts = named.filter_map(|(_, value)| text_of(value.get()));
                Self::These(texts.map(std::borrow::Cow::into_owned).collect())
            }
            Ok(_) | Err(_) => Self::Unknown(job),
        }
    }

    /// Whether the job is a member's, or may be: its id stands in the bytes as a JSON string.
    pub fn may_be(&self, member: &str) -> bool {
        match self {
            Self::These(named) => named.iter().any(|named| named == member),
            Self::Unknown(bytes) => {
                let (plain, escaped) = (format!("\"{member}\""), serde_json::to_string(member));
                [plain, escaped.unwrap_or_default()].iter().any(|sought| {
                    let sought = sought.as_bytes();
                    !sought.is_empty() && bytes.windows(sought.len()).any(|window| window == sought)
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_of_the_member_that_it_names_and_of_nobody_that_it_mentions() {
        let is_of = |job: &[u8]| NamedMember::of(job).may_be("p \"4\"");
        let many = (0..70).fold(String::new(), |text, number| text + &format!("\"f{number}\":1,"));
        for job in [
            r#"{"member":"p \"4\"","board":"b","score":1.5}"#,
            r#"{"board":"b","member":"q","member":"p \u00224\u0022"}"#,
            r#"{"member":"p \"4\"","scores":{"a":1,"b"#,
            r#"[{"member":"q","score":1},{"member":"p \"4\"","score":2}]"#,
            &format!("{{{many}\"member\":\"p \\\"4\\\"\"}}"),
        ] {
            assert!(is_of(job.as_bytes()), "{job}");
        }
        for job in [
            r#"{"member":"q","board":"b","score":1,"meta":{"friend":"p \"4\""}}"#,
            r#"{"member":"p","score":4}"#,
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
            NamedMember::of(&cut).may_be(member)
        };
        for job in [
            format!(r#"{{"meta":{{"a":"{filler}"}},"member":"p42","score":true}}"#),
            format!(r#"{{"meta":{{"a":"{filler}"}},"member" : "q","member":"p42"}}"#),
            format!(r#"{{"meta":{{"a":"{filler}"}},"member":"p\u00342""#),
            format!(r#"{{"meta":"{filler}","broken,"member":"p42"}}"#),
            format!(r#"{{"meta":"{}","member":"p42"}}"#, &filler[..38]),
            format!(r#"{{"meta":"{}","member":"p42"}}"#, &filler[..44]),
        ] {
            assert!(is_found(&job, "p42"), "{job}");
            assert!(!is_found(&job, "p4"), "{job}");
        }
        let others = format!(r#"{{"meta":{{"a":"{filler}"}},"members":"p42","memb\"member":5}}"#);
        assert!(!is_found(&others, "p42"));
        let short = br#"{"member":"p42","score":true}"#;
        assert_eq!(cut_at(short, 64), short);
        let many = (0..1_000).fold(String::new(), |text, number| text + &format!(r#""member":"m{number}","#));
        assert!(cut_at(many.as_bytes(), 64).len() <= 64 + NAMES_BYTES_KEPT);
    }
}
