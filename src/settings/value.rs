//! What a setting's value may be.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use toml::de::DeValue;

use super::Settings;
use crate::model::WebAddress;

/// A kind of value, and the place in [`Settings`] that it goes to.
#[derive(Debug)]
pub(super) enum Kind {
    /// A web address: `https`, or `http` for this machine.
    Address(fn(&mut Settings) -> &mut WebAddress),
    /// The web address that something goes to: to none, when it cannot be used.
    Receiver(fn(&mut Settings) -> &mut Option<WebAddress>),
    /// `true` or `false`.
    Truth(fn(&mut Settings) -> &mut bool),
    /// `"on"` or `"off"`.
    Switch(fn(&mut Settings) -> &mut bool),
    /// The absolute path of a folder.
    Folder(fn(&mut Settings) -> &mut PathBuf),
    /// A whole number within bounds.
    Whole(RangeInclusive<u64>, fn(&mut Settings) -> &mut u64),
}

impl Kind {
    /// Takes a value over, or gives what is allowed ("must be ...").
    pub(super) fn set(&self, settings: &mut Settings, value: &DeValue<'_>) -> Result<(), String> {
        match self {
            Kind::Address(field) => {
                *field(settings) = address(value)?;
            }
            Kind::Receiver(field) => {
                *field(settings) = None;
                *field(settings) = Some(address(value)?);
            }
            // What one says of a switch is understood of the other.
            Kind::Truth(field) => *field(settings) = switch(value).ok_or("true or false")?,
            Kind::Switch(field) => *field(settings) = switch(value).ok_or("\"on\" or \"off\"")?,
            Kind::Folder(field) => {
                *field(settings) = folder(value).ok_or("an absolute path like \"/usr/lib/debug\"")?;
            }
            Kind::Whole(range, field) => {
                *field(settings) = whole(value)
                    .filter(|number| range.contains(number))
                    .ok_or_else(|| format!("a whole number from {} to {}", range.start(), range.end()))?;
            }
        }
        Ok(())
    }

    /// The default as it stands in the file.
    pub(super) fn default_text(&self) -> String {
        let mut settings = Settings::default();
        match self {
            Kind::Address(field) => format!("\"{}\"", field(&mut settings)),
            Kind::Receiver(field) => field(&mut settings)
                .as_ref()
                .map_or_else(String::new, |address| format!("\"{address}\"")),
            Kind::Truth(field) => field(&mut settings).to_string(),
            Kind::Switch(field) => if *field(&mut settings) { "\"on\"" } else { "\"off\"" }.to_owned(),
            Kind::Folder(field) => format!("\"{}\"", field(&mut settings).display()),
            Kind::Whole(_, field) => field(&mut settings).to_string(),
        }
    }

    /// What holds instead of a value that cannot be used.
    pub(super) fn instead(&self) -> String {
        match self {
            Kind::Receiver(_) => "Nothing is uploaded in this run: profiles are saved as files.".to_owned(),
            _ => format!("The default ({}) is used for this run.", self.default_text()),
        }
    }
}

fn address(value: &DeValue<'_>) -> Result<WebAddress, String> {
    WebAddress::parse(value.as_str().unwrap_or_default()).map_err(|allowed| allowed.to_string())
}

fn switch(value: &DeValue<'_>) -> Option<bool> {
    match value.as_str() {
        Some("on") => Some(true),
        Some("off") => Some(false),
        Some(_) => None,
        None => value.as_bool(),
    }
}

/// No path of the system holds a NUL, though a string of the file may.
fn folder(value: &DeValue<'_>) -> Option<PathBuf> {
    let text = value.as_str().filter(|text| !text.contains('\0'))?;
    let path = Path::new(text);
    path.is_absolute().then(|| path.to_owned())
}

fn whole(value: &DeValue<'_>) -> Option<u64> {
    let number = value.as_integer().filter(|number| number.radix() == 10)?;
    number.as_str().parse().ok()
}
