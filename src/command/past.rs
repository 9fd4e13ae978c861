//! The list of past profiles.

use super::figures::{age, counted, duration};
use super::line::Line;
use crate::limits;
use crate::model::{PastKind, PastProfile, ProfilePlace, WallMillis, clean_text};

/// One page of the list, newest first. Pages are counted from 1.
pub(super) fn past(now: WallMillis, entries: &[PastProfile], page: usize) -> Vec<Line> {
    if entries.is_empty() {
        return vec![
            Line::new()
                .text("No profile has been made yet. Begin with ")
                .value("/spark profiler start")
                .text("."),
        ];
    }
    let pages = entries.len().div_ceil(limits::ACTIVITY_PAGE);
    if page > pages {
        return vec![Line::new().bad(format!("There is no page {page}: the last is {pages}."))];
    }
    let title = match pages {
        1 => "Past profiles, newest first:".to_owned(),
        _ => format!("Past profiles, newest first (page {page} of {pages}):"),
    };
    let mut lines = vec![Line::new().text(title)];
    let first = (page - 1) * limits::ACTIVITY_PAGE;
    lines.extend(
        entries
            .iter()
            .skip(first)
            .take(limits::ACTIVITY_PAGE)
            .map(|entry| line(now, entry)),
    );
    if page < pages {
        lines.push(
            Line::continued()
                .text("More: ")
                .value(format!("/spark activity --page {}", page + 1)),
        );
    }
    lines
}

fn line(now: WallMillis, entry: &PastProfile) -> Line {
    // The file may have been edited: everything is cleaned.
    let place = match &entry.place {
        ProfilePlace::Link(text) | ProfilePlace::File(text) => clean_text(text, limits::COMMENT_CHARS),
    };
    let seconds = now.0.saturating_sub(entry.time).max(0) / 1_000;
    Line::continued()
        .value(age(seconds.unsigned_abs()))
        .text(" by ")
        .value(clean_text(&entry.user, limits::ECHO_CHARS))
        .text(match entry.kind {
            PastKind::Profile => format!(
                ", {} in {}: ",
                counted(entry.samples, "sample"),
                duration(entry.seconds)
            ),
            PastKind::Background => format!(
                ", in the background {} in {}: ",
                counted(entry.samples, "sample"),
                duration(entry.seconds)
            ),
            PastKind::Health => ", health report: ".to_owned(),
        })
        .value(place)
}
