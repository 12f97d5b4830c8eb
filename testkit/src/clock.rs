//! The one place of this crate that reads the clock, and the one that draws random values.
//!
//! A stub forge stamps what happens on it, as a real one does; nothing in a test should depend on these stamps beyond
//! their order.

use chrono::{DateTime, SubsecRound, Utc};

/// Now, in whole seconds: all that Forgejo gives.
#[expect(
    clippy::disallowed_methods,
    reason = "the stub forge is the outside world: its time is the machine's"
)]
pub(crate) fn now() -> DateTime<Utc> {
    Utc::now().trunc_subsecs(0)
}

/// A random version 4 UUID, as a forge uses for a delivery.
pub(crate) fn uuid() -> String {
    uuid::Uuid::new_v4().to_string()
}

/// A token as Forgejo makes them: 40 hexadecimal digits.
pub(crate) fn token() -> String {
    let (one, two) = (
        uuid::Uuid::new_v4().simple().to_string(),
        uuid::Uuid::new_v4().simple().to_string(),
    );
    format!("{one}{}", &two[..8])
}
