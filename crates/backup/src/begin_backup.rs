//! Makes one backup: an image of the server's data in the target, and its manifest.

use crate::copy::{Copied, Copy};
use crate::manifest::{FORMAT, FileEntry, Manifest};
use crate::place::Place;
use crate::retention::{Keep, remove_old};
use crate::source::{Event, Lent, Source};
use crate::stored_file::LocalFiles;
use crate::target::{Target, manifest_of};
use crate::{Result, Tell, format_ms, of_storage};
use bunko_host::Clock;
use bunko_store::{ImageList, Lsn, SEGMENT_BYTES, describe, walk_archived};
use bunko_tools::{Interrupted, Server, ToolError};
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;

/// A backup to be made.
pub struct BackupOptions {
    /// The place of the backups.
    pub to: Place,
    /// The backups that are kept afterwards.
    pub keep: Keep,
    /// The machine's clock.
    pub clock: Clock,
}

/// Makes one backup.
/// # Errors
/// Why there is none; files that were copied are used by the next attempt.
pub fn back_up(server: &dyn Server, options: &BackupOptions, tell: Tell<'_>, interrupted: &Interrupted) -> Result<()> {
    attempt(server, options, tell, interrupted).inspect_err(|error| Source::tell_failure(server, error))
}

fn attempt(server: &dyn Server, options: &BackupOptions, tell: Tell<'_>, interrupted: &Interrupted) -> Result<()> {
    let target = Target::open(&options.to)?;
    let mut source = Source::connect(server, &target.owner(&options.clock)?)?;
    let made = Making { server: server.name(), clock: &options.clock, target: &target, tell, interrupted };
    let manifest = made.image(&mut source, &mut |_| Ok(()))?;
    tell(&format!("the backup can be restored as of {}", format_ms(manifest.time_ms)));
    remove_old(&target, &options.keep, tell)
}

/// A backup that is being made.
pub(crate) struct Making<'m> {
    pub server: &'m str,
    pub clock: &'m Clock,
    pub target: &'m Target,
    pub tell: Tell<'m>,
    pub interrupted: &'m Interrupted,
}

impl Making<'_> {
    /// Has the server make an image, copies it, and writes the manifest. `tick` is called before each range, and again and
    /// again while the server makes the image.
    /// # Errors
    /// Errors of the files, of the server and of `tick`; `Interrupted`.
    pub fn image(&self, source: &mut Source, tick: &mut dyn FnMut(&mut Source) -> Result<()>) -> Result<Manifest> {
        let earlier = self.target.manifests()?;
        let mut tick = |source: &mut Source| {
            if self.interrupted.load(Ordering::Relaxed) { Err(ToolError::Interrupted) } else { tick(source) }
        };
        let Lent { engine, list } = source.begin(&mut tick)?;
        let (id, made_ms) = self.new_id(&earlier)?;
        let mut copy = Copy { target: self.target, source, list: &list, id: &id, earlier: &earlier };
        let Copied { files, new_bytes } = copy.run(&mut tick)?;
        source.release(&list.id);
        let (data_format, time_ms) = self.described(&files, &list)?;
        let manifest = Manifest {
            format: FORMAT,
            id,
            server: self.server.to_owned(),
            engine,
            data_format,
            segment_bytes: SEGMENT_BYTES,
            term: list.end.term,
            end: list.end.end,
            time_ms,
            made_ms,
            files,
        };
        self.target.objects().put(&manifest_of(&manifest.id), manifest.text().as_bytes())?;
        source.note(Event::Made);
        let (id, all) = (&manifest.id, manifest.bytes());
        (self.tell)(&format!("backup {id}: {all} bytes, of which {new_bytes} were copied"));
        Ok(manifest)
    }

    /// The name of a new backup, later than all others, and the time that it tells.
    fn new_id(&self, earlier: &[Manifest]) -> Result<(String, u64)> {
        let last = earlier.iter().map(|manifest| manifest.made_ms).max();
        let mut made_ms = self.clock.now_ms().max(last.map_or(0, |last| last + 1));
        let used = self.target.ids()?;
        loop {
            let id: String = format_ms(made_ms).chars().filter(char::is_ascii_alphanumeric).collect();
            if !used.contains(&id) {
                return Ok((id, made_ms));
            }
            made_ms += 1;
        }
    }

    /// The format of the data, and the time up to which the image has all records.
    fn described(&self, files: &[FileEntry], list: &ImageList) -> Result<(u32, u64)> {
        let local = LocalFiles::new(self.target, files);
        let missing = || ToolError::Failed("the server's image has no manifest".to_owned());
        let manifest = local.path("manifest.bson")?.ok_or_else(missing)?;
        let directory = manifest.parent().ok_or_else(missing)?;
        let described = describe(directory).map_err(of_storage)?.ok_or_else(missing)?;
        // Files of engines may have records after the checkpoint, and the image has them in its log.
        let mut time_ms = described.time_ms;
        let end = Lsn(list.end.end);
        local.outcome(walk_archived(
            &|number| local.segment(number),
            described.watermark.min(end)..end,
            &mut |record| {
                time_ms = time_ms.max(record.time_ms.unwrap_or_default());
                ControlFlow::Continue(())
            },
        ))?;
        Ok((described.format, time_ms))
    }
}
