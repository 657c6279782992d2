//! What was replied to is there after `kill -9`, whatever was on its way.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use redis::Value;

use crate::support::node::Node;
use crate::support::redis::{ask, connect, listening_in, socket_in};

#[test]
fn pipelined_writes_that_were_replied_to_are_there_after_a_kill() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut node = listening_in(folder.path(), Node::shards(2)).start();
    let socket = socket_in(folder.path());
    let mut told: BTreeMap<String, u32> = BTreeMap::new();
    for round in 0..3_u32 {
        let over = AtomicBool::new(false);
        let acknowledged = std::thread::scope(|scope| {
            let writers: Vec<_> = (0..3)
                .map(|writer| {
                    let (socket, over) = (&socket, &over);
                    scope.spawn(move || {
                        let mut connection = connect(socket);
                        let mut acknowledged = Vec::new();
                        for step in 0_u32.. {
                            let mut pipe = redis::pipe();
                            let names: Vec<String> =
                                (0..16).map(|nth| format!("w{writer}-{round}-{step}-{nth}")).collect();
                            for name in &names {
                                pipe.cmd("ZADD").arg("arena").arg(step).arg(name.as_str());
                            }
                            match pipe.query::<Vec<Value>>(&mut connection) {
                                Ok(replies) => {
                                    assert_eq!(replies, vec![Value::Int(1); 16]);
                                    acknowledged.extend(names.into_iter().map(|name| (name, step)));
                                }
                                Err(_) if over.load(Ordering::Relaxed) => break,
                                Err(error) => panic!("{error}"),
                            }
                        }
                        acknowledged
                    })
                })
                .collect();
            let mut watching = connect(&socket);
            let enough = |count: &str| count.parse::<u32>().is_ok_and(|count| count > (round + 1) * 1_000);
            while !enough(&ask(&mut watching, &["ZCARD", "arena"])) {
                std::thread::yield_now();
            }
            over.store(true, Ordering::Relaxed);
            node.kill9();
            writers
                .into_iter()
                .flat_map(|writer| writer.join().expect("it does not panic"))
                .collect::<Vec<_>>()
        });
        assert!(!acknowledged.is_empty());
        told.extend(acknowledged);
        node.restart();
        let mut connection = connect(&socket);
        let names: Vec<&String> = told.keys().collect();
        for part in names.chunks(500) {
            let mut command = redis::cmd("ZMSCORE");
            command.arg("arena");
            for name in part {
                command.arg(name.as_str());
            }
            let scores: Vec<Option<f64>> = command.query(&mut connection).expect("scores");
            let expect: Vec<Option<f64>> = part.iter().map(|name| Some(f64::from(told[*name]))).collect();
            assert_eq!(scores, expect);
        }
    }
    node.terminate();
    node.verify();
}
