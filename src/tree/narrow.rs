//! The entries of a leaf with each column as narrow as the leaf's entries allow.
//!
//! Neighbours in a tree have much in common: scores that are close to one another, times of the same years.
//! So a column stores the lower bytes of its words, and once for all of them the upper ones, which are equal.
//! Lower bytes then compare as the words do. Handles are stored as their lower two bytes, which a search
//! looks through, and the one or two above.
//!
//! Knows the format of a block. Must not know where blocks are, or when one has to become wider.
//!
//! ```text
//! for each column: upper bytes of its words, and in the lowest byte its width | 8 bytes
//! for each column: n cells of its width
//! n lower halves of handles | 2 n bytes
//! n upper parts of handles  | n or 2 n bytes
//! ```

use super::prefetch;
use super::whole::{Sorted, Whole};
use super::words::{MAX_WORDS, Words};

/// Bytes of a column's head.
const HEAD: usize = 8;
/// Bytes of a handle in the first of its two columns.
const HALF: usize = 2;
/// Handles below this take three bytes.
const SHORT_HANDLES: u32 = 1 << 24;
/// The width of a leaf's first column that is prefetched before it is known: that of most.
const USUAL_WIDTH: usize = 4;

/// How wide the columns of a leaf are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Widths {
    words: [u8; MAX_WORDS],
    /// Bytes of all words of an entry.
    pub(super) all_words: u8,
    /// Bytes of a handle, 3 or 4.
    pub(super) handle: u8,
}

impl Widths {
    /// The least that these entries need.
    pub(super) fn of(entries: &Whole<'_>) -> Self {
        let mut widths = Self::default();
        for (width, column) in widths.words.iter_mut().zip(entries.columns()) {
            let differing = column.iter().fold(0, |differing, word| differing | (word ^ column[0]));
            *width = (u64::BITS - differing.leading_zeros()).div_ceil(8).max(1) as u8;
        }
        widths.all_words = widths.words.iter().sum();
        let bits = entries.handles.iter().fold(0, |bits, handle| bits | handle);
        widths.handle = if bits < SHORT_HANDLES { 3 } else { 4 };
        widths
    }

    /// Bytes of a block of `slots` entries.
    pub(super) fn block_bytes(&self, columns: usize, slots: usize) -> usize {
        columns * HEAD + slots * usize::from(self.all_words + self.handle)
    }
}

/// The bits of a word that a cell of this width holds.
#[inline]
fn held_bits(width: usize) -> u64 {
    u64::MAX >> (u64::BITS as usize - 8 * width)
}

/// Calls a function of a constant width: with it the compiler makes a few instructions of a cell.
macro_rules! with_width {
    ($width:expr, $function:ident($($argument:expr),*)) => {
        match $width {
            1 => $function::<1>($($argument),*),
            2 => $function::<2>($($argument),*),
            3 => $function::<3>($($argument),*),
            4 => $function::<4>($($argument),*),
            5 => $function::<5>($($argument),*),
            6 => $function::<6>($($argument),*),
            7 => $function::<7>($($argument),*),
            _ => $function::<8>($($argument),*),
        }
    };
}

#[inline]
fn cell<const WIDTH: usize>(cell: [u8; WIDTH]) -> u64 {
    let mut bytes = [0; 8];
    bytes[..WIDTH].copy_from_slice(&cell);
    u64::from_le_bytes(bytes)
}

#[inline]
fn cells_below<const WIDTH: usize>(cells: &[u8], low: usize, high: usize, below: u64) -> usize {
    low + cells.as_chunks::<WIDTH>().0[low..high].partition_point(|&held| cell(held) < below)
}

fn read_cells<const WIDTH: usize>(cells: &[u8], upper: u64, words: &mut [u64]) {
    for (word, held) in words.iter_mut().zip(cells.as_chunks::<WIDTH>().0) {
        *word = cell(*held) | upper;
    }
}

fn write_cells<const WIDTH: usize>(cells: &mut [u8], words: &[u64]) {
    for (cell, word) in cells.as_chunks_mut::<WIDTH>().0.iter_mut().zip(words) {
        cell.copy_from_slice(&word.to_le_bytes()[..WIDTH]);
    }
}

#[inline]
fn load(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(*bytes[at..].first_chunk().expect("handles follow the last cell"))
}

