//! Times in which the server stands still.

use super::MonotonicNanos;

/// A time in which the server thread did not tick.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stall {
    /// When it ticked last before, or the session's start if that was later.
    pub began: MonotonicNanos,
    /// When it ticked again; `None`: it has not.
    pub ended: Option<MonotonicNanos>,
}

/// The stalls of a session.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Stalls {
    /// How many there were.
    pub count: u64,
    /// The newest of them, oldest first.
    pub newest: Vec<Stall>,
}

impl Stalls {
    /// Takes what is known of a stall: that it has begun, or that it is over. No more than [`crate::limits::STALLS`] are kept.
    pub fn take(&mut self, stall: Stall) {
        match self.newest.last_mut() {
            Some(last) if last.began == stall.began => *last = stall,
            _ => {
                self.count += 1;
                if self.newest.len() >= crate::limits::STALLS {
                    self.newest.remove(0);
                }
                self.newest.push(stall);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stall(began: u64, ended: Option<u64>) -> Stall {
        Stall {
            began: MonotonicNanos(began),
            ended: ended.map(MonotonicNanos),
        }
    }

    #[test]
    fn a_stall_is_one_from_its_begin_to_its_end_and_the_newest_are_kept() {
        let mut stalls = Stalls::default();
        stalls.take(stall(1, None));
        stalls.take(stall(1, Some(5)));
        assert_eq!((stalls.count, &stalls.newest[..]), (1, &[stall(1, Some(5))][..]));
        for began in 10..10 + crate::limits::STALLS as u64 {
            stalls.take(stall(began, Some(began + 1)));
        }
        assert_eq!(stalls.count, 1 + crate::limits::STALLS as u64);
        assert_eq!(stalls.newest.len(), crate::limits::STALLS);
        assert_eq!(stalls.newest[0], stall(10, Some(11)));
    }
}
