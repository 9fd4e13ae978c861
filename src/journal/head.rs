//! What a journal says of its session, at the head of every segment: all that a profile needs beside samples, modules and threads.

use super::wire::{Cursor, put, put_bytes, put_signed};
use crate::limits;
use crate::model::{Grouping, MonotonicNanos, Tid, View, WallMillis, clean_text};

/// Who started a session.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Owner {
    /// The console, or nobody.
    #[default]
    Console,
    /// A player.
    Player {
        /// The name at that time.
        name: String,
        /// The id, in the order of its bytes.
        unique_id: [u8; 16],
    },
}

/// A plugin of the server.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PluginRecord {
    /// As Endstone knows it.
    pub name: String,
    /// As the plugin gives it.
    pub version: String,
    /// Separated by commas; may be empty.
    pub authors: String,
    /// One line; may be empty.
    pub description: String,
    /// For a native plugin: the stem of its file.
    pub native_stem: Option<String>,
}

/// The session and its server.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SessionHead {
    /// When it began.
    pub started_at: MonotonicNanos,
    /// The same by the calendar.
    pub started: WallMillis,
    /// How long the server had run by then, in milliseconds.
    pub server_uptime_millis: u64,
    /// Time between samples, in microseconds.
    pub interval_micros: u64,
    /// The thread that ticks.
    pub server_thread: Option<Tid>,
    /// The threads that were asked for were all, not just the one that ticks.
    pub all_threads: bool,
    /// Names or patterns of the threads that were asked for; empty unless some were.
    pub thread_names: Vec<String>,
    /// Those are patterns.
    pub names_are_patterns: bool,
    /// Time in which a thread waits was left out.
    pub ignore_sleeping: bool,
    /// Only ticks that take longer than so many milliseconds are wanted. All are written: whether one is slow is known when it has ended.
    pub only_ticks_over_millis: Option<u64>,
    /// Nobody has started it: it is the one in the background, of which the last hour counts.
    pub in_background: bool,
    /// What the profile shows.
    pub view: View,
    /// Who started it.
    pub owner: Owner,
    /// The owner's words; may be empty.
    pub comment: String,
    /// e.g. `Endstone`.
    pub server_name: String,
    /// e.g. `0.11.14`.
    pub server_version: String,
    /// The game's version.
    pub minecraft_version: String,
    /// All plugins.
    pub plugins: Vec<PluginRecord>,
}

/// Bits of the first number.
const ALL_THREADS: u64 = 1;
const PATTERNS: u64 = 2;
const IGNORE_SLEEPING: u64 = 4;
const SHOW_INTERPRETER: u64 = 8;
const PLAYER: u64 = 16;
const SEPARATE: u64 = 32;
const ALL_IN_ONE: u64 = 64;
const ONLY_TICKS: u64 = 128;
const IN_BACKGROUND: u64 = 256;

impl SessionHead {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        let flag = |is_set: bool, bit: u64| if is_set { bit } else { 0 };
        put(
            out,
            flag(self.all_threads, ALL_THREADS)
                | flag(self.names_are_patterns, PATTERNS)
                | flag(self.ignore_sleeping, IGNORE_SLEEPING)
                | flag(self.view.show_interpreter, SHOW_INTERPRETER)
                | flag(matches!(self.owner, Owner::Player { .. }), PLAYER)
                | flag(self.only_ticks_over_millis.is_some(), ONLY_TICKS)
                | flag(self.in_background, IN_BACKGROUND)
                | match self.view.grouping {
                    Grouping::ByPool => 0,
                    Grouping::Separate => SEPARATE,
                    Grouping::AllInOne => ALL_IN_ONE,
                },
        );
        put(out, self.started_at.0);
        put_signed(out, self.started.0);
        put(out, self.server_uptime_millis);
        put(out, self.interval_micros);
        put(out, self.server_thread.map_or(0, |tid| tid.get().max(0) as u64));
        if let Owner::Player { name, unique_id } = &self.owner {
            put_text(out, name);
            out.extend_from_slice(unique_id);
        }
        for text in [
            &self.comment,
            &self.server_name,
            &self.server_version,
            &self.minecraft_version,
        ] {
            put_text(out, text);
        }
        let names = self.thread_names.len().min(limits::JOURNAL_NAMES);
        put(out, names as u64);
        self.thread_names
            .iter()
            .take(names)
            .for_each(|name| put_text(out, name));
        let plugins = self.plugins.len().min(limits::PLUGINS);
        put(out, plugins as u64);
        for plugin in self.plugins.iter().take(plugins) {
            put_text(out, &plugin.name);
            put_text(out, &plugin.version);
            put_text(out, &plugin.authors);
            put_text(out, &plugin.description);
            // A stem is never empty.
            put_text(out, plugin.native_stem.as_deref().unwrap_or_default());
        }
        // Last, where readers that do not know it do not look.
        if let Some(millis) = self.only_ticks_over_millis {
            put(out, millis);
        }
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<SessionHead> {
        let mut cursor = Cursor(bytes);
        let cursor = &mut cursor;
        let flags = cursor.number()?;
        let is = |bit: u64| flags & bit != 0;
        let started_at = MonotonicNanos(cursor.number()?);
        let started = WallMillis(cursor.signed()?);
        let server_uptime_millis = cursor.number()?;
        let interval_micros = cursor.number()?;
        let server_thread = match i32::try_from(cursor.number()?).ok()? {
            0 => None,
            tid => Some(Tid::new(tid)),
        };
        let owner = if is(PLAYER) {
            let name = text(cursor)?;
            let (unique_id, rest) = cursor.0.split_first_chunk::<16>()?;
            cursor.0 = rest;
            Owner::Player {
                name,
                unique_id: *unique_id,
            }
        } else {
            Owner::Console
        };
        let mut next = || text(cursor);
        let (comment, server_name, server_version, minecraft_version) = (next()?, next()?, next()?, next()?);
        let names = cursor.number().filter(|count| *count <= limits::JOURNAL_NAMES as u64)?;
        let thread_names = (0..names).map(|_| text(cursor)).collect::<Option<_>>()?;
        let plugins = cursor.number().filter(|count| *count <= limits::PLUGINS as u64)?;
        let plugins = (0..plugins).map(|_| plugin(cursor)).collect::<Option<_>>()?;
        let only_ticks_over_millis = match is(ONLY_TICKS) {
            true => Some(cursor.number()?),
            false => None,
        };
        Some(SessionHead {
            started_at,
            started,
            server_uptime_millis,
            interval_micros,
            server_thread,
            all_threads: is(ALL_THREADS),
            thread_names,
            names_are_patterns: is(PATTERNS),
            ignore_sleeping: is(IGNORE_SLEEPING),
            only_ticks_over_millis,
            in_background: is(IN_BACKGROUND),
            view: View {
                grouping: match (is(SEPARATE), is(ALL_IN_ONE)) {
                    (true, _) => Grouping::Separate,
                    (_, true) => Grouping::AllInOne,
                    _ => Grouping::ByPool,
                },
                show_interpreter: is(SHOW_INTERPRETER),
            },
            owner,
            comment,
            server_name,
            server_version,
            minecraft_version,
            plugins,
        })
    }
}