/// One column: cells that are `width` apart, in bytes that go on behind the last of them.
#[derive(Clone, Copy)]
pub(super) struct Cells<'a> {
    bytes: &'a [u8],
    width: usize,
    held: u64,
    upper: u64,
}

impl<'a> Cells<'a> {
    /// The column that a head says the width and the upper bytes of, and whose cells `bytes` begin with.
    #[inline]
    fn below(head: [u8; HEAD], bytes: &'a [u8]) -> Self {
        let head = u64::from_le_bytes(head);
        let width = (head & 0xff) as usize;
        let held = held_bits(width);
        Self { bytes, width, held, upper: head & !held }
    }

    #[inline]
    pub(super) fn at(&self, at: usize) -> u64 {
        (load(self.bytes, at * self.width) & self.held) | self.upper
    }

    /// Reads as many words as there is room for, from the cell at `from` on.
    pub(super) fn read(&self, from: usize, words: &mut [u64]) {
        let cells = &self.bytes[from * self.width..];
        with_width!(self.width, read_cells(cells, self.upper, words));
    }
}

impl Sorted for Cells<'_> {
    #[inline]
    fn word(&self, at: usize) -> u64 {
        self.at(at)
    }

    #[inline]
    fn partition(&self, low: usize, high: usize, word: u64, through: bool) -> usize {
        let upper = word & !self.held;
        if upper != self.upper || low == high {
            return if upper < self.upper { low } else { high };
        }
        // Cells before this one are before what is sought: those below a word, or through it.
        let below = (word & self.held).wrapping_add(u64::from(through));
        if through && below == 0 {
            return high;
        }
        with_width!(self.width, cells_below(self.bytes, low, high, below))
    }
}

/// A block, to be read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Narrow<'a> {
    pub(super) bytes: &'a [u8],
    /// Entries that there is room for.
    pub(super) slots: usize,
    pub(super) columns: usize,
    /// Bytes of a handle.
    pub(super) handle: usize,
}

impl<'a> Narrow<'a> {
    /// The columns of words, the first one first.
    #[inline]
    pub(super) fn columns(&self) -> impl Iterator<Item = Cells<'a>> + use<'a> {
        let (heads, mut rest) = self.bytes.split_at(self.columns * HEAD);
        let slots = self.slots;
        heads.as_chunks().0.iter().map(move |head| {
            let cells = Cells::below(*head, rest);
            rest = &rest[slots * cells.width..];
            cells
        })
    }

