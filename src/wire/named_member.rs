//! Whose a rejected job is, whatever else is wrong with it: for the erasure of what is stored.
//!
//! Knows: the field of a job that names its member. Must not know: where rejected jobs are kept.

use crate::job::MAX_BOARDS_PER_JOB;
use crate::wire::lenient::{JsonFields, text_of};

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
}
