//! Every time falls in the instance whose span contains it, spans are consecutive, and names read back.

use proptest::prelude::*;

use super::*;

fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).expect("a time")
}

fn micros(micros: i64) -> Timestamp {
    Timestamp::from_micros(micros).expect("in range")
}

fn calendar(utc_offset_minutes: i16) -> Calendar<'static> {
    Calendar { utc_offset_minutes, seasons: None }
}

/// What a time falls in, its name, and from when to when that is.
fn check(calendar: Calendar<'_>, window: Window, time: &str, expect: (&str, &str, &str)) {
    let instance = calendar.instance_at(window, at(time)).expect("there is one");
    let Span { begin, end } = calendar.span(instance).expect("it has a span");
    let (name, from, to) = expect;
    assert_eq!((instance.to_string().as_str(), begin, end), (name, at(from), Some(at(to))), "{time}");
    assert_eq!(Instance::of_name(name), Some(instance));
}

fn windows() -> impl Strategy<Value = Window> {
    prop::sample::select(Window::ALL.to_vec())
}

/// Times from 1970 to 2262, more of them close to where hours, days and years meet.
fn times() -> impl Strategy<Value = i64> {
    let max = Timestamp::MAX.as_micros();
    prop_oneof![
        0..=max,
        (0..=max / DAY, -2_i64..=2).prop_map(move |(day, off)| (day * DAY + off).clamp(0, max)),
        (0_i64..292, 0_i64..366, -2_i64..=2)
            .prop_map(move |(year, day, off)| { ((year * 365 + year / 4 + day) * DAY + off).clamp(0, max) }),
        0_i64..=DAY,
    ]
}

fn seasons() -> impl Strategy<Value = Seasons> {
    let regular = (0..=DAY * 20_000, prop::collection::vec((MINUTE..DAY * 400, 0..DAY * 400), 1..5));
    let regular = regular.prop_map(|(begin, lengths)| {
        let mut now = begin;
        let mut seasons: Option<Seasons> = None;
        for (every, later) in lengths {
            now += later;
            seasons = Some(match seasons {
                None => Seasons::regular(micros(begin), every),
                Some(seasons) => seasons.with_length(every, micros(now)).expect("few changes"),
            });
        }
        seasons.expect("at least one length")
    });
    let manual = prop::collection::btree_set(0..=DAY * 20_000, 0..20);
    let manual = manual.prop_map(|begins| Seasons::Manual(begins.into_iter().map(micros).collect()));
    prop_oneof![regular, manual]
}

proptest! {
    #[test]
    fn every_time_falls_in_the_instance_whose_span_contains_it(
        (window, time) in (windows(), times()),
        offset in -18 * 60_i16..=18 * 60,
        seasons in seasons(),
    ) {
        let calendar = Calendar { utc_offset_minutes: offset, seasons: Some(&seasons) };
        let time = micros(time);
        let Some(instance) = calendar.instance_at(window, time) else {
            prop_assert_eq!(window, Window::Season);
            let first = calendar.span(Instance { window, number: 1 });
            prop_assert!(first.is_none_or(|first| time < first.begin));
            return Ok(());
        };
        // The last instances end after the last time that can be said.
        let Some(span) = calendar.span(instance) else {
            prop_assert!(time.as_micros() > Timestamp::MAX.as_micros() - 401 * DAY);
            return Ok(());
        };
        prop_assert!(span.contains(time), "{instance} {span:?} {time}");
        // They are consecutive, and each is read back by its name.
        if let (Some(end), Some(next)) = (span.end, calendar.span(instance.later(1))) {
            prop_assert_eq!(next.begin, end);
            prop_assert_eq!(calendar.instance_at(window, end), Some(instance.later(1)));
        }
        if span.begin > Timestamp::default() && !(window == Window::Season && instance.number == 1) {
            let before = calendar.span(instance.later(-1)).expect("there is one before");
            prop_assert_eq!(before.end, Some(span.begin));
        }
        prop_assert_eq!(Instance::of_name(&instance.to_string()), Some(instance));
        prop_assert!(instance.to_string().len() <= crate::types::MAX_INSTANCE_BYTES);
    }

    /// Whatever is read as a name is written the same; nothing panics.
    #[test]
    fn a_name_that_is_read_is_written_the_same(
        name in prop_oneof!["[0-9sWT-]{0,16}", "[0-9]{4}-(W)?[0-9]{1,2}(-[0-9]{1,2}(T[0-9]{1,2})?)?", ".*"],
    ) {
        if let Some(instance) = Instance::of_name(&name) {
            prop_assert_eq!(instance.to_string(), name);
        }
    }

    /// Spans of instances that nobody asks for end in nothing, and not in a panic.
    #[test]
    fn spans_of_any_number_do_not_panic(window in windows(), number in any::<i64>(), seasons in seasons()) {
        for offset in [-18 * 60, 0, 18 * 60] {
            let calendar = Calendar { utc_offset_minutes: offset, seasons: Some(&seasons) };
            let _ = calendar.span(Instance { window, number });
            let _ = Instance { window, number }.later(i64::MAX);
        }
    }
}