    /// As `column(0)`, without a walk over the heads.
    #[inline]
    pub(super) fn first_column(&self) -> Cells<'a> {
        let head = self.bytes.first_chunk().expect("a block begins with its heads");
        Cells::below(*head, &self.bytes[self.columns * HEAD..])
    }

    #[inline]
    pub(super) fn column(&self, column: usize) -> Cells<'a> {
        self.columns().nth(column).expect("the caller names a column")
    }

    #[inline]
    pub(super) fn words(&self, at: usize) -> Words {
        let mut words = Words::new();
        for cells in self.columns() {
            words.push(cells.at(at));
        }
        words
    }

    /// The two columns of handles.
    #[inline]
    fn handle_parts(&self) -> (&'a [[u8; HALF]], &'a [u8]) {
        let (lower, upper) =
            self.bytes[self.bytes.len() - self.slots * self.handle..].split_at(self.slots * HALF);
        (lower.as_chunks().0, upper)
    }

    #[inline]
    pub(super) fn handle(&self, at: usize) -> u32 {
        let (lower, upper) = self.handle_parts();
        handle_of(lower[at], upper, self.handle, at)
    }

    /// Reads as many handles as there is room for, from the one at `from` on.
    pub(super) fn read_handles(&self, from: usize, handles: &mut [u32]) {
        let (lower, upper) = self.handle_parts();
        let lower = &lower[from..];
        if self.handle == 3 {
            for ((handle, lower), upper) in handles.iter_mut().zip(lower).zip(&upper[from..]) {
                *handle = u32::from(u16::from_le_bytes(*lower)) | (u32::from(*upper) << 16);
            }
        } else {
            for ((handle, lower), upper) in handles.iter_mut().zip(lower).zip(&upper.as_chunks().0[from..]) {
                *handle =
                    u32::from(u16::from_le_bytes(*lower)) | (u32::from(u16::from_le_bytes(*upper)) << 16);
            }
        }
    }

    /// Where the handle is among the first `len`.
    #[inline]
    pub(super) fn find(&self, len: usize, sought: u32) -> Option<usize> {
        // In all slots, which are a round number, and what is in those behind does not matter.
        let (lower, upper) = self.handle_parts();
        let is_it = |&at: &usize| at < len && handle_of(lower[at], upper, self.handle, at) == sought;
        let at = find_half(lower, sought as u16)?;
        if is_it(&at) { Some(at) } else { self.find_behind(at + 1, len, sought) }
    }

    /// Seldom: a handle with the same lower half is before the one that is sought.
    #[cold]
    fn find_behind(&self, from: usize, len: usize, sought: u32) -> Option<usize> {
        (from..len).find(|at| self.handle(*at) == sought)
    }

    /// Asks for all of it.
    #[inline]
    pub(super) fn prefetch(&self) {
        prefetch::lines_of(self.bytes);
    }

    #[inline]
    pub(super) fn prefetch_handles(&self) {
        prefetch::lines_between(self.bytes, self.bytes.len() - self.slots * self.handle, self.bytes.len());
    }

    /// Asks for the heads of columns, and the first cells.
    #[inline]
    pub(super) fn prefetch_heads(&self) {
        prefetch::line_of(&self.bytes[0]);
    }

    /// Asks for what a search by the first words reads. Must not look at the heads, which are not there yet.
    #[inline]
    pub(super) fn prefetch_first_column(&self) {
        let (heads, handles) = (self.columns * HEAD, self.slots * self.handle);
        let most = (self.bytes.len() - heads - handles) - (self.columns - 1) * self.slots;
        prefetch::lines_between(self.bytes, 0, heads + most.min(self.slots * USUAL_WIDTH));
    }

    /// Asks for the cells from `from` to `len`, in each column.
    #[inline]
    pub(super) fn prefetch_tails(&self, from: usize, len: usize) {
        let mut start = self.columns * HEAD;
        let mut cells_of = |width: usize| {
            prefetch::lines_between(self.bytes, start + from * width, start + len * width);
            start += self.slots * width;
        };
        for head in self.bytes[..self.columns * HEAD].as_chunks::<HEAD>().0 {
            cells_of(usize::from(head[0]));
        }
        cells_of(HALF);
        cells_of(self.handle - HALF);
    }
}

/// Where the first of these halves is.
///
/// Four at a time in one word: a lane of zeros is what is sought, and borrows from the lanes above it alone,
/// so that the lowest one found is right (Warren, Hacker's Delight, 6-1).
#[inline]
fn find_half(halves: &[[u8; HALF]], sought: u16) -> Option<usize> {
    const ONES: u64 = 0x0001_0001_0001_0001;
    let pattern = ONES * u64::from(sought);
    let zeros = |lanes: &[u8; 8]| {
        let differing = u64::from_le_bytes(*lanes) ^ pattern;
        differing.wrapping_sub(ONES) & !differing & (ONES << 15)
    };
    let (groups, rest) = halves.as_flattened().as_chunks::<32>();
    for (group, lanes) in groups.iter().enumerate() {
        let zeros = lanes.as_chunks().0.iter().map(zeros);
        if zeros.clone().fold(0, |any, zeros| any | zeros) != 0 {
            let (four, zeros) = zeros.enumerate().find(|(_, zeros)| *zeros != 0)?;
            return Some(group * 16 + four * 4 + zeros.trailing_zeros() as usize / 16);
        }
    }
    let mut rest = rest.as_chunks().0.iter();
    rest.position(|half| u16::from_le_bytes(*half) == sought).map(|at| groups.len() * 16 + at)
}

#[inline]
fn handle_of(lower: [u8; HALF], upper: &[u8], width: usize, at: usize) -> u32 {
    let lower = u32::from(u16::from_le_bytes(lower));
    let upper = if width == 3 {
        u32::from(upper[at])
    } else {
        u32::from(u16::from_le_bytes(upper.as_chunks().0[at]))
    };
    lower | (upper << 16)
}

#[inline]
fn write_cell(cells: &mut [u8], width: usize, at: usize, value: u64) {
    let start = at * width;
    // As one piece where there is room for it, and then what the cells behind had.
    if let Some(bytes) = cells.get_mut(start..).and_then(|bytes| bytes.first_chunk_mut()) {
        let held = held_bits(width);
        *bytes = ((u64::from_le_bytes(*bytes) & !held) | (value & held)).to_le_bytes();
    } else {
        cells[start..start + width].copy_from_slice(&value.to_le_bytes()[..width]);
    }
}

