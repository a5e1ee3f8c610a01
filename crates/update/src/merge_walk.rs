//! Applies a trie: walks it together with the document and writes the next document.
//!
//! Untouched parts are copied as byte ranges; only values at the trie's leaves are encoded again. The rejected design,
//! a mutable tree of the whole document, costs an allocation per field before the first operator runs.

use crate::context::{ApplyContext, Insertion, Telling};
use crate::delta::Delta;
use crate::document_fields::DocumentFields;
use crate::dotted_path::{Trail, as_index};
use crate::encoded::{Encoded, EncodedElements, LENGTH_BYTES};
use crate::immutable_id::{self, ID};
use crate::modifier::{BlockedPath, Effect, Modifier, Scene};
use crate::nesting;
use crate::replacement::dollar_prefixed;
use crate::trie::{Elements, Fields, Node, Trie};

use bunko_bson::text::ElementText;
use bunko_bson::{ArrayRef, DocumentBuf, DocumentRef, Element, MAX_USER_DOCUMENT_BYTES, Type, Value, ValueRef, Writer};
use bunko_errors::{ErrorCode, Failure, Result};
use std::borrow::Cow;

/// Maximum number of nulls that one path may put between an array's end and a new element.
const PADDING_COUNT_MAX: usize = 1_500_000;
/// Bytes copied per step of counted work.
const STEP_BYTES: usize = 64;
/// Extra capacity for the result in bytes, so that typical updates do not reallocate it.
const GROWTH_BYTES: usize = 128;

/// The container of the current value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holder {
    Document,
    Array,
}

/// One application of a trie to a document.
pub(crate) struct MergeWalk<'a> {
    trie: &'a Trie,
    document: DocumentRef<'a>,
    context: &'a ApplyContext<'a>,
    /// Values of other fields that operators read.
    fields: &'a DocumentFields<'a>,
    id_is_fixed: bool,
    changed: bool,
    output: Vec<u8>,
    /// The delta, if the caller wants it.
    delta: Option<Delta>,
}

impl<'a> MergeWalk<'a> {
    /// Returns the next document, with its delta if `telling` asks for it; `None` if nothing changes.
    pub fn run(
        trie: &'a Trie,
        document: DocumentRef<'a>,
        context: &'a ApplyContext<'a>,
        telling: Telling,
    ) -> Result<Option<(DocumentBuf, Option<DocumentBuf>)>> {
        let fields = DocumentFields::new(document, &trie.looked_up);
        let mut walk = MergeWalk {
            trie,
            document,
            context,
            fields: &fields,
            id_is_fixed: context.insert == Insertion::No || document.get(ID).is_some(),
            changed: false,
            output: Vec::with_capacity(document.len_bytes() + GROWTH_BYTES),
            delta: (telling == Telling::Delta).then(Delta::new),
        };
        walk.tell(Delta::enter_document);
        walk.document(&trie.root, document, None)?;
        let (next, delta) = (DocumentBuf::from_trusted(walk.output), walk.delta.map(Delta::finish));
        Ok(walk.changed.then_some((next, delta)))
    }

    /// Writes a document: modifies fields in place and appends new ones.
    fn document(&mut self, fields: &Fields, document: DocumentRef<'_>, trail: Option<&Trail<'_>>) -> Result<()> {
        let fields = self.resolve(fields, trail)?;
        let bytes = document.as_bytes();
        self.context.operation.work(1 + bytes.len() / STEP_BYTES)?;
        let start = self.open();
        let mut copied = LENGTH_BYTES;
        let mut met = vec![false; fields.named.len()];
        let mut left = met.len();
        for element in EncodedElements::new(document) {
            let Some(child) = fields.place(element.name).filter(|child| !met[*child]) else { continue };
            met[child] = true;
            self.output.extend_from_slice(&bytes[copied..element.start]);
            copied = element.end();
            self.existing(&fields.named[child].1, &element, Holder::Document, &Trail::below(trail, element.name))?;
            left -= 1;
            if left == 0 {
                break;
            }
        }
        self.output.extend_from_slice(&bytes[copied..bytes.len() - 1]);
        for ((name, node), _) in fields.named.iter().zip(met).filter(|(_, met)| !met) {
            self.created(node, &Trail::below(trail, name))?;
        }
        self.close(start);
        Ok(())
    }

