//! Everything random that the worker uses, in one place so that a reader finds all of it.
//!
//! Two sources for two needs: [`jitter`] only spreads retries in time and may be guessed; [`token`] is what
//! nobody outside may guess (delimiters of a prompt), and comes from the operating system.
//!
//! Nothing here fails: an operating system that cannot give random bytes ends the process, which is right.

use std::time::Duration;

use rand::{RngExt, TryRng, rngs::SysRng};

/// Spreads `base` over 80 % to 120 % of itself, so that many rows that failed together do not come back together.
#[must_use]
pub fn jitter(base: Duration) -> Duration {
    base.mul_f64(rand::rng().random_range(0.8..=1.2))
}

/// `bytes` unguessable bytes as lower-case hex, twice as many characters.
#[must_use]
pub fn token(bytes: usize) -> String {
    let mut raw = vec![0_u8; bytes];
    #[expect(
        clippy::expect_used,
        reason = "without the operating system's randomness nothing secret can be made"
    )]
    SysRng
        .try_fill_bytes(&mut raw)
        .expect("the operating system gives random bytes");
    hex::encode(raw)
}
