//! Waiting jobs that someone or something damaged: `verify` reads every one, and says what is wrong with
//! which.

use crate::storage::codec::{ParkedRecord, encode_parked};
use crate::storage::verify_parked;
use crate::types::Sequence;
use crate::writer::lines_of;
use crate::writer::parking::SHARED_LINES;
use crate::writer::tests::build::{job, member};
use crate::writer::tests::fed::Fed;
use crate::writer::tests::harness::time;

/// How many jobs wait, and what is said of them.
fn verified(fed: &Fed) -> (u64, Vec<String>) {
    verify_parked(fed.store(), &lines_of, &|_, _, _| {}).expect("readable")
}

/// Three members wait, each in a line of its own but the last, which shares one.
fn fed() -> Fed {
    let mut fed = Fed::new(&[]);
    fed.lines = (2, SHARED_LINES);
    fed.load_parking();
    fed.say_unseen(["a", "b", "c"].map(|id| job(id, &[("auto", &[1])])).into());
    fed.say_unseen(vec![job("b", &[("auto", &[2])]), job("c", &[("auto", &[2])])]);
    fed.batch(false);
    fed
}

fn key(line: u32, (sequence, index): (u64, u32)) -> Vec<u8> {
    [&[0x06][..], &line.to_be_bytes(), &sequence.to_be_bytes(), &index.to_be_bytes()].concat()
}

#[test]
fn intact_parked_jobs_are_counted() {
    let fed = fed();
    assert_eq!(verified(&fed), (5, Vec::new()));
}

#[test]
fn each_damage_of_a_parked_job_is_reported() {
    let [own_b, _] = lines_of(&member("b"));
    let [own_c, shared_c] = lines_of(&member("c"));
    let good = |fed: &Fed, line: u32| {
        let key = fed.store().keys_from(&key(line, (0, 0))[..5]).expect("readable").remove(0);
        fed.store().record(&key).expect("readable").expect("there")
    };
    let no_job = ParkedRecord {
        sequence: Sequence(1),
        index: 1,
        timestamp: time(1),
        job: b"nothing".to_vec(),
        board: 0,
    };
    let of_job_1 = "job 1 of message 1, which waits for its board, ";
    let cases: Vec<(Vec<u8>, Option<Vec<u8>>, String)> = vec![
        (key(own_b, (1, 1)), Some(b"\xfd".to_vec()), format!("{of_job_1}is damaged: a parked job cannot be read")),
        (key(own_b, (1, 1)), Some(encode_parked(&no_job)), format!("{of_job_1}cannot be read, because it is not a job")),
        (
            key(own_b + 1, (2, 5)),
            None,
            format!("job 5 of message 2, which waits for its board, is in line {}, but jobs of b belong", own_b + 1),
        ),
        (
            key(own_b, (3, 0)),
            None,
            "job 0 of message 3, which waits for its board, belongs to a message after the last applied one, 2"
                .to_owned(),
        ),
        (key(own_b, (2, 0))[..12].to_vec(), None, "the key of a parked job is not valid; it has 12 bytes".to_owned()),
    ];
    for (key, value, said) in cases {
        let fed = fed();
        let value = value.unwrap_or_else(|| good(&fed, own_b));
        fed.store().damage(&key, Some(&value)).expect("the disk takes it");
        let (_, wrong) = verified(&fed);
        assert!(wrong.len() == 1 && wrong[0].starts_with(&said), "{wrong:?}, not {said}");
    }
    // A job of c in a line of its own, while others wait in the one that it shares.
    let fed = fed();
    let value = good(&fed, shared_c);
    fed.store().damage(&key(own_c, (2, 5)), Some(&value)).expect("the disk takes it");
    let (waiting, wrong) = verified(&fed);
    let said = format!("waits in the shared line {shared_c}, but other jobs of c wait in its own line");
    assert!(
        waiting == 6 && wrong.len() == 2 && wrong.iter().all(|wrong| wrong.ends_with(&said)),
        "{wrong:?}"
    );
}

#[test]
fn a_great_many_findings_are_counted_and_not_listed() {
    let fed = fed();
    for index in 0..100 {
        fed.store().damage(&key(1, (1, index)), Some(b"\xfd")).expect("the disk takes it");
    }
    let (waiting, wrong) = verified(&fed);
    assert_eq!((waiting, wrong.len()), (105, 21));
    assert_eq!(wrong[20], "80 more findings in parked jobs are not listed");
}
