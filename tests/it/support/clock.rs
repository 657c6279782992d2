//! A clock that is wrong, for one process: libfaketime, which is preloaded.

use std::path::{Path, PathBuf};

use crate::support::tools::{missing, tool};

const LIBRARY: &str = "libfaketime.so.1";

/// The variables of a process whose clock is shifted, such as by `+400d`. Durations are as they are.
///
/// `None`: the library is not here; then a test returns.
pub fn shifted(by: &str) -> Option<Vec<(String, String)>> {
    let Some(library) = library() else {
        missing("faketime", "make faketime gets it");
        return None;
    };
    let variables = [
        ("LD_PRELOAD", library.to_str().expect("UTF-8")),
        ("FAKETIME", by),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
    ];
    Some(variables.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec())
}

/// Beside the program that `make faketime` puts there, or as Debian and others install it.
fn library() -> Option<PathBuf> {
    let own = tool("faketime").canonicalize().ok().and_then(|program| Some(program.parent()?.join(LIBRARY)));
    let machines = ["x86_64-linux-gnu", "aarch64-linux-gnu", ""];
    let installed =
        machines.map(|machine| Path::new("/usr/lib").join(machine).join("faketime").join(LIBRARY));
    own.into_iter().chain(installed).find(|path| path.exists())
}
