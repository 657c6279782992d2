//! The bytes of questions and replies are fixed; whatever was written reads back; whatever else arrives is
//! refused.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::board::{Aggregate, Combination, KeyType, Order};
use crate::job::RejectCode;
use crate::query::question::{
    BoardCounts, BoardLife, BoardsOfMember, CombineQuestion, CombineReply, Combined, CombinedCounts,
    CombinedKey, Counted, EntryMetadata, EntryProfile, FoundMember, HiddenQuestion, HiddenReply, KeyCounts,
    LifeOnShard, Mark, MovementReply, NotCombined, Question, Ranking, RejectsQuestion, RejectsReply, Reply,
    RunQuestion, RunReply, RunStart, ShardEntry, ShardReply, SortKey, Splitter, SplittersQuestion,
    SplittersReply,
};
use crate::query::{InstanceAsked, WindowChoice};
use crate::state::{Ban, Incarnation};
use crate::storage::codec::RejectRecord;
use crate::tree::Words;
use crate::types::{BoardName, Double, MemberId, Number, Sequence, Timestamp};
use crate::window::Window;

fn life(name: &str, incarnation: u64) -> BoardLife {
    BoardLife {
        board: BoardName::of_shard(name).expect("a good name"),
        incarnation: Incarnation(incarnation),
    }
}

fn asked(question: Question<'_>) -> AskedQuestion<'_> {
    AskedQuestion { question, least: Sequence(300), wait_ms: 500, may_be_behind: false, profiles: false }
}

/// A score as a descending key has it in the tree.
fn words(scores: &[i64]) -> Words {
    Words::from_slice(&scores.iter().map(|score| !(score.cast_unsigned() ^ (1 << 63))).collect::<Vec<_>>())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"))
}

fn place(word: u64, member: &str) -> CombinedKey {
    CombinedKey { word, member: member.as_bytes().into() }
}

fn key(member: &[u8]) -> SortKey<'_> {
    SortKey { words: words(&[5, 0]), member }
}

fn entry(metadata: EntryMetadata) -> ShardEntry {
    let updated_at = Timestamp::from_micros(1_000_000).expect("in range");
    ShardEntry {
        words: words(&[5, 0]),
        member: (*b"m7").into(),
        updated_at,
        version: Some(7),
        metadata,
        profile: EntryProfile::NotAsked,
    }
}

fn questions() -> Vec<Question<'static>> {
    let run = |start| RunQuestion { start, worst: None, above: 1, below: 11, metadata: true };
    vec![
        Question::Counts(vec![(life("a", 7), vec![Mark::Score(words(&[865])), Mark::Entry(key(b"m"))])]),
        Question::Runs(
            life("a", 7),
            vec![
                run(RunStart::Top),
                run(RunStart::Bottom),
                run(RunStart::Index(9)),
                run(RunStart::Member("m7")),
                RunQuestion {
                    worst: Some(1 << 63),
                    metadata: false,
                    ..run(RunStart::Before(Mark::Entry(key(b"m"))))
                },
                run(RunStart::Through(Mark::Score(words(&[5])))),
            ],
        ),
        Question::Splitters(
            life("a", 7),
            vec![SplittersQuestion {
                low: Some(key(b"m")),
                high: None,
                even: 8,
                near: Some(500_000),
                ends: true,
            }],
        ),
        Question::Lookup {
            board: life("a", 7),
            members: vec!["m7", "日本"],
            keys: vec![key(b"m")],
            metadata: true,
        },
        Question::MemberOnBoards { member: "m7", boards: vec![life("a", 7), life("b", 8)], hidden: true },
        Question::Rejects(RejectsQuestion {
            before: Some((Sequence(300), 2)),
            reason: Some(RejectCode::BadScore),
            member: Some("m7"),
            prefixes: Some(vec!["a"]),
            rejects: 100,
            read: 1_100,
            bytes: 1 << 20,
        }),
        Question::Counts(vec![(life("a#2026-W47", 7), vec![])]),
        boards_of_member(InstanceAsked::default()),
        boards_of_member(InstanceAsked {
            choice: WindowChoice::of_name("2026-11-20").expect("an instance"),
            now: Timestamp::from_micros(1_000_000).expect("in range"),
        }),
        Question::Movement { since: life("a#2026-W47", 7), members: vec!["m7"], keys: vec![key(b"m")] },
        Question::Changed(vec![life("a", 7), life("b#2026-W47", 8)]),
        Question::Hidden(HiddenQuestion {
            board: None,
            prefixes: Some(vec!["a"]),
            member: MemberId::new("m8").ok(),
            after: Some(("a", MemberId::new("m7").expect("a good id"))),
            limit: 10,
        }),
        Question::WithColumns {
            question: Box::new(Question::Runs(life("a", 7), vec![run(RunStart::Top)])),
            boards: vec![(life("b", 8), vec![Mark::Score(words(&[865]))]), (life("c#2026-W47", 9), vec![])],
        },
        Question::LastJob(life("a", 7)),
        Question::Combine(Arc::new(CombineQuestion {
            boards: vec![
                (life("a", 7), Number::Integer(-1)),
                (life("b#2026-W47", 8), Number::Float(Double::new(0.5).expect("a number"))),
            ],
            combination: Combination::Inter,
            aggregate: Aggregate::Max,
            numbers: KeyType::Float,
            ranking: Ranking { order: Order::Descending, ids_descend: true },
            after: Some(place(5, "m")),
            limit: 10,
            member: Some("m7".into()),
            at: None,
        })),
    ]
}

