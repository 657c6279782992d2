//! A board's definition from JSON (`PUT /v1/boards/{board}`). Features that do not exist yet are refused by
//! name.

use std::borrow::Cow;

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::board::{
    Beyond, Definition, DefinitionPatch, Field, KeyPatch, KeyType, Kind, MAX_CAPACITY, Order, Policy,
    SeasonsPatch, Ties,
};
use crate::http::render::fields;
use crate::http::render::json::Object;
use crate::http::render::problem::Problem;
use crate::types::{BoardName, Number, Timestamp, quoted, shown};
use crate::window::{Window, length};
use crate::wire::lenient::{JsonFields, number_of};

const FIELDS: [&str; 12] = [
    "keys",
    "policy",
    "ties",
    "windows",
    "season",
    "utc_offset",
    "keep",
    "grace",
    "entry_ttl",
    "capacity",
    "kind",
    "movement",
];
/// What answers show of a board beside its definition. It is accepted, so that an answer can be sent back
/// with what is to change, and changes nothing.
pub const SHOWN_FIELDS: [&str; 10] = [
    "board",
    "read_only",
    "totals",
    "instances",
    "next_cursors",
    "planned_seasons",
    "token",
    "as_of",
    "stale",
    "missing",
];
const KEY_FIELDS: [&str; 7] = ["name", "order", "type", "min", "max", "below_min", "above_max"];
const SEASON_FIELDS: [&str; 2] = ["starts", "every"];

const KEYS: &str = r#"keys must be an array of objects such as {"name": "points", "order": "desc"}"#;

/// Reads what a request names of a board's definition. No body at all names nothing.
///
/// # Errors
/// When it is wrong, or is that of another board.
pub fn parse(body: &[u8], board: &BoardName) -> Result<DefinitionPatch, Problem> {
    if body.trim_ascii().is_empty() {
        return Ok(DefinitionPatch::default());
    }
    let mut value: Value = serde_json::from_slice(body).map_err(|error| Problem::not_json(body, &error))?;
    if let Some(fields) = value.as_object_mut() {
        if let Some(of) =
            fields.get("board").filter(|of| !of.is_null() && of.as_str() != Some(board.as_str()))
        {
            let rule = format!("board must be {board}, which the path names, or absent");
            return Err(wrong(&rule, of));
        }
        fields.retain(|name, _| !SHOWN_FIELDS.contains(&name.as_str()));
    }
    let fields = value.as_object();
    let fields = fields.ok_or_else(|| wrong("a board's definition must be a JSON object", &value))?;
    check_fields(fields, &FIELDS, "a board")?;
    check_repeated(body)?;
    let patch = DefinitionPatch {
        keys: field(fields, "keys", |keys| {
            let keys = keys.as_array().ok_or_else(|| wrong(KEYS, keys))?;
            keys.iter().map(key).collect()
        })?,
        policy: field(fields, "policy", |policy| {
            let all = [Policy::Set, Policy::Best, Policy::Incr];
            named(policy, all, Policy::name, "policy must be set, best or incr")
        })?,
        ties: field(fields, "ties", |ties| {
            named(ties, Ties::ALL, Ties::name, "ties must be first, last, member or member_desc")
        })?,
        windows: field(fields, "windows", windows)?,
        seasons: field(fields, "season", seasons)?,
        utc_offset_minutes: field(fields, "utc_offset", |offset| {
            let rule = "utc_offset must be a string such as +09:00, from -18:00 to +18:00";
            offset.as_str().and_then(offset_minutes).ok_or_else(|| wrong(rule, offset))
        })?,
        keep: field(fields, "keep", |keep| {
            let count = keep.as_u64().and_then(|keep| u32::try_from(keep).ok());
            count.ok_or_else(|| wrong("keep must be a whole number from 0 to 1000", keep))
        })?,
        grace_micros: field(fields, "grace", |grace| micros("grace", grace))?,
        entry_ttl_micros: field(fields, "entry_ttl", |ttl| micros("entry_ttl", ttl))?,
        movement: field(fields, "movement", |movement| {
            movement.as_bool().ok_or_else(|| wrong("movement must be true or false", movement))
        })?,
        capacity: field(fields, "capacity", |capacity| {
            let rule =
                format!("capacity must be a whole number from 1 to {MAX_CAPACITY}, or null for no limit");
            capacity.as_u64().ok_or_else(|| wrong(&rule, capacity))
        })?,
        kind: field(fields, "kind", |kind| {
            named(kind, [Kind::Ranking, Kind::TopK], Kind::name, "kind must be ranking or top_k")
        })?,
    };
    Ok(patch)
}

