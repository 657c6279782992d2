//! How RocksDB computes the checksums of its log.

/// RocksDB chooses when it is compiled, by flags in `.cargo/config.toml`, and does without them by a slower
/// way. Nothing but its speed would tell.
#[test]
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn rocksdb_computes_checksums_with_the_processors_instructions() {
    let program = std::fs::read(env!("CARGO_BIN_EXE_ranktree")).expect("the program is built");
    let has = |name: &[u8]| memchr::memmem::find(&program, name).is_some();
    assert!(has(b"rocksdb6crc32c"), "the program has the names of RocksDB's functions");
    assert!(has(b"crc32c_3way"), "RocksDB was compiled without the flags of .cargo/config.toml");
}
