//! Whether this processor has the instructions that RocksDB was compiled for.
//!
//! Knows: `.cargo/config.toml` names instructions for RocksDB alone, which without this check would end the
//! process by a signal and without a word. Must not know: what RocksDB uses them for.

use crate::cli::Failure;

/// The compiler's flags that stand for instructions, and their names in processors' manuals.
const INSTRUCTIONS: [(&str, &str); 2] = [("-msse4.2", "SSE 4.2"), ("-mpclmul", "PCLMULQDQ")];

/// # Errors
/// When the processor lacks instructions that RocksDB was compiled for.
pub fn check() -> Result<(), Failure> {
    // Cargo passes the flags to this crate's compiler as it does to RocksDB's, so that a build without them
    // asks for nothing.
    let flags = option_env!("CXXFLAGS_x86_64-unknown-linux-gnu").unwrap_or_default();
    match lacking(flags, has) {
        None => Ok(()),
        Some(name) => Err(format!(
            "this processor does not have {name}, which this program was compiled for: processors for x86-64 have it \
             since 2010. For this one, compile ranktree without .cargo/config.toml"
        )
        .into()),
    }
}

fn lacking(flags: &str, has: impl Fn(&str) -> bool) -> Option<&'static str> {
    let asked = |flag: &str| flags.split_ascii_whitespace().any(|given| given == flag);
    INSTRUCTIONS.iter().find(|(flag, _)| asked(flag) && !has(flag)).map(|(_, name)| *name)
}

#[cfg(target_arch = "x86_64")]
fn has(flag: &str) -> bool {
    match flag {
        "-msse4.2" => is_x86_feature_detected!("sse4.2"),
        "-mpclmul" => is_x86_feature_detected!("pclmulqdq"),
        _ => true,
    }
}

/// The flags are for another kind of processor.
#[cfg(not(target_arch = "x86_64"))]
fn has(_flag: &str) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_that_were_compiled_for_have_to_be_there() {
        let flags = "-O2 -msse4.2 -mpclmul";
        assert_eq!(lacking(flags, |_| true), None);
        assert_eq!(lacking(flags, |flag| flag != "-msse4.2"), Some("SSE 4.2"));
        assert_eq!(lacking(flags, |flag| flag != "-mpclmul"), Some("PCLMULQDQ"));
    }

    #[test]
    fn what_was_not_compiled_for_may_be_missing() {
        assert_eq!(lacking("", |_| false), None);
        assert_eq!(lacking("-msse4.1 -mavx2", |_| false), None);
    }
}