    /// Writes an array: modifies elements by index, and pads it up to an index beyond its end.
    fn array(&mut self, fields: &Fields, array: ArrayRef<'_>, trail: &Trail<'_>) -> Result<()> {
        let fields = self.resolve(fields, Some(trail))?;
        let mut children = Vec::with_capacity(fields.named.len());
        for (name, node) in &fields.named {
            match as_index(name) {
                Some(index) => children.push((index, name, node)),
                None => self.blocked(node, array.into(), trail, &Trail::below(Some(trail), name))?,
            }
        }
        let bytes = array.as_document().as_bytes();
        self.context.operation.work(1 + bytes.len() / STEP_BYTES)?;
        let start = self.open();
        let mut copied = LENGTH_BYTES;
        let mut count = 0;
        // Index names are ordered by value, so the children come in element order.
        let mut children = children.into_iter().peekable();
        for (index, element) in EncodedElements::new(array.as_document()).enumerate() {
            if children.peek().is_none() {
                break;
            }
            count = index + 1;
            let Some((_, name, node)) = children.next_if(|(wanted, ..)| *wanted == index) else { continue };
            self.output.extend_from_slice(&bytes[copied..element.start]);
            copied = element.end();
            self.existing(node, &element, Holder::Array, &Trail::below(Some(trail), name))?;
        }
        self.output.extend_from_slice(&bytes[copied..bytes.len() - 1]);
        for (index, name, node) in children {
            let below = Trail::below(Some(trail), name);
            if self.creates(node, &below)? {
                self.pad(count, index)?;
                self.created(node, &below)?;
                count = index + 1;
            }
        }
        self.close(start);
        Ok(())
    }

    /// Writes an array: modifies all elements, or those that filters match.
    fn elements(&mut self, elements: &Elements, array: ArrayRef<'_>, trail: &Trail<'_>) -> Result<()> {
        let bytes = array.as_document().as_bytes();
        let start = self.open();
        let mut copied = LENGTH_BYTES;
        let operation = self.context.operation;
        for element in EncodedElements::new(array.as_document()) {
            operation.work(1 + element.bytes.len() / STEP_BYTES)?;
            let below = Trail::below(Some(trail), element.name);
            let mut wanted = elements.every.as_deref().map(Cow::Borrowed);
            for (filter, node) in &elements.filtered {
                if self.trie.filters.matches(*filter, element.value, operation)? {
                    wanted = Some(match wanted {
                        None => Cow::Borrowed(node),
                        Some(others) => Cow::Owned(others.merge(node, &below, operation)?),
                    });
                }
            }
            let Some(node) = wanted else { continue };
            self.output.extend_from_slice(&bytes[copied..element.start]);
            copied = element.end();
            self.existing(&node, &element, Holder::Array, &below)?;
        }
        self.output.extend_from_slice(&bytes[copied..bytes.len() - 1]);
        self.close(start);
        Ok(())
    }

    /// Replaces `$` by the position that the query matched.
    fn resolve<'f>(&self, fields: &'f Fields, trail: Option<&Trail<'_>>) -> Result<Cow<'f, Fields>> {
        let Some(positional) = &fields.positional else { return Ok(Cow::Borrowed(fields)) };
        let Some(position) = self.context.matched_position else {
            let message = "The positional operator did not find the match needed from the query.";
            return Err(Failure::bad_value(message));
        };
        fields.resolved(&position.to_string(), positional, trail, self.context.operation).map(Cow::Owned)
    }

    /// Writes the next state of an existing element.
    fn existing(&mut self, node: &Node, element: &Encoded<'_>, holder: Holder, trail: &Trail<'_>) -> Result<()> {
        let start = self.output.len();
        match (node, element.value) {
            (Node::Leaf(modifier), _) => self.leaf(modifier.as_ref(), element, holder, trail),
            (Node::Fields(fields), ValueRef::Document(document)) => {
                self.output.extend_from_slice(element.header());
                self.tell(Delta::enter_document);
                self.document(fields, document, Some(trail))?;
                self.tell_from(start, Delta::leave);
                Ok(())
            }
            (Node::Fields(fields), ValueRef::Array(array)) => {
                self.output.extend_from_slice(element.header());
                self.tell(Delta::enter_array);
                self.array(fields, array, trail)?;
                self.tell_from(start, Delta::leave);
                Ok(())
            }
            (Node::Fields(fields), scalar) => {
                for (name, child) in &self.resolve(fields, Some(trail))?.named {
                    self.blocked(child, scalar, trail, &Trail::below(Some(trail), name))?;
                }
                self.output.extend_from_slice(element.bytes);
                Ok(())
            }
            (Node::Elements(elements), ValueRef::Array(array)) => {
                self.output.extend_from_slice(element.header());
                self.tell(Delta::enter_array);
                self.elements(elements, array, trail)?;
                self.tell_from(start, Delta::leave);
                Ok(())
            }
            (Node::Elements(_), value) => {
                let element = ElementText(Element { name: trail.name(), value });
                Err(Failure::bad_value(format!("Cannot apply array updates to non-array element {element}")))
            }
        }
    }

