//! Query parameters: each known, each once, each well-formed, or a problem that says which is not.

use std::borrow::Cow;
use std::str::FromStr;
use std::time::Duration;

use percent_encoding::percent_decode_str;

use crate::http::render::problem::Problem;
use crate::operations::{OutcomeDetail, Wait, WriteOptions};
use crate::query::{EVERY, WindowChoice};
use crate::types::{AsOf, BoardName, MemberId, Number, quoted};
use crate::window::Window;
use crate::wire::lenient::parse_number;

/// How long `after` waits when `timeout_ms` does not say.
pub const TIMEOUT_MS: u64 = 5_000;
/// The longest that `after` may wait.
pub const TIMEOUT_MS_MAX: u64 = 60_000;
/// The parameters of [`Params::write_options`].
pub const WRITES: [&str; 2] = ["wait", "results"];
/// The parameters that every read takes.
const READS: [&str; 6] = ["window", "after", "timeout_ms", "partial", "profile", "accuracy"];
const WINDOW_RULE: &str = "window must be all, hour, day, week, month or season, or the name of an instance such as \
                           2026-11-20T09, 2026-11-20, 2026-W47, 2026-11 or s7";
const WINDOWS_RULE: &str = "windows must be * or names joined by commas, each all, hour, day, week, month or season, or \
                            the name of an instance such as 2026-11-20";
/// The most windows and instances that one request names.
pub const WINDOWS_MAX: usize = 64;
const MOVEMENT_RULE: &str =
    "movement must be hour, day, week, month or season: the window since whose current instance it is";
/// More parameters than any route has.
const PARAMETERS_MAX: usize = 16;

/// A query string, decoded.
#[derive(Debug, Default)]
pub struct Params<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'a> Params<'a> {
    /// # Errors
    /// When a name is not in `known` or comes twice, or something is not UTF-8.
    pub fn parse(query: Option<&'a str>, known: &[&str]) -> Result<Self, Problem> {
        let mut params: Vec<(Cow<'a, str>, Cow<'a, str>)> = Vec::new();
        for pair in query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (name, value) = (decode(name)?, decode(value)?);
            if !known.contains(&name.as_ref()) {
                return Err(Problem::bad_parameter(format!(
                    "there is no parameter {} here; the parameters are: {}",
                    quoted(&name),
                    if known.is_empty() { "none".to_owned() } else { known.join(", ") }
                )));
            }
            if params.iter().any(|(other, _)| *other == name) || params.len() == PARAMETERS_MAX {
                return Err(Problem::bad_parameter(format!("{name} is given twice")));
            }
            params.push((name, value));
        }
        Ok(Self(params))
    }

    /// As [`Params::parse`] for a read, which also takes `window`, `after`, `timeout_ms`, `partial`,
    /// `profile` and `accuracy`. These are checked here; the caller waits for `after` and minds the last
    /// three.
    ///
    /// # Errors
    pub fn parse_read(query: Option<&'a str>, known: &[&str]) -> Result<Self, Problem> {
        // Most reads have no query: they need no list of known parameters.
        if query.is_none_or(str::is_empty) {
            return Ok(Self::default());
        }
        let all: Vec<&str> = known.iter().chain(&READS).copied().collect();
        let params = Self::parse(query, &all)?;
        params.window()?;
        // As above: the caller does what it says.
        params.flag("partial")?;
        params.flag("profile")?;
        params.accuracy()?;
        Ok(params)
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_ref())
    }

    /// As [`Params::get`]; an empty value is none.
    pub fn given(&self, name: &str) -> Option<&str> {
        self.get(name).filter(|text| !text.is_empty())
    }

    pub fn flag(&self, name: &str) -> Result<bool, Problem> {
        match self.get(name) {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(other) => Err(invalid_value(&format!("{name} must be true or false"), other)),
        }
    }

    /// A number; `None` if it is absent.
    pub fn number<N: FromStr>(&self, name: &str) -> Result<Option<N>, Problem> {
        let Some(text) = self.get(name) else { return Ok(None) };
        number(text).map(Some).ok_or_else(|| invalid_value(&format!("{name} must be a whole number"), text))
    }

    /// A bound of the first key; `None` if it is absent or empty.
    pub fn bound(&self, name: &str) -> Result<Option<Number>, Problem> {
        let Some(text) = self.given(name) else { return Ok(None) };
        let read = parse_number(text).map_err(|why| {
            let of_one_key = if text.contains(',') {
                format!("; it is a bound of the first key only, for example {name}=1200")
            } else {
                String::new()
            };
            Problem::bad_score(format!("{name}: {why}{of_one_key}"))
        });
        read.map(Some)
    }

    /// A number from `least` to `most`.
    pub fn bounded(&self, name: &str, default: u64, least: u64, most: u64) -> Result<u64, Problem> {
        let value = self.number(name)?.unwrap_or(default);
        if value > most {
            return Err(Problem::over_limit(format!("{name} must be at most {most}; got {value}")));
        }
        if value < least {
            return Err(Problem::bad_parameter(format!("{name} must be at least {least}; got {value}")));
        }
        Ok(value)
    }

    /// Which instance of a board is asked for.
    ///
    /// # Errors
    /// When it is neither a window's name nor an instance's.
    pub fn window(&self) -> Result<WindowChoice, Problem> {
        let Some(text) = self.get("window") else { return Ok(WindowChoice::Default) };
        WindowChoice::of_name(text).ok_or_else(|| invalid_value(WINDOW_RULE, text))
    }

    /// The windows and instances in which a member's entry is asked for, each with the name that it was asked
    /// by. `None`: not asked. Empty: all of them.
    ///
    /// # Errors
    /// When one is neither a window's name nor an instance's, or there are too many, or also one `window`.
    pub fn windows(&self) -> Result<Option<Vec<(String, WindowChoice)>>, Problem> {
        let Some(text) = self.given("windows") else { return Ok(None) };
        if self.get("window").is_some() {
            return Err(Problem::bad_parameter("window and windows are both given; give one of them"));
        }
        if text == EVERY {
            return Ok(Some(Vec::new()));
        }
        let mut windows: Vec<(String, WindowChoice)> = Vec::new();
        for name in text.split(',') {
            let choice = WindowChoice::of_name(name).ok_or_else(|| invalid_value(WINDOWS_RULE, name))?;
            if !windows.iter().any(|(_, known)| *known == choice) {
                windows.push((name.to_owned(), choice));
            }
        }
        if windows.len() > WINDOWS_MAX {
            return Err(Problem::over_limit(format!(
                "at most {WINDOWS_MAX} windows are allowed at a time; got {}",
                windows.len()
            )));
        }
        Ok(Some(windows))
    }

    /// The window since whose current instance entries' movement is asked for.
    ///
    /// # Errors
    /// When it is no window's name, or `all`.
    pub fn movement(&self) -> Result<Option<Window>, Problem> {
        let Some(text) = self.get("movement") else { return Ok(None) };
        let window = Window::of_name(text).filter(|window| *window != Window::All);
        window.map(Some).ok_or_else(|| invalid_value(MOVEMENT_RULE, text))
    }

    /// How long a write waits, and how detailed its answer is.
    ///
    /// # Arguments
    /// `wait`: what it is if the request does not say.
    ///
    /// # Errors
    /// When a parameter is not as it should be.
    pub fn write_options(&self, wait: Wait) -> Result<WriteOptions, Problem> {
        let detail = match self.get("results") {
            None => OutcomeDetail::Rankings,
            Some("changed") => OutcomeDetail::Changed,
            Some(other) => return Err(invalid_value("results must be changed", other)),
        };
        let wait = match self.get("wait") {
            None => wait,
            Some("applied") => Wait::UntilApplied,
            Some(other) => return Err(invalid_value("wait must be applied", other)),
        };
        Ok(WriteOptions { wait, detail })
    }

    /// The token of `after`, and how long to wait for it.
    pub fn after(&self) -> Result<Option<(AsOf, Duration)>, Problem> {
        let timeout = self.bounded("timeout_ms", TIMEOUT_MS, 0, TIMEOUT_MS_MAX)?;
        let Some(token) = self.get("after") else { return Ok(None) };
        let parsed = AsOf::parse(token).map_err(|why| Problem::malformed_text(&why, token))?;
        Ok(Some((parsed, Duration::from_millis(timeout))))
    }
}

