//! Applying projections to documents.

use super::array_operator::matched_element;
use super::{ArrayOperator, Child, Mode, Node, Projection};
use crate::made;
use crate::variables::EvaluationContext;
use bunko_bson::{ArrayRef, DocumentRef, EncodedElement, ValueRef, Writer};
use bunko_errors::Result;

/// One application: where the result goes, and what expressions see.
struct Application<'b, 'c> {
    mode: Mode,
    writer: Writer<'b>,
    context: EvaluationContext<'c>,
    matched: Option<usize>,
    /// Whether the array that `a.$` cuts is around: those in it stay whole.
    is_in_cut_array: bool,
    /// Whether an array directly in an array is around, where `$slice` does not go.
    is_in_nested_array: bool,
}

impl Projection {
    /// Appends the projected document to `buffer`. Expressions see `context`, whose root is the document.
    ///
    /// `matched` is the position of the array element that the filter matched, for `a.$`.
    /// # Errors
    /// Those of its expressions; what the operation says; `Overflow` for a document that becomes too deep, 10334 for one
    /// that becomes far too large; 51246 and 51247 where `a.$` has no matched element. The buffer then holds an unfinished
    /// document, which the caller cuts off.
    pub fn apply(&self, context: &EvaluationContext<'_>, matched: Option<usize>, buffer: &mut Vec<u8>) -> Result<()> {
        let document = context.root();
        let found = self.slots.read(document);
        context.operation().work(1 + document.len_bytes() / 256)?;
        let mut application = Application {
            mode: self.mode,
            writer: Writer::new(buffer),
            context: context.with_found(&found),
            matched,
            is_in_cut_array: false,
            is_in_nested_array: false,
        };
        application.document(&self.root, document)?;
        application.writer.end();
        Ok(())
    }
}

impl Application<'_, '_> {
    /// Writes a document's projected fields into the open scope.
    fn document(&mut self, node: &Node, document: DocumentRef<'_>) -> Result<()> {
        if !node.computes {
            return self.fields_alone(node, document);
        }
        self.work(node.children.len())?;
        let (mut done, mut met) = (Marks::default(), Marks::default());
        let mut rest = if self.mode == Mode::Inclusion { node.fields } else { usize::MAX };
        for element in document.iter().encoded() {
            if rest == 0 {
                break;
            }
            self.work(1)?;
            match node.position(element.name_bytes()) {
                Some(index) => {
                    let Some(value) = element.value() else { break };
                    let (name, child) = &node.children[index];
                    done.set(index, self.field(name, value, child)? == Written::Done);
                    if !matches!(child, Child::Computed(_)) && !met.get(index) {
                        met.set(index, true);
                        rest -= 1;
                    }
                }
                None if self.mode == Mode::Inclusion => {}
                None => self.copy_encoded(&element)?,
            }
        }
        for (index, (name, child)) in node.children.iter().enumerate() {
            if !done.get(index) {
                self.missing_field(name, child, document)?;
            }
        }
        Ok(())
    }

    /// The same where nothing is computed: no field appears that the document lacks.
    fn fields_alone(&mut self, node: &Node, document: DocumentRef<'_>) -> Result<()> {
        let mut rest = if self.mode == Mode::Inclusion { node.children.len() } else { usize::MAX };
        for element in document.iter().encoded() {
            if rest == 0 {
                break;
            }
            self.work(1)?;
            match node.position(element.name_bytes()) {
                Some(index) => {
                    let Some(value) = element.value() else { break };
                    let (name, child) = &node.children[index];
                    self.field(name, value, child)?;
                    rest -= 1;
                }
                None if self.mode == Mode::Inclusion => {}
                None => self.copy_encoded(&element)?,
            }
        }
        Ok(())
    }

    fn work(&self, steps: usize) -> Result<()> {
        self.context.operation().work(steps)
    }

    /// Writes a value as the document has it.
    fn copy(&mut self, name: &str, value: ValueRef<'_>) -> Result<()> {
        self.work(made::steps(value))?;
        made::check_stage_bytes(self.writer.len_bytes() + value.content_bytes())?;
        self.writer.append(name, value);
        Ok(())
    }

    /// Writes a field as the document has it, without a look inside.
    fn copy_encoded(&mut self, element: &EncodedElement<'_>) -> Result<()> {
        self.work(made::bytes_steps(element.value_bytes()))?;
        made::check_stage_bytes(self.writer.len_bytes() + element.value_bytes())?;
        self.writer.append_encoded(element);
        Ok(())
    }

    /// Writes a value that was computed.
    fn put(&mut self, name: &str, value: ValueRef<'_>) -> Result<()> {
        made::check_depth(value, self.writer.depth())?;
        self.copy(name, value)
    }

    /// Opens a document for what is computed inside.
    fn begin_document(&mut self, name: &str) -> Result<()> {
        made::check_depth(ValueRef::Document(DocumentRef::EMPTY), self.writer.depth())?;
        self.writer.begin_document(name);
        Ok(())
    }

