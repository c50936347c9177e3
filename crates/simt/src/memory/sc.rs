//! Sequentially consistent memory: one value per location; every step acts at once.
//!
//! Orders, scopes, proxies and fences have no effect. A read-modify-write is one step. This is the
//! memory of the model `sc`: its outcomes are exactly those of the interleavings of the threads'
//! steps.

use std::hash::{Hash, Hasher};

use super::{At, Backend, Context, MemoryAccess, NewValue};
use crate::Result;
use crate::code::{Code, Fence};
use crate::record::{RunEvent, WriteId};
use crate::thread::ThreadState;
use program::Barrier;

/// The rules of a sequentially consistent memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sc;

/// The contents.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    cells: Vec<ScCell>,
    /// By thread: the number of its writes; for the log alone.
    writes: Vec<u32>,
}

/// One location.
#[derive(Clone, Copy, Debug)]
struct ScCell {
    value: i64,
    /// The last write; for the log alone.
    by: WriteId,
}

impl Sc {
    fn write(
        cx: &mut Context<'_>,
        m: &mut Store,
        MemoryAccess { at, place, .. }: MemoryAccess,
        value: i64,
    ) {
        let source = WriteId::Write(at.thread, m.writes[at.thread]);
        m.writes[at.thread] += 1;
        cx.log.note(RunEvent::Write {
            source,
            instr: at.instr,
            loc: place.loc,
            value,
        });
        cx.log
            .note(RunEvent::After(place.loc, m.cells[place.loc].by, source));
        cx.log.note(RunEvent::Commit(source));
        m.cells[place.loc] = ScCell { value, by: source };
    }
}

impl Backend for Sc {
    type Memory = Store;
    type Carried = ();
    type Saved = ();

    /// No step is ever refused here.
    fn save(&self, _: &Store, _: usize, _: Option<usize>) {}

    fn restore(&self, _: &mut Store, (): ()) {}

    fn start(&self, code: &Code) -> Store {
        Store {
            cells: code
                .locations
                .iter()
                .enumerate()
                .map(|(i, l)| ScCell {
                    value: l.init,
                    by: WriteId::Initial(i),
                })
                .collect(),
            writes: vec![0; code.threads.len()],
        }
    }

    fn load(
        &self,
        cx: &mut Context<'_>,
        m: &mut Store,
        MemoryAccess { at, place, .. }: MemoryAccess,
    ) -> Result<i64> {
        let ScCell { value, by } = m.cells[place.loc];
        cx.log.note(RunEvent::Read {
            thread: at.thread,
            instr: at.instr,
            loc: place.loc,
            source: by,
            value,
        });
        Ok(value)
    }

    fn store(&self, cx: &mut Context<'_>, m: &mut Store, t: MemoryAccess, value: i64) -> Result {
        Sc::write(cx, m, t, value);
        Ok(())
    }

    fn rmw(
        &self,
        cx: &mut Context<'_>,
        m: &mut Store,
        read: MemoryAccess,
        write: MemoryAccess,
        new: NewValue<'_>,
    ) -> Result<i64> {
        let old = self.load(cx, m, read)?;
        if let Some(new) = new(old) {
            Sc::write(cx, m, write, new);
        }
        Ok(old)
    }

    fn fence(&self, cx: &mut Context<'_>, _: &mut Store, at: At, _: Fence) -> Result {
        cx.log.note(RunEvent::Fence(at.spot()));
        Ok(())
    }

    fn arrive(&self, _: &mut Context<'_>, _: &mut Store, _: At, _: &Barrier) -> Result {
        Ok(())
    }

    fn join((): &mut (), (): &()) {}

    fn pass(&self, _: &Code, _: &mut Store, _: At, (): &()) {}

    fn hand(&self, _: &Code, _: &mut Store, _: At) {}

    fn tell(&self, _: &Code, _: &mut Store, _: At, (): &()) {}

    fn hash(
        &self,
        m: &Store,
        _: &[ThreadState],
        _: &mut dyn Iterator<Item = &()>,
        mut hasher: &mut dyn Hasher,
    ) {
        m.cells.iter().for_each(|c| c.value.hash(&mut hasher));
    }

    fn finals(&self, m: &Store, loc: usize) -> Vec<i64> {
        vec![m.cells[loc].value]
    }
}
