//! Where a leaf's entries are, in four bytes: what the leaf's parent holds beside its number.
//!
//! Must not know what is there.

/// Bits of a place: as many as the leaves of 2^32 entries that are half full. Those beyond have no address.
const PLACE_BITS: u32 = 27;
/// Kinds below this have an address. A leaf on a board with one key is of one of 30, and there are more only
/// where longer entries have been of as many widths at once.
const KINDS: u8 = if cfg!(test) { 3 } else { 31 };

/// A kind of blocks and a place among them, or neither.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct LeafAddress(pub(super) u32);

impl LeafAddress {
    /// A leaf without a block, or one that is looked up by its number as its address takes more bits.
    pub(super) const NONE: Self = Self(u32::MAX);

    pub(super) fn of(kind: u8, place: u32) -> Self {
        const { assert!(KINDS < 1 << (u32::BITS - PLACE_BITS), "the greatest is `NONE`") };
        if kind < KINDS && place >> PLACE_BITS == 0 {
            Self((u32::from(kind) << PLACE_BITS) | place)
        } else {
            Self::NONE
        }
    }

    /// The kind and the place, if it is not [`LeafAddress::NONE`].
    #[inline]
    pub(super) fn parts(self) -> Option<(usize, u32)> {
        (self != Self::NONE).then_some(((self.0 >> PLACE_BITS) as usize, self.0 & ((1 << PLACE_BITS) - 1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_says_what_it_was_made_of_or_nothing() {
        let greatest = (1 << PLACE_BITS) - 1;
        for (kind, place) in [(0, 0), (0, greatest), (1, 12_345), (KINDS - 1, 0), (KINDS - 1, greatest)] {
            assert_eq!(LeafAddress::of(kind, place).parts(), Some((usize::from(kind), place)));
        }
        for (kind, place) in [(KINDS, 0), (KINDS, greatest), (u8::MAX, 0), (0, greatest + 1), (1, u32::MAX)] {
            assert_eq!(LeafAddress::of(kind, place), LeafAddress::NONE);
        }
        assert_eq!(LeafAddress::NONE.parts(), None);
    }
}