    /// Writes a field that the document has.
    fn field(&mut self, name: &str, value: ValueRef<'_>, child: &Child) -> Result<Written> {
        match child {
            Child::Include => self.copy(name, value)?,
            Child::Exclude => {}
            Child::Computed(_) if self.mode == Mode::Inclusion => return Ok(Written::NotYet),
            Child::Computed(expression) => {
                if let Some(value) = expression.evaluate(&self.context)?.get() {
                    self.put(name, value)?;
                }
            }
            Child::Nested(node) => return self.nested(name, value, node),
            Child::Array(ArrayOperator::ElemMatch(_)) if self.mode == Mode::Inclusion => return Ok(Written::NotYet),
            Child::Array(operator) => self.array(name, value, operator)?,
        }
        Ok(Written::Done)
    }

    /// Writes what becomes of an array; only `$elemMatch` leaves out what is none.
    fn array(&mut self, name: &str, value: ValueRef<'_>, operator: &ArrayOperator) -> Result<()> {
        let stays = match operator {
            ArrayOperator::Slice { .. } => self.is_in_nested_array,
            ArrayOperator::Positional => self.is_in_cut_array,
            ArrayOperator::ElemMatch(_) => false,
        };
        match (operator, value) {
            (_, ValueRef::Array(array)) if !stays => {
                if let Some(array) = operator.apply(array, self.matched, self.context.operation())? {
                    self.copy(name, ValueRef::from(&array))?;
                }
            }
            (ArrayOperator::ElemMatch(_), _) => {}
            _ => self.copy(name, value)?,
        }
        Ok(())
    }

    /// Writes a field that the document lacks, or that stands behind the others.
    fn missing_field(&mut self, name: &str, child: &Child, document: DocumentRef<'_>) -> Result<()> {
        match child {
            Child::Computed(expression) => {
                if let Some(value) = expression.evaluate(&self.context)?.get() {
                    self.put(name, value)?;
                }
            }
            Child::Nested(node) if node.computes => {
                self.begin_document(name)?;
                self.document(node, DocumentRef::EMPTY)?;
                self.writer.end();
            }
            Child::Array(operator @ ArrayOperator::ElemMatch(_)) => {
                if let Some(value) = document.get(name) {
                    self.array(name, value, operator)?;
                }
            }
            Child::Nested(_) | Child::Include | Child::Exclude | Child::Array(_) => {}
        }
        Ok(())
    }

    /// Projects inside a value.
    fn nested(&mut self, name: &str, value: ValueRef<'_>, node: &Node) -> Result<Written> {
        match value {
            ValueRef::Document(document) => {
                self.writer.begin_document(name);
                self.document(node, document)?;
                self.writer.end();
            }
            ValueRef::Array(array) => {
                self.writer.begin_array(name);
                self.elements(node, array)?;
                self.writer.end();
            }
            _ if node.computes && self.mode == Mode::Addition => {
                self.begin_document(name)?;
                self.document(node, DocumentRef::EMPTY)?;
                self.writer.end();
            }
            // A computed field inside takes the place of what is no document, behind the included ones.
            _ if self.mode == Mode::Inclusion => return Ok(Written::NotYet),
            other => self.copy(name, other)?,
        }
        Ok(Written::Done)
    }

    /// Projects inside an array's elements. An inclusion leaves out those that are neither documents nor arrays, unless
    /// something is computed inside, which then takes their place.
    fn elements(&mut self, node: &Node, array: ArrayRef<'_>) -> Result<()> {
        let elements = array.iter().map(|element| match element {
            ValueRef::Document(_) | ValueRef::Array(_) => element,
            _ if node.computes => ValueRef::Document(DocumentRef::EMPTY),
            _ => element,
        });
        if node.is_cut && !self.is_in_cut_array {
            let mut projected =
                elements.filter(|element| matches!(element, ValueRef::Document(_) | ValueRef::Array(_)));
            let found = matched_element(self.matched, &mut projected)?;
            self.is_in_cut_array = true;
            self.element("0", found, node)?;
            self.is_in_cut_array = false;
            return Ok(());
        }
        let mut index = 0_usize;
        for element in elements {
            self.work(1)?;
            if self.element(&index.to_string(), element, node)? == Written::Done {
                index += 1;
            }
        }
        Ok(())
    }

    fn element(&mut self, name: &str, element: ValueRef<'_>, node: &Node) -> Result<Written> {
        let around = self.is_in_nested_array;
        self.is_in_nested_array |= matches!(element, ValueRef::Array(_));
        let written = self.nested(name, element, node);
        self.is_in_nested_array = around;
        written
    }
}

/// Which fields of a node are marked; a few without an allocation.
#[derive(Default)]
struct Marks {
    few: u64,
    more: Vec<bool>,
}

impl Marks {
    fn get(&self, index: usize) -> bool {
        if index < 64 { (self.few >> index) & 1 == 1 } else { self.more.get(index - 64).copied().unwrap_or(false) }
    }

    fn set(&mut self, index: usize, mark: bool) {
        if index < 64 {
            self.few = (self.few & !(1 << index)) | (u64::from(mark) << index);
            return;
        }
        if self.more.len() <= index - 64 {
            self.more.resize(index - 63, false);
        }
        self.more[index - 64] = mark;
    }
}

/// Whether a field stands in the result already.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Written {
    Done,
    /// It comes behind the others, or not at all.
    NotYet,
}