/// A whole definition, as answers show it. `None`: it is none.
pub fn of_json(json: &str, board: &BoardName) -> Option<Definition> {
    parse(json.as_bytes(), board).ok()?.onto(None).ok()
}

/// What a request says of a field: `null` is its default.
fn field<T>(
    fields: &Map<String, Value>,
    name: &str,
    read: impl FnOnce(&Value) -> Result<T, Problem>,
) -> Result<Field<T>, Problem> {
    match fields.get(name) {
        None => Ok(Field::Absent),
        Some(Value::Null) => Ok(Field::Default),
        Some(value) => read(value).map(Field::Value),
    }
}

/// A definition as [`parse`] reads it and as answers show it.
pub fn json(definition: &Definition) -> String {
    let mut out = Vec::new();
    let mut object = Object::begin(&mut out);
    fields::definition(&mut object, definition);
    object.end();
    String::from_utf8(out).expect("JSON is UTF-8")
}

/// A value breaks a rule.
fn wrong(rule: &str, value: &Value) -> Problem {
    Problem::invalid_definition(format!("{rule}; got {}", shown(&value.to_string())))
}

/// A field that is present and not null.
fn given<'a>(fields: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    fields.get(name).filter(|value| !value.is_null())
}

fn check_fields(fields: &Map<String, Value>, known: &[&str], what: &str) -> Result<(), Problem> {
    match fields.keys().find(|name| !known.contains(&name.as_str())) {
        None => Ok(()),
        Some(stray) => {
            let (stray, known) = (quoted(stray), known.join(", "));
            Err(Problem::invalid_definition(format!("{what} has no field {stray}; the fields are {known}")))
        }
    }
}

/// Refuses a field that is given twice: it cannot be told which one is meant.
///
/// # Arguments
/// `body`: a JSON object.
fn check_repeated(body: &[u8]) -> Result<(), Problem> {
    let unreadable = |error: serde_json::Error| Problem::not_json(body, &error);
    let JsonFields(fields) = serde_json::from_slice(body).map_err(unreadable)?;
    check_once(&fields, "a board")?;
    let season = fields.iter().find(|(name, _)| name == "season");
    if let Some(Ok(JsonFields(fields))) = season.map(|(_, season)| serde_json::from_str(season.get())) {
        check_once(&fields, "season")?;
    }
    // That keys are a list of objects is checked where they are read.
    let keys = fields.iter().find(|(name, _)| name == "keys");
    let keys: Vec<&RawValue> =
        keys.and_then(|(_, keys)| serde_json::from_str(keys.get()).ok()).unwrap_or_default();
    for key in keys {
        if let Ok(JsonFields(fields)) = serde_json::from_str(key.get()) {
            check_once(&fields, "a key")?;
        }
    }
    Ok(())
}