#[test]
fn iso_weeks_at_the_ends_of_years() {
    for (time, name, from, to) in [
        ("2019-12-29T23:59:59Z", "2019-W52", "2019-12-23T00:00:00Z", "2019-12-30T00:00:00Z"),
        ("2019-12-30T00:00:00Z", "2020-W01", "2019-12-30T00:00:00Z", "2020-01-06T00:00:00Z"),
        ("2020-12-31T12:00:00Z", "2020-W53", "2020-12-28T00:00:00Z", "2021-01-04T00:00:00Z"),
        ("2021-01-03T23:59:59Z", "2020-W53", "2020-12-28T00:00:00Z", "2021-01-04T00:00:00Z"),
        ("2021-01-04T00:00:00Z", "2021-W01", "2021-01-04T00:00:00Z", "2021-01-11T00:00:00Z"),
        ("2022-01-01T00:00:00Z", "2021-W52", "2021-12-27T00:00:00Z", "2022-01-03T00:00:00Z"),
        ("2023-01-01T23:00:00Z", "2022-W52", "2022-12-26T00:00:00Z", "2023-01-02T00:00:00Z"),
        ("2024-01-01T00:00:00Z", "2024-W01", "2024-01-01T00:00:00Z", "2024-01-08T00:00:00Z"),
        ("2024-12-30T00:00:00Z", "2025-W01", "2024-12-30T00:00:00Z", "2025-01-06T00:00:00Z"),
        ("2025-12-29T00:00:00Z", "2026-W01", "2025-12-29T00:00:00Z", "2026-01-05T00:00:00Z"),
        ("2026-11-20T09:59:58Z", "2026-W47", "2026-11-16T00:00:00Z", "2026-11-23T00:00:00Z"),
        ("2027-01-03T23:59:59.999999Z", "2026-W53", "2026-12-28T00:00:00Z", "2027-01-04T00:00:00Z"),
        ("2027-01-04T00:00:00Z", "2027-W01", "2027-01-04T00:00:00Z", "2027-01-11T00:00:00Z"),
    ] {
        check(calendar(0), Window::Week, time, (name, from, to));
    }
}

#[test]
fn days_and_hours_begin_where_the_offset_says() {
    let (india, newfoundland, japan) = (calendar(330), calendar(-210), calendar(540));
    for (calendar, window, time, expect) in [
        (
            india,
            Window::Hour,
            "2026-11-20T09:29:59Z",
            ("2026-11-20T14", "2026-11-20T08:30:00Z", "2026-11-20T09:30:00Z"),
        ),
        (
            india,
            Window::Day,
            "2026-11-19T18:30:00Z",
            ("2026-11-20", "2026-11-19T18:30:00Z", "2026-11-20T18:30:00Z"),
        ),
        (
            newfoundland,
            Window::Hour,
            "2026-01-01T03:29:59Z",
            ("2025-12-31T23", "2026-01-01T02:30:00Z", "2026-01-01T03:30:00Z"),
        ),
        (
            newfoundland,
            Window::Day,
            "2026-01-01T03:30:00Z",
            ("2026-01-01", "2026-01-01T03:30:00Z", "2026-01-02T03:30:00Z"),
        ),
        (
            newfoundland,
            Window::Month,
            "2026-01-01T03:29:59Z",
            ("2025-12", "2025-12-01T03:30:00Z", "2026-01-01T03:30:00Z"),
        ),
        (
            newfoundland,
            Window::Week,
            "2027-01-04T03:29:59Z",
            ("2026-W53", "2026-12-28T03:30:00Z", "2027-01-04T03:30:00Z"),
        ),
        (
            japan,
            Window::Day,
            "2026-11-20T15:00:00Z",
            ("2026-11-21", "2026-11-20T15:00:00Z", "2026-11-21T15:00:00Z"),
        ),
        // The last place on Earth to see a day end, and the first to see it begin.
        (
            calendar(-12 * 60),
            Window::Day,
            "2027-01-01T11:59:59.999999Z",
            ("2026-12-31", "2026-12-31T12:00:00Z", "2027-01-01T12:00:00Z"),
        ),
        (
            calendar(14 * 60),
            Window::Day,
            "2026-12-31T10:00:00Z",
            ("2027-01-01", "2026-12-31T10:00:00Z", "2027-01-01T10:00:00Z"),
        ),
        (
            calendar(-12 * 60),
            Window::Week,
            "2027-01-04T11:59:59.999999Z",
            ("2026-W53", "2026-12-28T12:00:00Z", "2027-01-04T12:00:00Z"),
        ),
        (
            calendar(14 * 60),
            Window::Week,
            "2027-01-03T10:00:00Z",
            ("2027-W01", "2027-01-03T10:00:00Z", "2027-01-10T10:00:00Z"),
        ),
        (
            calendar(14 * 60),
            Window::Month,
            "2024-02-29T09:59:59Z",
            ("2024-02", "2024-01-31T10:00:00Z", "2024-02-29T10:00:00Z"),
        ),
        (
            calendar(345),
            Window::Hour,
            "2026-12-31T18:14:59Z",
            ("2026-12-31T23", "2026-12-31T17:15:00Z", "2026-12-31T18:15:00Z"),
        ),
        (
            calendar(18 * 60),
            Window::Day,
            "2026-11-20T06:00:00Z",
            ("2026-11-21", "2026-11-20T06:00:00Z", "2026-11-21T06:00:00Z"),
        ),
    ] {
        check(calendar, window, time, expect);
    }
}

