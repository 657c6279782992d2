//! `--column FIELD=NAME`: which field of a job comes from which column of a file.

use crate::cli::import::ImportError;

/// A field of a job, as `--column` names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Field {
    Board,
    Member,
    Score,
    At,
    Version,
    Meta,
    /// What the row does.
    Op,
    /// That its member is not shown.
    Hidden,
    /// One field of the metadata.
    MetaPart(String),
    /// One field of the member's profile.
    ProfilePart(String),
}

impl Field {
    fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "board" => Self::Board,
            "member" => Self::Member,
            "score" => Self::Score,
            "at" => Self::At,
            "version" => Self::Version,
            "meta" => Self::Meta,
            "op" => Self::Op,
            "hidden" => Self::Hidden,
            _ => {
                let (object, name) = text.split_once('.')?;
                let name = Some(name.to_owned()).filter(|name| !name.is_empty())?;
                match object {
                    "meta" => Self::MetaPart(name),
                    "profile" => Self::ProfilePart(name),
                    _ => return None,
                }
            }
        })
    }

    /// As `--column` has it.
    pub fn name(&self) -> String {
        match self {
            Self::Board => "board".to_owned(),
            Self::Member => "member".to_owned(),
            Self::Score => "score".to_owned(),
            Self::At => "at".to_owned(),
            Self::Version => "version".to_owned(),
            Self::Meta => "meta".to_owned(),
            Self::Op => "op".to_owned(),
            Self::Hidden => "hidden".to_owned(),
            Self::MetaPart(name) => format!("meta.{name}"),
            Self::ProfilePart(name) => format!("profile.{name}"),
        }
    }

    /// Whether the field is read unasked of a sample's cells. Where most are times, they are, and the row of
    /// a mistyped one is refused: left out, all would count as of now.
    ///
    /// # Arguments
    /// `cells`: each with whether it fits.
    pub fn unasked<T>(&self, cells: impl Iterator<Item = (Fits, T)>) -> Unasked<T> {
        let (mut read, mut times, mut others) = (0, 0, 0);
        let (mut unfit, mut other_time) = (None, None);
        for (fits, cell) in cells {
            match fits {
                Fits::Yes => read += 1,
                Fits::OtherTime => {
                    times += 1;
                    other_time.get_or_insert(cell);
                }
                Fits::No => {
                    others += 1;
                    unfit.get_or_insert(cell);
                }
            }
        }
        let are_times = *self == Self::At && read > times + others;
        match (other_time, unfit) {
            _ if are_times => Unasked::Read,
            (Some(cell), _) if read + times > others => Unasked::OtherTimes(cell),
            (Some(cell), _) | (None, Some(cell)) => Unasked::LeftOut(cell),
            (None, None) => Unasked::Read,
        }
    }
}

/// Whether a cell could be of a field that nobody asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fits {
    Yes,
    No,
    /// It is a time that is written otherwise than those that are read.
    OtherTime,
}

impl From<bool> for Fits {
    fn from(fits: bool) -> Self {
        if fits { Self::Yes } else { Self::No }
    }
}

/// What becomes of a field that nobody asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unasked<T> {
    Read,
    /// Because of this cell.
    LeftOut(T),
    /// It has times, such as this one, and an option is to say how they are read.
    OtherTimes(T),
}

/// What `--column` says of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked<'a> {
    /// Nothing: it is read from a column of its own name, if that fits.
    No,
    /// It is not read.
    Off,
    From(&'a str),
}

/// All that `--column` says, in order.
#[derive(Debug, Clone, Default)]
pub struct ColumnNames(Vec<(Field, String)>);

impl ColumnNames {
    /// # Errors
    /// When an argument is not of the form, or names a field twice that is but one.
    pub fn from_arguments(arguments: &[String]) -> Result<Self, ImportError> {
        let mut names: Vec<(Field, String)> = Vec::new();
        for argument in arguments {
            let parsed = argument
                .split_once('=')
                .and_then(|(field, name)| Some((Field::parse(field.trim())?, name.trim().to_owned())));
            let (field, name) = parsed.ok_or_else(|| ImportError::ColumnArgument(argument.clone()))?;
            let is_again = names.iter().any(|(known, other)| {
                *known == field && (field != Field::Score || name.is_empty() || other.is_empty())
            });
            if name.is_empty() && matches!(field, Field::Board | Field::Member) {
                return Err(ImportError::ColumnOff(field.name()));
            }
            if is_again {
                return Err(ImportError::ColumnTwice(field.name()));
            }
            names.push((field, name));
        }
        let has = |wanted: &Field| names.iter().any(|(field, name)| field == wanted && !name.is_empty());
        if has(&Field::Meta) && names.iter().any(|(field, _)| matches!(field, Field::MetaPart(_))) {
            return Err(ImportError::ColumnTwice("meta".to_owned()));
        }
        Ok(Self(names))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Of a field that is one column.
    pub fn of(&self, field: &Field) -> Asked<'_> {
        match self.0.iter().find(|(known, _)| known == field) {
            None => Asked::No,
            Some((_, name)) if name.is_empty() => Asked::Off,
            Some((_, name)) => Asked::From(name),
        }
    }

    /// The columns of the keys of a score, in order; none: its own name.
    pub fn scores(&self) -> Vec<&str> {
        let of_score = self.0.iter().filter(|(field, name)| *field == Field::Score && !name.is_empty());
        of_score.map(|(_, name)| name.as_str()).collect()
    }

    /// The fields of metadata and profiles, each with its column.
    pub fn parts(&self) -> impl Iterator<Item = (&Field, &str)> {
        let is_part = |field: &Field| matches!(field, Field::MetaPart(_) | Field::ProfilePart(_));
        let parts = self.0.iter().filter(move |(field, name)| is_part(field) && !name.is_empty());
        parts.map(|(field, name)| (field, name.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_of_times_is_read_or_asked_about_and_one_of_something_else_is_left_out() {
        use Fits::{No, OtherTime, Yes};
        for (cells, expect) in [
            (&[][..], Unasked::Read),
            (&[Yes, Yes, No], Unasked::Read),
            (&[Yes, Yes, OtherTime], Unasked::Read),
            (&[Yes, No], Unasked::LeftOut(1)),
            (&[No, OtherTime, OtherTime], Unasked::OtherTimes(1)),
            (&[Yes, OtherTime], Unasked::OtherTimes(1)),
            (&[No, No, OtherTime], Unasked::LeftOut(2)),
        ] {
            assert_eq!(Field::At.unasked(cells.iter().copied().zip(0..)), expect, "{cells:?}");
        }
        assert_eq!(Field::Version.unasked([(Yes, 0), (Yes, 1), (No, 2)].into_iter()), Unasked::LeftOut(2));
    }
}