fn check_once(fields: &[(Cow<'_, str>, &RawValue)], what: &str) -> Result<(), Problem> {
    let mut names: Vec<&str> = fields.iter().map(|(name, _)| &**name).collect();
    names.sort_unstable();
    match names.iter().zip(names.iter().skip(1)).find(|(one, next)| one == next) {
        None => Ok(()),
        Some((name, _)) => Err(Problem::invalid_definition(format!(
            "{what} has the field {} twice; give it once",
            quoted(name)
        ))),
    }
}

fn named<T: Copy, const N: usize>(
    value: &Value,
    all: [T; N],
    name: impl Fn(T) -> &'static str,
    rule: &'static str,
) -> Result<T, Problem> {
    let text = value.as_str();
    all.into_iter().find(|one| text == Some(name(*one))).ok_or_else(|| wrong(rule, value))
}

fn key(value: &Value) -> Result<KeyPatch, Problem> {
    let fields = value.as_object().ok_or_else(|| wrong(KEYS, value))?;
    check_fields(fields, &KEY_FIELDS, "a key")?;
    let name = given(fields, "name").and_then(Value::as_str);
    let name = name.ok_or_else(|| wrong("a key must have a name, which is a string", value))?;
    if name.chars().any(char::is_control) {
        return Err(wrong("a key's name must not have control characters, such as line breaks", value));
    }
    let order = |order: &Value| {
        let all = [Order::Ascending, Order::Descending];
        named(order, all, Order::name, "a key's order must be asc or desc")
    };
    let beyond = |beyond: &Value| {
        let all = [Beyond::Reject, Beyond::Clamp];
        named(beyond, all, Beyond::name, "a key's below_min and above_max must be reject or clamp")
    };
    Ok(KeyPatch {
        name: name.to_owned(),
        order: field(fields, "order", order)?,
        key_type: field(fields, "type", |key_type| {
            let all = [KeyType::Integer, KeyType::Float];
            named(key_type, all, KeyType::name, "a key's type must be integer or float")
        })?,
        min: field(fields, "min", bound)?,
        max: field(fields, "max", bound)?,
        below_min: field(fields, "below_min", beyond)?,
        above_max: field(fields, "above_max", beyond)?,
    })
}

/// A number of either type. Whether it is one of its key's, the definition says.
fn bound(value: &Value) -> Result<Number, Problem> {
    number_of(&value.to_string()).map_err(|_| {
        wrong("a key's min and max must be signed 64-bit integers, or their decimal strings", value)
    })
}

fn windows(value: &Value) -> Result<Vec<Window>, Problem> {
    let rule = "windows must be an array of one or more of all, hour, day, week, month and season, each at \
                most once";
    let wrong = || wrong(rule, value);
    let named = |name: &Value| name.as_str().and_then(Window::of_name);
    let windows = value.as_array().ok_or_else(wrong)?.iter().map(named);
    let windows: Vec<Window> = windows.collect::<Option<_>>().ok_or_else(wrong)?;
    let is_repeated = |(at, window): (usize, &Window)| windows.iter().take(at).any(|other| other == window);
    if windows.is_empty() || windows.iter().enumerate().any(is_repeated) {
        return Err(wrong());
    }
    Ok(windows)
}

fn seasons(value: &Value) -> Result<SeasonsPatch, Problem> {
    if value.as_str() == Some("manual") {
        return Ok(SeasonsPatch::Manual);
    }
    let rule =
        r#"season must be an object such as {"starts":"2026-11-02T00:00:00Z","every":"14d"}, or "manual""#;
    let fields = value.as_object().ok_or_else(|| wrong(rule, value))?;
    check_fields(fields, &SEASON_FIELDS, "season")?;
    let (starts, every) = (given(fields, "starts"), given(fields, "every"));
    if starts.or(every).is_none() {
        return Err(wrong(rule, value));
    }
    let begin = |starts: &Value| {
        starts.as_str().and_then(|starts| Timestamp::parse(starts).ok()).ok_or_else(|| {
            wrong("starts of season must be a time such as 2026-11-02T00:00:00Z, from 1970 to 2262", starts)
        })
    };
    Ok(SeasonsPatch::Regular {
        starts: starts.map(begin).transpose()?,
        every: every.map(|every| micros("every of season", every)).transpose()?,
    })
}

/// A length of time, in microseconds.
fn micros(name: &str, value: &Value) -> Result<i64, Problem> {
    value.as_str().and_then(length).ok_or_else(|| {
        let rule =
            "must be a string of a whole number and one of s, m, h, d and w, such as \"5m\" or \"30d\"";
        wrong(&format!("{name} {rule}"), value)
    })
}

/// `+09:00`, `-03:30`, `Z` in minutes.
pub fn offset_minutes(text: &str) -> Option<i16> {
    if text == "Z" {
        return Some(0);
    }
    let (sign, rest) = match text.split_at_checked(1)? {
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return None,
    };
    let (hours, minutes) = rest.split_once(':')?;
    let two_digits = |text: &str| text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
    if !two_digits(hours) || !two_digits(minutes) {
        return None;
    }
    let (hours, minutes): (i16, i16) = (hours.parse().ok()?, minutes.parse().ok()?);
    let total = hours * 60 + minutes;
    (minutes < 60 && total <= 18 * 60).then_some(sign * total)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::window::Seasons;

    /// The definition of a new board.
    fn parse(body: &[u8]) -> Result<Definition, Problem> {
        let definition = super::parse(body, &BoardName::new("arena").expect("a good name"))?.onto(None)?;
        definition.validate()?;
        Ok(definition)
    }

    fn changed(known: &Definition, body: &str) -> Definition {
        let patch = super::parse(body.as_bytes(), &BoardName::new("arena").expect("a good name"));
        patch.expect(body).onto(Some(known)).expect(body)
    }

    #[test]
    fn absent_fields_keep_their_value_and_null_is_the_default() {
        let known = parse(
            br#"{"keys":[{"name":"points","min":0,"max":9,"above_max":"clamp"},{"name":"t","order":"asc"}],
            "policy":"best","ties":"last","windows":["day","all","season"],
            "season":{"starts":"2026-11-02T00:00:00Z","every":"14d"},
            "utc_offset":"-03:30","keep":3,"grace":"90m","entry_ttl":"30d","capacity":1000,"movement":true}"#,
        )
        .expect("a definition");
        for nothing in ["", "{}", r#"{"board":"arena","totals":{"all":3}}"#] {
            assert_eq!(changed(&known, nothing), known, "{nothing}");
        }
        assert_eq!(changed(&known, r#"{"keep":5}"#), Definition { keep: 5, ..known.clone() });
        let defaults =
            changed(&known, r#"{"keep":null,"grace":null,"entry_ttl":null,"capacity":null,"policy":null}"#);
        let plain = Definition::default();
        assert_eq!(
            defaults,
            Definition {
                keep: plain.keep,
                grace_micros: plain.grace_micros,
                entry_ttl_micros: None,
                capacity: None,
                policy: Policy::Set,
                ..known.clone()
            }
        );
        let keys = changed(&known, r#"{"keys":[{"name":"points","max":null},{"name":"t","min":7}]}"#).keys;
        let [points, time] = &keys[..] else { panic!("two keys: {keys:?}") };
        assert_eq!((points.min, points.max, points.above_max), (0, i64::MAX, Beyond::Clamp));
        assert_eq!((time.order, time.min), (Order::Ascending, 7));
        let seasons = changed(&known, r#"{"season":{"every":"7d"}}"#).seasons;
        let begin = Timestamp::parse("2026-11-02T00:00:00Z").expect("a time");
        assert_eq!(seasons, Some(Seasons::regular(begin, 7 * 86_400_000_000)));
        // Windows that are there keep their order, and new ones come behind.
        let windows = changed(&known, r#"{"windows":["hour","all","day","season","week"]}"#).windows;
        assert_eq!(windows, [Window::Day, Window::All, Window::Season, Window::Hour, Window::Week]);
    }

    #[test]
    fn what_answers_show_beside_the_definition_is_accepted_and_nothing_else_is() {
        let shown = r#""board":"arena","totals":{"all":3},"instances":{"all":[]},"next_cursors":{},"token":"0:1",
            "as_of":"0:3","stale":true,"missing":[1]"#;
        let parsed = parse(format!(r#"{{{shown},"keep":3}}"#).as_bytes()).expect("an answer");
        assert_eq!(parsed, Definition { keep: 3, ..Definition::default() });
        for (bad, words) in [
            (r#""board":"other""#, "board must be arena, which the path names, or absent; got \"other\""),
            (r#""board":"arena","board":"arena""#, "board"),
            (r#""total":{"all":3}"#, "has no field \"total\"; the fields are keys, policy"),
            (r#""As_of":"0:3""#, "has no field \"As_of\""),
        ] {
            let problem = parse(format!("{{{bad}}}").as_bytes()).expect_err(bad);
            assert!(problem.detail().contains(words), "{bad}: {}", problem.detail());
        }
    }

    #[test]
    fn a_definition_reads_as_it_is_written() {
        let text = br#"{"keys":[{"name":"points","order":"desc","min":0,"max":"9223372036854775806"},
            {"name":"time_ms","order":"asc"}],"policy":"best","ties":"last","windows":["day","all","season"],
            "season":{"starts":"2026-11-02T09:00:00+09:00","every":"336h"},
            "utc_offset":"-03:30","keep":3,"grace":"90m","entry_ttl":"30d","capacity":1000,"movement":true}"#;
        let definition = parse(text).expect("all of it is supported");
        assert_eq!(definition.windows, [Window::Day, Window::All, Window::Season]);
        let begin = Timestamp::parse("2026-11-02T00:00:00Z").expect("a time");
        assert_eq!(definition.seasons, Some(Seasons::regular(begin, 14 * 86_400_000_000)));
        assert_eq!(
            (definition.grace_micros, definition.entry_ttl_micros),
            (5_400_000_000, Some(2_592_000_000_000))
        );
        let written = json(&definition);
        for part in [
            r#""windows":["day","all","season"],"season":{"starts":"2026-11-02T00:00:00Z","every":"2w"},"#,
            r#""keep":3,"grace":"90m","entry_ttl":"30d","capacity":1000,"movement":true,"kind":"ranking"}"#,
        ] {
            assert!(written.contains(part), "{written}");
        }
        let manual = parse(br#"{"windows":["season"],"season":"manual"}"#).expect("manual seasons");
        assert_eq!(manual.seasons, Some(Seasons::Manual(Vec::new())));
        assert!(json(&manual).contains(r#""season":"manual""#));
        assert_eq!(parse(json(&manual).as_bytes()).expect("what we write, we read"), manual);
        let plain = json(&Definition::default());
        let told = r#""windows":["all"],"season":null,"utc_offset":"+00:00","keep":12,"grace":"5m","entry_ttl":null,"#;
        assert!(plain.contains(told), "{plain}");
        assert_eq!(definition.utc_offset_minutes, -210);
        assert_eq!(definition.keys.iter().map(|key| key.max).collect::<Vec<_>>(), [i64::MAX - 1, i64::MAX]);
        assert_eq!(parse(json(&definition).as_bytes()).expect("what we write, we read"), definition);
        assert_eq!(parse(b" ").expect("no body"), Definition::default());
    }

    #[test]
    fn wrong_or_unsupported_fields_of_a_definition_are_refused_by_name() {
        for (text, code) in [
            ("", "ok"),
            ("{", "malformed"),
            ("[]", "invalid_definition"),
            (r#"{"key":[]}"#, "invalid_definition"),
            (r#"{"keys":[]}"#, "invalid_definition"),
            (r#"{"keys":[{"order":"asc"}]}"#, "invalid_definition"),
            (r#"{"keys":[{"name":"a"},{"name":"a"}]}"#, "invalid_definition"),
            (r#"{"keys":[{"name":"a","min":1.5}]}"#, "invalid_definition"),
            (r#"{"keys":[{"name":"a","min":2,"max":1}]}"#, "invalid_definition"),
            (r#"{"keys":[{"name":"a","order":"up"}]}"#, "invalid_definition"),
            (r#"{"policy":"best","policy":"set"}"#, "invalid_definition"),
            (r#"{"keys":[{"name":"a","name":"b"}]}"#, "invalid_definition"),
            (r#"{"keys":[{"name":"a\nb"}]}"#, "invalid_definition"),
            (r#"{"keys":[{"name":"a\u0000"}]}"#, "invalid_definition"),
            (r#"{"keys":[{"name":"a b"},{"name":"a"}]}"#, "ok"),
            (r#"{"policy":"worst"}"#, "invalid_definition"),
            (r#"{"ties":1}"#, "invalid_definition"),
            (r#"{"windows":[]}"#, "invalid_definition"),
            (r#"{"windows":["year"]}"#, "invalid_definition"),
            (r#"{"windows":["all","all"]}"#, "invalid_definition"),
            (r#"{"windows":["all",1]}"#, "invalid_definition"),
            (r#"{"windows":"day"}"#, "invalid_definition"),
            (r#"{"windows":["all","day"]}"#, "ok"),
            (r#"{"windows":["month","week","hour"]}"#, "ok"),
            (r#"{"windows":["hour","all"],"movement":true}"#, "ok"),
            (r#"{"movement":false}"#, "ok"),
            (r#"{"movement":true}"#, "invalid_definition"),
            (r#"{"windows":["hour"],"movement":true}"#, "invalid_definition"),
            (r#"{"windows":["hour","all"],"movement":"true"}"#, "invalid_definition"),
            (r#"{"windows":["season"]}"#, "invalid_definition"),
            (r#"{"season":"manual"}"#, "invalid_definition"),
            (r#"{"windows":["season"],"season":"manual"}"#, "ok"),
            (r#"{"windows":["season"],"season":"yearly"}"#, "invalid_definition"),
            (r#"{"windows":["season"],"season":{"starts":"2026-11-02T00:00:00Z"}}"#, "invalid_definition"),
            (
                r#"{"windows":["season"],"season":{"starts":"2026-11-02","every":"14d"}}"#,
                "invalid_definition",
            ),
            (
                r#"{"windows":["season"],"season":{"starts":"2026-11-02T00:00:00Z","every":"59s"}}"#,
                "invalid_definition",
            ),
            (
                r#"{"windows":["season"],"season":{"starts":"2026-11-02T00:00:00Z","every":14}}"#,
                "invalid_definition",
            ),
            (
                r#"{"windows":["season"],"season":{"starts":"2026-11-02T00:00:00Z","every":"60s","ends":1}}"#,
                "invalid_definition",
            ),
            (
                r#"{"windows":["season"],"season":{"every":"1d","starts":"2026-11-02T00:00:00Z","every":"60s"}}"#,
                "invalid_definition",
            ),
            (r#"{"grace":300}"#, "invalid_definition"),
            (r#"{"grace":"-5m"}"#, "invalid_definition"),
            (r#"{"grace":"0s"}"#, "ok"),
            (r#"{"grace":"36501d"}"#, "invalid_definition"),
            (r#"{"windows":["hour"],"grace":"416d"}"#, "ok"),
            (r#"{"windows":["hour"],"grace":"417d"}"#, "invalid_definition"),
            (r#"{"entry_ttl":"0s"}"#, "invalid_definition"),
            (r#"{"entry_ttl":"1.5h"}"#, "invalid_definition"),
            (r#"{"utc_offset":"+19:00"}"#, "invalid_definition"),
            (r#"{"utc_offset":"+9:00"}"#, "invalid_definition"),
            (r#"{"utc_offset":"é9:00"}"#, "invalid_definition"),
            (r#"{"keep":-1}"#, "invalid_definition"),
            (r#"{"keep":1001}"#, "invalid_definition"),
            (r#"{"entry_ttl":"30d"}"#, "ok"),
            (r#"{"capacity":10}"#, "ok"),
            (r#"{"kind":"ranking"}"#, "ok"),
            (r#"{"kind":"top_k","capacity":10}"#, "ok"),
            (r#"{"kind":"top_k","capacity":10,"policy":"incr","windows":["day"],"ties":"last"}"#, "ok"),
            (r#"{"kind":"top_k"}"#, "invalid_definition"),
            (r#"{"kind":"top_k","capacity":10,"policy":"set"}"#, "invalid_definition"),
            (r#"{"kind":"top_k","capacity":10,"policy":"best"}"#, "invalid_definition"),
            (r#"{"kind":"top_k","capacity":10,"ties":"member"}"#, "invalid_definition"),
            (r#"{"kind":"top_k","capacity":10,"entry_ttl":"1d"}"#, "invalid_definition"),
            (
                r#"{"kind":"top_k","capacity":10,"windows":["all","day"],"movement":true}"#,
                "invalid_definition",
            ),
            (r#"{"kind":"top_k","capacity":10,"keys":[{"name":"a"},{"name":"b"}]}"#, "invalid_definition"),
            (r#"{"kind":"top_k","capacity":10,"keys":[{"name":"a","order":"asc"}]}"#, "invalid_definition"),
            (r#"{"kind":"set"}"#, "invalid_definition"),
            (r#"{"capacity":null}"#, "ok"),
            (r#"{"capacity":0}"#, "invalid_definition"),
            (r#"{"capacity":-1}"#, "invalid_definition"),
            (r#"{"capacity":1.5}"#, "invalid_definition"),
            (r#"{"capacity":"10"}"#, "invalid_definition"),
            (r#"{"capacity":1000000000001}"#, "invalid_definition"),
        ] {
            let found = parse(text.as_bytes()).map_or_else(|problem| problem.code(), |_| "ok");
            assert_eq!(found, code, "{text}");
        }
    }

    #[test]
    fn what_is_refused_in_a_definition_is_said_with_its_value() {
        for (text, detail) in [
            (r#"{"policy":"worst"}"#, "policy must be set, best or incr; got \"worst\""),
            (r#"{"keys":[{"name":"a","min":1.5}]}"#, "or their decimal strings; got 1.5"),
            (r#"{"keys":[{"name":"a","min":2,"max":1}]}"#, "; a has min 2 and max 1"),
            (r#"{"keep":1001}"#, "keep must be 0 to 1000; got 1001"),
            (r#"{"windows":["year"]}"#, "each at most once; got [\"year\"]"),
            (
                r#"{"grace":"5 minutes"}"#,
                "grace must be a string of a whole number and one of s, m, h, d and w",
            ),
            (r#"{"windows":["hour"],"grace":"417d"}"#, "10000 instances of a window open, which are 10000h"),
            (r#"{"windows":["season"],"season":"none"}"#, r#""every":"14d"}, or "manual"; got "none""#),
            (r#"{"windows":["season"]}"#, "the window season needs the field season"),
            (r#"{"kind":"top_k"}"#, "a board of the kind top_k has a capacity, which is how many members"),
            (r#"{"key":[]}"#, "a board has no field \"key\"; the fields are keys"),
            ("{", "the body is not JSON: it ends too early"),
        ] {
            let problem = parse(text.as_bytes()).expect_err(text);
            assert!(problem.detail().contains(detail), "{text}: {}", problem.detail());
        }
    }
}