/// A block, to be changed.
pub(super) struct NarrowMut<'a> {
    pub(super) bytes: &'a mut [u8],
    pub(super) slots: usize,
    pub(super) columns: usize,
    pub(super) handle: usize,
}

impl NarrowMut<'_> {
    fn head(&self, column: usize) -> u64 {
        load(self.bytes, column * HEAD)
    }

    /// Whether the columns are wide enough for such an entry.
    #[inline]
    pub(super) fn fits(&self, words: &[u64], handle: u32) -> bool {
        let fit = |(column, &word): (usize, &u64)| {
            let head = self.head(column);
            let held = held_bits((head & 0xff) as usize);
            (word ^ head) & !held == 0
        };
        (self.handle == 4 || handle < SHORT_HANDLES) && words.iter().enumerate().all(fit)
    }

    /// Calls `change` with the cells of each column of words, and with the two of handles.
    #[inline]
    fn for_each_column(&mut self, mut change: impl FnMut(&mut [u8], usize)) {
        let (heads, mut rest) = self.bytes.split_at_mut(self.columns * HEAD);
        for head in heads.as_chunks::<HEAD>().0 {
            let width = usize::from(head[0]);
            let (cells, behind) = rest.split_at_mut(self.slots * width);
            change(cells, width);
            rest = behind;
        }
        let (lower, upper) = rest.split_at_mut(self.slots * HALF);
        change(lower, HALF);
        change(upper, self.handle - HALF);
    }

    /// As `for_each_column`, each with what an entry that fits has in that column.
    #[inline]
    fn for_each_cell(&mut self, words: &[u64], handle: u32, mut change: impl FnMut(&mut [u8], usize, u64)) {
        let parts = [u64::from(handle), u64::from(handle >> 16)];
        let mut values = words.iter().copied().chain(parts);
        self.for_each_column(|cells, width| change(cells, width, values.next().unwrap_or(0)));
    }

    /// Adds an entry that fits at slot `at`, of `len` used ones.
    #[inline]
    pub(super) fn insert(&mut self, len: usize, at: usize, words: &[u64], handle: u32) {
        self.for_each_cell(words, handle, |cells, width, value| {
            cells.copy_within(at * width..len * width, (at + 1) * width);
            write_cell(cells, width, at, value);
        });
    }

    /// Closes the gap at slot `at` of `len` used ones.
    #[inline]
    pub(super) fn close(&mut self, len: usize, at: usize) {
        self.for_each_column(|cells, width| cells.copy_within((at + 1) * width..len * width, at * width));
    }

    /// Moves an entry, which has other words now, that fit.
    #[inline]
    pub(super) fn shift(&mut self, from: usize, to: usize, words: &[u64], handle: u32) {
        self.for_each_cell(words, handle, |cells, width, value| {
            if from < to {
                cells.copy_within((from + 1) * width..(to + 1) * width, from * width);
            } else {
                cells.copy_within(to * width..from * width, (to + 1) * width);
            }
            write_cell(cells, width, to, value);
        });
    }

    /// Writes heads that fit all of these entries, which the widths are enough for, and the first `len` of
    /// them.
    pub(super) fn fill(&mut self, widths: &Widths, entries: &Whole<'_>, len: usize) {
        let mut start = self.columns * HEAD;
        for (number, (&width, words)) in widths.words.iter().zip(entries.columns()).enumerate() {
            let width = usize::from(width);
            let head = (words[0] & !held_bits(width)) | width as u64;
            self.bytes[number * HEAD..(number + 1) * HEAD].copy_from_slice(&head.to_le_bytes());
            let end = start + self.slots * width;
            with_width!(width, write_cells(&mut self.bytes[start..end], &words[..len]));
            start = end;
        }
        let (lower, upper) = self.bytes[start..].split_at_mut(self.slots * HALF);
        let handles = &entries.handles[..len];
        for (cell, handle) in lower.as_chunks_mut().0.iter_mut().zip(handles) {
            *cell = (*handle as u16).to_le_bytes();
        }
        if self.handle == 3 {
            for (cell, handle) in upper.iter_mut().zip(handles) {
                *cell = (handle >> 16) as u8;
            }
        } else {
            for (cell, handle) in upper.as_chunks_mut().0.iter_mut().zip(handles) {
                *cell = ((handle >> 16) as u16).to_le_bytes();
            }
        }
    }
}
