//! Class descriptions out of a library's debug information.

use std::collections::{BTreeMap, HashMap};

use endstone_spark::endstone::abi::Pass;
use gimli::{AttributeValue, DebuggingInformationEntry, EndianSlice, LittleEndian, UnitOffset, constants as dw};
use object::{Object, ObjectSection};

/// Why a library's debug information cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TypesError {
    /// It is not a library.
    #[error("not an ELF file: {0}")]
    File(#[from] object::Error),
    /// It cannot be read.
    #[error("its debug information cannot be read: {0}")]
    Dwarf(#[from] gimli::Error),
    /// There is too little of it.
    #[error("it has no debug information to speak of ({0} units)")]
    Stripped(usize),
    /// It is written in a way that was never met.
    #[error("its debug information says something in an unexpected way: {0}")]
    Unexpected(String),
}

type Result<T> = std::result::Result<T, TypesError>;

/// Kept for as long as the program runs: all of it is looked at until the end.
type Bytes = EndianSlice<'static, LittleEndian>;
type Entry = DebuggingInformationEntry<Bytes>;

/// One class or enumeration.
#[derive(Debug, Default)]
pub struct Class {
    /// In bytes.
    pub size: Option<u64>,
    /// How a value of it is passed: in memory when it has a destructor or a copy constructor of its own.
    pub in_memory: Option<bool>,
    /// By their names without namespaces.
    pub bases: BTreeMap<String, u64>,
    /// Offsets in bytes.
    pub members: BTreeMap<String, u64>,
    /// By their slots.
    pub methods: BTreeMap<u64, Method>,
    /// Of an enumeration.
    pub enumerators: BTreeMap<String, i64>,
}

/// One virtual method.
#[derive(Debug)]
pub struct Method {
    /// Its mangled name.
    pub symbol: String,
    /// After `this`.
    pub arguments: Vec<Pass>,
    /// What it returns.
    pub result: Pass,
}

/// A place in the debug information.
#[derive(Clone, Copy, Debug)]
struct Place {
    unit: usize,
    offset: UnitOffset,
}

/// All classes of one file, by name.
#[derive(Debug)]
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
    /// Reads a library.
    ///
    /// # Errors
    /// See [`TypesError`].
    pub fn read(file: &[u8]) -> Result<Types> {
        let file = object::File::parse(file)?;
        let dwarf = gimli::Dwarf::load(|section| -> Result<Bytes> {
            let data = file.section_by_name(section.name());
            let data = data.map(|section| section.data()).transpose()?;
            Ok(Bytes::new(data.unwrap_or_default().to_vec().leak(), LittleEndian))
        })?;
        let mut types = Types {
            dwarf,
            units: Vec::new(),
            starts: Vec::new(),
            definitions: HashMap::new(),
            declared: HashMap::new(),
        };
        let mut headers = types.dwarf.units();
        while let Some(header) = headers.next()? {
            let start = header.debug_info_offset();
            types.starts.push(start.map_or(0, |start| start.0));
            types.units.push(types.dwarf.unit(header)?);
        }
        if types.units.len() <= 10 {
            return Err(TypesError::Stripped(types.units.len()));
        }
        for unit in 0..types.units.len() {
            types.index(unit)?;
        }
        Ok(types)
    }

    /// Notes the qualified names of all classes of a unit.
    fn index(&mut self, unit: usize) -> Result<()> {
        let mut definitions = Vec::new();
        let mut declared = Vec::new();
        let mut scopes: Vec<(isize, String)> = Vec::new();
        let mut entries = self.units[unit].entries();
        while let Some(entry) = entries.next_dfs()? {
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
        Ok(())
    }

    /// The full names of all.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.definitions.keys().map(String::as_str)
    }

    /// The class with this full name.
    ///
    /// # Errors
    /// See [`TypesError`].
    pub fn class(&self, name: &str) -> Result<Option<Class>> {
        let Some(place) = self.definitions.get(name).copied() else {
            return Ok(None);
        };
        let mut class = Class {
            in_memory: self.in_memory(place)?,
            ..Class::default()
        };
        let mut tree = self.units[place.unit].entries_tree(Some(place.offset))?;
        let root = tree.root()?;
        class.size = number(root.entry(), dw::DW_AT_byte_size);
        let mut children = root.children();
        while let Some(child) = children.next()? {
            let entry = child.entry();
            let name = self.text(place.unit, entry, dw::DW_AT_name);
            match entry.tag() {
                dw::DW_TAG_inheritance => {
                    let offset = number(entry, dw::DW_AT_data_member_location);
                    if let (Some(offset), Some(base)) = (offset, self.type_of(place.unit, entry)?) {
                        class.bases.insert(self.short_name(base)?, offset);
                    }
                }
                dw::DW_TAG_member => {
                    if let (Some(offset), Some(name)) = (number(entry, dw::DW_AT_data_member_location), name) {
                        class.members.insert(name, offset);
                    }
                }
                dw::DW_TAG_enumerator => {
                    let value = entry.attr(dw::DW_AT_const_value).and_then(|value| value.sdata_value());
                    if let (Some(value), Some(name)) = (value, name) {
                        class.enumerators.insert(name, value);
                    }
                }
                dw::DW_TAG_subprogram => {
                    let Some(slot) = self.slot(place.unit, entry)? else {
                        continue;
                    };
                    let symbol = self.text(place.unit, entry, dw::DW_AT_linkage_name);
                    let result = self.pass_of(place.unit, entry)?;
                    let mut arguments = Vec::new();
                    let mut parameters = child.children();
                    while let Some(parameter) = parameters.next()? {
                        let parameter = parameter.entry();
                        // `this` is artificial.
                        let is_artificial = parameter.has_attr(dw::DW_AT_artificial);
                        if parameter.tag() == dw::DW_TAG_formal_parameter && !is_artificial {
                            arguments.push(self.pass_of(place.unit, parameter)?);
                        }
                    }
                    let method = Method {
                        symbol: symbol.unwrap_or_default(),
                        arguments,
                        result,
                    };
                    class.methods.insert(slot, method);
                }
                _ => {}
            }
        }
        Ok(Some(class))
    }

    fn slot(&self, unit: usize, entry: &Entry) -> Result<Option<u64>> {
        let Some(value) = entry.attr_value(dw::DW_AT_vtable_elem_location) else {
            return Ok(None);
        };
        let AttributeValue::Exprloc(expression) = value else {
            return Ok(value.udata_value());
        };
        match expression.operations(self.units[unit].encoding()).next()? {
            Some(gimli::Operation::UnsignedConstant { value }) => Ok(Some(value)),
            other => Err(TypesError::Unexpected(format!("a slot given as {other:?}"))),
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
    fn type_of(&self, unit: usize, entry: &Entry) -> Result<Option<Place>> {
        match entry.attr_value(dw::DW_AT_type) {
            None => Ok(None),
            Some(AttributeValue::UnitRef(offset)) => Ok(Some(Place { unit, offset })),
            Some(AttributeValue::DebugInfoRef(offset)) => {
                let unit = self
                    .starts
                    .partition_point(|start| *start <= offset.0)
                    .saturating_sub(1);
                let inside = offset.to_unit_offset(&self.units[unit].header);
                Ok(inside.map(|offset| Place { unit, offset }))
            }
            Some(other) => Err(TypesError::Unexpected(format!("a type given as {other:?}"))),
        }
    }

    fn entry(&self, place: Place) -> Result<Entry> {
        Ok(self.units[place.unit].entry(place.offset)?)
    }

    /// `place` without typedefs and qualifiers, and the definition where it is a mere declaration.
    fn bare(&self, place: Place) -> Result<Place> {
        let entry = self.entry(place)?;
        match entry.tag() {
            dw::DW_TAG_typedef | dw::DW_TAG_const_type | dw::DW_TAG_volatile_type => {
                match self.type_of(place.unit, &entry)? {
                    Some(inner) => self.bare(inner),
                    None => Ok(place),
                }
            }
            _ => {
                let name = self.declared.get(&(place.unit, place.offset.0));
                let defined = name.and_then(|name| self.definitions.get(name));
                Ok(defined.copied().unwrap_or(place))
            }
        }
    }

    /// Without namespaces.
    fn short_name(&self, place: Place) -> Result<String> {
        let bare = self.bare(place)?;
        let name = self.text(bare.unit, &self.entry(bare)?, dw::DW_AT_name);
        Ok(name.unwrap_or_default())
    }

    fn in_memory(&self, place: Place) -> Result<Option<bool>> {
        Ok(match self.entry(place)?.attr_value(dw::DW_AT_calling_convention) {
            Some(AttributeValue::CallingConvention(dw::DW_CC_pass_by_reference)) => Some(true),
            Some(AttributeValue::CallingConvention(dw::DW_CC_pass_by_value)) => Some(false),
            _ => None,
        })
    }

    fn pass_of(&self, unit: usize, entry: &Entry) -> Result<Pass> {
        let Some(place) = self.type_of(unit, entry)? else {
            return Ok(Pass::Nothing);
        };
        let place = self.bare(place)?;
        let entry = self.entry(place)?;
        let size = number(&entry, dw::DW_AT_byte_size).unwrap_or(8) as u8;
        Ok(match entry.tag() {
            dw::DW_TAG_pointer_type | dw::DW_TAG_reference_type => Pass::Registers(8),
            dw::DW_TAG_base_type => match entry.attr_value(dw::DW_AT_encoding) {
                Some(AttributeValue::Encoding(dw::DW_ATE_float)) => Pass::Float,
                _ => Pass::Registers(size),
            },
            dw::DW_TAG_enumeration_type => Pass::Registers(size),
            _ => match self.in_memory(place)? {
                Some(false) if size <= 16 => Pass::Registers(size),
                _ => Pass::Memory,
            },
        })
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
