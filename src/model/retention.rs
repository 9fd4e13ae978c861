//! How much of its past a session keeps.

/// Which minutes a session keeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Retention {
    /// All of them: a session that somebody started and will stop.
    #[default]
    All,
    /// The newest ones, this many: a session that nobody stops.
    Minutes(u32),
}

impl Retention {
    /// The oldest window that is kept when `newest` is the current one.
    pub fn oldest(self, newest: u32) -> u32 {
        match self {
            Retention::All => 0,
            Retention::Minutes(count) => newest.saturating_sub(count.saturating_sub(1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_current_minute_is_one_of_those_kept() {
        assert_eq!(Retention::All.oldest(500), 0);
        assert_eq!(Retention::Minutes(60).oldest(10), 0);
        assert_eq!(Retention::Minutes(60).oldest(59), 0);
        assert_eq!(Retention::Minutes(60).oldest(60), 1);
        assert_eq!(Retention::Minutes(1).oldest(7), 7);
        assert_eq!(Retention::Minutes(0).oldest(7), 7);
    }
}
