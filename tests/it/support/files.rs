//! Files that tests copy, and files of others that tests damage.

use std::fs::{self, OpenOptions};
use std::path::Path;

pub fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("it can be made");
    for entry in fs::read_dir(from).expect("it is there") {
        let entry = entry.expect("readable");
        let target = to.join(entry.file_name());
        if entry.file_type().expect("known").is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("it can be copied");
        }
    }
}

/// Damages a stream of a stopped nats-server: cuts the last `1 / part` off its last block file, and removes
/// the server's own notes of where the stream ends.
pub fn cut_last_block(folder: &Path, part: u64) {
    let files =
        fs::read_dir(folder).expect("the stream has files").map(|entry| entry.expect("readable").path());
    let (mut blocks, others): (Vec<_>, Vec<_>) =
        files.partition(|path| path.extension().is_some_and(|extension| extension == "blk"));
    blocks.sort();
    let last = OpenOptions::new().write(true).open(blocks.last().expect("one block")).expect("it opens");
    let length = last.metadata().expect("it is there").len();
    last.set_len(length - length / part).expect("it can be cut");
    for other in others {
        let _ = fs::remove_file(other);
    }
}
