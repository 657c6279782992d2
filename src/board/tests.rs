//! Words, definitions that may follow one another, and when instances are open.

use super::*;
use crate::tree::{IDS_DESCEND, compare_ids};
use crate::types::{Double, Number, Score, Timestamp};
use crate::window::{Instance, Seasons, Window};

const DAY: i64 = 24 * 60 * 60 * 1_000_000;

fn at(micros: i64) -> Timestamp {
    Timestamp::from_micros(micros).expect("in range")
}

const EXTREMES: [i64; 7] = [i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX - 1, i64::MAX];

#[test]
fn words_ascend_from_best_to_worst_over_the_whole_range() {
    for pair in EXTREMES.windows(2) {
        let [low, high] = pair else { unreachable!("windows of two") };
        assert!(encode(*low, Order::Ascending) < encode(*high, Order::Ascending));
        assert!(encode(*low, Order::Descending) > encode(*high, Order::Descending));
    }
    for value in EXTREMES {
        for order in [Order::Ascending, Order::Descending] {
            assert_eq!(decode(encode(value, order), order), value);
        }
    }
}

#[test]
fn an_increment_is_refused_rather_than_wrapped() {
    let board = Definition::default();
    let top = Score::new(&[i64::MAX]).expect("one key");
    let one = Score::new(&[1]).expect("one key");
    assert_eq!(board.add(Some(&top), &one), Err(ScoreRefused::Overflow));
    assert_eq!(board.add(None, &one), Ok(one));
}

#[test]
fn policy_keep_and_the_bounds_of_keys_may_change_and_what_orders_entries_may_not() {
    let board = Definition::default();
    assert!(board.agrees_with(&Definition { keep: 3, ..board.clone() }));
    let keys = |key: Key| Definition { keys: vec![key], ..board.clone() };
    assert!(board.agrees_with(&keys(Key { min: -1, max: 7, ..Key::score() })));
    assert!(!board.agrees_with(&keys(Key { order: Order::Ascending, ..Key::score() })));
    assert!(!board.agrees_with(&keys(Key { name: "points".to_owned(), ..Key::score() })));
    assert!(!board.agrees_with(&Definition { ties: Ties::Last, ..board.clone() }));
    assert!(board.agrees_with(&Definition { policy: Policy::Best, ..board.clone() }));
    assert!(!board.agrees_with(&Definition { utc_offset_minutes: 60, ..board.clone() }));
    let clamping = Key { below_min: Beyond::Clamp, above_max: Beyond::Clamp, ..Key::score() };
    assert!(board.agrees_with(&keys(clamping)));
}

#[test]
fn the_lengths_of_a_definition_may_change_and_its_windows_may_not() {
    let seasons = |begin, every| Some(Seasons::regular(at(begin), every));
    let board = Definition {
        windows: vec![Window::All, Window::Season],
        seasons: seasons(7, 14 * DAY),
        ..Definition::default()
    };
    assert!(board.agrees_with(&Definition {
        grace_micros: 0,
        entry_ttl_micros: Some(DAY),
        capacity: Some(100),
        ..board.clone()
    }));
    assert!(board.agrees_with(&Definition { seasons: seasons(7, DAY), ..board.clone() }));
    let later = Definition { seasons: seasons(8, 14 * DAY), ..board.clone() };
    assert!(board.may_start_as(&later, at(6)) && !board.may_start_as(&later, at(7)));
    assert_eq!(board.changed_to(&later, at(6)).as_ref(), Ok(&later));
    let manual = |begins: &[i64]| Definition {
        seasons: Some(Seasons::Manual(begins.iter().map(|begin| at(*begin)).collect())),
        ..board.clone()
    };
    assert!(!board.agrees_with(&manual(&[])));
    assert!(manual(&[1, 2]).agrees_with(&manual(&[])));
    // Seasons are not taken away from a window that stays.
    for of_seasons in [board.clone(), manual(&[1])] {
        let without = Definition { seasons: None, ..of_seasons.clone() };
        assert!(!of_seasons.agrees_with(&without) && !without.agrees_with(&of_seasons));
    }
    // Windows are added: of two definitions of a board, one has all that the other has.
    let fewer = Definition { windows: vec![Window::All], seasons: None, ..board.clone() };
    assert!(board.agrees_with(&fewer) && fewer.agrees_with(&board));
    assert_eq!(board.windows_missing_in(&fewer), [Window::Season]);
    assert_eq!(fewer.windows_missing_in(&board), []);
    let others = Definition { windows: vec![Window::All, Window::Day], ..fewer };
    assert!(!board.agrees_with(&others) && !others.agrees_with(&board));
    assert_eq!(
        board.differences(&manual(&[])),
        ["season is from 1970-01-01T00:00:00.000007Z on, not manual"]
    );
    assert_eq!(
        board.differences(&Definition { seasons: None, windows: vec![Window::All], ..board.clone() }),
        [
            "the list of windows is all, season, not all",
            "season is from 1970-01-01T00:00:00.000007Z on, not none"
        ]
    );
    // What was opened stays, whatever a client sends.
    let changed = manual(&[1, 2]).changed_to(&Definition { keep: 3, ..manual(&[]) }, at(5));
    assert_eq!(changed, Ok(Definition { keep: 3, ..manual(&[1, 2]) }));
    // The same again is no change.
    assert_eq!(board.changed_to(&board, at(5)), Ok(board.clone()));
}

