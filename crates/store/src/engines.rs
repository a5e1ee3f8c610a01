//! The engines of one store, and the engine of each keyspace.
//!
//! Nearly every store has one engine: then nothing here costs more than a flag.

use crate::delegate::Delegate;
use crate::store::LogHandle;
use crate::{Added, Effect, Effects, Engine, KeyspaceId, KeyspaceMap, Lsn, Result, StorageError, View};
use arc_swap::ArcSwap;
use bunko_bson::DocumentRef;
use bunko_host::Clock;
use bunko_versions::Views;
use parking_lot::Mutex;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

/// Arguments for opening an engine.
pub struct Opening<'a> {
    /// The store's data directory; an engine has its own folder in it, named after itself or its files.
    pub directory: &'a Path,
    /// The log to read documents from, once views are taken.
    pub log: LogHandle,
    /// The store's clock.
    pub clock: Clock,
    /// The note of the engine's last durable checkpoint; `None` for an engine that is new in this directory.
    pub note: Option<DocumentRef<'a>>,
}

/// Whether an engine's contents survive a restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Survival {
    /// The contents survive.
    Durable,
    /// The contents are lost: the log keeps none of them.
    Volatile,
}

/// Part of a batch that the log keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keeping {
    /// All of it. Also for a batch without effects, because its notes are read back.
    Whole,
    /// Only its place in the log. A restart loses all that it changes.
    Place,
}

/// An engine that a store may use.
#[derive(Clone)]
pub struct EngineKind {
    /// The engine's name in the manifest, in `create` and in `serverStatus`.
    pub name: &'static str,
    /// Whether the engine's contents survive a restart.
    pub survival: Survival,
    /// Opens the engine.
    pub open: OpenEngine,
}

/// Opens an engine.
pub type OpenEngine = Arc<dyn Fn(Opening<'_>) -> Result<Arc<dyn Engine>> + Send + Sync>;

/// The engines that a store may use. Its own engine holds the catalog and every keyspace that names no other engine.
#[derive(Clone)]
pub struct EngineTable {
    /// The store's own engine.
    pub own: EngineKind,
    /// Engines that a collection may name instead.
    pub others: Vec<EngineKind>,
}

impl EngineTable {
    /// A table with one engine and no choice.
    pub fn only(own: EngineKind) -> Self {
        Self { own, others: Vec::new() }
    }
}

pub(crate) struct Engines {
    table: EngineTable,
    own: Arc<dyn Engine>,
    /// Whether there are other engines. They are closed only with the store.
    has_others: AtomicBool,
    others: Arc<ArcSwap<Others>>,
    latest: Latest,
    opening: Mutex<()>,
    directory: PathBuf,
    log: LogHandle,
    clock: Clock,
}

/// Engines beside the store's own.
#[derive(Clone, Default)]
pub(crate) struct Others {
    engines: Vec<Opened>,
    /// For each keyspace that is not in the store's own engine, the index of its engine in `engines`.
    routes: KeyspaceMap<usize>,
    /// Routed keyspaces that have been dropped, but perhaps not for every view.
    dropped: KeyspaceMap<()>,
}

#[derive(Clone)]
struct Opened {
    engine: Arc<dyn Engine>,
    survival: Survival,
}

/// Selects the effects on the keyspaces of one engine.
#[derive(Clone)]
pub(crate) struct EngineSelection<'a> {
    others: &'a Others,
    /// `None` for the store's own engine.
    engine: Option<usize>,
}

impl EngineSelection<'_> {
    pub fn contains(&self, keyspace: KeyspaceId) -> bool {
        self.others.routes.get(keyspace).copied() == self.engine
    }
}

impl Engines {
    /// Opens the store's own engine.
    pub fn open(
        table: EngineTable,
        directory: &Path,
        log: &LogHandle,
        clock: &Clock,
        note: Option<DocumentRef<'_>>,
    ) -> Result<Self> {
        let own = (table.own.open)(Opening { directory, log: Arc::clone(log), clock: clock.clone(), note })?;
        let others = Arc::new(ArcSwap::default());
        Ok(Self {
            table,
            latest: Latest { own: Arc::clone(&own), others: Arc::clone(&others) },
            own,
            has_others: AtomicBool::new(false),
            others,
            opening: Mutex::new(()),
            directory: directory.to_owned(),
            log: Arc::clone(log),
            clock: clock.clone(),
        })
    }

