//! The beginning and the end of the spans' way.

use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use crate::traces::queue::{QueueItem, Tracer};
use crate::traces::settings::Settings;

/// How long the end of the service waits for the last spans.
const END_TIMEOUT: Duration = Duration::from_secs(2);

/// Begins to make spans and to send them. The second call of a process changes nothing.
///
/// # Arguments
/// `node`: which node of the service this is.
///
/// # Errors
/// When the system has no thread for it, or no certificates for https.
pub fn start(settings: &Settings, node: &str) -> std::io::Result<Ending> {
    let (tracer, spans) = Tracer::new(settings.sampler);
    let (done, ended) = sync_channel(1);
    spawn(settings, node, spans, done)?;
    tracer.publish();
    Ok(Ending(ended))
}

#[cfg(feature = "otlp")]
fn spawn(
    settings: &Settings,
    node: &str,
    spans: Receiver<QueueItem>,
    done: SyncSender<()>,
) -> std::io::Result<()> {
    let exporter = crate::traces::export::Exporter::new(settings, node)?;
    tracing::info!(endpoint = settings.shown_url(), "traces are sent to the collector");
    let thread = std::thread::Builder::new().name("traces".to_owned());
    thread.spawn(move || {
        exporter.run(&spans);
        // The service may have stopped waiting.
        let _ = done.send(());
    })?;
    Ok(())
}

#[cfg(not(feature = "otlp"))]
fn spawn(_: &Settings, _: &str, _: Receiver<QueueItem>, _: SyncSender<()>) -> std::io::Result<()> {
    Err(std::io::Error::other("this ranktree was built without the feature otlp"))
}

/// The end of the spans' way.
pub struct Ending(Receiver<()>);

impl Ending {
    /// Sends what waits in the queue, for two seconds at most.
    pub fn end(self) {
        let Some(tracer) = Tracer::get() else { return };
        tracer.is_ending.store(true, Ordering::Release);
        // A sender that is at work looks by itself.
        let _ = tracer.queue.try_send(QueueItem::Wake);
        if self.0.recv_timeout(END_TIMEOUT).is_err() {
            tracing::warn!("the last spans were not sent, because the collector does not answer");
        }
    }
}