fn boards_of_member(instance: InstanceAsked) -> Question<'static> {
    let prefixes = Some(vec!["a", "b"]);
    Question::BoardsOfMember { member: "m7", after: Some(3), limit: 10, prefixes, instance, hidden: false }
}

#[test]
fn a_window_that_is_none_is_refused() {
    let question = asked(boards_of_member(InstanceAsked {
        choice: WindowChoice::Current(Window::Season),
        ..InstanceAsked::default()
    }));
    let bytes = encode_question(&question).expect("it is small");
    let broken: Vec<u8> = bytes.iter().map(|byte| if *byte == b's' { b'S' } else { *byte }).collect();
    assert_eq!(decode_question(&bytes), Ok(question));
    assert!(decode_question(&broken).is_err());
}

fn replies() -> Vec<Reply> {
    let found = FoundMember {
        entry: entry(EntryMetadata::Json("{\"car\":\"mx5\"}".into())),
        at_score: Counted { before: 1, through: 3 },
        index: 2,
        total: 9,
        is_hidden: true,
    };
    let run = RunReply {
        life: LifeOnShard::Here,
        total: 9,
        start: 1,
        remaining: 8,
        at_start: Counted { before: 1, through: 2 },
        better_than_first: 1,
        above: vec![entry(EntryMetadata::NotAsked)],
        below: vec![entry(EntryMetadata::None), entry(EntryMetadata::Unreadable)],
    };
    [
        Reply::Counts(vec![BoardCounts {
            life: LifeOnShard::Over,
            total: 5,
            hidden: 1,
            marks: vec![Counted { before: 2, through: 300 }],
        }]),
        Reply::Runs(vec![Some(run), None]),
        Reply::Splitters(vec![SplittersReply {
            life: LifeOnShard::NotYet,
            total: 9,
            low: 1,
            high: 8,
            splitters: vec![Splitter { index: 4, words: words(&[5, 0]), member: (*b"m7").into() }],
        }]),
        Reply::Lookup {
            life: LifeOnShard::Here,
            total: 9,
            members: vec![None, Some(entry(EntryMetadata::None))],
            keys: vec![KeyCounts { better: 1, before: 2 }],
        },
        Reply::MemberOnBoards(vec![None, Some(found.clone())]),
        Reply::BoardsOfMember(BoardsOfMember {
            boards: vec![(life("a", 7), found)],
            next: Some(3),
            itself: Some(entry(EntryMetadata::None)),
        }),
        Reply::Rejects(RejectsReply {
            rejects: vec![RejectRecord {
                sequence: Sequence(299),
                index: 1,
                code: RejectCode::BadScore,
                detail: "why".to_owned(),
                job: b"{}".to_vec(),
                time: Timestamp::from_micros(1_000_000).expect("in range"),
                board: None,
            }],
            next: Some((Sequence(299), 1)),
        }),
        Reply::Movement(MovementReply {
            life: LifeOnShard::Here,
            sequence: Sequence(1_842),
            time: Timestamp::from_micros(1_000_000).expect("in range"),
            then: vec![None, Some(words(&[5, 0]))],
            before: vec![300],
        }),
        Reply::Changed(vec![Sequence(0), Sequence(300)]),
        Reply::Hidden(HiddenReply {
            bans: vec![Ban {
                scope: None,
                member: MemberId::new("m7").expect("a good id"),
                since: Timestamp::from_micros(1_000_000).expect("in range"),
            }],
            more: true,
        }),
        Reply::WithColumns {
            reply: Box::new(Reply::Counts(Vec::new())),
            counts: vec![BoardCounts {
                life: LifeOnShard::Here,
                total: 5,
                hidden: 1,
                marks: vec![Counted { before: 2, through: 300 }],
            }],
            words: vec![None, Some(words(&[5, 0]))],
        },
        Reply::LastJob(LifeOnShard::Here, Timestamp::from_micros(1_000_000).ok()),
        Reply::LastJob(LifeOnShard::NotYet, None),
    ]
    .into_iter()
    .chain(combinations())
    .collect()
}

