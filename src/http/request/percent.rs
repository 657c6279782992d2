//! Whether a path is percent-encoded as it should be. The router takes what is not literally: `%zz` would be
//! a name of three characters.

use crate::http::render::problem::Problem;

/// Checks each percent sign of a path.
///
/// # Errors
/// When two hexadecimal digits do not follow one.
pub fn check(path: &str) -> Result<(), Problem> {
    let mut rest = path;
    while let Some(at) = memchr::memchr(b'%', rest.as_bytes()) {
        let behind = rest.get(at + 1..).unwrap_or_default();
        let digits = behind.bytes().take(2).take_while(u8::is_ascii_hexdigit).count();
        if digits < 2 {
            let end = behind.char_indices().nth(2).map_or(behind.len(), |(at, _)| at);
            return Err(Problem::path_malformed(&format!("%{}", behind.get(..end).unwrap_or_default())));
        }
        rest = behind;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_hexadecimal_digits_follow_each_percent_sign() {
        for good in ["", "/v1/boards/a", "/v1/boards/%C3%a4%25", "/%25zz"] {
            assert!(check(good).is_ok(), "{good}");
        }
        for (bad, found) in
            [("/a%zz/b", "%zz"), ("/%41%4", "%4"), ("/%", "%"), ("/%%41", "%%4"), ("/%é/", "%é/")]
        {
            let refused = check(bad).expect_err(bad);
            let text = String::from_utf8(refused.to_json()).expect("text");
            assert!(
                text.contains("\"malformed\"") && text.contains(&format!("got \\\"{found}\\\"")),
                "{text}"
            );
        }
    }
}
