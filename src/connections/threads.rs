//! The threads that serve connections, each with an event loop of its own.
//!
//! A connection stays on the thread that it was given to. Most requests are answered in microseconds: they
//! gain nothing by moving, and threads that share their work wake one another up for each. What takes long is
//! done elsewhere, and so is what takes less if the thread has others to answer (`turn`).

use std::future::Future;
use std::io;
use std::num::NonZero;
use std::sync::Arc;

use tokio::runtime::{Builder, Handle};
use tokio::sync::watch;

use crate::connections::turn;
use crate::short_slice;

/// The threads. Dropping this ends them, and the connections that are left on them.
pub struct Threads {
    threads: Vec<Thread>,
    _open: watch::Sender<()>,
}

struct Thread {
    runtime: Handle,
    /// Each connection holds a reference.
    connections: Arc<()>,
}

impl Threads {
    /// Starts `count` threads; for 0, one fewer than there are cores, because writers need one too, and at
    /// least one.
    ///
    /// # Errors
    /// When the system has no resources for them.
    pub fn start(count: usize) -> io::Result<Self> {
        let cores = || std::thread::available_parallelism().map_or(1, NonZero::get);
        let count = if count == 0 { cores().saturating_sub(1).max(1) } else { count };
        let (open, is_open) = watch::channel(());
        let start = |number| {
            let runtime = Builder::new_current_thread().enable_all().on_thread_park(turn::end).build()?;
            let handle = runtime.handle().clone();
            let mut is_open = is_open.clone();
            let thread = std::thread::Builder::new().name(format!("http-{number}"));
            // It returns with an error when the sender is dropped.
            thread.spawn(move || {
                // A writer has a core all the time. Who is answered in microseconds must not wait for it.
                short_slice::for_this_thread();
                runtime.block_on(is_open.changed())
            })?;
            Ok(Thread { runtime: handle, connections: Arc::default() })
        };
        Ok(Self { threads: (0..count).map(start).collect::<io::Result<_>>()?, _open: open })
    }

    /// Serves a connection on the thread that has the fewest.
    pub fn spawn(&self, connection: impl Future<Output = ()> + Send + 'static) {
        let fewest = self.threads.iter().min_by_key(|thread| Arc::strong_count(&thread.connections));
        let Thread { runtime, connections } = fewest.expect("there is at least one thread");
        let counted = Arc::clone(connections);
        runtime.spawn(async move {
            connection.await;
            drop(counted);
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::*;

    #[test]
    fn connections_are_spread_evenly_and_end_with_the_threads() {
        let threads = Threads::start(3).expect("threads");
        let (say, said) = channel();
        for _ in 0..6 {
            let say = say.clone();
            threads.spawn(async move {
                let name = std::thread::current().name().expect("they have names").to_owned();
                say.send(name).expect("somebody listens");
                std::future::pending::<()>().await;
            });
        }
        drop(say);
        let mut names: Vec<String> = said.iter().take(6).collect();
        names.sort();
        assert_eq!(names, ["http-0", "http-0", "http-1", "http-1", "http-2", "http-2"]);
        drop(threads);
        // The connections are dropped, and with them the senders.
        let more = said.recv_timeout(Duration::from_secs(60));
        assert_eq!(more, Err(std::sync::mpsc::RecvTimeoutError::Disconnected));
    }

    #[test]
    fn a_thread_says_when_it_waits_for_events() {
        let threads = Threads::start(1).expect("threads");
        let (say, said) = channel();
        threads.spawn(async move {
            // A wait ends the turn. A timer's first wait may end another one, which had no request.
            let wait = || tokio::time::sleep(Duration::from_millis(1));
            wait().await;
            let mut found = Vec::new();
            for _ in 0..2 {
                turn::begin_request();
                found.push(turn::has_others());
            }
            wait().await;
            wait().await;
            turn::begin_request();
            found.push(turn::has_others());
            say.send(found).expect("somebody listens");
        });
        assert_eq!(said.recv(), Ok(vec![false, true, false]));
    }

    #[test]
    fn a_connection_that_ends_makes_room_on_its_thread() {
        let threads = Threads::start(2).expect("threads");
        let (say, said) = channel();
        let name = || std::thread::current().name().expect("they have names").to_owned();
        let (end, ended) = tokio::sync::oneshot::channel::<()>();
        let first = say.clone();
        threads.spawn(async move {
            let _ = ended.await;
            first.send(name()).expect("somebody listens");
        });
        threads.spawn(std::future::pending());
        drop(end);
        let freed = said.recv().expect("the first ends");
        while Arc::strong_count(&threads.threads[0].connections) > 1 {
            std::thread::yield_now();
        }
        threads.spawn(async move { say.send(name()).expect("somebody listens") });
        assert_eq!(said.recv(), Ok(freed));
    }
}