#[test]
fn months_end_where_they_do_and_leap_days_are_days() {
    for (window, time, expect) in [
        (Window::Month, "2024-02-29T23:59:59Z", ("2024-02", "2024-02-01T00:00:00Z", "2024-03-01T00:00:00Z")),
        (Window::Month, "2026-02-28T23:59:59Z", ("2026-02", "2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z")),
        (Window::Month, "2100-02-28T23:59:59Z", ("2100-02", "2100-02-01T00:00:00Z", "2100-03-01T00:00:00Z")),
        (
            Window::Month,
            "2026-12-31T23:59:59.999999Z",
            ("2026-12", "2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z"),
        ),
        (Window::Day, "2024-02-29T00:00:00Z", ("2024-02-29", "2024-02-29T00:00:00Z", "2024-03-01T00:00:00Z")),
        (
            Window::Hour,
            "2024-02-29T23:00:00Z",
            ("2024-02-29T23", "2024-02-29T23:00:00Z", "2024-03-01T00:00:00Z"),
        ),
    ] {
        check(calendar(0), window, time, expect);
    }
}

/// The first instances begin before 1970 of UTC, or the first that is not does not begin with it.
#[test]
fn the_first_instances_are_those_that_1970_begins_in() {
    for (offset, window, expect) in [
        (0, Window::Day, ("1970-01-01", "1970-01-01T00:00:00Z", "1970-01-02T00:00:00Z")),
        (0, Window::Week, ("1970-W01", "1970-01-01T00:00:00Z", "1970-01-05T00:00:00Z")),
        (0, Window::Month, ("1970-01", "1970-01-01T00:00:00Z", "1970-02-01T00:00:00Z")),
        (330, Window::Hour, ("1970-01-01T05", "1970-01-01T00:00:00Z", "1970-01-01T00:30:00Z")),
        (540, Window::Day, ("1970-01-01", "1970-01-01T00:00:00Z", "1970-01-01T15:00:00Z")),
        (-210, Window::Day, ("1969-12-31", "1970-01-01T00:00:00Z", "1970-01-01T03:30:00Z")),
        (-210, Window::Month, ("1969-12", "1970-01-01T00:00:00Z", "1970-01-01T03:30:00Z")),
        (-210, Window::Hour, ("1969-12-31T20", "1970-01-01T00:00:00Z", "1970-01-01T00:30:00Z")),
    ] {
        check(calendar(offset), window, "1970-01-01T00:00:00Z", expect);
    }
    let all = calendar(0).instance_at(Window::All, micros(0));
    assert_eq!(all, Some(Instance::ALL));
    assert_eq!(calendar(0).span(Instance::ALL), Some(Span { begin: micros(0), end: None }));
    // The one that ended before is none.
    assert_eq!(calendar(0).span(Instance { window: Window::Day, number: -1 }), None);
}