/// The values of a parameter that are joined by commas, without empty ones. A comma within a value is
/// percent-encoded.
///
/// # Errors
/// When a value, decoded, is not UTF-8.
pub fn list_of(query: Option<&str>, name: &str) -> Result<Vec<String>, Problem> {
    let pairs = query.unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
    let mut found = Vec::new();
    for (_, values) in pairs.filter(|(known, _)| *known == name) {
        for value in values.split(',').filter(|value| !value.is_empty()) {
            found.push(decode(value)?.into_owned());
        }
    }
    Ok(found)
}

/// A board's name in a parameter.
pub fn board_name(text: &str) -> Result<BoardName, Problem> {
    BoardName::new(text).map_err(|why| Problem::malformed_text(&why, text))
}

/// A member's id in a parameter.
pub fn member_id(text: &str) -> Result<MemberId, Problem> {
    MemberId::new(text).map_err(|why| Problem::malformed_text(&why, text))
}

/// A parameter's value is not what it should be.
pub fn invalid_value(rule: &str, found: &str) -> Problem {
    Problem::bad_parameter(format!("{rule}; got {}", quoted(found)))
}

/// Digits, and a minus sign where the type has one; never a plus sign.
pub fn number<N: FromStr>(text: &str) -> Option<N> {
    if text.starts_with('+') { None } else { text.parse().ok() }
}

fn decode(text: &str) -> Result<Cow<'_, str>, Problem> {
    if !text.contains(['%', '+']) {
        return Ok(Cow::Borrowed(text));
    }
    let spaced = text.replace('+', " ");
    let decoded = percent_decode_str(&spaced).decode_utf8();
    let decoded = decoded.map_err(|_| Problem::bad_parameter("the query, percent-decoded, is not UTF-8"))?;
    Ok(Cow::Owned(decoded.into_owned()))
}
