//! Differences between a release and the constants of `endstone::abi`, each as a line.

use std::collections::{BTreeMap, HashSet};

use endstone_spark::endstone::abi::{
    ClassLayout, CxxFunction, CxxHashMap, ENUMS, EnumValues, LAYOUTS, Member, Message, Pass, Player, VTABLES,
    VtableSlots,
};

use super::types::{Method, TypesError};
use super::{Class, Released};

/// What is different; empty when nothing is.
pub type Differences = std::result::Result<Vec<String>, TypesError>;

const STRING: &str = "std::__1::basic_string<char, std::__1::char_traits<char>, std::__1::allocator<char> >";

/// Base classes to whose part of an object pointers are converted: class, base, offset in bytes.
const BASES: [(&str, &str, u64); 8] = [
    (
        "endstone::Player",
        "OfflinePlayer",
        Player::OFFLINE_PLAYER_OFFSET as u64,
    ),
    ("endstone::Player", "Mob", 0),
    ("endstone::Mob", "Actor", 0),
    ("endstone::Actor", "CommandSender", 0),
    ("endstone::ConsoleCommandSender", "CommandSender", 0),
    ("endstone::CommandSender", "Permissible", 0),
    ("endstone::Plugin", "CommandExecutor", 0),
    ("endstone::PluginCommand", "Command", 0),
];

/// Everything that is used.
///
/// # Errors
/// See [`TypesError`], as for all below.
pub fn all(released: &Released) -> Differences {
    let mut lines = Vec::new();
    for table in VTABLES {
        lines.extend(slots(released, table)?);
    }
    for described in LAYOUTS {
        lines.extend(layout(released, described)?);
    }
    for values in ENUMS {
        lines.extend(enumerators(released, values)?);
    }
    lines.extend(parts(released)?);
    lines.extend(bases(released)?);
    let mut known = HashSet::new();
    Ok(lines
        .iter()
        .map(|line| readable(line))
        .filter(|line| known.insert(line.clone()))
        .collect())
}

/// With the templates' arguments left out, which fill pages.
fn readable(line: &str) -> String {
    let mut text = String::new();
    let mut depth = 0;
    for letter in line
        .replace(STRING, "std::string")
        .replace("std::__1::", "std::")
        .chars()
    {
        match letter {
            '<' if depth == 0 => text.push_str("<...>"),
            '>' | '<' => {}
            _ if depth == 0 => text.push(letter),
            _ => {}
        }
        match letter {
            '<' => depth += 1,
            '>' => depth -= 1,
            _ => {}
        }
    }
    text
}

/// Compares each description of a class, or says that there is none.
fn each(released: &Released, class: &str, compare: impl Fn(&Class, &mut Vec<String>)) -> Differences {
    let described = released.class(class)?;
    let mut lines = Vec::new();
    if described.is_empty() {
        lines.push(format!("{class}: there is no such class"));
    }
    for class in &described {
        compare(class, &mut lines);
    }
    lines.dedup();
    Ok(lines)
}

/// The slots of a vtable: where a method is, and how its arguments and its result travel.
pub fn slots(released: &Released, table: &VtableSlots) -> Differences {
    each(released, table.class, |class, lines| {
        for slot in table.slots {
            let at = class.methods.get(&(slot.index as u64));
            let Some(method) = at.filter(|method| method.symbol == slot.symbol) else {
                lines.push(format!(
                    "{}: {} is {}",
                    table.class,
                    slot.symbol,
                    elsewhere(class, slot.symbol, slot.index, at)
                ));
                continue;
            };
            if method.arguments != slot.arguments || method.result != slot.result {
                lines.push(format!(
                    "{}: {} takes {} and returns {}, not {} and {}",
                    table.class,
                    slot.symbol,
                    list(&method.arguments),
                    passing(method.result),
                    list(slot.arguments),
                    passing(slot.result)
                ));
            }
        }
    })
}

/// Where a method is that is not in the slot where it was.
fn elsewhere(class: &Class, symbol: &str, slot: usize, instead: Option<&Method>) -> String {
    if let Some((moved, _)) = class.methods.iter().find(|(_, method)| method.symbol == symbol) {
        return format!("in slot {moved}, not {slot}");
    }
    match instead {
        Some(other) => format!("gone; slot {slot} is {}", other.symbol),
        None => format!("gone, and so is slot {slot}"),
    }
}

fn list(arguments: &[Pass]) -> String {
    let arguments: Vec<String> = arguments.iter().copied().map(passing).collect();
    if arguments.is_empty() {
        "nothing".to_owned()
    } else {
        arguments.join(", ")
    }
}

