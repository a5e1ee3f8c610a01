//! Explaining writes: the plan of their search, below a stage for the write; nothing is written.

use super::search::{Choice, Wanted};
use super::upsert::check_filter;
use super::{Action, DeleteStatement, FindAndModify, UpdateStatement, Upsert};
use crate::explain::{Explained, Origin, Verbosity, explain_plan, failed_run};
use crate::find_query::FindQuery;
use crate::{Execution, QueryScope, plan};
use bunko_bson::{DocumentBuf, DocumentRef, Timestamp, ValueRef};
use bunko_catalog::{Collection, Namespace};
use bunko_errors::Result;
use bunko_update::{ApplyContext, Insertion, Outcome, Targets, Update};
use std::sync::Arc;

/// Context of a write's explanation.
pub struct WriteExplanation<'e> {
    /// The collection, if it exists.
    pub collection: Option<&'e Arc<Collection>>,
    /// Its name.
    pub namespace: &'e Namespace,
    /// The scope of expressions.
    pub scope: Arc<QueryScope>,
    /// The amount of detail.
    pub verbosity: Verbosity,
}

/// Counts of the changes that the write would make.
#[derive(Clone, Copy, Default)]
struct Effects {
    matched: u64,
    changed: u64,
}

/// Whether the write would change a matching document; the second argument is the array position that matched.
type WouldChange<'w> = dyn FnMut(DocumentRef<'_>, Option<usize>) -> Result<bool> + 'w;

impl WriteExplanation<'_> {
    /// Explains one update statement: `explainVersion`, `queryPlanner` and, after a run of the search,
    /// `executionStats`.
    /// # Errors
    /// As [`super::Writes::update`].
    pub fn update(&self, statement: &UpdateStatement<'_>) -> Result<DocumentBuf> {
        let update = Update::parse(statement.update, &statement.parse_context(&self.scope))?;
        let choice = Choice { sort: statement.sort, hint: statement.hint.clone() };
        let query = Wanted::query(statement.filter, choice, &self.scope)?;
        check_filter(&query.filter, statement.upsert)?;
        let (reply, effects) = self.searched(query, statement.targets, &mut |document, position| {
            self.would_modify(&update, document, position)
        })?;
        let facts = update_facts(effects, statement.upsert);
        Ok(below(reply.as_ref(), "UPDATE", effects.matched, 0, &facts))
    }

    /// Explains one delete statement, as [`Self::update`].
    /// # Errors
    /// As [`super::Writes::delete`].
    pub fn delete(&self, statement: &DeleteStatement<'_>) -> Result<DocumentBuf> {
        let choice = Choice { sort: None, hint: statement.hint.clone() };
        let query = Wanted::query(statement.filter, choice, &self.scope)?;
        let (reply, effects) = self.searched(query, statement.targets, &mut |_, _| Ok(true))?;
        Ok(below(reply.as_ref(), "DELETE", effects.matched, 0, &delete_facts(effects)))
    }

    /// Explains one findAndModify, as [`Self::update`].
    /// # Errors
    /// As [`super::Writes::find_and_modify`].
    pub fn find_and_modify(&self, statement: &FindAndModify<'_>) -> Result<DocumentBuf> {
        let choice = Choice { sort: statement.sort, hint: statement.hint.clone() };
        let query = Wanted::query(statement.filter, choice, &self.scope)?;
        match &statement.action {
            Action::Remove => {
                let (reply, effects) = self.searched(query, Targets::One, &mut |_, _| Ok(true))?;
                Ok(below(reply.as_ref(), "DELETE", effects.matched, effects.matched, &delete_facts(effects)))
            }
            Action::Update(modification) => {
                let update = Update::parse(modification.update, &modification.parse_context(&self.scope))?;
                check_filter(&query.filter, modification.upsert)?;
                let (reply, effects) = self.searched(query, Targets::One, &mut |document, position| {
                    self.would_modify(&update, document, position)
                })?;
                let facts = update_facts(effects, modification.upsert);
                Ok(below(reply.as_ref(), "UPDATE", effects.matched, effects.matched, &facts))
            }
        }
    }

    fn would_modify(&self, update: &Update, document: DocumentRef<'_>, position: Option<usize>) -> Result<bool> {
        let context = ApplyContext {
            matched_position: position,
            now_ms: self.scope.now_ms,
            timestamp: Timestamp { seconds: (self.scope.now_ms / 1000) as u32, increment: 1 },
            insert: Insertion::No,
            operation: &self.scope.operation,
        };
        Ok(matches!(update.apply(document, &context)?, Outcome::Changed(_)))
    }

    /// Explains the search, and runs it if the verbosity asks for that.
    fn searched(
        &self,
        query: FindQuery,
        targets: Targets,
        would_change: &mut WouldChange<'_>,
    ) -> Result<(DocumentBuf, Effects)> {
        let query = Arc::new(query);
        let clock = self.scope.operation.clock();
        let started = clock.now();
        let plan = self.collection.map(|collection| plan(collection, Arc::clone(&query))?.contested()).transpose()?;
        let mut effects = Effects::default();
        let (mut execution, mut failure) = (None, None);
        if let (Some(plan), Some(_), true) = (&plan, self.collection, self.verbosity.runs()) {
            let mut running = plan.open()?;
            let ran = run(&mut running, &query, targets, &mut effects, would_change);
            failure = ran.err().map(failed_run).transpose()?;
            execution = Some(running);
        }
        let explained = Explained {
            namespace: self.namespace.as_str(),
            query: &query,
            verbosity: self.verbosity,
            elapsed: clock.since(started),
            failure: failure.as_ref(),
            origin: Origin::Query,
        };
        Ok((explain_plan(explained, plan.as_ref(), execution.as_ref()), effects))
    }
}

