//! Whether this processor has the instructions that RocksDB was compiled for.
//!
//! Knows: `.cargo/config.toml` names instructions for RocksDB alone, which without this check would end the
//! process by a signal and without a word. Must not know: what RocksDB uses them for.

/// The compiler's flags that stand for instructions, and their names in processors' manuals.
const INSTRUCTIONS: [(&str, &str); 2] = [("-msse4.2", "SSE 4.2"), ("-mpclmul", "PCLMULQDQ")];

/// Called before the constructors of C++, which come behind those with a number: RocksDB's use the
/// instructions already, before `main`.
#[allow(unsafe_code, reason = "nothing else is called before the constructors of C++")]
#[used]
// SAFETY: the section holds pointers to functions of this type, and this one needs nothing of `main`.
#[unsafe(link_section = ".init_array.00101")]
static BEFORE_CONSTRUCTORS: extern "C" fn() = end_if_lacking;

extern "C" fn end_if_lacking() {
    // Cargo passes the flags to this crate's compiler as it does to RocksDB's, so that a build without them
    // asks for nothing.
    let flags = option_env!("CXXFLAGS_x86_64-unknown-linux-gnu").unwrap_or_default();
    let Some(name) = lacking(flags, has) else { return };
    eprintln!(
        "ranktree: this processor does not have {name}, which this program was compiled for. Intel's have it since 2010 \
         and AMD's since 2011; a virtual machine has it if its host lets it, as with the processor type x86-64-v2-AES or \
         host in place of kvm64. Or compile ranktree without .cargo/config.toml"
    );
    std::process::exit(2);
}

fn lacking(flags: &str, has: impl Fn(&str) -> bool) -> Option<&'static str> {
    let asked = |flag: &str| flags.split_ascii_whitespace().any(|given| given == flag);
    INSTRUCTIONS.iter().find(|(flag, _)| asked(flag) && !has(flag)).map(|(_, name)| *name)
}

fn has(flag: &str) -> bool {
    match flag {
        "-msse4.2" => is_x86_feature_detected!("sse4.2"),
        "-mpclmul" => is_x86_feature_detected!("pclmulqdq"),
        _ => true,
    }
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