fn combinations() -> [Reply; 3] {
    [
        Reply::Combine(CombineReply {
            boards: vec![(LifeOnShard::Here, 9)],
            combined: Ok(Combined {
                total: 9,
                left: 8,
                after: CombinedCounts { better: 1, tied: 0, before: 1 },
                at: CombinedCounts::default(),
                entries: vec![place(7, "m7")],
                member: Some((300, CombinedCounts { better: 2, tied: 3, before: 4 })),
            }),
        }),
        Reply::Combine(CombineReply {
            boards: vec![(LifeOnShard::NotYet, 0)],
            combined: Err(NotCombined::TooMany(300)),
        }),
        Reply::Combine(CombineReply { boards: Vec::new(), combined: Err(NotCombined::Overflow) }),
    ]
}

fn reply(reply: Reply) -> ShardReply {
    ShardReply { sequence: Sequence(1_842), is_live: true, reply }
}

#[test]
fn the_bytes_of_questions_are_fixed() {
    let expected = [
        "01fb2c01fbf40100000001016107020001fbc30601020b01016d",
        concat!(
            "01fb2c01fbf401000001016107060000010b010100010b01040900010b0105026d3700010b010201020b01016d01fd",
            "0000000000000080010b000300010b00010b01",
        ),
        "01fb2c01fbf4010000020161070101020b01016d000801fc20a1070001",
        "01fb2c01fbf40100000301610702026d3706e697a5e69cac01020b01016d01",
        "01fb2c01fbf401000004026d370201610701620801",
        concat!("01fb2c01fbf40100000501fb2c010201096261645f73636f726501026d37", "0101016164fb4c04fc00001000"),
        "01fb2c01fbf401000000010a6123323032362d5734370700",
        "01fb2c01fbf401000006026d3701030a010201610162000000",
        "01fb2c01fbf401000006026d3701030a0102016101620a323032362d31312d3230fc80841e0000",
        "01fb2c01fbf4010000070a6123323032362d5734370701026d3701020b01016d",
        "01fb2c01fbf401000009020161070a6223323032362d57343708",
        "01fb2c01fbf40100000a000101016101026d38010161026d370a",
        "01fb2c01fbf40100000b0a01016107010000010b0102016208010001fbc3060a6323323032362d5734370900",
        "01fb2c01fbf40100000c016107",
        concat!(
            "01fb2c01fbf40100000d0201610700010a6223323032362d5734370801fd000000000000c07f01020101010105016d0a",
            "01026d3700",
        ),
    ];
    let bytes: Vec<String> = questions()
        .into_iter()
        .map(|question| hex(&encode_question(&asked(question)).expect("it is small")))
        .collect();
    assert_eq!(bytes, expected);
}

