//! How long a thread was ready to go on while others had the cores, as Linux counts it.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::time::Duration;

pub struct CoreWaits(File);

impl CoreWaits {
    pub fn of_this_thread() -> Self {
        Self(File::open("/proc/thread-self/schedstat").expect("Linux tells it"))
    }

    pub fn so_far(&self) -> Duration {
        let mut text = [0; 64];
        let length = self.0.read_at(&mut text, 0).expect("Linux tells it");
        let text = std::str::from_utf8(text.get(..length).unwrap_or_default()).expect("figures");
        let nanos = text.split(' ').nth(1).and_then(|nanos| nanos.parse().ok()).expect("a figure");
        Duration::from_nanos(nanos)
    }
}