    /// The store's own engine.
    pub fn own(&self) -> &Arc<dyn Engine> {
        &self.own
    }

    /// All engines that are open, the store's own first.
    pub fn all(&self) -> Vec<Arc<dyn Engine>> {
        let others = self.others.load();
        std::iter::once(&self.own).chain(others.engines.iter().map(|opened| &opened.engine)).cloned().collect()
    }

    /// Exclusive upper bound of the log positions that the engines' files know of; see [`Engine::files_end`].
    pub fn files_end(&self) -> Lsn {
        self.all().iter().map(|engine| engine.files_end()).fold(Lsn(0), Lsn::max)
    }

    /// The engine that holds a keyspace.
    pub fn of(&self, keyspace: KeyspaceId) -> Arc<dyn Engine> {
        let others = self.others.load();
        let engine = others.routes.get(keyspace).map_or(&self.own, |&index| &others.engines[index].engine);
        Arc::clone(engine)
    }

    /// Names of the engines that can be used, the store's own first. If that is volatile there are no others, because
    /// there is no log that they could be views of.
    pub fn names(&self) -> Vec<&'static str> {
        let others = match self.table.own.survival {
            Survival::Durable => self.table.others.as_slice(),
            Survival::Volatile => &[],
        };
        std::iter::once(&self.table.own).chain(others).map(|kind| kind.name).collect()
    }

    /// Opens the engine with that name unless it is open already.
    pub fn ensure(&self, name: &str, note: Option<DocumentRef<'_>>) -> Result<Arc<dyn Engine>> {
        if self.own.name() == name {
            return Ok(Arc::clone(&self.own));
        }
        let _one_at_a_time = self.opening.lock();
        if let Some(opened) = self.others.load().engines.iter().find(|opened| opened.engine.name() == name) {
            return Ok(Arc::clone(&opened.engine));
        }
        let kind = self.table.others.iter().find(|kind| kind.name == name && self.names().contains(&name));
        let kind = kind.ok_or_else(|| StorageError::UnknownEngine { name: name.to_owned() })?;
        let opening =
            Opening { directory: &self.directory, log: Arc::clone(&self.log), clock: self.clock.clone(), note };
        let engine = (kind.open)(opening)?;
        self.change(|others| {
            others.engines.push(Opened { engine: Arc::clone(&engine), survival: kind.survival });
        });
        Ok(engine)
    }

    fn change(&self, change: impl Fn(&mut Others)) {
        self.others.rcu(|others| {
            let mut others = Others::clone(others);
            change(&mut others);
            others
        });
        self.has_others.store(true, Ordering::Release);
    }

    /// Opens the engines in which the effects create keyspaces, without routing the keyspaces to them yet: the log may
    /// still refuse the record, and a route that stayed would be saved, and would catch the next keyspace with that id.
    pub fn open_for(&self, effects: Effects<'_>) -> Result<()> {
        for effect in effects {
            if let Effect::CreateKeyspace { engine, .. } = effect {
                self.ensure(engine, None)?;
            }
        }
        Ok(())
    }

    /// Routes the keyspaces that the effects create to their engines, which are open. The effects must be in the log by
    /// now.
    pub fn route(&self, effects: Effects<'_>) {
        for effect in effects {
            if let Effect::CreateKeyspace { keyspace, engine, .. } = effect {
                self.lead(keyspace, engine);
            }
        }
    }

    /// Notes the keyspaces that the effects drop. The effects must be in the log by now.
    pub fn note_drops(&self, effects: Effects<'_>) {
        for effect in effects {
            if let Effect::DropKeyspace { keyspace } = effect
                && self.others.load().routes.contains(keyspace)
            {
                self.change(|others| {
                    others.dropped.insert(keyspace, ());
                });
            }
        }
    }

    /// Routes a keyspace to an open engine, and replaces its earlier route.
    fn lead(&self, keyspace: KeyspaceId, engine: &str) {
        if engine == self.own.name() && !self.others.load().routes.contains(keyspace) {
            return;
        }
        self.change(|others| {
            others.dropped.remove(keyspace);
            match others.engines.iter().position(|opened| opened.engine.name() == engine) {
                Some(index) => others.routes.insert(keyspace, index),
                None => others.routes.remove(keyspace),
            }
        });
    }

    /// Routes the keyspaces to the given engines, and all others to the store's own. Returns whether that changed
    /// anything.
    pub fn settle(&self, keyspaces: &[(KeyspaceId, String)]) -> Result<bool> {
        let before = self.routes();
        if before.is_empty() && keyspaces.iter().all(|(_, engine)| engine == self.own.name()) {
            return Ok(false);
        }
        for (_, engine) in keyspaces {
            self.ensure(engine, None)?;
        }
        self.change(|others| {
            let index_of = |name: &str| others.engines.iter().position(|opened| opened.engine.name() == name);
            others.routes =
                keyspaces.iter().filter_map(|(keyspace, name)| Some((*keyspace, index_of(name)?))).collect();
            others.dropped = KeyspaceMap::default();
        });
        Ok(self.routes() != before)
    }

    /// The present routes.
    pub fn routed(&self) -> Arc<Others> {
        self.others.load_full()
    }

    /// Keyspaces that are not in the store's own engine, in order, with their engines' names.
    pub fn routes(&self) -> Vec<(KeyspaceId, &'static str)> {
        self.routed().names()
    }

    /// The part of a batch with these effects that the log keeps. The existence of a keyspace, and its engine, survive
    /// a restart even if its contents do not.
    pub fn keeping(&self, mut effects: Effects<'_>) -> Keeping {
        if !self.has_others.load(Ordering::Acquire) {
            return Keeping::Whole;
        }
        let others = self.others.load();
        let is_volatile = |effect: Effect<'_>| {
            let outlives = matches!(effect, Effect::CreateKeyspace { .. } | Effect::DropKeyspace { .. });
            !outlives && others.survival(effect.keyspace()) == Some(Survival::Volatile)
        };
        match effects.next() {
            // A batch without effects has only notes, which are not the contents of a volatile engine.
            None => Keeping::Whole,
            Some(first) if is_volatile(first) && effects.all(is_volatile) => Keeping::Place,
            Some(_) => Keeping::Whole,
        }
    }

    /// Whether a restart loses a keyspace's contents.
    pub fn is_volatile(&self, keyspace: KeyspaceId) -> bool {
        self.others.load().survival(keyspace) == Some(Survival::Volatile)
    }

    /// Asks the engines that the effects concern for room.
    pub fn admit(&self, effects: &Effects<'_>, growth_bytes: usize) -> Result<()> {
        if growth_bytes == 0 {
            return Ok(());
        }
        if !self.has_others.load(Ordering::Acquire) {
            return self.own.admit(growth_bytes);
        }
        let others = self.others.load();
        for (engine, _, part) in self.parts(&others) {
            if effects.clone().of(part).next().is_some() {
                engine.admit(growth_bytes)?;
            }
        }
        Ok(())
    }

    /// Lets each engine apply the effects on its keyspaces.
    pub fn apply(&self, lsn: Lsn, effects: Effects<'_>, views: Views<'_>) -> Result<()> {
        if !self.has_others.load(Ordering::Acquire) {
            return self.own.apply(lsn, effects, views);
        }
        let others = self.others.load();
        for (engine, _, part) in self.parts(&others) {
            let effects = effects.clone().of(part);
            if effects.clone().next().is_some() {
                engine.apply(lsn, effects, views)?;
            }
        }
        Ok(())
    }

    /// Lets the durable engines apply the effects of a log record; `also` is called with the effects that each of them
    /// applies.
    pub fn replay(&self, lsn: Lsn, effects: &Effects<'_>, also: &dyn Fn(Effects<'_>)) -> Result<()> {
        self.open_for(effects.clone())?;
        self.route(effects.clone());
        self.note_drops(effects.clone());
        let others = self.others.load();
        for (engine, survival, part) in self.parts(&others) {
            if survival == Survival::Durable {
                let effects = effects.clone().of(part);
                also(effects.clone());
                // There are no views yet.
                engine.apply(lsn, effects, Views::from(lsn.0))?;
            }
        }
        Ok(())
    }

    fn parts<'a>(
        &'a self,
        others: &'a Others,
    ) -> impl Iterator<Item = (&'a Arc<dyn Engine>, Survival, EngineSelection<'a>)> {
        let own = (&self.own, self.table.own.survival, EngineSelection { others, engine: None });
        let rest = others.engines.iter().enumerate();
        std::iter::once(own).chain(rest.map(move |(index, opened)| {
            (&opened.engine, opened.survival, EngineSelection { others, engine: Some(index) })
        }))
    }

    /// Sum of a figure over all engines.
    pub fn sum(&self, figure: impl Fn(&dyn Engine) -> u64) -> u64 {
        let own = figure(&*self.own);
        if !self.has_others.load(Ordering::Acquire) {
            return own;
        }
        own + self.others.load().engines.iter().map(|opened| figure(&*opened.engine)).sum::<u64>()
    }

    /// A handle for asking how much disk the engines need.
    pub fn needs(&self) -> Needs {
        Needs { engines: Some((Arc::downgrade(&self.own), Arc::downgrade(&self.others))) }
    }

    /// See [`Engine::view`].
    pub fn view(&self, before: Lsn) -> Box<dyn View> {
        if !self.has_others.load(Ordering::Acquire) {
            return self.own.view(before);
        }
        let others = self.others.load_full();
        let views = others.engines.iter().map(|opened| opened.engine.view(before)).collect();
        Box::new(Routed { own: self.own.view(before), views, others })
    }

    /// See [`Engine::latest`].
    pub fn latest(&self) -> &dyn View {
        if self.has_others.load(Ordering::Acquire) { &self.latest } else { self.own.latest() }
    }
}