#[test]
fn the_bytes_of_replies_are_fixed() {
    let expected = [
        "01fb32070100010205010102fb2c0100",
        concat!(
            "01fb3207010102010109010801020101020b01026d37fc80841e0001070102020b01026d37fc80841e00010700",
            "020b01026d37fc80841e000107030000",
        ),
        "01fb3207010201000901080104020b01026d3700",
        "01fb320701030109020001020b01026d37fc80841e0001070001010200",
        "01fb32070104020001020b01026d37fc80841e000107020d7b22636172223a226d7835227d010302090100",
        "01fb3207010501016107020b01026d37fc80841e000107020d7b22636172223a226d7835227d0103020901010301020b01026d37fc80841e0001070000",
        "01fb3207010601fb2b0101096261645f73636f726503776879027b7dfc80841e0001fb2b010100",
        "01fb3207010701fb3207fc80841e00020001020b0101fb2c0100",
        "01fb320701090200fb2c0100",
        "01fb3207010a0100026d37fc80841e000100",
        "01fb3207010b020000010105010102fb2c01020001020b0100",
        "01fb3207010c0101fc80841e0000",
        "01fb3207010c000000",
        "01fb3207010d0101090009080100010000000107026d3701fb2c0102030400",
        "01fb3207010d01000001fb2c0100",
        "01fb3207010d000200",
    ];
    let bytes: Vec<String> = replies()
        .into_iter()
        .map(|each| hex(&encode_reply(&mut reply(each)).expect("it is small")))
        .collect();
    assert_eq!(bytes, expected);
}

#[test]
fn what_was_written_reads_back_and_less_or_more_of_it_does_not() {
    for question in questions() {
        let question = asked(question);
        let mut bytes = encode_question(&question).expect("it is small");
        assert_eq!(decode_question(&bytes).as_ref(), Ok(&question));
        for length in 0..bytes.len() {
            assert!(decode_question(&bytes[..length]).is_err(), "{length} bytes of {question:?}");
        }
        bytes.push(0);
        assert!(decode_question(&bytes).is_err());
    }
    for each in replies() {
        let reply = reply(each);
        let mut bytes = encode_reply(&mut reply.clone()).expect("it is small");
        assert_eq!(decode_reply(&bytes).as_ref(), Ok(&reply));
        for length in 0..bytes.len() {
            assert!(decode_reply(&bytes[..length]).is_err(), "{length} bytes of {reply:?}");
        }
        bytes.push(0);
        assert!(decode_reply(&bytes).is_err());
    }
}

#[test]
fn another_format_is_refused_in_words() {
    for format in [0, 2, 255] {
        let mut bytes = encode_question(&asked(questions().swap_remove(0))).expect("it is small");
        bytes[0] = format;
        let refused = decode_question(&bytes).expect_err("it is of another format");
        assert_eq!(refused, Undecodable::Format { found: format });
        assert!(refused.to_string().contains("this node reads format 1"), "{refused}");
    }
}

#[test]
fn where_metadata_is_on_disk_does_not_leave_the_node() {
    let on_disk = entry(EntryMetadata::OnDisk(crate::state::TreeId(3)));
    let told =
        Reply::Lookup { life: LifeOnShard::Here, total: 1, members: vec![Some(on_disk)], keys: vec![] };
    let bytes = encode_reply(&mut reply(told)).expect("it is small");
    let Reply::Lookup { members, .. } = decode_reply(&bytes).expect("it was just written").reply else {
        panic!("it is another kind");
    };
    assert_eq!(
        members.iter().flatten().next().map(|entry| &entry.metadata),
        Some(&EntryMetadata::Unreadable)
    );
}

