//! Function names in DWARF debug information.
//!
//! Used where a file has debug information and no symbol table, as some tools leave it. Only functions with code of their own are read; those that were
//! inlined everywhere have no address that could be named.

use gimli::{
    AttributeValue, DebuggingInformationEntry, Dwarf, EndianSlice, LittleEndian, Reader, SectionId, Unit, UnitRef,
    constants,
};

use super::table::{Function, Visibility};
use crate::limits::{DWARF_REFERENCES, SYMBOL_TABLE_BYTES};

type Slice<'d> = EndianSlice<'d, LittleEndian>;

/// Appends the functions of the sections that `section` gives. Damage ends the list where it begins.
pub fn functions<'d>(
    section: impl Fn(SectionId) -> &'d [u8],
    functions: &mut Vec<Function>,
    text: &mut Vec<u8>,
) -> Result<(), gimli::Error> {
    let dwarf = Dwarf::load(|id| Ok::<_, gimli::Error>(EndianSlice::new(section(id), LittleEndian)))?;
    let mut units = dwarf.units();
    while let Some(header) = units.next()? {
        // A damaged unit says nothing of the others.
        if let Ok(unit) = dwarf.unit(header) {
            let _ = functions_of_unit(&dwarf, &unit, functions, text);
        }
    }
    Ok(())
}

fn functions_of_unit<'d>(
    dwarf: &Dwarf<Slice<'d>>,
    unit: &Unit<Slice<'d>>,
    functions: &mut Vec<Function>,
    text: &mut Vec<u8>,
) -> Result<(), gimli::Error> {
    let unit = UnitRef::new(dwarf, unit);
    let mut entries = unit.entries();
    while let Some(entry) = entries.next_dfs()? {
        if entry.tag() != constants::DW_TAG_subprogram {
            continue;
        }
        let mut ranges = unit.die_ranges(entry)?;
        let mut name = None;
        while let Some(range) = ranges.next()? {
            // A linker that drops a function leaves its entry at address 0 or 1.
            if range.begin <= 1 || range.end <= range.begin {
                continue;
            }
            let (start, length) = match name {
                Some(known) => known,
                None => {
                    let Some(found) = name_of(unit, entry) else { break };
                    if (text.len() + found.len()) as u64 > SYMBOL_TABLE_BYTES {
                        return Ok(());
                    }
                    let at = (text.len() as u32, found.len() as u32);
                    text.extend_from_slice(&found);
                    *name.insert(at)
                }
            };
            let external = matches!(
                entry.attr_value(constants::DW_AT_external),
                Some(AttributeValue::Flag(true))
            );
            functions.push(Function {
                start: range.begin,
                end: range.end,
                name: start,
                name_length: length,
                visibility: if external {
                    Visibility::Global
                } else {
                    Visibility::Local
                },
            });
        }
    }
    Ok(())
}

/// The mangled name where there is one. It and the plain name may stand at the declaration, or at the original of a copy.
fn name_of<'d>(unit: UnitRef<'_, Slice<'d>>, entry: &DebuggingInformationEntry<Slice<'d>>) -> Option<Vec<u8>> {
    let mut plain = None;
    let mut at = None;
    for _ in 0..DWARF_REFERENCES {
        let entry = at.as_ref().unwrap_or(entry);
        for attribute in [constants::DW_AT_linkage_name, constants::DW_AT_MIPS_linkage_name] {
            if let Some(name) = text_of(unit, entry, attribute) {
                return Some(name);
            }
        }
        plain = plain.or_else(|| text_of(unit, entry, constants::DW_AT_name));
        let origin = entry
            .attr_value(constants::DW_AT_abstract_origin)
            .or_else(|| entry.attr_value(constants::DW_AT_specification));
        // A reference into another unit comes from link-time optimisation; the plain name is then all there is.
        let Some(AttributeValue::UnitRef(offset)) = origin else {
            break;
        };
        at = Some(unit.entry(offset).ok()?);
    }
    plain
}

fn text_of<'d>(
    unit: UnitRef<'_, Slice<'d>>,
    entry: &DebuggingInformationEntry<Slice<'d>>,
    attribute: gimli::DwAt,
) -> Option<Vec<u8>> {
    let text = unit.attr_string(entry.attr_value(attribute)?).ok()?;
    Some(text.to_slice().ok()?.into_owned())
}