impl Others {
    /// See [`Engines::routes`].
    pub fn names(&self) -> Vec<(KeyspaceId, &'static str)> {
        let lasting = self.routes.iter().filter(|(keyspace, _)| !self.dropped.contains(*keyspace));
        let mut names: Vec<_> =
            lasting.map(|(keyspace, &index)| (keyspace, self.engines[index].engine.name())).collect();
        names.sort_unstable();
        names
    }

    fn survival(&self, keyspace: KeyspaceId) -> Option<Survival> {
        self.routes.get(keyspace).map(|&index| self.engines[index].survival)
    }
}

/// Asks the engines for the disk that their next checkpoints need.
#[derive(Default)]
pub(crate) struct Needs {
    /// `None` if there are no engines to ask.
    engines: Option<WeakEngines>,
}

/// The store's own engine and the others. The references are weak because engines hold the log, and the log holds
/// `Needs`.
type WeakEngines = (Weak<dyn Engine>, Weak<ArcSwap<Others>>);

impl Needs {
    /// Bytes that the checkpoints may take for the waiting changes and for a batch that adds `added`.
    pub fn bytes(&self, added: Added) -> u64 {
        let engines = self.engines.as_ref().and_then(|(own, others)| Some((own.upgrade()?, others.upgrade()?)));
        let Some((own, others)) = engines else { return 0 };
        let others = others.load();
        let all = std::iter::once(&own).chain(others.engines.iter().map(|opened| &opened.engine));
        all.map(|engine| engine.checkpoint_disk_bytes(added)).sum()
    }
}

/// One state of several engines.
struct Routed {
    own: Box<dyn View>,
    views: Vec<Box<dyn View>>,
    others: Arc<Others>,
}

impl Delegate for Routed {
    fn with<R>(&self, keyspace: KeyspaceId, read: impl FnOnce(&dyn View) -> R) -> R {
        read(self.others.routes.get(keyspace).map_or(&*self.own, |&index| &*self.views[index]))
    }
}

/// The latest state of several engines.
struct Latest {
    own: Arc<dyn Engine>,
    others: Arc<ArcSwap<Others>>,
}

impl Delegate for Latest {
    fn with<R>(&self, keyspace: KeyspaceId, read: impl FnOnce(&dyn View) -> R) -> R {
        let others = self.others.load();
        match others.routes.get(keyspace) {
            Some(&index) => read(others.engines[index].engine.latest()),
            None => read(self.own.latest()),
        }
    }
}

#[cfg(test)]
pub(crate) mod fake;
#[cfg(test)]
mod tests;
