//! How RocksDB computes the checksums of its log.

/// RocksDB chooses when it is compiled, by the flags in `.cargo/config.toml`, and tells in its own log what
/// it has. Without them it is slower, and nothing else would say so.
#[test]
#[cfg(all(target_arch = "x86_64", target_os = "linux", target_env = "gnu"))]
fn rocksdb_computes_checksums_with_the_processors_instruction() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    drop(rocksdb::DB::open_default(folder.path()).expect("an empty folder can be opened"));
    let log = std::fs::read_to_string(folder.path().join("LOG")).expect("RocksDB writes it");
    let told = log.lines().find(|line| line.contains("Fast CRC32 supported")).expect("RocksDB says it");
    assert!(told.ends_with(": Supported on x86"), "{told}");
}