#[test]
fn a_grace_that_keeps_too_many_instances_open_is_refused() {
    let with = |windows: &[Window], grace_micros| {
        let seasons = windows.contains(&Window::Season).then(|| Seasons::regular(at(0), 60_000_000));
        Definition { windows: windows.to_vec(), seasons, grace_micros, ..Definition::default() }.validate()
    };
    let hour = DAY / 24;
    assert_eq!(with(&[Window::All, Window::Hour], 10_000 * hour), Ok(()));
    let refused = with(&[Window::All, Window::Hour], 10_001 * hour).expect_err("too long");
    assert_eq!(
        refused.to_string(),
        "grace may keep 10000 instances of a window open, which are 10000h for the window hour; got \
         10001h. Send a shorter one, or leave that window out"
    );
    assert_eq!(with(&[Window::All, Window::Day, Window::Week, Window::Month], 10_000 * DAY), Ok(()));
    assert!(with(&[Window::Day], 10_001 * DAY).is_err());
    assert!(with(&[Window::Season], 10_001 * 60_000_000).is_err());
    assert_eq!(with(&[Window::All], MAX_DURATION_MICROS), Ok(()));
    assert_eq!(with(&[Window::All], -1), Err(InvalidDefinition::Grace(-1)));
    assert!(with(&[Window::All], MAX_DURATION_MICROS + 1).is_err());
    assert_eq!(with(&[], 0), Err(InvalidDefinition::Windows));
    assert_eq!(with(&[Window::Day, Window::Day], 0), Err(InvalidDefinition::Windows));
}

#[test]
fn a_board_whose_windows_have_too_many_instances_together_is_refused() {
    let hour = DAY / 24;
    let with = |keep, grace_micros| {
        let windows = vec![Window::Hour, Window::Day, Window::Week, Window::Month, Window::Season];
        let seasons = Some(Seasons::regular(at(0), hour));
        Definition { windows, seasons, keep, grace_micros, ..Definition::default() }.validate()
    };
    assert_eq!(with(MAX_KEEP, 0), Ok(()), "what is kept alone is never too much");
    // Of hours and seasons 7,001 and 12 each, and some hundreds of days, weeks and months.
    assert_eq!(with(12, 7_000 * hour), Ok(()));
    let refused = with(MAX_KEEP, 7_000 * hour).expect_err("19,353").to_string();
    assert!(refused.contains("may have 16000 instances together, and these would have 1"), "{refused}");
    assert!(with(0, 9_000 * hour).is_err(), "each window alone may have as many");
}

#[test]
fn a_job_changes_a_tree_for_each_window_and_two_more_with_movement() {
    let trees = |windows: &[Window], movement| {
        Definition { windows: windows.to_vec(), movement, ..Definition::default() }.trees_of_job()
    };
    assert_eq!(trees(&[Window::All], false), 1);
    assert_eq!(trees(&[Window::Day, Window::Week], false), 3);
    assert_eq!(trees(&[Window::All, Window::Day, Window::Week], true), 7);
    assert_eq!(trees(&Window::ALL, true), 16);
}

