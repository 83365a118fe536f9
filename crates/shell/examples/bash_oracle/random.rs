//! A small random number generator: the same seed gives the same scripts on every machine.

/// SplitMix64.
#[derive(Clone)]
pub(crate) struct Random(u64);

impl Random {
    /// The stream of script `index` under `seed`.
    pub(crate) fn new(seed: u64, index: u64) -> Self {
        let mut random = Self(seed.wrapping_mul(0xA076_1D64_78BD_642F) ^ index);
        // Two rounds part the streams of neighbouring numbers.
        let first = random.next();
        Self(first ^ random.next())
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`; 0 for a limit of 0.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        let limit = u64::try_from(limit).unwrap_or(u64::MAX).max(1);
        usize::try_from(self.next() % limit).unwrap_or(0)
    }

    /// True `percent` times in a hundred.
    pub(crate) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of `choices`, or nothing of nothing.
    pub(crate) fn pick<'a>(&mut self, choices: &'a [impl AsRef<str>]) -> &'a str {
        choices.get(self.below(choices.len())).map(AsRef::as_ref).unwrap_or_default()
    }
}
