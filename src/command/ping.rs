//! `/spark ping`.

use super::answer::name;
use super::figures::duration;
use super::flags::Flag;
use super::line::Line;
use super::parse::{PING, ParseError};
use super::statistics::{ping_grade, spread};
use crate::model::Statistics;

/// Whose ping is asked for; `None` for all.
pub(super) fn player(flags: &[Flag]) -> Result<Option<String>, ParseError> {
    let mut player = None;
    for flag in flags {
        if flag.name != "player" {
            return Err(ParseError::UnknownFlag {
                action: PING,
                name: flag.name.clone(),
            });
        }
        let value = flag.value.as_deref().unwrap_or_default();
        if value.is_empty() {
            return Err(ParseError::Player);
        }
        player = Some(value.to_owned());
    }
    Ok(player)
}

pub(super) fn ping(statistics: &Statistics, player: Option<&str>) -> Vec<Line> {
    match player {
        Some(player) => vec![of_player(statistics, player)],
        None => of_all(statistics),
    }
}

fn of_player(statistics: &Statistics, wanted: &str) -> Line {
    let players = &statistics.ping.players;
    let found = players.iter().find(|player| player.name == wanted).or_else(|| {
        players
            .iter()
            .find(|player| player.name.to_lowercase() == wanted.to_lowercase())
    });
    match found {
        Some(player) => Line::new()
            .text("Ping of ")
            .value(player.name.clone())
            .text(": ")
            .graded(ping_grade(f64::from(player.millis)), format!("{} ms", player.millis)),
        None => Line::new().bad(format!(
            "No player called {} is known yet: who joins is asked within ten seconds.",
            name(wanted)
        )),
    }
}

fn of_all(statistics: &Statistics) -> Vec<Line> {
    let ping = &statistics.ping;
    let mut lines = match &ping.now {
        Some(now) => vec![
            Line::new().text("Pings of players in milliseconds, mean / min / median / 95 % / max:"),
            spread(Line::continued().text("  now: "), now, ping_grade),
        ],
        None => vec![Line::new().text("There is no player whose ping is known.")],
    };
    if let Some(last) = &ping.last_15m {
        let known = duration(ping.known_seconds as u64);
        lines.push(spread(
            Line::continued().text(format!("  over {known}: ")),
            last,
            ping_grade,
        ));
    }
    lines
}
