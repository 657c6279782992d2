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
            Self::MetaPart(name) => format!("meta.{name}"),
            Self::ProfilePart(name) => format!("profile.{name}"),
        }
    }

    /// The first of the sample's cells because of which the field is not read unasked. Where most are times,
    /// they are, and the row of a mistyped one is refused: left out, all would count as of now.
    ///
    /// # Arguments
    /// `cells`: each with whether it fits.
    pub fn unfit<T>(&self, cells: impl Iterator<Item = (bool, T)>) -> Option<T> {
        let (fits, others): (Vec<_>, Vec<_>) = cells.partition(|(fits, _)| *fits);
        let are_times = *self == Self::At && fits.len() > others.len();
        others.into_iter().next().map(|(_, cell)| cell).filter(|_| !are_times)
    }
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
