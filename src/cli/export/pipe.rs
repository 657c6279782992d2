//! Opens what is no regular file for writing, and waits for the reader of a pipe only so long.
//!
//! Must not know: what is written.

use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::time::{Duration, Instant};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

use crate::cli::as_owner::FilePlace;

/// How long a pipe may have no reader: both may be started at the same time.
const READER_WITHIN: Duration = Duration::from_secs(5);
const READER_INTERVAL: Duration = Duration::from_millis(10);

/// Opens it. Opening a pipe would wait for a reader without end.
///
/// # Errors
/// When it cannot be opened, or nobody reads from it.
pub fn open_for_a_reader(place: &FilePlace) -> io::Result<File> {
    let mut options = File::options();
    options.append(true).custom_flags(place.flags | libc::O_NONBLOCK);
    let began = Instant::now();
    let opened = loop {
        match options.open(&place.path) {
            Err(error) if error.raw_os_error() == Some(libc::ENXIO) => {
                if began.elapsed() >= READER_WITHIN {
                    return Err(io::Error::other("nobody reads from it; start its reader first"));
                }
                std::thread::sleep(READER_INTERVAL);
            }
            opened => break opened?,
        }
    };
    // From here on, a reader that is slow is waited for.
    let flags = fcntl_getfl(&opened)?;
    fcntl_setfl(&opened, flags.difference(OFlags::NONBLOCK))?;
    Ok(opened)
}
