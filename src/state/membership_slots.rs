//! A number for each handle, four bytes where neighbours have many different ones and next to none where they
//! have the same.
//!
//! Handles are given out in order, so that members who came together lie side by side, and mostly are on the
//! same boards: all have the number of one board, or few different numbers. Knows numbers. Must not know what
//! they say, but that 0 is what a handle has that was never given one.

use crate::tree::Handle;

/// Handles of a chunk.
const CHUNK: usize = 64;
/// Chunks that are allocated at once.
const GROUP: usize = 64;
/// Different numbers, 0 among them, that half a byte can choose from.
const FEW: usize = 16;
/// Changes of a chunk of many numbers until it is looked at whether few are left.
const CHANGES_UNCHECKED: u8 = 16;

/// Sixteen bytes.
#[derive(Clone)]
enum Chunk {
    /// Those whose bit is set have `number`, and the others 0.
    Same {
        number: u32,
        with_number: u64,
    },
    Few(Box<Few>),
    Many(Box<Many>),
}

/// 96 bytes for 64 handles.
#[derive(Clone)]
struct Few {
    numbers: [u32; FEW],
    /// Half a byte for each handle: which of `numbers` it has.
    which: [u8; CHUNK / 2],
}

#[derive(Clone)]
struct Many {
    numbers: [u32; CHUNK],
    changes: u8,
}

impl Few {
    /// `None`: there are more different ones.
    fn of(all: &[u32; CHUNK]) -> Option<Self> {
        let mut few = Self { numbers: [0; FEW], which: [0; CHUNK / 2] };
        let mut used = 1;
        for (at, number) in all.iter().enumerate() {
            let known = few.numbers.iter().take(used).position(|known| known == number);
            let which = known.unwrap_or(used);
            *few.numbers.get_mut(which)? = *number;
            used = used.max(which + 1);
            few.set_which(at, which);
        }
        Some(few)
    }

    fn which(&self, at: usize) -> usize {
        let pair = self.which.get(at / 2).copied().unwrap_or(0);
        usize::from(if at.is_multiple_of(2) { pair & 0xf } else { pair >> 4 })
    }

    fn set_which(&mut self, at: usize, which: usize) {
        let half = u8::try_from(which).unwrap_or(0);
        if let Some(pair) = self.which.get_mut(at / 2) {
            *pair = if at.is_multiple_of(2) { (*pair & 0xf0) | half } else { (*pair & 0xf) | (half << 4) };
        }
    }

    fn get(&self, at: usize) -> u32 {
        self.numbers.get(self.which(at)).copied().unwrap_or(0)
    }

    /// One bit for each of `numbers` that a handle has.
    fn in_use(&self) -> u16 {
        self.which.iter().fold(0, |used, pair| used | (1 << (pair & 0xf)) | (1 << (pair >> 4)))
    }

    /// `false`: there is no room for one more number.
    fn set(&mut self, at: usize, number: u32) -> bool {
        let which = self.numbers.iter().position(|known| *known == number).or_else(|| {
            // Its own one may become free with this.
            self.set_which(at, 0);
            let in_use = self.in_use();
            (1..FEW).find(|which| in_use & (1 << which) == 0)
        });
        let Some(which) = which else { return false };
        if let Some(place) = self.numbers.get_mut(which) {
            *place = number;
        }
        self.set_which(at, which);
        true
    }

    /// The only number that is left, if there is but one beside 0.
    fn only(&self) -> Option<u32> {
        let in_use = self.in_use() & !1;
        let which = usize::try_from(in_use.trailing_zeros()).unwrap_or(FEW);
        (in_use.count_ones() <= 1).then(|| self.numbers.get(which).copied().unwrap_or(0))
    }
}

impl Default for Chunk {
    fn default() -> Self {
        Self::Same { number: 0, with_number: 0 }
    }
}

impl Chunk {
    fn get(&self, at: usize) -> u32 {
        match self {
            Self::Same { number, with_number } => {
                if (with_number >> at) & 1 == 1 {
                    *number
                } else {
                    0
                }
            }
            Self::Few(few) => few.get(at),
            Self::Many(many) => many.numbers.get(at).copied().unwrap_or(0),
        }
    }

    fn all(&self) -> [u32; CHUNK] {
        std::array::from_fn(|at| self.get(at))
    }

    /// The chunk with these numbers, in the smallest form.
    fn of(all: &[u32; CHUNK]) -> Self {
        match Few::of(all) {
            Some(few) => {
                few.only().map_or_else(|| Self::Few(Box::new(few)), |number| Self::same(all, number))
            }
            None => Self::Many(Box::new(Many { numbers: *all, changes: 0 })),
        }
    }

    fn same(all: &[u32; CHUNK], number: u32) -> Self {
        let with_number =
            all.iter().rev().fold(0, |bits, held| (bits << 1) | u64::from(*held == number && number != 0));
        Self::Same { number, with_number }
    }

    fn set(&mut self, at: usize, to: u32) {
        match self {
            Self::Same { with_number, .. } if to == 0 => *with_number &= !(1 << at),
            Self::Same { number, with_number } if *number == to || *with_number & !(1 << at) == 0 => {
                *number = to;
                *with_number |= 1 << at;
            }
            Self::Few(few) => {
                if !few.set(at, to) {
                    self.set_anew(at, to);
                } else if let Some(number) = few.only() {
                    *self = Self::same(&self.all(), number);
                }
            }
            Self::Many(many) if many.changes < CHANGES_UNCHECKED => {
                many.changes += 1;
                if let Some(place) = many.numbers.get_mut(at) {
                    *place = to;
                }
            }
            Self::Same { .. } | Self::Many(_) => self.set_anew(at, to),
        }
    }

