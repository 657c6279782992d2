//! Whether this processor has the instructions that RocksDB was compiled for.
//!
//! Knows: `.cargo/config.toml` names instructions for RocksDB alone, which without this check would end the
//! process by a signal and without a word. Must not know: what RocksDB uses them for.

/// What RocksDB is compiled with where it may use SSE 4.2, by which compilers mean POPCNT, too.
const FLAG: &str = "-msse4.2";

/// Called before the constructors of C++, which come behind those with numbers in the linker's order:
/// RocksDB's use the instructions already, before `main`.
#[allow(unsafe_code, reason = "nothing safe is called before the constructors of C++")]
#[used]
// SAFETY: the section holds pointers to functions of this type.
#[unsafe(link_section = ".init_array.00101")]
static BEFORE_CONSTRUCTORS: extern "C" fn() = end_if_lacking;

extern "C" fn end_if_lacking() {
    // Cargo passes the flags to this crate's compiler as it does to RocksDB's, so that a build without them
    // asks for nothing.
    let flags = option_env!("CXXFLAGS_x86_64-unknown-linux-gnu").unwrap_or_default();
    let has =
        [("SSE 4.2", is_x86_feature_detected!("sse4.2")), ("POPCNT", is_x86_feature_detected!("popcnt"))];
    if let Some(name) = lacking(flags, has) {
        end(&["ranktree: this processor does not have ", name, LACKING]);
    }
}

const LACKING: &str = ", for which this program was compiled. Servers and desktops have it since 2011; a virtual \
machine, if its processor is of a type that has it, as x86-64-v2 and host do, and not kvm64 or qemu64. Or compile \
ranktree without .cargo/config.toml\n";

fn lacking(flags: &str, has: [(&'static str, bool); 2]) -> Option<&'static str> {
    let is_asked = flags.split_ascii_whitespace().any(|given| given == FLAG);
    has.into_iter().find(|(_, has)| is_asked && !has).map(|(name, _)| name)
}

/// Ends the program with a message.
#[allow(unsafe_code, reason = "the standard library promises nothing before `main`")]
fn end(message: &[&str]) -> ! {
    for part in message {
        // SAFETY: the pointer leads to as many bytes. Nothing can be done if they cannot be written.
        let _written = unsafe { libc::write(libc::STDERR_FILENO, part.as_ptr().cast(), part.len()) };
    }
    // SAFETY: it ends the process, and runs nothing of what was not begun yet.
    unsafe { libc::_exit(2) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_that_were_compiled_for_have_to_be_there() {
        let flags = "-O2 -msse4.2";
        assert_eq!(lacking(flags, [("one", true), ("other", true)]), None);
        assert_eq!(lacking(flags, [("one", false), ("other", true)]), Some("one"));
        assert_eq!(lacking(flags, [("one", true), ("other", false)]), Some("other"));
    }

    #[test]
    fn what_was_not_compiled_for_may_be_missing() {
        assert_eq!(lacking("", [("one", false), ("other", false)]), None);
        assert_eq!(lacking("-msse4.1 -mavx2", [("one", false), ("other", false)]), None);
    }
}
