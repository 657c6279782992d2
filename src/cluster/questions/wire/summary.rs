//! Questions for summaries of trees, and the summaries.
//!
//! The questions have a format of their own, within which is a question as any other. So a node that does not
//! know summaries refuses them in words, and answers all others.

use std::sync::Arc;

use bincode::{BorrowDecode, Encode};

use crate::cluster::questions::wire::counterparts::WordsWire;
use crate::cluster::questions::wire::question::{AskedQuestion, decode_question, encode_question};
use crate::cluster::questions::wire::{QUESTION_BYTES_MAX, Undecodable, body_of, undecodable};
use crate::query::summary::{SharedScore, Summary, SummaryReply};
use crate::tree::MAX_WORDS;

/// Far from the formats of questions, and beside those of trims and profiles.
pub const SUMMARY_FORMAT: u8 = 110;

/// # Errors
/// When it takes too many bytes.
pub fn encode_question_of_summary(asked: &AskedQuestion<'_>) -> Result<Vec<u8>, Undecodable> {
    let mut bytes = vec![SUMMARY_FORMAT];
    bytes.extend(encode_question(asked)?);
    Ok(bytes)
}

/// # Errors
/// When the bytes are no such question.
pub fn decode_question_of_summary(bytes: &[u8]) -> Result<AskedQuestion<'_>, Undecodable> {
    decode_question(body_of(SUMMARY_FORMAT, bytes, QUESTION_BYTES_MAX + 1)?)
}

#[derive(Encode, BorrowDecode)]
pub enum SummaryWire<'a> {
    Made {
        total: u64,
        score_words: u8,
        columns: u8,
        /// By how much the index of each mark is above that of the mark before.
        steps: Vec<u64>,
        /// By how much each word is above that of the mark before, in the same column, wrapping.
        words: Vec<i64>,
        id_lengths: Vec<u8>,
        ids: &'a [u8],
        shared: Vec<(WordsWire, u64, u64)>,
    },
    Unchanged,
    Over,
}

impl<'a> SummaryWire<'a> {
    pub fn of(reply: &'a SummaryReply) -> Self {
        let summary = match reply {
            SummaryReply::Made(summary) => summary,
            SummaryReply::Unchanged => return Self::Unchanged,
            SummaryReply::Over => return Self::Over,
        };
        let Summary { total, score_words, columns, before, words, id_ends, ids, shared } = &**summary;
        let indexes = std::iter::once(&0).chain(before);
        let ends = std::iter::once(&0).chain(id_ends);
        let first = std::iter::repeat_n(&0, *columns);
        Self::Made {
            total: *total,
            score_words: u8::try_from(*score_words).unwrap_or(u8::MAX),
            columns: u8::try_from(*columns).unwrap_or(u8::MAX),
            steps: before.iter().zip(indexes).map(|(at, last)| at.wrapping_sub(*last)).collect(),
            words: words
                .iter()
                .zip(first.chain(words))
                .map(|(word, above)| word.wrapping_sub(*above).cast_signed())
                .collect(),
            id_lengths: id_ends
                .iter()
                .zip(ends)
                .map(|(end, begin)| u8::try_from(end.wrapping_sub(*begin)).unwrap_or(u8::MAX))
                .collect(),
            ids,
            shared: shared
                .iter()
                .map(|shared| (WordsWire(shared.score), shared.better, shared.through))
                .collect(),
        }
    }

    /// The summary still has to be checked ([`Summary::is_consistent`]).
    pub fn read(self) -> Result<SummaryReply, Undecodable> {
        let (total, score_words, columns, steps, words, id_lengths, ids, shared) = match self {
            Self::Unchanged => return Ok(SummaryReply::Unchanged),
            Self::Over => return Ok(SummaryReply::Over),
            Self::Made { total, score_words, columns, steps, words, id_lengths, ids, shared } => {
                (total, score_words, columns, steps, words, id_lengths, ids, shared)
            }
        };
        let columns = usize::from(columns);
        if columns > MAX_WORDS {
            return Err(undecodable("its entries have too many words"));
        }
        let (mut index, mut end) = (0_u64, 0_u32);
        let mut above = [0_u64; MAX_WORDS];
        let columns_of = (0..columns.max(1)).cycle();
        let word = |(step, column): (i64, usize)| {
            let above = above.get_mut(column)?;
            *above = above.wrapping_add(step.cast_unsigned());
            Some(*above)
        };
        let summary = Summary {
            total,
            score_words: usize::from(score_words),
            columns,
            words: words.into_iter().zip(columns_of).filter_map(word).collect(),
            before: steps
                .into_iter()
                .map(|step| {
                    index = index.wrapping_add(step);
                    index
                })
                .collect(),
            id_ends: id_lengths
                .into_iter()
                .map(|length| {
                    end = end.wrapping_add(length.into());
                    end
                })
                .collect(),
            ids: ids.to_vec(),
            shared: shared
                .into_iter()
                .map(|(score, better, through)| SharedScore { score: score.0, better, through })
                .collect(),
        };
        Ok(SummaryReply::Made(Arc::new(summary)))
    }
}