fn passing(how: Pass) -> String {
    match how {
        Pass::Nothing => "nothing".to_owned(),
        Pass::Registers(bytes) => format!("{bytes} bytes"),
        Pass::Float => "a float".to_owned(),
        Pass::Memory => "an object in memory".to_owned(),
    }
}

/// Size, passing and members of a class.
pub fn layout(released: &Released, layout: &ClassLayout) -> Differences {
    let mut lines = members(released, layout.class, layout.members)?;
    lines.extend(each(released, layout.class, |class, lines| {
        if class.size != Some(layout.size as u64) {
            let size = class
                .size
                .map_or("an unknown number of".to_owned(), |size| size.to_string());
            lines.push(format!("{} has {size} bytes, not {}", layout.class, layout.size));
        }
        if class.in_memory != Some(layout.in_memory) {
            let how = |in_memory| if in_memory { "through memory" } else { "in registers" };
            let now = class.in_memory.map_or("in an unknown way", how);
            lines.push(format!("{} travels {now}, not {}", layout.class, how(layout.in_memory)));
        }
    })?);
    lines.dedup();
    Ok(lines)
}

/// Where members are.
pub fn members(released: &Released, class: &str, members: &[Member]) -> Differences {
    each(released, class, |described, lines| {
        for member in members {
            match described.members.get(member.name) {
                Some(offset) if *offset == member.offset as u64 => {}
                Some(offset) => lines.push(format!(
                    "{class}::{} is at {offset}, not {}",
                    member.name, member.offset
                )),
                None => lines.push(format!("{class}::{} is gone", member.name)),
            }
        }
    })
}

/// The numbers of an enumeration.
pub fn enumerators(released: &Released, ours: &EnumValues) -> Differences {
    let expected: BTreeMap<String, i64> = ours
        .values
        .iter()
        .map(|(name, number)| ((*name).to_owned(), *number))
        .collect();
    each(released, ours.class, |class, lines| {
        if class.enumerators != expected {
            lines.push(format!("{} has {:?}, not {expected:?}", ours.class, class.enumerators));
        }
        if class.size != Some(ours.size as u64) {
            lines.push(format!("{} has {:?} bytes, not {}", ours.class, class.size, ours.size));
        }
    })
}

/// The parts of strings, maps, functions and messages.
pub fn parts(released: &Released) -> Differences {
    let at = |name, offset| Member { name, offset };
    let long = [at("__size_", 8), at("__data_", 16)];
    let mut lines = members(released, &format!("{STRING}::__long"), &long)?;
    lines.extend(members(released, &format!("{STRING}::__short"), &[at("__data_", 1)])?);
    lines.extend(members(
        released,
        "std::__1::__function::__value_func<void ()>",
        CxxFunction::VALUE_FUNC_MEMBERS,
    )?);
    let table = format!("std::__1::__hash_table<std::__1::__hash_value_type<{STRING}, bool>");
    let variant = format!("{STRING}, endstone::Translatable>");
    for (start, end, parts) in [
        (table.as_str(), "bool> > >", CxxHashMap::TABLE_MEMBERS),
        ("std::__1::__variant_detail::__base<", &variant, Message::BASE_MEMBERS),
    ] {
        match released.classes_like(start, end)[..] {
            [class] => lines.extend(members(released, class, parts)?),
            ref found => lines.push(format!("{} classes are called {start}...{end}, not one", found.len())),
        }
    }
    Ok(lines)
}

/// Where the parts of base classes are in objects.
pub fn bases(released: &Released) -> Differences {
    let mut lines = Vec::new();
    for (class, base, offset) in BASES {
        lines.extend(each(released, class, |described, lines| {
            match described.bases.get(base) {
                Some(found) if *found == offset => {}
                Some(found) => lines.push(format!("{base} in {class} is at {found}, not {offset}")),
                None => lines.push(format!("{class} is no {base}")),
            }
        })?);
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn template_arguments_are_left_out() {
        let line = format!("std::__1::vector<{STRING}, std::__1::allocator<{STRING} > >::__cap_ is gone");
        assert_eq!(readable(&line), "std::vector<...>::__cap_ is gone");
        assert_eq!(
            readable(&format!("{STRING}::__rep_ is at 0, not 8")),
            "std::string::__rep_ is at 0, not 8"
        );
        let slot = "endstone::Player: _ZNK8endstone6Player7getPingEv is in slot 95, not 96";
        assert_eq!(readable(slot), slot);
    }
}
