//! How long tests go on that repeat something: in a hurry, in `make test`, in `make test-long`.

/// How often something is repeated.
///
/// # Arguments
/// The numbers for `RANKTREE_TESTS=short`, without it, and for `RANKTREE_TESTS=long`.
pub fn rounds([short, usual, long]: [u64; 3]) -> u64 {
    match std::env::var("RANKTREE_TESTS").as_deref() {
        Ok("short") => short,
        Ok("long") => long,
        Ok(other) => panic!("RANKTREE_TESTS is {other:?}, and can be short, long, or absent"),
        Err(_) => usual,
    }
}
