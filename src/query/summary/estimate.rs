//! A count that is known within bounds.

/// A number that is surely from `low` to `high`, and best taken to be `guess`, which is so as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Estimate {
    pub low: u64,
    pub guess: u64,
    pub high: u64,
}

impl Estimate {
    pub fn exactly(number: u64) -> Self {
        Self { low: number, guess: number, high: number }
    }

    /// The same with what is known besides: that the number is from `low` to `high`, too.
    pub fn within(self, low: u64, high: u64) -> Self {
        let low = self.low.max(low).min(self.high);
        let high = self.high.min(high).max(low);
        Self { low, guess: self.guess.clamp(low, high), high }
    }

    /// The same with a guess that is not below another one.
    pub fn not_below(self, least: u64) -> Self {
        Self { guess: self.guess.max(least).clamp(self.low, self.high), ..self }
    }

    /// The same with a guess that is not above another one.
    pub fn not_above(self, most: u64) -> Self {
        Self { guess: self.guess.min(most).clamp(self.low, self.high), ..self }
    }

    /// The most by which the guess can be off.
    pub fn error(&self) -> u64 {
        (self.guess - self.low).max(self.high - self.guess)
    }
}

/// The bounds of a sum are the sums of the bounds.
impl std::ops::AddAssign for Estimate {
    fn add_assign(&mut self, other: Self) {
        self.low += other.low;
        self.guess += other.guess;
        self.high += other.high;
    }
}
