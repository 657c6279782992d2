//! Random numbers that are the same on every machine and in every version, which is what makes a run
//! repeatable.

/// `SplitMix64` (Steele, Lea and Flood, 2014): one addition and three multiplications a number.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Uniform from 0 up to below `end`; 0 for an `end` of 0.
    pub fn below(&mut self, end: u64) -> u64 {
        let scaled = (u128::from(self.bits()) * u128::from(end)) >> 64;
        u64::try_from(scaled).expect("the result is below the 64-bit `below`")
    }

    /// Uniform from 0 up to below 1.
    pub fn unit(&mut self) -> f64 {
        let bits = self.bits();
        let high = u32::try_from(bits >> 32).expect("32 bits are left");
        // 21 of the low bits: with the high 32 as many as an f64 between one half and 1 holds, so that it
        // stays below 1.
        let low = u32::try_from((bits & 0xffff_ffff) >> 11).expect("21 bits are left");
        (f64::from(high) + f64::from(low) / 2_097_152.0) / 4_294_967_296.0
    }
}

/// Zipf's law over 1 to n: k comes in proportion to 1 / k^s.
///
/// Rejection-inversion (Hörmann and Derflinger, 1996): exact, without a table, less than two tries on
/// average.
#[derive(Debug, Clone)]
pub struct Zipf {
    count: f64,
    exponent: f64,
    integral_first: f64,
    integral_last: f64,
    /// Below this distance from its integer a try is accepted without a look at the density.
    shortcut: f64,
}

impl Zipf {
    /// `exponent` is above 0 and finite; `count` is at least 1.
    pub fn new(count: u32, exponent: f64) -> Self {
        let count = f64::from(count.max(1));
        let mut zipf = Self { count, exponent, integral_first: 0.0, integral_last: 0.0, shortcut: 0.0 };
        zipf.integral_first = zipf.integral(1.5) - 1.0;
        zipf.integral_last = zipf.integral(count + 0.5);
        zipf.shortcut = 2.0 - zipf.integral_inverse(zipf.integral(2.5) - zipf.density(2.0));
        zipf
    }

    pub fn sample(&self, random: &mut Random) -> u32 {
        loop {
            let at = self.integral_last + random.unit() * (self.integral_first - self.integral_last);
            let exact = self.integral_inverse(at);
            let rank = (exact + 0.5).floor().clamp(1.0, self.count);
            if rank - exact <= self.shortcut || at >= self.integral(rank + 0.5) - self.density(rank) {
                return to_u32(rank);
            }
        }
    }

    fn density(&self, x: f64) -> f64 {
        (-self.exponent * x.ln()).exp()
    }

    /// The integral of the density, up to a constant; well-behaved also where the exponent is 1.
    fn integral(&self, x: f64) -> f64 {
        let log = x.ln();
        expm1_over((1.0 - self.exponent) * log) * log
    }

    fn integral_inverse(&self, x: f64) -> f64 {
        // Rounding may carry it a little beyond where the logarithm ends.
        let t = (x * (1.0 - self.exponent)).max(-1.0);
        (ln_1p_over(t) * x).exp()
    }
}

/// `ln(1 + x) / x`, and its series near 0.
fn ln_1p_over(x: f64) -> f64 {
    if x.abs() > 1e-8 { x.ln_1p() / x } else { 1.0 - x * (0.5 - x / 3.0) }
}

/// `(e^x - 1) / x`, and its series near 0.
fn expm1_over(x: f64) -> f64 {
    if x.abs() > 1e-8 { x.exp_m1() / x } else { 1.0 + x / 2.0 * (1.0 + x / 3.0) }
}

#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an integer from 1 to a count of 32 bits, and there is no checked conversion"
)]
fn to_u32(rank: f64) -> u32 {
    rank as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_the_published_ones() {
        // The first outputs for the seed 1234567, as the algorithm's reference implementation gives them.
        let mut random = Random::new(1_234_567);
        let first: Vec<_> = (0..3).map(|_| random.bits()).collect();
        assert_eq!(first, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn uniform_numbers_fill_their_range_evenly() {
        let mut random = Random::new(7);
        let mut counts = [0_u32; 10];
        for _ in 0..100_000 {
            counts[usize::try_from(random.below(10)).expect("small")] += 1;
            assert!((0.0..1.0).contains(&random.unit()));
        }
        // The standard deviation of each is 95.
        assert!(counts.iter().all(|count| (9_500..10_500).contains(count)), "{counts:?}");
    }

    #[test]
    fn zipf_has_the_shape_that_its_law_states() {
        for exponent in [0.5, 0.99, 1.0, 1.5] {
            let (zipf, mut random) = (Zipf::new(1_000, exponent), Random::new(11));
            let draws = 200_000_u32;
            let mut counts = vec![0_u32; 1_001];
            for _ in 0..draws {
                counts[usize::try_from(zipf.sample(&mut random)).expect("small")] += 1;
            }
            assert_eq!(counts[0], 0);
            let weight = |k: u32| f64::from(k).powf(-exponent);
            let all: f64 = (1..=1_000).map(weight).sum();
            for k in [1, 2, 3, 10, 100, 1_000] {
                let expected = f64::from(draws) * weight(k) / all;
                let got = f64::from(counts[usize::try_from(k).expect("small")]);
                // Six standard deviations.
                let slack = 6.0 * expected.sqrt() + 1.0;
                assert!((got - expected).abs() < slack, "s {exponent}, k {k}: {got}, not {expected}");
            }
        }
    }

    #[test]
    fn a_zipf_over_one_member_is_that_member() {
        let (zipf, mut random) = (Zipf::new(1, 0.99), Random::new(1));
        assert!((0..1_000).all(|_| zipf.sample(&mut random) == 1));
    }
}