fn plugin(cursor: &mut Cursor<'_>) -> Option<PluginRecord> {
    let mut next = || text(cursor);
    Some(PluginRecord {
        name: next()?,
        version: next()?,
        authors: next()?,
        description: next()?,
        native_stem: Some(next()?).filter(|stem| !stem.is_empty()),
    })
}

/// Appends a text, cut where a reader would refuse it.
pub(super) fn put_text(out: &mut Vec<u8>, text: &str) {
    let mut end = text.len().min(limits::JOURNAL_TEXT_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    put_bytes(out, text.get(..end).unwrap_or_default().as_bytes());
}

/// A text, made presentable: nobody knows who wrote the file.
pub(super) fn text(cursor: &mut Cursor<'_>) -> Option<String> {
    let text = cursor.text(limits::JOURNAL_TEXT_BYTES)?;
    Some(clean_text(&text, limits::COMMENT_CHARS))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full() -> SessionHead {
        SessionHead {
            started_at: MonotonicNanos(123_456_789_012),
            started: WallMillis(1_795_981_203_999),
            server_uptime_millis: 86_400_000,
            interval_micros: 4_000,
            server_thread: Some(Tid::new(4_711)),
            all_threads: true,
            thread_names: vec!["worker-[0-9]+".to_owned(), "Größe".to_owned()],
            names_are_patterns: true,
            ignore_sleeping: true,
            only_ticks_over_millis: Some(50),
            in_background: true,
            view: View {
                grouping: Grouping::AllInOne,
                show_interpreter: true,
            },
            owner: Owner::Player {
                name: "Steve".to_owned(),
                unique_id: [7; 16],
            },
            comment: "lag at spawn".to_owned(),
            server_name: "Endstone".to_owned(),
            server_version: "0.11.14".to_owned(),
            minecraft_version: "1.21".to_owned(),
            plugins: vec![
                PluginRecord {
                    name: "shop".to_owned(),
                    version: "1.0".to_owned(),
                    authors: "A, B".to_owned(),
                    description: "sells".to_owned(),
                    native_stem: Some("shop".to_owned()),
                },
                PluginRecord::default(),
            ],
        }
    }

    #[test]
    fn a_head_comes_back() {
        let separate = SessionHead {
            view: View {
                grouping: Grouping::Separate,
                show_interpreter: false,
            },
            ..SessionHead::default()
        };
        for head in [full(), SessionHead::default(), separate] {
            let mut bytes = Vec::new();
            head.encode(&mut bytes);
            assert_eq!(SessionHead::decode(&bytes), Some(head));
            for end in 0..bytes.len() {
                assert_eq!(SessionHead::decode(&bytes[..end]), None, "{end} bytes");
            }
        }
    }

    #[test]
    fn texts_are_cut_and_cleaned() {
        let head = SessionHead {
            comment: "ä".repeat(limits::JOURNAL_TEXT_BYTES),
            server_name: "§cEnd\u{7}stone".to_owned(),
            ..SessionHead::default()
        };
        let mut bytes = Vec::new();
        head.encode(&mut bytes);
        let read = SessionHead::decode(&bytes).unwrap();
        assert_eq!(read.comment.chars().count(), limits::COMMENT_CHARS);
        assert_eq!(read.server_name, "Endstone");
    }
}