#[test]
fn a_capacity_cuts_what_is_behind_it() {
    let with = |capacity| Definition { capacity, ..Definition::default() };
    let (none, ten) = (with(None), with(Some(10)));
    assert_eq!([0, 10, 11].map(|entries| ten.within_capacity(entries)), [0, 10, 10]);
    assert_eq!([0, 10, 11].map(|entries| ten.capacity_after(entries)), [10, 0, 0]);
    assert_eq!((none.within_capacity(11), none.capacity_after(11)), (11, u64::MAX));
    assert_eq!(with(Some(MAX_CAPACITY)).validate(), Ok(()));
    for capacity in [0, MAX_CAPACITY + 1] {
        assert_eq!(with(Some(capacity)).validate(), Err(InvalidDefinition::Capacity(capacity)));
    }
}

#[test]
fn an_instance_is_open_through_its_grace_and_kept_until_enough_newer_ones_have_closed() {
    let board = Definition {
        windows: vec![Window::All, Window::Day],
        grace_micros: 5,
        keep: 2,
        ..Definition::default()
    };
    let day = |number| Instance { window: Window::Day, number };
    assert_eq!(board.closes_at(day(0)), Some(at(DAY + 5)));
    assert_eq!(board.drops_at(day(0)), Some(at(3 * DAY + 5)));
    assert!(board.is_open(day(0), at(DAY + 4)) && !board.is_open(day(0), at(DAY + 5)));
    assert!(board.is_open(day(1), at(DAY)) && !board.is_open(day(1), at(DAY - 1)));
    assert_eq!((board.closes_at(Instance::ALL), board.drops_at(Instance::ALL)), (None, None));
    assert!(board.is_open(Instance::ALL, at(0)));
    // The last manual season is open until it is known when it ends.
    let manual = Definition {
        windows: vec![Window::Season],
        seasons: Some(Seasons::Manual(vec![at(10), at(20)])),
        grace_micros: 5,
        keep: 0,
        ..Definition::default()
    };
    let season = |number| Instance { window: Window::Season, number };
    assert_eq!((manual.closes_at(season(1)), manual.closes_at(season(2))), (Some(at(25)), None));
    assert!(manual.is_open(season(2), at(DAY)) && !manual.is_open(season(3), at(DAY)));
    assert_eq!(manual.drops_at(season(1)), Some(at(25)));
}

/// A day closed, or one would be closed by the change: its entries stay, whatever changes.
#[test]
fn no_change_makes_entries_of_a_closed_instance_expire() {
    const HOUR: i64 = DAY / 24;
    let daily = |grace_micros, entry_ttl_micros| Definition {
        windows: vec![Window::All, Window::Day],
        grace_micros,
        entry_ttl_micros,
        ..Definition::default()
    };
    let day = |number| Instance { window: Window::Day, number };
    let now = at(10 * DAY + 12 * HOUR);
    for (known, asked, last) in [
        (daily(0, None), daily(0, Some(HOUR)), 9),
        (daily(0, Some(30 * DAY)), daily(0, Some(HOUR)), 9),
        (daily(0, Some(HOUR)), daily(20 * DAY, Some(HOUR)), 9),
        (daily(0, Some(HOUR)), daily(HOUR, Some(HOUR)), 9),
        (daily(0, None), daily(20 * DAY, Some(HOUR)), 9),
        (daily(3 * DAY, None), daily(3 * DAY, Some(HOUR)), 6),
        // Those that the change closes are final with what they have.
        (daily(3 * DAY, None), daily(0, Some(HOUR)), 9),
    ] {
        let changed = known.changed_to(&asked, now).expect("a good definition");
        for number in 0..=last {
            for updated_at in [0, number * DAY, (number + 1) * DAY - 1] {
                let expires = changed.expires_at(day(number), at(updated_at));
                assert_eq!(expires, None, "{number}, {updated_at}: {known:?} {asked:?}");
            }
        }
        // What is open goes by the new rule.
        for number in last + 1..=10 {
            let expires = changed.expires_at(day(number), at(number * DAY));
            assert_eq!(expires, Some(at(number * DAY + HOUR)), "{number}: {known:?} {asked:?}");
        }
        assert_eq!(changed.expires_at(Instance::ALL, at(0)), Some(at(HOUR)));
        assert!(!changed.expires_like(&Definition { final_until: None, ..changed.clone() }));
        // What was final stays so, and the same request again changes nothing.
        let patched = DefinitionPatch::from(asked).onto(Some(&changed)).expect("a good request");
        assert_eq!(changed.changed_to(&patched, at(now.as_micros() + DAY)).as_ref(), Ok(&changed));
        let later = Definition { entry_ttl_micros: Some(DAY), grace_micros: 400 * DAY, ..changed.clone() };
        let later = changed.changed_to(&later, now).expect("a good definition");
        assert!(later.keeps_entries(day(last)) && !later.keeps_entries(Instance::ALL));
        assert!(known.agrees_with(&changed) && changed.agrees_with(&later));
    }
    // Where nothing closes, or nothing that expiry follows from changes, there is nothing to remember.
    let known = daily(0, Some(HOUR));
    let same = known.changed_to(&Definition { keep: 3, ..known.clone() }, now);
    assert_eq!(same.expect("a good definition").final_until, None);
    let all = Definition::default();
    let changed = all.changed_to(&Definition { entry_ttl_micros: Some(DAY), ..all.clone() }, now);
    assert_eq!(changed.expect("a good definition").final_until, None);
}

