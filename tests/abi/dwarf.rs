//! Class descriptions out of DWARF.

use std::collections::{BTreeMap, HashMap};

use endstone_spark::endstone::abi::Pass;
use gimli::{AttributeValue, DebuggingInformationEntry, EndianSlice, LittleEndian, UnitOffset, constants as dw};
use object::{Object, ObjectSection};

/// Kept for as long as the program runs: all of it is looked at until the end.
type Bytes = EndianSlice<'static, LittleEndian>;
type Entry = DebuggingInformationEntry<Bytes>;

/// One class or enumeration.
#[derive(Debug, Default)]
pub struct Class {
    pub size: Option<u64>,
    /// How a value of it is passed: in memory when it has a destructor or a copy constructor of its own.
    pub in_memory: Option<bool>,
    /// By their names without namespaces.
    pub bases: BTreeMap<String, u64>,
    pub members: BTreeMap<String, u64>,
    pub methods: BTreeMap<u64, Method>,
    pub enumerators: BTreeMap<String, i64>,
}

/// One virtual method.
#[derive(Debug)]
pub struct Method {
    pub symbol: String,
    pub arguments: Vec<Pass>,
    pub result: Pass,
}

/// A place in the debug information.
#[derive(Clone, Copy, Debug)]
struct Place {
    unit: usize,
    offset: UnitOffset,
}

/// All classes of one file, by name.
pub struct Types {
    dwarf: gimli::Dwarf<Bytes>,
    units: Vec<gimli::Unit<Bytes>>,
    /// Where each unit begins in `.debug_info`, ascending.
    starts: Vec<usize>,
    definitions: HashMap<String, Place>,
    /// Names of declarations without a body, to find the body elsewhere.
    declared: HashMap<(usize, usize), String>,
}

impl Types {
    pub fn read(file: &[u8]) -> Types {
        let file = object::File::parse(file).unwrap();
        let dwarf = gimli::Dwarf::load(|section| -> Result<Bytes, gimli::Error> {
            let data = file
                .section_by_name(section.name())
                .map(|section| section.data().unwrap().to_vec());
            Ok(Bytes::new(data.unwrap_or_default().leak(), LittleEndian))
        })
        .unwrap();
        let mut types = Types {
            dwarf,
            units: Vec::new(),
            starts: Vec::new(),
            definitions: HashMap::new(),
            declared: HashMap::new(),
        };
        let mut headers = types.dwarf.units();
        while let Some(header) = headers.next().unwrap() {
            types.starts.push(header.debug_info_offset().unwrap().0);
            types.units.push(types.dwarf.unit(header).unwrap());
        }
        assert!(
            types.units.len() > 10,
            "too little debug information: {} units",
            types.units.len()
        );
        for unit in 0..types.units.len() {
            types.index(unit);
        }
        types
    }

    /// Notes the qualified names of all classes of a unit.
    fn index(&mut self, unit: usize) {
        let mut definitions = Vec::new();
        let mut declared = Vec::new();
        let mut scopes: Vec<(isize, String)> = Vec::new();
        let mut entries = self.units[unit].entries();
        while let Some(entry) = entries.next_dfs().unwrap() {
            while scopes.last().is_some_and(|(depth, _)| *depth >= entry.depth()) {
                scopes.pop();
            }
            let is_class = is_class(entry.tag());
            if !is_class && entry.tag() != dw::DW_TAG_namespace {
                continue;
            }
            let own = self
                .text(unit, entry, dw::DW_AT_name)
                .unwrap_or_else(|| "(anonymous)".to_owned());
            let name = match scopes.last() {
                Some((_, outer)) => format!("{outer}::{own}"),
                None => own,
            };
            if is_class {
                if entry.has_attr(dw::DW_AT_declaration) {
                    declared.push(((unit, entry.offset().0), name.clone()));
                } else {
                    definitions.push((
                        name.clone(),
                        Place {
                            unit,
                            offset: entry.offset(),
                        },
                    ));
                }
            }
            scopes.push((entry.depth(), name));
        }
        self.declared.extend(declared);
        for (name, place) in definitions {
            self.definitions.entry(name).or_insert(place);
        }
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.definitions.keys().map(String::as_str)
    }