/// The most that the limits let a question ask for fits.
#[test]
fn the_largest_reply_within_the_limits_fits() {
    let member: Box<[u8]> = vec![b'm'; crate::types::MAX_MEMBER_BYTES].into();
    let largest = ShardEntry {
        words: Words::from_slice(&[u64::MAX; crate::tree::MAX_WORDS]),
        member,
        updated_at: Timestamp::MAX,
        version: Some(u64::MAX),
        metadata: EntryMetadata::NotAsked,
        profile: EntryProfile::NotAsked,
    };
    let run = RunReply { below: vec![largest.clone(); 16_384], ..RunReply::default() };
    encode_reply(&mut reply(Reply::Runs(vec![Some(run)]))).expect("16,384 entries without metadata");
    let metadata = EntryMetadata::Json("m".repeat(crate::job::MAX_METADATA_BYTES).into());
    let profile = EntryProfile::Json("p".repeat(crate::job::MAX_PROFILE_BYTES).into());
    let page: Vec<ShardEntry> = (0..2_048)
        .map(|number| {
            let member = format!("{number:0>128}").into_bytes().into();
            ShardEntry { metadata: metadata.clone(), profile: profile.clone(), member, ..largest.clone() }
        })
        .collect();
    let run = RunReply { below: page, ..RunReply::default() };
    let bytes = encode_reply(&mut reply(Reply::Runs(vec![Some(run)]))).expect("2,048 entries with both");
    assert!(decode_reply(&bytes).is_ok());
}

#[test]
fn a_question_says_whether_profiles_are_asked_for() {
    for question in questions() {
        let asked = AskedQuestion { profiles: true, ..asked(question) };
        let bytes = encode_question(&asked).expect("it is small");
        assert_eq!(decode_question(&bytes), Ok(asked));
    }
}

/// However often they are put into one another: a node decodes no deeper than one of them.
#[test]
fn columns_within_columns_are_refused() {
    let within =
        |inner: Question<'static>| Question::WithColumns { question: Box::new(inner), boards: vec![] };
    let once = within(Question::Counts(Vec::new()));
    for depth in [1, 2, 1_000] {
        let question = (0..depth).fold(once.clone(), |inner, _| within(inner));
        let bytes = encode_question(&asked(question)).expect("it is small");
        let refused = decode_question(&bytes).expect_err("it is nested").to_string();
        assert!(refused.contains("within others"), "{refused}");
    }
    let reply_within =
        |reply| Reply::WithColumns { reply: Box::new(reply), counts: Vec::new(), words: Vec::new() };
    let bytes =
        encode_reply(&mut reply(reply_within(reply_within(Reply::Changed(Vec::new()))))).expect("small");
    assert!(decode_reply(&bytes).is_err());
    assert!(crate::query::question::check(&within(once)).is_err());
}

fn with_profiles(profiles: &[(&[u8], EntryProfile)]) -> ShardReply {
    let entry = |(member, profile): &(&[u8], EntryProfile)| ShardEntry {
        member: (*member).into(),
        profile: profile.clone(),
        ..entry(EntryMetadata::None)
    };
    let below = profiles.iter().map(entry).collect();
    reply(Reply::Runs(vec![Some(RunReply { below, ..RunReply::default() })]))
}

#[test]
fn replies_have_profiles_behind_and_repeat_none() {
    let json = EntryProfile::Json("{}".into());
    let told = with_profiles(&[
        (b"a", json.clone()),
        (b"a", json.clone()),
        (b"b", json.clone()),
        (b"c", EntryProfile::None),
        (b"d", EntryProfile::NotAsked),
        (b"e", EntryProfile::Unreadable),
    ]);
    let bytes = encode_reply(&mut told.clone()).expect("it is small");
    let mut without = told.clone();
    without.reply.each_entry(&mut |entry| entry.profile = EntryProfile::NotAsked);
    let without = encode_reply(&mut without).expect("it is small");
    let (none, without) = without.split_last().expect("it is not empty");
    assert_eq!(*none, 0);
    let (rest, profiles) = bytes.split_at(without.len());
    assert_eq!((rest, hex(profiles).as_str()), (without, "0602027b7d0402027b7d010003"));
    assert_eq!(decode_reply(&bytes), Ok(told));
    for wrong in ["", "0500000000", "070000000000000004", "06040000000000", "06010004000000"] {
        let wrong =
            (0..wrong.len()).step_by(2).map(|at| u8::from_str_radix(&wrong[at..at + 2], 16).expect("hex"));
        let bytes: Vec<u8> = without.iter().copied().chain(wrong).collect();
        assert!(decode_reply(&bytes).is_err(), "{bytes:?}");
    }
    let mut on_disk = with_profiles(&[(b"a", EntryProfile::OnDisk)]);
    let bytes = encode_reply(&mut on_disk).expect("it is small");
    let unreadable = with_profiles(&[(b"a", EntryProfile::Unreadable)]);
    assert_eq!(decode_reply(&bytes), Ok(unreadable), "where it is does not leave the node");
}

