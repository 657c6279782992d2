//! What both questions and replies consist of: lives of boards, words, and places in the order.

use bincode::de::{BorrowDecoder, Decoder};
use bincode::enc::Encoder;
use bincode::error::{DecodeError, EncodeError};
use bincode::{BorrowDecode, Decode, Encode};

use crate::cluster::questions::wire::{Undecodable, undecodable};
use crate::query::question::{BoardLife, LifeOnShard, Mark, SortKey};
use crate::state::Incarnation;
use crate::tree::{MAX_WORDS, Words};
use crate::types::BoardName;

#[derive(Encode, BorrowDecode)]
pub struct LifeWire<'a> {
    board: &'a str,
    incarnation: u64,
}

impl<'a> LifeWire<'a> {
    pub fn of(life: &'a BoardLife) -> Self {
        Self { board: life.board.as_str(), incarnation: life.incarnation.0 }
    }

    pub fn read(&self) -> Result<BoardLife, Undecodable> {
        let board = BoardName::of_shard(self.board).map_err(undecodable)?;
        Ok(BoardLife { board, incarnation: Incarnation(self.incarnation) })
    }
}

/// Words by their distance from 2^63.
#[derive(Clone, Copy)]
pub struct WordsWire(pub Words);

impl Encode for WordsWire {
    fn encode<E: Encoder>(&self, encoder: &mut E) -> Result<(), EncodeError> {
        let words = self.0.as_slice();
        u8::try_from(words.len()).unwrap_or(u8::MAX).encode(encoder)?;
        words.iter().try_for_each(|word| (word ^ (1 << 63)).cast_signed().encode(encoder))
    }
}

impl<C> Decode<C> for WordsWire {
    fn decode<D: Decoder<Context = C>>(decoder: &mut D) -> Result<Self, DecodeError> {
        let mut words = Words::new();
        for _ in 0..u8::decode(decoder)? {
            if words.as_slice().len() == MAX_WORDS {
                return Err(DecodeError::Other("an entry has too many words"));
            }
            words.push(i64::decode(decoder)?.cast_unsigned() ^ (1 << 63));
        }
        Ok(Self(words))
    }
}

impl<'de, C> BorrowDecode<'de, C> for WordsWire {
    fn borrow_decode<D: BorrowDecoder<'de, Context = C>>(decoder: &mut D) -> Result<Self, DecodeError> {
        Self::decode(decoder)
    }
}

#[derive(Clone, Copy, Encode, BorrowDecode)]
pub struct KeyWire<'a> {
    words: WordsWire,
    member: &'a [u8],
}

impl<'a> KeyWire<'a> {
    pub fn of(key: &SortKey<'a>) -> Self {
        Self { words: WordsWire(key.words), member: key.member }
    }

    pub fn read(self) -> SortKey<'a> {
        SortKey { words: self.words.0, member: self.member }
    }
}

#[derive(Clone, Copy, Encode, BorrowDecode)]
pub enum MarkWire<'a> {
    Score(WordsWire),
    Entry(KeyWire<'a>),
}

impl<'a> MarkWire<'a> {
    pub fn of(mark: &Mark<'a>) -> Self {
        match mark {
            Mark::Score(words) => Self::Score(WordsWire(*words)),
            Mark::Entry(key) => Self::Entry(KeyWire::of(key)),
        }
    }

    pub fn read(self) -> Mark<'a> {
        match self {
            Self::Score(words) => Mark::Score(words.0),
            Self::Entry(key) => Mark::Entry(key.read()),
        }
    }
}

#[derive(Clone, Copy, Encode, Decode)]
pub enum LifeOnShardWire {
    NotYet,
    Here,
    Over,
}

impl LifeOnShardWire {
    pub fn of(life: LifeOnShard) -> Self {
        match life {
            LifeOnShard::NotYet => Self::NotYet,
            LifeOnShard::Here => Self::Here,
            LifeOnShard::Over => Self::Over,
        }
    }

    pub fn read(self) -> LifeOnShard {
        match self {
            Self::NotYet => LifeOnShard::NotYet,
            Self::Here => LifeOnShard::Here,
            Self::Over => LifeOnShard::Over,
        }
    }
}