    fn leaf(
        &mut self,
        modifier: &dyn Modifier,
        element: &Encoded<'_>,
        holder: Holder,
        trail: &Trail<'_>,
    ) -> Result<()> {
        self.context.operation.work(1)?;
        let start = self.output.len();
        let scene = self.scene(trail);
        match modifier.modify(Some(element.value), &scene)? {
            Effect::Keep => self.output.extend_from_slice(element.bytes),
            Effect::Set(value) => self.put(element.name, value, trail)?,
            Effect::Make(value) => self.put(element.name, value.as_ref(), trail)?,
            Effect::MakeOther(value) => {
                self.put(element.name, value.as_ref(), trail)?;
                self.tell_from(start, Delta::updated);
                return self.note_change(trail);
            }
            Effect::Append(value) => {
                self.put(element.name, Value::Array(value).as_ref(), trail)?;
                self.tell_appended(element, start);
                return self.note_change(trail);
            }
            Effect::Remove if holder == Holder::Array => self.put(element.name, ValueRef::Null, trail)?,
            Effect::Remove => {}
        }
        if self.output[start..] == *element.bytes {
            return Ok(());
        }
        match &mut self.delta {
            Some(delta) if self.output.len() == start => delta.removed(element.bytes),
            _ => self.tell_from(start, Delta::updated),
        }
        self.note_change(trail)
    }

    /// Writes a new element, the outermost one that is created.
    fn created(&mut self, node: &Node, trail: &Trail<'_>) -> Result<()> {
        let start = self.output.len();
        self.missing(node, trail)?;
        if self.output.len() > start {
            self.tell_from(start, Delta::inserted);
        }
        Ok(())
    }

    fn tell(&mut self, what: impl FnOnce(&mut Delta)) {
        if let Some(delta) = &mut self.delta {
            what(delta);
        }
    }

    /// Records a change in the delta: `what` gets the element that begins at `start` of the output, the last one
    /// written.
    fn tell_from(&mut self, start: usize, what: impl FnOnce(&mut Delta, &[u8])) {
        if let Some(delta) = &mut self.delta {
            what(delta, &self.output[start..]);
        }
    }

    /// Records that the last array written starts with the elements of `before`. If `before` was empty, records the
    /// whole array.
    fn tell_appended(&mut self, before: &Encoded<'_>, start: usize) {
        let (Some(delta), ValueRef::Array(array)) = (&mut self.delta, before.value) else { return };
        let kept = array.as_document().len_bytes() - 1;
        if kept == LENGTH_BYTES {
            return delta.updated(&self.output[start..]);
        }
        delta.enter_array();
        let now = DocumentRef::trusted(&self.output[start + before.header().len()..]);
        for element in EncodedElements::new(now).filter(|element| element.start >= kept) {
            delta.inserted(element.bytes);
        }
        delta.leave(&self.output[start..]);
    }

    /// Writes a new element, if `node` creates anything.
    fn missing(&mut self, node: &Node, trail: &Trail<'_>) -> Result<()> {
        match node {
            Node::Leaf(modifier) => {
                self.context.operation.work(1)?;
                let scene = self.scene(trail);
                match modifier.modify(None, &scene)? {
                    Effect::Keep | Effect::Remove => return Ok(()),
                    Effect::Set(value) => self.put(trail.name(), value, trail)?,
                    Effect::Make(value) | Effect::MakeOther(value) => self.put(trail.name(), value.as_ref(), trail)?,
                    Effect::Append(value) => self.put(trail.name(), Value::Array(value).as_ref(), trail)?,
                }
                self.note_change(trail)
            }
            Node::Fields(fields) => {
                let before = self.output.len();
                self.output.push(Type::Document as u8);
                self.output.extend_from_slice(trail.name().as_bytes());
                self.output.push(0);
                let start = self.open();
                for (name, child) in &self.resolve(fields, Some(trail))?.named {
                    self.missing(child, &Trail::below(Some(trail), name))?;
                }
                if self.output.len() == start + LENGTH_BYTES {
                    self.output.truncate(before);
                } else {
                    self.close(start);
                }
                Ok(())
            }
            Node::Elements(_) => Err(no_array_at(trail)),
        }
    }

