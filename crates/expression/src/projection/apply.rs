//! Applying projections to documents.

use super::array_operator::matched_element;
use super::{ArrayOperator, Child, Mode, Node, Projection};
use crate::made;
use crate::variables::EvaluationContext;
use bunko_bson::{ArrayRef, DocumentRef, EncodedElement, ValueRef, Writer};
use bunko_errors::Result;

/// One application of a projection: the output, and the context of its expressions.
struct Application<'b, 'c> {
    mode: Mode,
    writer: Writer<'b>,
    context: EvaluationContext<'c>,
    matched: Option<usize>,
    /// Whether the walk is inside the array that `a.$` cuts: arrays in it stay whole.
    is_in_cut_array: bool,
    /// Whether the walk is inside an array directly in an array, where `$slice` does not apply.
    is_in_nested_array: bool,
}

impl Projection {
    /// Appends the projected document to `buffer`. Expressions are evaluated in `context`, whose root is the document.
    ///
    /// `matched` is the position of the array element that the filter matched, for `a.$`.
    /// # Errors
    /// Errors of its expressions and of counting work; `Overflow` for a result that is too deep, 10334 for one that is
    /// far too large; 51246 and 51247 where `a.$` has no matched element. After an error the buffer ends in an
    /// incomplete document, which the caller truncates.
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

    /// As `document`, for a node without computed fields: no field is added that the document lacks.
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

    /// Copies a value.
    fn copy(&mut self, name: &str, value: ValueRef<'_>) -> Result<()> {
        self.work(made::steps(value))?;
        made::check_stage_bytes(self.writer.len_bytes() + value.content_bytes())?;
        self.writer.append(name, value);
        Ok(())
    }

    /// Copies a field without decoding its value.
    fn copy_encoded(&mut self, element: &EncodedElement<'_>) -> Result<()> {
        self.work(made::bytes_steps(element.value_bytes()))?;
        made::check_stage_bytes(self.writer.len_bytes() + element.value_bytes())?;
        self.writer.append_encoded(element);
        Ok(())
    }

    /// Writes a computed value.
    fn put(&mut self, name: &str, value: ValueRef<'_>) -> Result<()> {
        made::check_depth(value, self.writer.depth())?;
        self.copy(name, value)
    }

    /// Opens a document for computed fields.
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

    /// Writes an array after its operator. A value that is not an array is copied, but `$elemMatch` leaves it out.
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

    /// Writes a field that the document lacks, or that comes after the others.
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
            // A computed field inside replaces a value that is not a document, and comes after the included fields.
            _ if self.mode == Mode::Inclusion => return Ok(Written::NotYet),
            other => self.copy(name, other)?,
        }
        Ok(Written::Done)
    }

    /// Projects inside an array's elements. An inclusion leaves out elements that are neither documents nor arrays,
    /// unless a field inside is computed, which then replaces them.
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

/// The set of a node's fields that are marked; the first 64 need no allocation.
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

/// Whether a field is already in the result.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Written {
    Done,
    /// The field is appended after the others, or left out.
    NotYet,
}
