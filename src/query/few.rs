//! Values of which there is mostly one: one takes no memory of its own.

use std::ops::Deref;

/// One value, or any other number of them. In place of a `SmallVec`, whose values cannot be used for one that
/// borrows for less long.
pub enum Few<T> {
    One(T),
    Other(Vec<T>),
}

impl<T> FromIterator<T> for Few<T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        let mut values = values.into_iter();
        match (values.next(), values.next()) {
            (Some(one), None) => Self::One(one),
            (first, second) => Self::Other(first.into_iter().chain(second).chain(values).collect()),
        }
    }
}

impl<T> Deref for Few<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match self {
            Self::One(one) => std::slice::from_ref(one),
            Self::Other(several) => several,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_of_values_is_kept_in_order() {
        for count in 0..4_u8 {
            let few: Few<u8> = (0..count).collect();
            assert!(few.iter().copied().eq(0..count), "{count}");
            assert_eq!(matches!(few, Few::One(_)), count == 1);
        }
    }
}