fn run(
    execution: &mut Execution,
    query: &FindQuery,
    targets: Targets,
    effects: &mut Effects,
    would_change: &mut WouldChange<'_>,
) -> Result<()> {
    while let Some((_, document)) = execution.next_record()? {
        let position = query.filter.matches_with_position(document)?.and_then(|position| position.index);
        effects.matched += 1;
        effects.changed += u64::from(would_change(document, position)?);
        if targets == Targets::One {
            break;
        }
    }
    Ok(())
}

fn update_facts(effects: Effects, upsert: Upsert) -> DocumentBuf {
    let would_upsert = upsert == Upsert::Yes && effects.matched == 0;
    DocumentBuf::new()
        .with("nMatched", effects.matched as i32)
        .with("nWouldModify", effects.changed as i32)
        .with("nWouldUpsert", i32::from(would_upsert))
}

fn delete_facts(effects: Effects) -> DocumentBuf {
    DocumentBuf::new().with("nWouldDelete", effects.changed as i32)
}

/// Puts the trees of an explained search below the stage of the write.
fn below(search: DocumentRef<'_>, stage: &str, matched: u64, returned: u64, facts: &DocumentBuf) -> DocumentBuf {
    let planned = DocumentBuf::new().with("stage", stage);
    let mut executed = planned.clone();
    executed
        .append("nReturned", returned as i32)
        .append("executionTimeMillisEstimate", 0_i32)
        .append("works", matched as i32 + 1)
        .append("advanced", returned as i32)
        .append("needTime", (matched - returned) as i32)
        .append("needYield", 0_i32)
        .append("saveState", 0_i32)
        .append("restoreState", 0_i32)
        .append("isEOF", 1_i32)
        .extend(facts.as_ref());
    let mut reply = DocumentBuf::new();
    for part in search {
        match (part.name, part.value) {
            ("queryPlanner", ValueRef::Document(planner)) => {
                reply.append("queryPlanner", &with_root(planner, "winningPlan", &planned));
            }
            ("executionStats", ValueRef::Document(statistics)) => {
                let mut statistics_of_write = DocumentBuf::new();
                for field in with_root(statistics, "executionStages", &executed).as_ref() {
                    let value = if field.name == "nReturned" { ValueRef::Int32(returned as i32) } else { field.value };
                    statistics_of_write.append(field.name, value);
                }
                reply.append("executionStats", &statistics_of_write);
            }
            (name, value) => {
                reply.append(name, value);
            }
        }
    }
    reply
}

/// The document with another root above the tree in its field `tree`.
fn with_root(document: DocumentRef<'_>, tree: &str, root: &DocumentBuf) -> DocumentBuf {
    let mut copy = DocumentBuf::new();
    for field in document {
        match field.value {
            ValueRef::Document(old_root) if field.name == tree => {
                let mut input = DocumentBuf::new();
                // `isCached` concerns the whole plan, so only the root has it.
                let mut whole = DocumentBuf::new();
                for fact in old_root {
                    let place = if fact.name == "isCached" { &mut whole } else { &mut input };
                    place.append(fact.name, fact.value);
                }
                whole.extend(root.as_ref()).append("inputStage", &input);
                copy.append(tree, &whole);
            }
            value => {
                copy.append(field.name, value);
            }
        }
    }
    copy
}