#[test]
fn a_question_that_is_too_large_is_not_sent() {
    let members = vec!["m"; QUESTION_BYTES_MAX];
    let question = Question::Lookup { board: life("a", 7), members, keys: vec![], metadata: false };
    let refused = encode_question(&asked(question)).expect_err("it is too large");
    assert!(matches!(refused, Undecodable::TooLarge { .. }), "{refused}");
}

#[test]
fn a_length_that_the_bytes_do_not_have_reserves_nothing() {
    // A list of 2^60 boards, and one of as many marks.
    for list in ["fd0000000000000010", "fc00000010"] {
        let mut bytes = vec![FORMAT, 0, 0, 0, 0, 0];
        bytes.extend(
            (0..list.len()).step_by(2).map(|at| u8::from_str_radix(&list[at..at + 2], 16).expect("hex")),
        );
        assert!(decode_question(&bytes).is_err());
    }
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), is_format: bool) {
        let mut bytes = bytes;
        if is_format {
            bytes.insert(0, FORMAT);
        }
        let _ = decode_question(&bytes);
        let _ = decode_reply(&bytes);
    }

    #[test]
    fn no_change_of_some_bytes_makes_it_panic(
        which in 0_usize..13,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let (mut questions, mut replies) = (questions(), replies());
        let (question, replied) = (which % questions.len(), which % replies.len());
        let mut question = encode_question(&asked(questions.swap_remove(question))).expect("it is small");
        let mut reply = encode_reply(&mut reply(replies.swap_remove(replied))).expect("it is small");
        for (at, byte) in changes {
            let at_question = at.index(question.len());
            question[at_question] = byte;
            let at_reply = at.index(reply.len());
            reply[at_reply] = byte;
        }
        // What can be read still can be checked and written again.
        if let Ok(read) = decode_question(&question) {
            let _ = crate::query::question::check(&read.question);
            let written = encode_question(&read).expect("it is small");
            prop_assert_eq!(decode_question(&written), Ok(read.clone()));
            if let Ok(reply) = decode_reply(&reply) {
                let _ = crate::query::question::is_consistent(&read.question, &reply.reply);
            }
        }
    }

    #[test]
    fn any_counts_read_back(
        boards in prop::collection::vec((any::<u64>(), prop::collection::vec(any::<[u64; 3]>(), 0..5)), 0..5),
        member in prop::collection::vec(any::<u8>(), 0..20),
        least: u64,
        wait_ms: u32,
        may_be_behind: bool,
    ) {
        let marks = |marks: &[[u64; 3]]| {
            let mark = |words: &[u64; 3]| if words[0].is_multiple_of(2) {
                Mark::Score(Words::from_slice(words))
            } else {
                Mark::Entry(SortKey { words: Words::from_slice(words), member: &member })
            };
            marks.iter().map(mark).collect()
        };
        let counts = boards.iter().map(|(incarnation, asked)| (life("b", *incarnation), marks(asked)));
        let question = Question::Counts(counts.collect());
        let (least, profiles) = (Sequence(least), !may_be_behind);
        let asked = AskedQuestion { question, least, wait_ms, may_be_behind, profiles };
        let bytes = encode_question(&asked).expect("it is small");
        prop_assert_eq!(decode_question(&bytes), Ok(asked));
        let counts = boards.iter().map(|(total, marks)| BoardCounts {
            life: LifeOnShard::Here,
            total: *total,
            hidden: *total / 2,
            marks: marks.iter().map(|words| Counted { before: words[0], through: words[1] }).collect(),
        });
        let replied = ShardReply {
            sequence: least,
            is_live: may_be_behind,
            reply: Reply::Counts(counts.collect()),
        };
        let bytes = encode_reply(&mut replied.clone()).expect("it is small");
        prop_assert_eq!(decode_reply(&bytes), Ok(replied));
    }
}
