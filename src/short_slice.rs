//! Short time slices, for threads that work briefly for somebody who waits.
//!
//! Linux gives a thread a core for a slice of 1 to 3 ms at a time. One that wakes up waits for the end of
//! somebody else's slice, unless its own is shorter: then it gets the core at once (kernel 6.12 and later,
//! `PREEMPT_SHORT` of the EEVDF scheduler). It gets no larger share of the cores by that, so it needs no
//! privilege. Source: `sched_setattr(2)`, and Linux's commit 857b158dc5e8.

/// The shortest slice that Linux gives.
#[cfg(target_os = "linux")]
const SLICE: std::time::Duration = std::time::Duration::from_micros(100);

/// Asks for short slices for the calling thread, and for the threads that it will start. Where the system
/// has none, or forbids it, the thread goes on as it was.
pub fn for_this_thread() {
    #[cfg(target_os = "linux")]
    if let Err(error) = set_slice() {
        tracing::debug!(%error, "threads that answer readers have time slices as long as any other's");
    }
}

#[cfg(target_os = "linux")]
#[allow(
    unsafe_code,
    reason = "measured: the median of reads beside writes, with the cores busy, was a hundredth"
)]
fn set_slice() -> std::io::Result<()> {
    use std::io::Error;

    let priority = rustix::process::getpriority_process(Some(rustix::thread::gettid()))?;
    let size = u32::try_from(size_of::<libc::sched_attr>()).map_err(Error::other)?;
    let slice = u64::try_from(SLICE.as_nanos()).map_err(Error::other)?;
    let attributes = libc::sched_attr {
        size,
        sched_policy: 0,
        sched_flags: u64::try_from(libc::SCHED_FLAG_KEEP_POLICY).map_err(Error::other)?,
        sched_nice: priority,
        sched_priority: 0,
        sched_runtime: slice,
        sched_deadline: 0,
        sched_period: 0,
    };
    let (this_thread, no_flags): (libc::pid_t, libc::c_uint) = (0, 0);
    // SAFETY: the kernel reads `size` bytes behind the pointer, the attributes, and keeps no pointer.
    let result = unsafe {
        libc::syscall(libc::SYS_sched_setattr, this_thread, std::ptr::from_ref(&attributes), no_flags)
    };
    if result == 0 { Ok(()) } else { Err(Error::last_os_error()) }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// What the kernel says of the calling thread's slice, in nanoseconds. `None` where it says nothing.
    fn slice() -> Option<u64> {
        let figures = std::fs::read_to_string("/proc/thread-self/sched").ok()?;
        let line = figures.lines().find(|line| line.starts_with("se.slice"))?;
        line.rsplit(':').next()?.trim().parse().ok()
    }

    #[test]
    fn the_thread_and_those_that_it_starts_have_short_slices_and_no_other_one() {
        let in_a_thread = || {
            for_this_thread();
            (slice(), std::thread::scope(|scope| scope.spawn(slice).join().expect("it reads a file")))
        };
        let before = slice();
        let (own, of_a_child) =
            std::thread::scope(|scope| scope.spawn(in_a_thread).join().expect("it reads a file"));
        assert_eq!(slice(), before);
        if is_linux_6_12() && before.is_some() {
            assert_eq!((own, of_a_child), (Some(100_000), Some(100_000)));
        }
    }

    #[test]
    fn niceness_stays() {
        let niceness = || rustix::process::getpriority_process(Some(rustix::thread::gettid()));
        let in_a_thread = || {
            let tid = Some(rustix::thread::gettid());
            rustix::process::setpriority_process(tid, 11).expect("anybody may be nicer");
            for_this_thread();
            niceness().expect("it can be read")
        };
        let found = std::thread::scope(|scope| scope.spawn(in_a_thread).join().expect("it does not panic"));
        assert_eq!(found, 11.max(niceness().expect("it can be read")));
    }

    fn is_linux_6_12() -> bool {
        let system = rustix::system::uname();
        let release = system.release().to_string_lossy();
        let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse::<u32>().ok());
        let mut next = || numbers.next().flatten();
        next().zip(next()).is_some_and(|version| version >= (6, 12))
    }
}
