//! How long something that could not be done waits before it is tried again.
//!
//! One rule for lookups of decide and for posts of the outbox: 5 s, doubled each time, at most 15 min, each spread by
//! a fifth to both sides; after a day nothing is tried any more (design section 5.6).

use std::time::Duration;

use crate::random;

/// The first wait.
pub const FIRST: Duration = Duration::from_secs(5);
/// The longest wait, before it is spread.
pub const LONGEST: Duration = Duration::from_secs(15 * 60);
/// From the first try to the last.
pub const PATIENCE: Duration = Duration::from_secs(24 * 60 * 60);

/// The wait before the next try when `tries` were made (1 after the first).
#[must_use]
pub fn wait(tries: u32) -> Duration {
    random::jitter(base(tries))
}

fn base(tries: u32) -> Duration {
    // 2^8 * 5 s is beyond the longest, so a larger exponent changes nothing and cannot overflow.
    let doublings = tries.saturating_sub(1).min(8);
    (FIRST * 2_u32.pow(doublings)).min(LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_from_five_seconds_and_stop_growing_at_a_quarter_of_an_hour() {
        let waits: Vec<u64> = (1..=10).map(|tries| base(tries).as_secs()).collect();
        assert_eq!(waits, [5, 10, 20, 40, 80, 160, 320, 640, 900, 900]);
        assert_eq!(base(u32::MAX), LONGEST);
    }

    #[test]
    fn a_wait_is_spread_by_at_most_a_fifth() {
        for _ in 0..1000 {
            let spread = wait(3);
            assert!(
                spread >= Duration::from_secs(16) && spread <= Duration::from_secs(24),
                "{spread:?}"
            );
        }
    }
}