#[test]
fn names_that_are_not_canonical_are_none() {
    for name in [
        "",
        "All",
        "all ",
        "2026-W7",
        "2026-W007",
        "2026-W00",
        "2026-W54",
        "2025-W53",
        "2026-w47",
        "2026W47",
        "s0",
        "s07",
        "s",
        "s-1",
        "s+1",
        "S7",
        "s4294967296",
        "2026",
        "2026-",
        "2026-0",
        "2026-00",
        "2026-13",
        "2026-1",
        "2026-011",
        "26-11",
        "02026-11",
        "-2026-11",
        "2026-02-30",
        "2026-02-29",
        "2026-11-00",
        "2026-11-31",
        "2026-11-2",
        "2026-11-20T",
        "2026-11-20T24",
        "2026-11-20T9",
        "2026-11-20T009",
        "2026-11-20t09",
        "2026-11-20T09:00",
        "2026-11-20T09Z",
        "2026-11-20T-1",
        "9999999-11",
        "day",
        "week",
        "season",
    ] {
        assert_eq!(Instance::of_name(name), None, "{name}");
    }
    for (name, window) in [
        ("all", Window::All),
        ("2026-11-20T09", Window::Hour),
        ("2026-11-20", Window::Day),
        ("2026-W47", Window::Week),
        ("2026-11", Window::Month),
        ("s7", Window::Season),
        ("s4294967295", Window::Season),
    ] {
        let instance = Instance::of_name(name).expect("a name");
        assert_eq!((instance.window, instance.to_string().as_str()), (window, name));
    }
    for window in Window::ALL {
        assert_eq!(Window::of_name(window.name()), Some(window));
        assert_eq!(Window::of_number(window.number()), Some(window));
    }
    assert_eq!((Window::of_name("year"), Window::of_number(6)), (None, None));
}

#[test]
fn what_movement_needs_has_names_that_no_instance_has() {
    let board = crate::types::BoardName::new("arena.now").expect("a good name");
    for name in ["2026-11-20T09", "2026-11-20", "2026-W47", "2026-11", "s4294967295"] {
        let instance = Instance::of_name(name).expect("an instance");
        assert_eq!(MovementPart::of_name_on_shards(&instance.name_on_shards(&board)), None);
        for part in MovementPart::ALL {
            let kept = part.name_on_shards(instance, &board);
            assert_eq!(MovementPart::of_name_on_shards(&kept), Some((part, instance)), "{kept}");
            assert_eq!(Instance::of_name_on_shards(&kept), None, "{kept}");
            assert_eq!(kept.board(), board);
            assert_eq!(crate::types::BoardName::of_shard(kept.as_str()), Ok(kept));
        }
    }
    assert_eq!(MovementPart::of_name_on_shards(&board), None);
}

#[test]
fn regular_seasons_are_counted_from_their_start() {
    let seasons = Seasons::regular(at("2026-11-02T00:00:00Z"), 14 * DAY);
    let calendar = Calendar { utc_offset_minutes: 540, seasons: Some(&seasons) };
    // The offset does not move them.
    assert_eq!(calendar.instance_at(Window::Season, at("2026-11-01T23:59:59.999999Z")), None);
    for (time, expect) in [
        ("2026-11-02T00:00:00Z", ("s1", "2026-11-02T00:00:00Z", "2026-11-16T00:00:00Z")),
        ("2026-11-15T23:59:59.999999Z", ("s1", "2026-11-02T00:00:00Z", "2026-11-16T00:00:00Z")),
        ("2026-11-16T00:00:00Z", ("s2", "2026-11-16T00:00:00Z", "2026-11-30T00:00:00Z")),
        ("2027-11-02T00:00:00Z", ("s27", "2027-11-01T00:00:00Z", "2027-11-15T00:00:00Z")),
    ] {
        check(calendar, Window::Season, time, expect);
    }
    for number in [i64::MIN, -1, 0, i64::from(u32::MAX) + 1, i64::MAX] {
        assert_eq!(seasons.span(number), None, "{number}");
    }
}

