//! Which board a key is, and whether its entries are those of a sorted set.
//!
//! A key is the board of its name. `arena@week` is the current instance of a window, or an instance, of the
//! board `arena` if that has windows beside `all` and this one, unless there is a board whose name is all of
//! that: it can be read, and not written to.

use std::sync::Arc;

use crate::board::{Definition, Order, Policy};
use crate::job::Compare;
use crate::operations::Operations;
use crate::query::{InstanceAsked, WindowChoice};
use crate::redis::commands::Add;
use crate::redis::refused::Refused;
use crate::types::{BoardName, MemberId};

/// What stands between a board's name and a window's.
const WINDOW_MARK: char = '@';

/// A board, or an instance of one of its windows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoardKey {
    pub board: BoardName,
    pub choice: WindowChoice,
    /// `None`: there is no such board.
    pub definition: Option<Arc<Definition>>,
}

impl BoardKey {
    /// # Errors
    /// When the key is no board's name.
    pub fn of(operations: &Operations, key: &[u8]) -> Result<Self, Refused> {
        let text = str::from_utf8(key).map_err(|_| {
            Refused::new("ERR a key is a board's name here, of printable ASCII, and this one is not UTF-8")
        })?;
        let name = |text: &str| {
            BoardName::new(text)
                .map_err(|why| Refused::new(format!("ERR a key is a board's name here: {}", why.got(text))))
        };
        let defined = |name: &str| operations.registry.get(name).map(|known| known.definition);
        let board = name(text)?;
        if let Some(definition) = defined(text) {
            return Ok(Self { board, choice: WindowChoice::Default, definition: Some(definition) });
        }
        if let Some((of, window)) = text.rsplit_once(WINDOW_MARK)
            && let Some(choice) = WindowChoice::of_name(window)
            && let Some(definition) = defined(of)
            && has_window(&definition, choice)
        {
            return Ok(Self { board: name(of)?, choice, definition: Some(definition) });
        }
        Ok(Self { board, choice: WindowChoice::Default, definition: None })
    }

    pub fn instance(&self, operations: &Operations) -> InstanceAsked {
        InstanceAsked { choice: self.choice, now: operations.now() }
    }

    /// # Errors
    /// When it is a window's instance.
    pub fn check_writable(&self) -> Result<(), Refused> {
        if self.choice == WindowChoice::Default {
            return Ok(());
        }
        let why = format!(
            "has a window of this name, which is read only: write to {}, and each score enters its windows",
            self.board
        );
        Err(Refused::other_board(self.board.as_str(), &why))
    }
}

/// Whether a board has a window that may be chosen. What has no others has no name for `all` either: each
/// `@` would take names from keys.
fn has_window(definition: &Definition, choice: WindowChoice) -> bool {
    let window = match choice {
        WindowChoice::Current(window) => window,
        WindowChoice::Named(instance) => instance.window,
        WindowChoice::Default | WindowChoice::Every => return false,
    };
    !definition.has_only_all() && definition.windows.contains(&window)
}

/// # Errors
/// When it is no member's id.
pub fn member(id: &[u8]) -> Result<MemberId, Refused> {
    let text =
        str::from_utf8(id).map_err(|_| Refused::new("ERR a member must be UTF-8, and this one is not"))?;
    MemberId::new(text).map_err(|why| Refused::new(format!("ERR {}", why.got(text))))
}

/// How the entries of a board are a sorted set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// The best scores are the greatest, so that the board's positions are those of `ZREVRANGE`.
    pub best_is_greatest: bool,
}

impl Shape {
    /// # Errors
    /// When the board's entries have no single score.
    pub fn of(board: &BoardName, definition: &Definition) -> Result<Self, Refused> {
        let [key] = &definition.keys[..] else {
            let why =
                format!("has {} keys: commands for sorted sets need a board of one", definition.keys.len());
            return Err(Refused::other_board(board.as_str(), &why));
        };
        if definition.is_top_k() {
            return Err(Refused::other_board(
                board.as_str(),
                "is of the kind top_k, whose scores are estimates",
            ));
        }
        Ok(Self { best_is_greatest: key.order == Order::Descending })
    }
}

/// # Errors
/// When the board's policy is another than what is asked for.
pub fn check_policy(board: &BoardName, definition: &Definition, add: &Add<'_>) -> Result<(), Refused> {
    let [key] = &definition.keys[..] else { return Ok(()) };
    let keeps_best = match key.order {
        Order::Descending => Compare::Greater,
        Order::Ascending => Compare::Less,
    };
    let why = match definition.policy {
        Policy::Best if add.increment || add.compare != keeps_best => {
            format!(
                "keeps the best score (policy best): use ZADD with {}",
                if keeps_best == Compare::Greater { "GT" } else { "LT" }
            )
        }
        Policy::Incr if !add.increment => "adds scores up (policy incr): use ZINCRBY".to_owned(),
        _ => return Ok(()),
    };
    Err(Refused::other_board(board.as_str(), &why))
}