    /// Whether [`Self::missing`] would write anything.
    fn creates(&self, node: &Node, trail: &Trail<'_>) -> Result<bool> {
        match node {
            Node::Leaf(modifier) => {
                self.context.operation.work(1)?;
                let scene = self.scene(trail);
                Ok(!matches!(modifier.modify(None, &scene)?, Effect::Keep | Effect::Remove))
            }
            Node::Fields(fields) => {
                for (name, child) in &self.resolve(fields, Some(trail))?.named {
                    if self.creates(child, &Trail::below(Some(trail), name))? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Node::Elements(_) => Err(no_array_at(trail)),
        }
    }

    /// Handles `node` below a value that cannot hold the next part of its path: a scalar, or an array if the part is
    /// not an index. `holder` is the trail of that value.
    fn blocked(&self, node: &Node, value: ValueRef<'_>, holder: &Trail<'_>, trail: &Trail<'_>) -> Result<()> {
        let modifier = match node {
            Node::Leaf(modifier) => modifier,
            Node::Fields(fields) => {
                let fields = self.resolve(fields, Some(trail))?;
                return fields.named.iter().try_for_each(|(name, child)| {
                    self.blocked(child, value, holder, &Trail::below(Some(trail), name))
                });
            }
            Node::Elements(_) => return Err(no_array_at(trail)),
        };
        let element = ElementText(Element { name: holder.name(), value });
        let part = trail.name_at(holder.depth());
        self.context.operation.work(1)?;
        let scene = self.scene(trail);
        let message = match modifier.modify(None, &scene)? {
            Effect::Set(_) | Effect::Make(_) | Effect::MakeOther(_) | Effect::Append(_) => {
                format!("Cannot create field '{part}' in element {{{element}}}")
            }
            Effect::Keep | Effect::Remove if modifier.on_blocked_path() == BlockedPath::Refused => {
                format!("Cannot use the part ({part}) of ({trail}) to traverse the element ({{{element}}})")
            }
            Effect::Keep | Effect::Remove => return Ok(()),
        };
        Err(Failure::new(ErrorCode::PATH_NOT_VIABLE, message))
    }

    fn scene<'t>(&self, trail: &'t Trail<'t>) -> Scene<'t>
    where
        'a: 't,
    {
        Scene { document: self.document, context: self.context, fields: self.fields, trail }
    }

    fn note_change(&mut self, trail: &Trail<'_>) -> Result<()> {
        self.changed = true;
        if self.id_is_fixed && trail.root_name() == ID { Err(immutable_id::modified_by(trail)) } else { Ok(()) }
    }

    /// Writes an element with a value from an operator.
    fn put(&mut self, name: &str, value: ValueRef<'_>, trail: &Trail<'_>) -> Result<()> {
        // Only inserts and upserts may create such fields.
        if trail.root_name().starts_with('$') && self.context.insert == Insertion::No {
            return Err(dollar_prefixed(trail.root_name(), &trail.to_string()));
        }
        nesting::check(value, trail.depth())?;
        let start = self.output.len();
        // A writer starts with a document header, which is removed again.
        Writer::new(&mut self.output).append(name, value);
        self.output.drain(start..start + LENGTH_BYTES);
        self.check_size()
    }

    /// Fills an array of `count` elements with nulls up to `index`.
    fn pad(&mut self, count: usize, index: usize) -> Result<()> {
        if index - count > PADDING_COUNT_MAX {
            let message = format!("can't backfill more than {PADDING_COUNT_MAX} elements");
            return Err(Failure::new(ErrorCode::CANNOT_BACKFILL_ARRAY, message));
        }
        for position in count..index {
            self.output.push(Type::Null as u8);
            self.output.extend_from_slice(position.to_string().as_bytes());
            self.output.push(0);
        }
        self.check_size()
    }

    /// Checks the size while writing: a few paths can ask for many nulls.
    fn check_size(&self) -> Result<()> {
        if self.output.len() > MAX_USER_DOCUMENT_BYTES { Err(self.context.insert.too_large()) } else { Ok(()) }
    }

    /// Starts a document at the output's end; [`Self::close`] writes its length.
    fn open(&mut self) -> usize {
        let start = self.output.len();
        self.output.extend_from_slice(&[0; LENGTH_BYTES]);
        start
    }

    fn close(&mut self, start: usize) {
        self.output.push(0);
        let length = ((self.output.len() - start) as u32).to_le_bytes();
        self.output[start..start + LENGTH_BYTES].copy_from_slice(&length);
    }
}

fn no_array_at(trail: &Trail<'_>) -> Failure {
    Failure::bad_value(format!("The path '{trail}' must exist in the document in order to apply array updates."))
}
