//! How long players' packets took in the last fifteen minutes.

use std::collections::VecDeque;

use super::distribution::distribution;
use crate::limits;
use crate::model::{MonotonicNanos, Ping, PlayerPing, clean_text};

/// Answers of all players, of fixed size.
#[derive(Debug)]
pub(super) struct Players {
    /// When they were first asked.
    since: Option<MonotonicNanos>,
    answers: VecDeque<(MonotonicNanos, u32)>,
    /// Whether an answer had to go before its time.
    full: bool,
    now: Vec<PlayerPing>,
    online: u32,
}

impl Default for Players {
    fn default() -> Self {
        Players {
            since: None,
            answers: VecDeque::with_capacity(limits::HISTORY_PINGS),
            full: false,
            now: Vec::new(),
            online: 0,
        }
    }
}

impl Players {
    /// Takes what was asked of all players who are online.
    pub(super) fn add(&mut self, at: MonotonicNanos, players: Vec<PlayerPing>) {
        self.since.get_or_insert(at);
        self.online = u32::try_from(players.len()).unwrap_or(u32::MAX);
        let oldest = MonotonicNanos(at.0.saturating_sub(limits::HISTORY_SECONDS * 1_000_000_000));
        while self.answers.front().is_some_and(|(asked, _)| *asked < oldest) {
            self.answers.pop_front();
        }
        self.now = players;
        self.now.truncate(limits::PINGED_PLAYERS);
        for player in &mut self.now {
            player.name = clean_text(&player.name, limits::NAME_CHARS);
            if self.answers.len() >= limits::HISTORY_PINGS {
                self.answers.pop_front();
                self.full = true;
            }
            self.answers.push_back((at, player.millis));
        }
    }

    /// How many are online, once it is known.
    pub(super) fn online(&self) -> Option<u32> {
        self.since.map(|_| self.online)
    }

    pub(super) fn ping(&self, now: MonotonicNanos) -> Ping {
        let oldest = MonotonicNanos(now.0.saturating_sub(limits::HISTORY_SECONDS * 1_000_000_000));
        let known = self.answers.iter().filter(|(asked, _)| *asked >= oldest);
        let since = match (self.full, self.answers.front(), self.since) {
            (true, Some((first, _)), _) => *first,
            (_, _, Some(since)) => since,
            _ => now,
        };
        Ping {
            known_seconds: now.since(since.max(oldest)) as f64 / 1e9,
            now: distribution(self.now.iter().map(|player| f64::from(player.millis)).collect()),
            last_15m: distribution(known.map(|(_, millis)| f64::from(*millis)).collect()),
            players: self.now.clone(),
        }
    }
}
