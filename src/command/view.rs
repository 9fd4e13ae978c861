//! Switches that say what a profile shows.

use super::flags::Flag;
use super::parse::ParseError;
use crate::model::{Grouping, View};

/// Takes a flag up if it is one of these switches; `false` when it is another one.
pub(super) fn apply(flag: &Flag, view: &mut View) -> Result<bool, ParseError> {
    let (name, grouping) = match flag.name.as_str() {
        "show-interpreter" => ("show-interpreter", None),
        "not-combined" => ("not-combined", Some(Grouping::Separate)),
        "combine-all" => ("combine-all", Some(Grouping::AllInOne)),
        _ => return Ok(false),
    };
    if flag.value.is_some() {
        return Err(ParseError::NoValue(name));
    }
    match grouping {
        None => view.show_interpreter = true,
        Some(_) if view.grouping != Grouping::default() => return Err(ParseError::Grouping),
        Some(grouping) => view.grouping = grouping,
    }
    Ok(true)
}
