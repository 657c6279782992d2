//! Summaries of trees.

use std::sync::Arc;

use bincode::{BorrowDecode, Encode};

use crate::cluster::questions::wire::counterparts::WordsWire;
use crate::cluster::questions::wire::{Undecodable, undecodable};
use crate::query::summary::{SharedScore, Summary, SummaryReply};
use crate::tree::MAX_WORDS;

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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::cluster::questions::wire::{
        AskedQuestion, decode_question, decode_reply, encode_question, encode_reply,
    };
    use crate::query::question::{BoardLife, Question, Reply, ShardReply, is_consistent};
    use crate::query::summary::KnownSummary;
    use crate::state::Incarnation;
    use crate::tree::Words;
    use crate::types::{BoardName, Sequence};

    fn question() -> AskedQuestion<'static> {
        let board = BoardName::new("a").expect("a good name");
        let board = BoardLife { board, incarnation: Incarnation(7) };
        let known = KnownSummary { sequence: Sequence(300), hash: 0x0123_4567_89ab_cdef };
        let question = Question::Summary { board, known: Some(known) };
        AskedQuestion { question, least: Sequence(0), wait_ms: 500, may_be_behind: false, profiles: false }
    }

    /// Marks at 0, 1, 5 and 9 of ten entries, two words each.
    fn summary() -> Summary {
        let words = [865, 300, 100, -7].into_iter().zip(1_u64..);
        Summary {
            total: 10,
            score_words: 1,
            columns: 2,
            before: vec![0, 1, 5, 9],
            words: words.flat_map(|(score, tie)| [(1_u64 << 63).wrapping_add_signed(-score), tie]).collect(),
            id_ends: vec![1, 3, 3, 9],
            ids: "m77日本".as_bytes().to_vec(),
            shared: vec![SharedScore { score: Words::from_slice(&[(1 << 63) - 100]), better: 2, through: 8 }],
        }
    }

    fn reply(summary: SummaryReply) -> ShardReply {
        ShardReply { sequence: Sequence(1_842), is_live: true, reply: Reply::Summary(summary) }
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"))
    }

    #[test]
    fn the_bytes_are_fixed_and_read_back() {
        let asked = question();
        let bytes = encode_question(&asked).expect("it is small");
        assert_eq!(hex(&bytes), "0100fbf40100000801610701fb2c01fdefcdab8967452301");
        assert_eq!(decode_question(&bytes).as_ref(), Ok(&asked));
        let summary = Arc::new(summary());
        assert!(summary.is_consistent());
        for (each, expected) in [
            (SummaryReply::Made(summary), "made"),
            (SummaryReply::Unchanged, "01fb320701080100"),
            (SummaryReply::Over, "01fb320701080200"),
        ] {
            let reply = reply(each);
            let bytes = encode_reply(&mut reply.clone()).expect("it is small");
            if expected != "made" {
                assert_eq!(hex(&bytes), expected);
            }
            assert_eq!(decode_reply(&bytes).as_ref(), Ok(&reply));
            assert!(is_consistent(&asked.question, &reply.reply));
            assert!((0..bytes.len()).all(|length| decode_reply(bytes.get(..length).unwrap_or(&[])).is_err()));
        }
    }

    #[test]
    fn a_summary_whose_bounds_would_not_hold_is_no_reply() {
        let spoil: [fn(&mut Summary); 11] = [
            |summary| summary.total = 11,
            |summary| summary.before.swap(1, 2),
            |summary| summary.before.iter_mut().for_each(|before| *before += 1),
            |summary| summary.before.truncate(3),
            |summary| summary.words.swap(0, 2),
            |summary| summary.words.truncate(7),
            |summary| summary.columns = 3,
            |summary| summary.score_words = 3,
            |summary| summary.ids.push(7),
            |summary| summary.id_ends.swap(0, 1),
            |summary| summary.shared.iter_mut().for_each(|shared| shared.through = 1),
        ];
        for (nth, spoil) in spoil.iter().enumerate() {
            let mut summary = summary();
            spoil(&mut summary);
            let reply = Reply::Summary(SummaryReply::Made(Arc::new(summary)));
            assert!(!is_consistent(&question().question, &reply), "{nth}");
        }
        assert!(Summary::default().is_consistent());
    }

    proptest! {
        #[test]
        fn no_change_of_some_bytes_makes_a_count_panic(
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
            score in any::<u64>(),
        ) {
            let mut made = reply(SummaryReply::Made(Arc::new(summary())));
            let mut bytes = encode_reply(&mut made).expect("it is small");
            for (at, byte) in &changes {
                let at = at.index(bytes.len());
                bytes.get_mut(at).into_iter().for_each(|place| *place = *byte);
            }
            let Ok(ShardReply { reply: Reply::Summary(reply), .. }) = decode_reply(&bytes) else {
                return Ok(());
            };
            if let SummaryReply::Made(summary) = &reply
                && summary.is_consistent()
            {
                let (better, through) = summary.at_score(&[score]);
                prop_assert!(better.high <= summary.total && through.high <= summary.total);
                let before = summary.before(&[score, 1], b"m");
                prop_assert!(before.low <= before.guess && before.guess <= before.high);
                prop_assert!(before.high <= summary.total);
            }
        }
    }
}
