//! `ranktree serve`.

use std::io::{ErrorKind, Write as _};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use crate::cli::as_owner::refuse_data_of_others;
use crate::cli::outside_data::check_apart_from_data;
use crate::cli::{Failure, open_files};
use crate::config::{ServeArgs, ServeConfig};
use crate::metrics as names;
use crate::service;
use crate::storage::DiskSpace;

/// How often the exporter folds samples into its histograms; between scrapes they would pile up.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(5);
/// How long the end waits for threads that wait for something themselves.
const THREADS_END_TIMEOUT: Duration = Duration::from_secs(1);
/// Signals that come so soon after the first one are the same: a process group is told as a whole, and its
/// parent passes the signal on.
const ONE_SIGNAL: Duration = Duration::from_millis(500);
/// SIGXFSZ, whose number is the same on Linux and the BSDs: a file would grow beyond the process's limit.
const FILE_TOO_LARGE: i32 = 25;

pub fn run(args: ServeArgs) -> Result<ExitCode, Failure> {
    let config = ServeConfig::resolve(args)?;
    refuse_data_of_others(&config.data_dir)?;
    check_apart_from_data(&config.data_dir)?;
    let metrics = install_metrics()?;
    open_files::raise_limit(config.http.max_connections);
    let shutdown = listen_for_signals()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let served = runtime.block_on(serve(config, metrics, shutdown));
    // The shards are closed. A thread that waits for a file of a network, or for a name server, is not waited
    // for.
    runtime.shutdown_timeout(THREADS_END_TIMEOUT);
    served.map(|()| ExitCode::SUCCESS)
}

/// Completes with the first signal to end. The second one ends the process, whatever it does at that time:
/// signals have a thread and a runtime of their own.
fn listen_for_signals() -> Result<oneshot::Receiver<()>, Failure> {
    let signals = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (mut terminate, mut interrupt) = {
        let _entered = signals.enter();
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?)
    };
    let (first, shutdown) = oneshot::channel();
    let listen = async move {
        wait(&mut terminate, &mut interrupt).await;
        // The service may have ended by itself.
        let _ = first.send(());
        let since = Instant::now();
        wait(&mut terminate, &mut interrupt).await;
        while since.elapsed() < ONE_SIGNAL {
            wait(&mut terminate, &mut interrupt).await;
        }
        tracing::warn!("received a second signal; ending at once. All writes that were answered are on disk");
        std::process::exit(1);
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || signals.block_on(listen))?;
    Ok(shutdown)
}

async fn serve(
    config: ServeConfig,
    metrics: PrometheusHandle,
    shutdown: oneshot::Receiver<()>,
) -> Result<(), Failure> {
    let listen = config.http.listen;
    let listener = TcpListener::bind(listen).await.map_err(|error| cannot_listen(listen, &error))?;
    let address = listener.local_addr()?;
    tokio::spawn(run_upkeep(metrics.clone(), config.data_dir.clone()));
    // By default it ends the process. Taken, it leaves a failed write, which is handled as a full disk is.
    let _file_too_large = signal(SignalKind::from_raw(FILE_TOO_LARGE))?;
    let shutdown = async move {
        // The thread that sends ends with the process only.
        let _ = shutdown.await;
    };
    let scheme = if config.http.tls.is_some() { "https" } else { "http" };
    let ready = || {
        let mut stdout = std::io::stdout();
        // The parent process may have closed standard output; serve all the same.
        let _ = writeln!(stdout, "listening on {scheme}://{address}");
        let _ = stdout.flush();
        tracing::info!(
            "{scheme}://{address}/ is a page for people; {scheme}://{address}/docs describes the HTTP API"
        );
    };
    let process = metrics_process::Collector::default();
    process.describe();
    let render = Arc::new(move || {
        process.collect();
        metrics.render()
    });
    service::run(&config, listener, render, ready, shutdown).await?;
    Ok(())
}

/// What the metrics need now and then, whether or not anybody scrapes them.
async fn run_upkeep(metrics: PrometheusHandle, data_dir: PathBuf) {
    let mut ticks = tokio::time::interval(UPKEEP_INTERVAL);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let (metrics, data_dir) = (metrics.clone(), data_dir.clone());
        // A file system of the network may let it wait: not on a thread that serves requests.
        let done = tokio::task::spawn_blocking(move || {
            metrics.run_upkeep();
            match DiskSpace::of(&data_dir) {
                Ok(space) => {
                    metrics::gauge!(names::DATA_DIR_FREE_BYTES).set(names::figure(space.free_bytes));
                    metrics::gauge!(names::DATA_DIR_SIZE_BYTES).set(names::figure(space.size_bytes));
                }
                Err(error) => {
                    tracing::debug!(%error, "the free disk space of the data directory could not be read");
                }
            }
        });
        // At a start that is refused, it is cancelled instead.
        if done.await.is_err_and(|error| error.is_panic()) {
            tracing::error!(
                "the periodic update of metrics panicked, which is a bug; it runs again at its next time"
            );
        }
    }
}

fn cannot_listen(address: SocketAddr, error: &std::io::Error) -> String {
    let advice = match error.kind() {
        ErrorKind::AddrInUse => {
            "; another program listens there: stop it, or give another address with --listen"
        }
        ErrorKind::AddrNotAvailable => {
            "; this machine does not have that address: give another with --listen"
        }
        ErrorKind::PermissionDenied => "; ports below 1024 may need privileges: give another with --listen",
        _ => "",
    };
    format!("cannot listen on {address}: {error}{advice}")
}

async fn wait(terminate: &mut tokio::signal::unix::Signal, interrupt: &mut tokio::signal::unix::Signal) {
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}

fn install_metrics() -> Result<PrometheusHandle, Failure> {
    let handle = PrometheusBuilder::new()
        .set_buckets_for_metric(
            Matcher::Full(names::CHECKPOINT_SECONDS.to_owned()),
            &names::CHECKPOINT_SECONDS_BUCKETS,
        )?
        .set_buckets_for_metric(
            Matcher::Full(names::STATE_LOCK_HELD_SECONDS.to_owned()),
            &names::STATE_LOCK_SECONDS_BUCKETS,
        )?
        .set_buckets_for_metric(
            Matcher::Full(names::STATE_LOCK_WAIT_SECONDS.to_owned()),
            &names::STATE_LOCK_SECONDS_BUCKETS,
        )?
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &names::SECONDS_BUCKETS)?
        .set_buckets_for_metric(Matcher::Full(names::MESSAGE_REQUESTS.to_owned()), &names::COUNT_BUCKETS)?
        .set_buckets_for_metric(Matcher::Suffix("_jobs".to_owned()), &names::COUNT_BUCKETS)?
        .set_buckets_for_metric(Matcher::Suffix("_shards".to_owned()), &names::COUNT_BUCKETS)?
        .install_recorder()?;
    names::describe_http();
    names::describe_writers();
    names::describe_streams();
    names::describe_questions();
    names::describe_summaries();
    names::describe_live();
    names::describe_redis();
    names::describe_disk();
    names::describe_traces();
    metrics::gauge!(names::BUILD_INFO, "version" => env!("CARGO_PKG_VERSION")).set(1.0);
    Ok(handle)
}