    pub fn class(&self, name: &str) -> Option<Class> {
        let place = *self.definitions.get(name)?;
        let mut class = Class {
            in_memory: self.in_memory(place),
            ..Class::default()
        };
        let mut tree = self.units[place.unit].entries_tree(Some(place.offset)).unwrap();
        let root = tree.root().unwrap();
        class.size = number(root.entry(), dw::DW_AT_byte_size);
        let mut children = root.children();
        while let Some(child) = children.next().unwrap() {
            let entry = child.entry();
            match entry.tag() {
                dw::DW_TAG_inheritance => {
                    if let (Some(offset), Some(base)) = (
                        number(entry, dw::DW_AT_data_member_location),
                        self.type_of(place.unit, entry),
                    ) {
                        class.bases.insert(self.short_name(base), offset);
                    }
                }
                dw::DW_TAG_member => {
                    if let (Some(offset), Some(name)) = (
                        number(entry, dw::DW_AT_data_member_location),
                        self.text(place.unit, entry, dw::DW_AT_name),
                    ) {
                        class.members.insert(name, offset);
                    }
                }
                dw::DW_TAG_enumerator => {
                    let value = entry
                        .attr(dw::DW_AT_const_value)
                        .and_then(|value| value.sdata_value())
                        .unwrap();
                    class
                        .enumerators
                        .insert(self.text(place.unit, entry, dw::DW_AT_name).unwrap(), value);
                }
                dw::DW_TAG_subprogram => {
                    if let Some(slot) = self.slot(place.unit, entry) {
                        let symbol = self.text(place.unit, entry, dw::DW_AT_linkage_name).unwrap_or_default();
                        let result = self.pass_of(place.unit, entry);
                        let mut arguments = Vec::new();
                        let mut parameters = child.children();
                        while let Some(parameter) = parameters.next().unwrap() {
                            let parameter = parameter.entry();
                            // `this` is artificial.
                            if parameter.tag() == dw::DW_TAG_formal_parameter
                                && !parameter.has_attr(dw::DW_AT_artificial)
                            {
                                arguments.push(self.pass_of(place.unit, parameter));
                            }
                        }
                        class.methods.insert(
                            slot,
                            Method {
                                symbol,
                                arguments,
                                result,
                            },
                        );
                    }
                }
                _ => {}
            }
        }
        Some(class)
    }

    fn slot(&self, unit: usize, entry: &Entry) -> Option<u64> {
        match entry.attr_value(dw::DW_AT_vtable_elem_location)? {
            AttributeValue::Exprloc(expression) => {
                match expression.operations(self.units[unit].encoding()).next().unwrap()? {
                    gimli::Operation::UnsignedConstant { value } => Some(value),
                    other => panic!("a slot given as {other:?}"),
                }
            }
            value => value.udata_value(),
        }
    }

    fn text(&self, unit: usize, entry: &Entry, attribute: gimli::DwAt) -> Option<String> {
        let text = self
            .dwarf
            .attr_string(&self.units[unit], entry.attr_value(attribute)?)
            .ok()?;
        Some(String::from_utf8_lossy(&text).into_owned())
    }

    /// The place that an entry's type attribute names; `None` for `void`.
    fn type_of(&self, unit: usize, entry: &Entry) -> Option<Place> {
        match entry.attr_value(dw::DW_AT_type)? {
            AttributeValue::UnitRef(offset) => Some(Place { unit, offset }),
            AttributeValue::DebugInfoRef(offset) => {
                let unit = self.starts.partition_point(|start| *start <= offset.0) - 1;
                Some(Place {
                    unit,
                    offset: offset.to_unit_offset(&self.units[unit].header).unwrap(),
                })
            }
            other => panic!("a type given as {other:?}"),
        }
    }

    fn entry(&self, place: Place) -> Entry {
        self.units[place.unit].entry(place.offset).unwrap()
    }

    /// `place` without typedefs and qualifiers, and the definition where it is a mere declaration.
    fn bare(&self, place: Place) -> Place {
        let entry = self.entry(place);
        match entry.tag() {
            dw::DW_TAG_typedef | dw::DW_TAG_const_type | dw::DW_TAG_volatile_type => {
                match self.type_of(place.unit, &entry) {
                    Some(inner) => self.bare(inner),
                    None => place,
                }
            }
            _ => match self.declared.get(&(place.unit, place.offset.0)) {
                Some(name) => *self.definitions.get(name).unwrap_or(&place),
                None => place,
            },
        }
    }

    /// Without namespaces.
    fn short_name(&self, place: Place) -> String {
        let bare = self.bare(place);
        self.text(bare.unit, &self.entry(bare), dw::DW_AT_name)
            .unwrap_or_default()
    }

    fn in_memory(&self, place: Place) -> Option<bool> {
        match self.entry(place).attr_value(dw::DW_AT_calling_convention)? {
            AttributeValue::CallingConvention(dw::DW_CC_pass_by_reference) => Some(true),
            AttributeValue::CallingConvention(dw::DW_CC_pass_by_value) => Some(false),
            _ => None,
        }
    }

    fn pass_of(&self, unit: usize, entry: &Entry) -> Pass {
        let Some(place) = self.type_of(unit, entry).map(|place| self.bare(place)) else {
            return Pass::Nothing;
        };
        let entry = self.entry(place);
        let size = number(&entry, dw::DW_AT_byte_size).unwrap_or(8) as u8;
        match entry.tag() {
            dw::DW_TAG_pointer_type | dw::DW_TAG_reference_type => Pass::Registers(8),
            dw::DW_TAG_base_type => match entry.attr_value(dw::DW_AT_encoding) {
                Some(AttributeValue::Encoding(dw::DW_ATE_float)) => Pass::Float,
                _ => Pass::Registers(size),
            },
            dw::DW_TAG_enumeration_type => Pass::Registers(size),
            _ => match self.in_memory(place) {
                Some(false) if size <= 16 => Pass::Registers(size),
                _ => Pass::Memory,
            },
        }
    }
}

fn is_class(tag: gimli::DwTag) -> bool {
    matches!(
        tag,
        dw::DW_TAG_class_type | dw::DW_TAG_structure_type | dw::DW_TAG_union_type | dw::DW_TAG_enumeration_type
    )
}

fn number(entry: &Entry, attribute: gimli::DwAt) -> Option<u64> {
    entry.attr_value(attribute)?.udata_value()
}
