//! Walks several paths of one document together, through the arrays that they meet.

use crate::Multikey;
use bunko_bson::{ArrayRef, DocumentRef, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};

/// Takes the values of all paths, in the order of the paths; `None` for a path that leads nowhere.
type Visit<'v, 'd> = dyn FnMut(&mut dyn Iterator<Item = Option<ValueRef<'d>>>) -> Result<()> + 'v;

/// Walks a document. Where paths meet an array, it visits the elements one by one, for all paths that meet the array.
pub(crate) struct ArrayWalk<'v, 'w, 'd> {
    visit: &'v mut Visit<'w, 'd>,
    multikey: Multikey,
}

/// The position of the walk on one path.
#[derive(Clone, Copy)]
enum WalkPosition<'p, 'd> {
    /// At the end of the path.
    Value(ValueRef<'d>),
    /// The path leads nowhere.
    Missing,
    /// At the document that is being walked, with this rest of the path ahead.
    Above(Rest<'p>),
    /// At an array; the path leads through all of its elements.
    Array(Met<'p, 'd>),
}

/// The rest of a path, and the number of components before it.
#[derive(Clone, Copy)]
struct Rest<'p> {
    path: &'p str,
    behind: usize,
}

/// An array that a path has met.
#[derive(Clone, Copy)]
struct Met<'p, 'd> {
    array: ArrayRef<'d>,
    name: &'d str,
    /// The number of the path's component that names the array.
    component: usize,
    /// The rest of the path after the array.
    below: Option<Rest<'p>>,
}

impl<'p> Rest<'p> {
    /// The next component, and the rest after it.
    fn split(self) -> (&'p str, Option<Self>) {
        match self.path.split_once('.') {
            Some((name, below)) => (name, Some(Self { path: below, behind: self.behind + 1 })),
            None => (self.path, None),
        }
    }

    /// Follows the path from `document` to its end or to the first array.
    fn follow<'d>(self, document: DocumentRef<'d>) -> WalkPosition<'p, 'd> {
        let (name, below) = self.split();
        // The name in the document lives as long as the document.
        match document.iter().find(|field| field.name == name) {
            Some(field) => Self::go_on(field.name, field.value, self.behind, below),
            None => WalkPosition::Missing,
        }
    }

    /// Continues from the value of a component.
    fn go_on<'d>(name: &'d str, value: ValueRef<'d>, component: usize, below: Option<Self>) -> WalkPosition<'p, 'd> {
        match (value, below) {
            (ValueRef::Array(array), below) => WalkPosition::Array(Met { array, name, component, below }),
            (value, None) => WalkPosition::Value(value),
            (ValueRef::Document(inner), Some(below)) => below.follow(inner),
            (_, Some(_)) => WalkPosition::Missing,
        }
    }
}

impl<'d> Met<'_, 'd> {
    fn is(&self, other: &Met<'_, '_>) -> bool {
        std::ptr::eq(self.array.as_document().as_bytes(), other.array.as_document().as_bytes())
    }

    /// The element whose position is the next component of the path, with its name; `None` if the component is no
    /// position or the array has no such element.
    fn positioned(&self) -> Option<(&'d str, ValueRef<'d>)> {
        let (name, _) = self.below?.split();
        let is_position = name == "0" || !name.starts_with('0') && name.bytes().all(|byte| byte.is_ascii_digit());
        let position = if is_position { name.parse::<usize>().ok()? } else { return None };
        self.array.as_document().iter().nth(position).map(|element| (element.name, element.value))
    }
}

