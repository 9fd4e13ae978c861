//! Functions of one module by address.

/// How visible a symbol is. Where several name one function, the most visible one is its name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Visibility {
    /// Known to everybody.
    Global,
    /// Known to everybody unless another one is.
    Weak,
    /// Known to its own source file.
    Local,
}

/// One function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Function {
    /// First address, as linked.
    pub start: u64,
    /// First address after it.
    pub end: u64,
    /// Where its name begins in the table's text.
    pub name: u32,
    /// Length of the name in bytes.
    pub name_length: u32,
    /// Of the symbol it was found by.
    pub visibility: Visibility,
}

/// Functions sorted by address.
#[derive(Debug, Default)]
pub struct FunctionTable {
    functions: Vec<Function>,
    /// For each function, the highest end of all up to it: how far back a look-up has to search.
    reach: Vec<u64>,
    text: Vec<u8>,
}

impl FunctionTable {
    /// A table of functions whose names lie in `text`. Of functions with one start address one is kept.
    pub fn new(mut functions: Vec<Function>, text: Vec<u8>) -> Self {
        let name = |function: &Function| name_in(&text, function);
        functions.retain(|function| function.start < function.end && !name(function).is_empty());
        functions.sort_by(|a, b| {
            let leading = |name: &[u8]| name.iter().take_while(|byte| **byte == b'_').count();
            let order = |function: &Function| {
                let name = name(function);
                // `malloc` before `__libc_malloc`, then the shortest.
                (function.start, function.visibility, leading(name).min(2), name.len())
            };
            order(a).cmp(&order(b)).then_with(|| name(a).cmp(name(b)))
        });
        functions.dedup_by(|later, kept| {
            let same = later.start == kept.start;
            if same {
                kept.end = kept.end.max(later.end);
            }
            same
        });
        functions.shrink_to_fit();
        let reach = functions
            .iter()
            .scan(0, |reach, function| {
                *reach = function.end.max(*reach);
                Some(*reach)
            })
            .collect();
        FunctionTable { functions, reach, text }
    }

    /// The function that holds an address, the innermost one where they are nested: its number in the table and its name.
    pub fn at(&self, address: u64) -> Option<(usize, &[u8])> {
        let mut index = self.functions.partition_point(|function| function.start <= address);
        loop {
            index = index.checked_sub(1)?;
            if self.reach.get(index)? <= &address {
                return None;
            }
            let function = self.functions.get(index)?;
            if address < function.end {
                return Some((index, name_in(&self.text, function)));
            }
        }
    }

    /// Number of functions.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.functions.len()
    }
}

fn name_in<'t>(text: &'t [u8], function: &Function) -> &'t [u8] {
    let start = function.name as usize;
    text.get(start..start.saturating_add(function.name_length as usize))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn table(functions: &[(u64, u64, &str, Visibility)]) -> FunctionTable {
        let mut text = Vec::new();
        let functions = functions
            .iter()
            .map(|(start, end, name, visibility)| {
                text.extend(name.bytes());
                Function {
                    start: *start,
                    end: *end,
                    name: (text.len() - name.len()) as u32,
                    name_length: name.len() as u32,
                    visibility: *visibility,
                }
            })
            .collect();
        FunctionTable::new(functions, text)
    }

    fn name(table: &FunctionTable, address: u64) -> Option<&str> {
        table.at(address).map(|(_, name)| std::str::from_utf8(name).unwrap())
    }

    #[test]
    fn an_address_outside_all_functions_has_no_name() {
        let table = table(&[(10, 20, "a", Visibility::Global), (30, 40, "b", Visibility::Local)]);
        let names: Vec<Option<&str>> = [9, 10, 19, 20, 29, 30, 40]
            .iter()
            .map(|address| name(&table, *address))
            .collect();
        assert_eq!(names, [None, Some("a"), Some("a"), None, None, Some("b"), None]);
    }

    #[test]
    fn a_nested_function_wins_and_the_outer_one_goes_on_after_it() {
        let table = table(&[
            (10, 50, "outer", Visibility::Global),
            (20, 30, "inner", Visibility::Global),
        ]);
        assert_eq!(name(&table, 25), Some("inner"));
        assert_eq!(name(&table, 30), Some("outer"));
        assert_eq!(name(&table, 50), None);
    }

    #[test]
    fn the_public_name_of_a_function_is_its_name() {
        let table = table(&[
            (10, 20, "__libc_malloc", Visibility::Global),
            (10, 20, "malloc", Visibility::Global),
            (10, 30, "a", Visibility::Local),
        ]);
        assert_eq!((table.len(), name(&table, 10)), (1, Some("malloc")));
        assert_eq!(name(&table, 25), Some("malloc"));
    }

    proptest! {
        #[test]
        fn a_name_is_only_given_to_addresses_of_its_function(
            ranges in vec((0..200_u64, 0..40_u64), 0..40),
            address in 0..260_u64,
        ) {
            let names: Vec<String> = (0..ranges.len()).map(|index| format!("f{index}")).collect();
            let functions: Vec<_> = ranges
                .iter()
                .zip(&names)
                .map(|((start, length), name)| (*start, start + length, name.as_str(), Visibility::Global))
                .collect();
            let table = table(&functions);
            let innermost = ranges.iter().filter(|(start, length)| (*start..start + length).contains(&address)).map(|(start, _)| *start).max();
            let found = name(&table, address).map(|found| functions.iter().find(|function| function.2 == found).unwrap().0);
            prop_assert_eq!(found, innermost);
        }
    }
}