#[test]
fn another_length_takes_effect_from_the_next_season_on() {
    let first = at("2026-11-02T00:00:00Z");
    let seasons = Seasons::regular(first, 14 * DAY);
    let now = at("2026-11-20T12:00:00Z");
    let changed = seasons.with_length(7 * DAY, now).expect("a good length");
    let calendar = Calendar { utc_offset_minutes: 0, seasons: Some(&changed) };
    for (time, expect) in [
        ("2026-11-03T00:00:00Z", ("s1", "2026-11-02T00:00:00Z", "2026-11-16T00:00:00Z")),
        // The season that it is in ends when it was to end.
        ("2026-11-29T00:00:00Z", ("s2", "2026-11-16T00:00:00Z", "2026-11-30T00:00:00Z")),
        ("2026-11-30T00:00:00Z", ("s3", "2026-11-30T00:00:00Z", "2026-12-07T00:00:00Z")),
        ("2026-12-07T00:00:00Z", ("s4", "2026-12-07T00:00:00Z", "2026-12-14T00:00:00Z")),
    ] {
        check(calendar, Window::Season, time, expect);
    }
    // The same again changes nothing, and back before it took effect is as if it had never been asked.
    assert_eq!(changed.with_length(7 * DAY, at("2027-01-01T00:00:00Z")), Ok(changed.clone()));
    assert_eq!(changed.with_length(14 * DAY, now), Ok(seasons.clone()));
    let thrice = changed.with_length(DAY, now).expect("a good length");
    assert_eq!(thrice, seasons.with_length(DAY, now).expect("a good length"));
    // Later it is one more change.
    let again = changed.with_length(14 * DAY, at("2026-12-08T00:00:00Z")).expect("a good length");
    assert_eq!(again.span(4).map(|span| span.end), Some(Some(at("2026-12-14T00:00:00Z"))));
    assert_eq!(again.span(5).map(|span| span.end), Some(Some(at("2026-12-28T00:00:00Z"))));
    // Before the first season there is none to be left as it is.
    let early = seasons.with_length(DAY, at("2026-11-01T00:00:00Z"));
    assert_eq!(early, Ok(Seasons::regular(first, DAY)));
    assert_eq!(seasons.with_length(MINUTE - 1, now), Err(InvalidSeasons::TooShort));
    assert_eq!(seasons.starts(), changed.starts());
}

#[test]
fn manual_seasons_begin_when_they_are_opened_and_end_when_the_next_one_does() {
    let none = Seasons::Manual(Vec::new());
    assert_eq!((none.number_at(Timestamp::MAX), none.span(1)), (None, None));
    let (one, two) = (at("2026-11-02T00:00:00Z"), at("2026-11-09T12:00:00.5Z"));
    let first = none.with_season(one).expect("the first");
    assert_eq!(first.span(1), Some(Span { begin: one, end: None }));
    let both = first.with_season(two).expect("the next");
    assert_eq!(both.span(1), Some(Span { begin: one, end: Some(two) }));
    assert_eq!(both.span(2), Some(Span { begin: two, end: None }));
    assert_eq!((both.span(0), both.span(3), both.span(-1)), (None, None, None));
    assert_eq!(both.number_at(micros(two.as_micros() - 1)), Some(1));
    assert_eq!(both.number_at(two), Some(2));
    for begin in [one, two] {
        assert_eq!(both.with_season(begin), Err(InvalidSeasons::Order));
    }
    let all = (0..1_000).map(micros).collect();
    assert_eq!(Seasons::Manual(all).with_season(micros(1_000)), Err(InvalidSeasons::TooMany));
    assert_eq!(both.with_length(DAY, two), Ok(both.clone()));
    assert!(Seasons::regular(one, DAY).with_season(two).is_err());
}

#[test]
fn series_that_do_not_follow_one_another_are_refused() {
    let series = |first, begin, every| Series { first, begin: micros(begin), every };
    for (all, expect) in [
        (vec![], Err(InvalidSeasons::Empty)),
        (vec![series(2, 0, DAY)], Err(InvalidSeasons::Order)),
        (vec![series(1, 0, MINUTE - 1)], Err(InvalidSeasons::TooShort)),
        (vec![series(1, 0, -DAY)], Err(InvalidSeasons::TooShort)),
        (vec![series(1, 0, DAY), series(3, 2 * DAY, MINUTE)], Ok(())),
        (vec![series(1, 0, DAY), series(3, 2 * DAY + 1, MINUTE)], Err(InvalidSeasons::Order)),
        (vec![series(1, 0, DAY), series(1, 0, MINUTE)], Err(InvalidSeasons::Order)),
        (vec![series(1, 0, i64::MAX), series(u32::MAX, 5, MINUTE)], Err(InvalidSeasons::Order)),
    ] {
        assert_eq!(Seasons::Regular(all.clone()).validate(), expect, "{all:?}");
    }
}