    fn set_anew(&mut self, at: usize, to: u32) {
        let mut all = self.all();
        if let Some(place) = all.get_mut(at) {
            *place = to;
        }
        *self = Self::of(&all);
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Same { .. } => 0,
            Self::Few(_) => size_of::<Few>(),
            Self::Many(_) => size_of::<Many>(),
        }
    }
}

fn place(handle: Handle) -> (usize, usize, usize) {
    let index = handle.index();
    (index / CHUNK / GROUP, index / CHUNK % GROUP, index % CHUNK)
}

/// Handle → number.
#[derive(Default)]
pub(super) struct MembershipSlots {
    groups: Vec<Box<[Chunk]>>,
    /// Heap memory of chunks, in bytes.
    allocated_bytes: usize,
}

impl MembershipSlots {
    /// Makes room for all handles up to this one.
    pub(super) fn ensure(&mut self, handle: Handle) {
        let (group, ..) = place(handle);
        while self.groups.len() <= group {
            self.groups.push(vec![Chunk::default(); GROUP].into());
        }
    }

    fn chunk(&self, handle: Handle) -> Option<&Chunk> {
        let (group, chunk, _) = place(handle);
        self.groups.get(group)?.get(chunk)
    }

    /// A handle's number; 0 if there is no room for the handle.
    pub(super) fn get(&self, handle: Handle) -> u32 {
        let (.., at) = place(handle);
        self.chunk(handle).map_or(0, |chunk| chunk.get(at))
    }

    /// Gives a handle a number, if there is room for it.
    pub(super) fn set(&mut self, handle: Handle, number: u32) {
        let (group, chunk, at) = place(handle);
        if let Some(chunk) = self.groups.get_mut(group).and_then(|group| group.get_mut(chunk)) {
            self.allocated_bytes -= chunk.bytes();
            chunk.set(at, number);
            self.allocated_bytes += chunk.bytes();
        }
    }

    /// Asks the processor to fetch a handle's number. Chunks are few enough to be in a cache.
    pub(super) fn prefetch(&self, handle: Handle) {
        match self.chunk(handle) {
            Some(Chunk::Few(few)) => {
                crate::tree::prefetch(&few.numbers);
                crate::tree::prefetch(&few.which);
            }
            Some(Chunk::Many(many)) => {
                if let Some(number) = many.numbers.get(place(handle).2) {
                    crate::tree::prefetch(number);
                }
            }
            Some(Chunk::Same { .. }) | None => {}
        }
    }

    /// Heap memory, in bytes, without the struct itself.
    pub(super) fn bytes(&self) -> usize {
        let group = GROUP * size_of::<Chunk>();
        self.allocated_bytes + self.groups.len() * group + self.groups.capacity() * size_of::<Box<[Chunk]>>()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Mostly few different numbers, sometimes many.
    fn numbers() -> impl Strategy<Value = Vec<(u32, u32)>> {
        let number = prop_oneof![6 => 0_u32..3, 2 => 0_u32..40, 1 => Just(u32::MAX), 1 => Just(0)];
        prop::collection::vec((0_u32..130, number), 1..400)
    }

    proptest! {
        #[test]
        fn agrees_with_a_plain_vector(before in numbers(), number in 0_u32..5, after in numbers()) {
            let mut slots = MembershipSlots::default();
            slots.ensure(Handle(129));
            let mut model = [0; 130];
            // All become the same one in between, as when everybody joins another board.
            let all = (0..130).map(|handle| (handle, number));
            for (handle, number) in before.into_iter().chain(all).chain(after) {
                slots.set(Handle(handle), number);
                model[Handle(handle).index()] = number;
                for (handle, number) in (0..).map(Handle).zip(model) {
                    prop_assert_eq!(slots.get(handle), number);
                }
                let boxed: usize = slots.groups.iter().flat_map(|group| group.iter()).map(Chunk::bytes).sum();
                prop_assert_eq!(slots.allocated_bytes, boxed);
            }
        }
    }

    #[test]
    fn what_neighbours_have_in_common_takes_no_memory() {
        let mut slots = MembershipSlots::default();
        let members = 100 * 4_096;
        let each = |slots: &MembershipSlots| slots.bytes() * 100 / Handle(members).index();
        for handle in (0..members).map(Handle) {
            slots.ensure(handle);
            slots.set(handle, 7);
        }
        assert_eq!(each(&slots), 25, "hundredths of a byte");
        for handle in (0..members).map(Handle) {
            slots.set(handle, 7 + handle.0 % 5);
        }
        assert!((175..=180).contains(&each(&slots)), "{}", each(&slots));
        for handle in (0..members).map(Handle) {
            slots.set(handle, handle.0);
        }
        assert!((425..=435).contains(&each(&slots)), "{}", each(&slots));
        for handle in (0..members).map(Handle) {
            slots.set(handle, 3);
        }
        for handle in (0..members).map(Handle).filter(|handle| handle.0 % 64 < 20) {
            slots.set(handle, 0);
        }
        assert_eq!(each(&slots), 25, "what they have in common is found again");
    }
}