#[test]
fn a_definition_tells_in_what_another_differs_and_what_its_scores_are() {
    let points = Key { name: "points".to_owned(), min: 0, max: 1_000, ..Key::score() };
    let time = Key { name: "time_ms".to_owned(), order: Order::Ascending, ..Key::score() };
    let board = Definition { keys: vec![points.clone(), time], ..Definition::default() };
    let (one, two) = (Score::new(&[7]).expect("one key"), Score::new(&[7, 8]).expect("two keys"));
    let keys = "a score of this board has 2 keys (points, time_ms): send ";
    assert_eq!(board.not_a_score(&one), format!("{keys}[1000, 90000], not 7"));
    assert_eq!(board.not_a_score_in_query(&one), format!("{keys}score=1000,90000, not score=7"));
    let single = Definition { keys: vec![points.clone()], ..Definition::default() };
    let key = "a score of this board has 1 key (points): send ";
    assert_eq!(single.not_a_score(&two), format!("{key}1000, not [7, 8]"));
    assert_eq!(single.not_a_score_in_query(&two), format!("{key}score=1000, not score=7,8"));
    let told = Definition::default().not_a_score(&two);
    let advice = "; this is the default definition, which a board has if its first job created it. \
                  For several keys, define the board with PUT /v1/boards/{board} before its first \
                  job; one that exists has to be dropped before, with all its scores: export them first";
    assert_eq!(told, format!("a score of this board has 1 key (score): send 1200, not [7, 8]{advice}"));
    assert!(board.differences(&Definition { keep: 3, ..board.clone() }).is_empty());
    let other = Definition { keys: vec![points.clone()], ties: Ties::Last, ..board.clone() };
    assert_eq!(
        board.differences(&other),
        [r#"the list of keys is ["points", "time_ms"], not ["points"]"#, "ties is first, not last"]
    );
    let board = Definition { keys: vec![points.clone()], ..Definition::default() };
    let other = Definition {
        keys: vec![Key { max: i64::MAX, order: Order::Ascending, ..points }],
        utc_offset_minutes: -210,
        ..board.clone()
    };
    assert_eq!(
        board.differences(&other),
        ["the order of key points is desc, not asc", "utc_offset is +00:00, not -03:30"]
    );
}

#[test]
fn the_tie_break_follows_the_rule() {
    let score = Score::new(&[5]).expect("one key");
    let words = |ties, micros, id: &str| {
        Definition { ties, ..Definition::default() }.entry_words(&score, at(micros), id.as_bytes())
    };
    assert!(words(Ties::First, 1, "b").as_slice() < words(Ties::First, 2, "a").as_slice());
    assert!(words(Ties::Last, 2, "b").as_slice() < words(Ties::Last, 1, "a").as_slice());
    assert!(words(Ties::Member, 2, "a").as_slice() < words(Ties::Member, 1, "b").as_slice());
    assert_eq!(words(Ties::Member, 2, "12345678a"), words(Ties::Member, 1, "12345678b"));
    assert!(words(Ties::MemberDesc, 2, "b").as_slice() < words(Ties::MemberDesc, 1, "a").as_slice());
    // Ids that the words do not tell apart descend where the rule says so, and only there.
    for ties in Ties::ALL {
        for (smaller, greater) in
            [("1234567a", "1234567b"), ("a", "ab"), ("日本語1", "日本語2"), ("~", "\u{10ffff}")]
        {
            let [one, other] = [smaller, greater].map(|id| words(ties, 1, id));
            let order = one
                .cmp(&other)
                .then_with(|| compare_ids(one.as_slice(), smaller.as_bytes(), greater.as_bytes()));
            assert_eq!(order.is_gt(), ties == Ties::MemberDesc, "{ties:?} {smaller} {greater}");
        }
    }
    for micros in [0, Timestamp::MAX.as_micros()] {
        for ties in [Ties::First, Ties::Last] {
            let words = words(ties, micros, "a");
            assert!(words.as_slice().last().is_some_and(|last| *last < IDS_DESCEND), "{ties:?} {micros}");
        }
    }
}

mod doubles {
    #![allow(clippy::float_cmp, reason = "the same double is what must come back")]

    use proptest::prelude::*;

    use super::*;

    fn double() -> impl Strategy<Value = f64> {
        let special =
            vec![0.0, -0.0, 5e-324, -5e-324, 0.1, f64::MAX, f64::MIN, f64::INFINITY, f64::NEG_INFINITY];
        prop_oneof![
            prop::sample::select(special),
            any::<f64>().prop_filter("a number", |value| !value.is_nan())
        ]
    }

    fn score(value: f64) -> Score {
        let number = Number::Float(Double::new(value).expect("a number"));
        Score::of_numbers(&[number]).expect("one key")
    }

    fn board(order: Order) -> Definition {
        let key = Key { key_type: KeyType::Float, order, ..Key::score() };
        Definition { keys: vec![key], ..Definition::default() }
    }

    fn value(score: &Score) -> f64 {
        match score.numbers().next() {
            Some(Number::Float(double)) => double.value(),
            other => panic!("{other:?} is no double"),
        }
    }

    proptest! {
        #[test]
        fn words_of_doubles_ascend_from_best_to_worst_and_come_back(a in double(), b in double()) {
            for order in [Order::Ascending, Order::Descending] {
                let board = board(order);
                let [one, other] = [a, b].map(|value| board.score_words(&score(value)));
                let expect = if order == Order::Ascending { a.partial_cmp(&b) } else { b.partial_cmp(&a) };
                prop_assert_eq!(Some(one.cmp(&other)), expect);
                prop_assert_eq!(value(&board.score_of(one.as_slice())), a);
            }
        }

        #[test]
        fn doubles_add_as_doubles_do(a in double(), b in double()) {
            let sum = board(Order::Descending).add(Some(&score(a)), &score(b));
            if (a + b).is_nan() {
                prop_assert_eq!(sum, Err(ScoreRefused::NotANumber));
            } else {
                prop_assert_eq!(value(&sum.expect("a number")), a + b);
            }
        }

        #[test]
        fn an_integer_is_the_nearest_double_where_doubles_are(integer: i64) {
            let sent = Score::new(&[integer]).expect("one key");
            let board = board(Order::Descending);
            let typed = board.typed(&sent).expect("it is a number");
            #[allow(clippy::cast_precision_loss, clippy::as_conversions, reason = "that is what is compared")]
            let expect = integer as f64;
            prop_assert_eq!(value(&typed), expect);
            prop_assert_eq!(Definition::default().typed(&sent), Ok(std::borrow::Cow::Borrowed(&sent)));
        }
    }

    #[test]
    fn sums_of_doubles_stop_at_a_bound_that_clamps() {
        let ordered = |value| Double::new(value).expect("a number").ordered();
        let mut board = board(Order::Descending);
        board.keys[0] = Key {
            min: ordered(-0.5),
            max: ordered(99.5),
            below_min: Beyond::Clamp,
            above_max: Beyond::Clamp,
            ..board.keys[0].clone()
        };
        for (step, expect) in
            [(0.25, 0.25), (1e9, 99.5), (f64::INFINITY, 99.5), (-0.75, -0.5), (f64::MIN, -0.5)]
        {
            assert_eq!(value(&board.add(None, &score(step)).expect("a number")), expect, "{step}");
        }
        assert_eq!(board.admit(&score(99.75)), Err(ScoreRefused::OutOfRange));
        assert_eq!(board.admit(&score(99.5)), Ok(()));
    }

    #[test]
    fn the_type_of_a_key_never_changes() {
        let float = board(Order::Descending);
        assert!(!float.agrees_with(&Definition::default()));
        assert_eq!(
            float.differences(&Definition::default()),
            ["the type of key score is float, not integer"]
        );
        let counting = Definition { kind: Kind::TopK, policy: Policy::Incr, capacity: Some(3), ..float };
        let refused = counting.validate().expect_err("it counts").to_string();
        assert!(refused.contains("a key of the type integer"), "{refused}");
    }
}