impl<'v, 'w, 'd> ArrayWalk<'v, 'w, 'd> {
    /// Calls `visit` with the values of `paths`, once for each element of the arrays that they meet.
    /// # Errors
    /// `CannotIndexParallelArrays` if two paths meet different arrays; 16746 if a name of digits is both an element's
    /// position and a field of an element; as `visit`.
    pub fn run<'p>(
        paths: impl Iterator<Item = &'p str>,
        document: DocumentRef<'d>,
        visit: &'v mut Visit<'w, 'd>,
    ) -> Result<Multikey> {
        let places: Vec<_> = paths.map(|path| WalkPosition::Above(Rest { path, behind: 0 })).collect();
        let mut walk = Self { visit, multikey: Multikey::default() };
        walk.document(places, document)?;
        Ok(walk.multikey)
    }

    fn document(&mut self, mut places: Vec<WalkPosition<'_, 'd>>, document: DocumentRef<'d>) -> Result<()> {
        let mut met: Option<Met<'_, 'd>> = None;
        for place in &mut places {
            if let WalkPosition::Above(rest) = *place {
                *place = rest.follow(document);
            }
            match (&met, &*place) {
                (None, WalkPosition::Array(first)) => met = Some(*first),
                (Some(first), WalkPosition::Array(other)) if !first.is(other) => {
                    return Err(parallel_arrays(other.name, first.name));
                }
                _ => {}
            }
        }
        match met {
            None => self.show(&places),
            Some(met) if met.array.is_empty() => self.empty_array(places),
            Some(met) => self.elements(&places, met.array),
        }
    }

    fn show(&mut self, places: &[WalkPosition<'_, 'd>]) -> Result<()> {
        (self.visit)(&mut places.iter().map(|place| match place {
            WalkPosition::Value(value) => Some(*value),
            WalkPosition::Missing | WalkPosition::Above(_) | WalkPosition::Array(_) => None,
        }))
    }

    /// At an empty array, a path that ends there has the value undefined; a path through it is missing.
    fn empty_array(&mut self, mut places: Vec<WalkPosition<'_, 'd>>) -> Result<()> {
        for (field, place) in places.iter_mut().enumerate() {
            if let WalkPosition::Array(met) = *place {
                self.multikey.note(field, met.component);
                *place =
                    if met.below.is_none() { WalkPosition::Value(ValueRef::Undefined) } else { WalkPosition::Missing };
            }
        }
        self.show(&places)
    }

    fn elements(&mut self, places: &[WalkPosition<'_, 'd>], array: ArrayRef<'d>) -> Result<()> {
        let mut positioned: Vec<&str> = Vec::new();
        let mut is_walked = false;
        // Places inside the array for the paths that name a position in it; the others depend on each element.
        let mut inside = places.to_vec();
        for (field, place) in inside.iter_mut().enumerate() {
            let WalkPosition::Array(met) = *place else { continue };
            if let Some((name, value)) = met.positioned() {
                let (_, below) = met.below.map_or(("", None), Rest::split);
                *place = Rest::go_on(name, value, met.component + 1, below);
                positioned.push(name);
            } else {
                self.multikey.note(field, met.component);
                is_walked = true;
            }
        }
        for element in array.iter() {
            refuse_ambiguous(&positioned, element, array)?;
        }
        if !is_walked {
            return self.document(inside, DocumentRef::EMPTY);
        }
        let mut at_element = Vec::with_capacity(places.len());
        for element in array.iter() {
            at_element.clone_from(&inside);
            for (now, before) in at_element.iter_mut().zip(places) {
                if let (WalkPosition::Array(now_met), WalkPosition::Array(met)) = (&*now, before)
                    && now_met.is(met)
                {
                    *now = match met.below {
                        None => WalkPosition::Value(element),
                        Some(below) if element.as_document().is_some() => WalkPosition::Above(below),
                        Some(_) => WalkPosition::Missing,
                    };
                }
            }
            match element {
                ValueRef::Document(document) => self.document(at_element.clone(), document)?,
                _ if at_element.iter().all(|place| matches!(place, WalkPosition::Value(_) | WalkPosition::Missing)) => {
                    self.show(&at_element)?;
                }
                _ => self.document(at_element.clone(), DocumentRef::EMPTY)?,
            }
        }
        Ok(())
    }
}

/// Refuses a name that is both the position of an element and a field of an element.
fn refuse_ambiguous(positioned: &[&str], element: ValueRef<'_>, array: ArrayRef<'_>) -> Result<()> {
    let Some(document) = element.as_document().filter(|_| !positioned.is_empty()) else { return Ok(()) };
    let Some(name) = positioned.iter().find(|name| document.get(name).is_some()) else { return Ok(()) };
    Err(Failure::new(
        ErrorCode(16746),
        format!(
            "Ambiguous field name found in array (do not use numeric field names in embedded elements in an array), \
             field: '{name}' for array: {}",
            bunko_bson::text::ValueText(array.into())
        ),
    ))
}

fn parallel_arrays(one: &str, other: &str) -> Failure {
    Failure::new(ErrorCode::CANNOT_INDEX_PARALLEL_ARRAYS, format!("cannot index parallel arrays [{one}] [{other}]"))
}
