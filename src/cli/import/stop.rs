//! Ctrl-C and SIGTERM: the first one ends an import in order, the second one at once.

use std::io;
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::signal::unix::{SignalKind, signal};

/// What a shell tells of a process that Ctrl-C has ended.
const INTERRUPTED: i32 = 130;

// Signals are of the process.
static IS_STOPPED: AtomicBool = AtomicBool::new(false);

/// Begins to listen.
///
/// # Errors
/// When signals cannot be listened to.
pub fn listen() -> io::Result<()> {
    let signals = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (mut terminate, mut interrupt) = {
        let _entered = signals.enter();
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?)
    };
    let listen = async move {
        for count in 1.. {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            if count > 1 {
                process::exit(INTERRUPTED);
            }
            IS_STOPPED.store(true, Ordering::Relaxed);
            eprintln!("stopping once what was read is settled; another signal ends at once");
        }
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || signals.block_on(listen))?;
    Ok(())
}

/// Whether the import is to end.
pub fn is_stopped() -> bool {
    IS_STOPPED.load(Ordering::Relaxed)
}
