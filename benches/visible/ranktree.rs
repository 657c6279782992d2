//! ranktree, fed by NATS.

use std::collections::VecDeque;
use std::path::Path;

use async_nats::jetstream::Context;
use async_nats::jetstream::context::PublishAckFuture;
use futures_util::FutureExt;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

use crate::support::http::Http;
use crate::support::nats::{Nats, connect, runtime, subject};
use crate::support::service::{Service, applied, define_board};
use crate::system::{Job, MARKER, Publish, Read, System};

/// Messages sent before the publisher waits for what is stored.
const UNSTORED_MAX: usize = 20_000;

pub struct Ranktree {
    nats: Nats,
    service: Service,
}

pub fn start(folder: &Path) -> Result<Box<dyn System>, String> {
    let nats = Nats::start(&folder.join("nats"))?;
    let service = Service::start(&folder.join("ranktree"), &nats.url(), 1);
    define_board(&mut service.http());
    Ok(Box::new(Ranktree { nats, service }))
}

fn body(job: &Job) -> String {
    format!(r#"{{"board":"arena","member":"{}","score":{}}}"#, job.member, job.score)
}

impl System for Ranktree {
    fn name(&self) -> String {
        "ranktree".to_owned()
    }

    fn load(&mut self, jobs: &mut dyn Iterator<Item = Job>) {
        let runtime = runtime();
        let context = runtime.block_on(async { async_nats::jetstream::new(connect(&self.nats.url()).await) });
        let jobs: Vec<String> = jobs.map(|job| body(&job)).collect();
        let mut last = 0;
        for jobs in jobs.chunks(1_000) {
            let stored =
                async { context.publish(subject(0), format!("[{}]", jobs.join(",")).into()).await?.await };
            last = runtime.block_on(stored).expect("it is stored").sequence;
        }
        let mut http = self.service.http();
        while applied(&mut http).iter().sum::<u64>() < last {
            std::thread::yield_now();
        }
    }

    fn publisher(&self) -> Box<dyn Publish> {
        Box::new(Publisher::start(&self.nats.url()))
    }

    fn reader(&self) -> Box<dyn Read> {
        Box::new(Reader(self.service.http()))
    }
}

/// Publishes on a thread of its own, where the connection works too.
pub struct Publisher {
    jobs: mpsc::UnboundedSender<Vec<String>>,
    pending: Vec<String>,
}

impl Publisher {
    pub fn start(url: &str) -> Self {
        let (jobs, receiver) = mpsc::unbounded_channel();
        let (runtime, url) = (runtime(), url.to_owned());
        std::thread::spawn(move || publish(&runtime, &url, receiver));
        Self { jobs, pending: Vec::new() }
    }
}

fn publish(runtime: &Runtime, url: &str, mut jobs: mpsc::UnboundedReceiver<Vec<String>>) {
    runtime.block_on(async {
        let context: Context = async_nats::jetstream::context::ContextBuilder::new()
            .max_ack_inflight(2 * UNSTORED_MAX)
            .build(connect(url).await);
        let mut unstored: VecDeque<_> = VecDeque::new();
        while let Some(bodies) = jobs.recv().await {
            for body in bodies {
                let stored: PublishAckFuture =
                    context.publish(subject(0), body.into()).await.expect("it is connected");
                unstored.push_back(Box::pin(stored.into_future()));
                if unstored.len() >= UNSTORED_MAX
                    && let Some(stored) = unstored.pop_front()
                {
                    stored.await.expect("it is stored");
                }
            }
            while let Some(stored) = unstored.front_mut().and_then(FutureExt::now_or_never) {
                stored.expect("it is stored");
                unstored.pop_front();
            }
        }
    });
}

impl Publish for Publisher {
    fn publish(&mut self, job: Job) {
        self.pending.push(body(&job));
    }

    fn flush(&mut self) {
        if !self.pending.is_empty() {
            self.jobs.send(std::mem::take(&mut self.pending)).expect("the thread runs as long as this does");
        }
    }
}

struct Reader(Http);

impl Reader {
    fn number(&mut self, path: &str, field: &str) -> u64 {
        let (status, answer) = self.0.get(path);
        if status == 404 {
            return 0;
        }
        assert_eq!(status, 200, "{answer}");
        // Reading JSON properly would be the client's time, which the others do not spend.
        let (_, rest) = answer.split_once(&format!("\"{field}\":")).expect("it is in the answer");
        let digits = rest.split(|c: char| !c.is_ascii_digit()).next().expect("there is a first part");
        digits.parse().expect("it is a number")
    }
}

impl Read for Reader {
    fn marker(&mut self) -> i64 {
        let marker = self.number(&format!("/v1/boards/arena/members/{MARKER}"), "score");
        i64::try_from(marker).expect("it is small")
    }

    fn better(&mut self, score: i64) -> u64 {
        self.number(&format!("/v1/boards/arena/rank?score={score}"), "better")
    }
}
