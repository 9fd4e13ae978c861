//! One line of an answer, and how it looks.

use std::fmt::Write;

/// Who reads it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Audience {
    /// A player: colours as section-sign codes.
    Player,
    /// The console or a log: plain text.
    Console,
}

/// What a piece of text is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Tone {
    Text,
    Value,
    Good,
    Fair,
    Bad,
}

/// What a figure means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Grade {
    /// As it should be.
    Good,
    /// Worth a look.
    Fair,
    /// Trouble.
    Bad,
}

impl Grade {
    /// Good, else fair, else bad.
    pub const fn of(good: bool, fair: bool) -> Self {
        match (good, fair) {
            (true, _) => Grade::Good,
            (false, true) => Grade::Fair,
            (false, false) => Grade::Bad,
        }
    }
}

impl Tone {
    /// Minecraft's colour code.
    const fn code(self) -> char {
        match self {
            Tone::Text => '7',
            Tone::Value => 'f',
            Tone::Good => 'a',
            Tone::Fair => 'e',
            Tone::Bad => 'c',
        }
    }
}

/// One line, as pieces with their tones. Built from left to right.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Line {
    pieces: Vec<(Tone, String)>,
    continues: bool,
}

impl Line {
    /// An empty line with the sign of the plugin before it.
    pub fn new() -> Self {
        Line::default()
    }

    /// An empty line that belongs to the one before and is set in instead.
    pub fn continued() -> Self {
        Line {
            continues: true,
            ..Line::default()
        }
    }

    fn with(mut self, tone: Tone, text: impl Into<String>) -> Self {
        self.pieces.push((tone, text.into()));
        self
    }

    /// Adds plain words.
    pub fn text(self, text: impl Into<String>) -> Self {
        self.with(Tone::Text, text)
    }

    /// Adds a figure, a name, something to type.
    pub fn value(self, text: impl Into<String>) -> Self {
        self.with(Tone::Value, text)
    }

    /// Adds good news.
    pub fn good(self, text: impl Into<String>) -> Self {
        self.with(Tone::Good, text)
    }

    /// Adds bad news.
    pub fn bad(self, text: impl Into<String>) -> Self {
        self.with(Tone::Bad, text)
    }

    /// Adds a figure, with what it means.
    pub fn graded(self, grade: Grade, text: impl Into<String>) -> Self {
        let tone = match grade {
            Grade::Good => Tone::Good,
            Grade::Fair => Tone::Fair,
            Grade::Bad => Tone::Bad,
        };
        self.with(tone, text)
    }

    /// The line as this reader gets it.
    pub fn render(&self, audience: Audience) -> String {
        let mut out = String::new();
        match (audience, self.continues) {
            (Audience::Player, false) => out.push_str("§8[§e§l⚡§r§8]"),
            (Audience::Console, false) => out.push_str("[⚡]"),
            (_, true) => out.push_str("   "),
        }
        out.push(' ');
        let mut current = None;
        for (tone, text) in &self.pieces {
            if audience == Audience::Player && current != Some(tone) {
                current = Some(tone);
                // Writing to a String cannot fail.
                let _ = write!(out, "§{}", tone.code());
            }
            out.push_str(text);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn players_get_colours_and_the_console_plain_text() {
        let line = Line::new().text("Took ").text("all of ").value("5 ms").good("!");
        assert_eq!(line.render(Audience::Console), "[⚡] Took all of 5 ms!");
        assert_eq!(line.render(Audience::Player), "§8[§e§l⚡§r§8] §7Took all of §f5 ms§a!");
    }

    #[test]
    fn a_continued_line_is_set_in() {
        let line = Line::continued().bad("lost");
        assert_eq!(line.render(Audience::Console), "    lost");
        assert_eq!(line.render(Audience::Player), "    §clost");
    }
}
