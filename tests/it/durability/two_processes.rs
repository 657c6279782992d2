//! Two services on one data directory: the second one is told so, and the first one does not feel it.

use serde_json::json;

use crate::support::binary::{Binary, run, run_serve};

#[test]
fn a_data_directory_belongs_to_one_process_at_a_time() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let data_dir = folder.path().join("data");
    let mut first = Binary::start(&data_dir, 2, &[]);
    let (status, words) = run_serve(&data_dir, 2, &[]);
    assert_eq!(status.code(), Some(2), "{words}");
    assert!(words.contains("in use by another process"), "{words}");
    let verified = run("verify", &data_dir);
    assert_eq!(verified.status.code(), Some(2), "verify must not read what is being written");
    let put = first.client().put("/v1/boards/arena/members/p42", &json!({"score": 1}));
    assert_eq!(put.0, 200, "{}", put.1);
    first.terminate();
    first.verify();
}
