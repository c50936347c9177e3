//! Executes host programs: the calls, and the transitions that follow from them without a choice.

use std::collections::BTreeSet;

use super::{
    CommandStage, EntryContent, HostCondition, HostProgress, InCall, KnowledgePoint, QueueEntry,
    host, members,
};
use crate::Result;
use crate::memory::{At, Backend, Context};
use crate::record::{Log, RunEvent, Spot};
use crate::state::MachineState;
use crate::step::Machine;
use crate::thread::ThreadStatus;
use program::host::{
    CallId, CommandId, CommandKind, CommandOrigin, HostOp, LaneKind, QueryId, QuerySubject, Ref,
};
use program::{Scope, ThreadId};

impl<B: Backend> Machine<'_, B> {
    /// Holds the threads of all commands, and enqueues the command that runs before everything
    /// else.
    pub(crate) fn start_host(&self, state: &mut MachineState<B>) {
        let Some(host) = self.code.program.host.as_deref() else {
            return;
        };
        for command in &host.commands {
            command
                .threads
                .iter()
                .for_each(|t| state.threads[usize::from(t.0)].status = ThreadStatus::Held);
        }
        for id in host
            .command_ids()
            .filter(|c| host.command(*c).origin == CommandOrigin::Start)
        {
            self.enqueue(state, id);
        }
    }

    /// A thread calls the runtime; `false` if the call does not return yet.
    pub(crate) fn call(
        &self,
        state: &mut MachineState<B>,
        cx: &mut Context<'_>,
        woken: &mut Vec<usize>,
        at: At,
        call: CallId,
    ) -> Result<bool> {
        let host = host(self.code);
        let op = &host.call(call).op;
        let waits = HostProgress::<B::Carried>::names(host, op);
        if !self.all(state, &waits) {
            state.host.calls.insert(
                at.thread,
                InCall {
                    issued: false,
                    waits,
                },
            );
            return Ok(false);
        }
        match op {
            HostOp::CreateUser(handle) => state.host.made[usize::from(handle.0)] = true,
            HostOp::Enqueue { command, .. } => {
                // A callback learns from its event, not from the call that registers it.
                if !matches!(host.command(*command).kind, CommandKind::Callback { .. }) {
                    self.hand(state, cx, at, KnowledgePoint::Issue(*command))?;
                }
                self.enqueue(state, *command);
            }
            HostOp::SetUser(handle) => {
                self.hand(state, cx, at, KnowledgePoint::Set(*handle))?;
                state.host.set[usize::from(handle.0)] = true;
            }
            HostOp::Record(handle, lane) => {
                let waits = state.host.before(host, *lane, true);
                state.host.items.push(QueueEntry {
                    lane: Some(*lane),
                    what: EntryContent::Point,
                    waits,
                    passed: false,
                });
                state.host.recorded[usize::from(handle.0)] = Some(state.host.items.len() - 1);
            }
            HostOp::LaneWait(lane, handle) => {
                let mut waits = state.host.before(host, *lane, true);
                waits.extend(state.host.event(host, Ref::Handle(*handle)));
                state.host.items.push(QueueEntry {
                    lane: Some(*lane),
                    what: EntryContent::Point,
                    waits,
                    passed: false,
                });
            }
            HostOp::Wait(_)
            | HostOp::Finish(_)
            | HostOp::Flush(_)
            | HostOp::SyncDevice(_)
            | HostOp::Release(_) => {}
        }
        for lane in HostProgress::<B::Carried>::flushes(host, op) {
            for id in host
                .command_ids()
                .filter(|c| host.command(*c).lane == Some(lane))
            {
                if state.host.stage(id) == CommandStage::Queued {
                    state.host.set_stage(id, CommandStage::Submitted);
                }
            }
        }
        let returns = state.host.returns(host, op);
        self.advance(state, cx.log, woken);
        if returns
            .iter()
            .any(|c| !state.host.holds(self.code, &state.threads, *c))
        {
            state.host.calls.insert(
                at.thread,
                InCall {
                    issued: true,
                    waits: returns,
                },
            );
            return Ok(false);
        }
        self.learn(state, cx.log, at, &returns);
        Ok(true)
    }

    /// A thread of a kernel enqueues a command.
    pub(crate) fn enqueue_child(
        &self,
        state: &mut MachineState<B>,
        cx: &mut Context<'_>,
        woken: &mut Vec<usize>,
        at: At,
        command: CommandId,
    ) -> Result {
        let is_set = host(self.code).command(command).kind == CommandKind::UserEvent;
        if self.code.calls_hand_over || is_set {
            self.hand(state, cx, at, KnowledgePoint::Issue(command))?;
        }
        self.enqueue(state, command);
        self.advance(state, cx.log, woken);
        Ok(())
    }

    /// A thread queries completion, and gets the status. If the answer is 0, "complete", in CUDA
    /// the thread learns as much as from a wait.
    pub(crate) fn asks(
        &self,
        state: &mut MachineState<B>,
        cx: &mut Context<'_>,
        at: At,
        query: QueryId,
    ) -> i64 {
        let host = host(self.code);
        let query = host.query(query);
        let waits = state.host.asked(host, query);
        let complete = self.all(state, &waits);
        if complete && query.orders(host) {
            self.learn(state, cx.log, at, &waits);
        }
        match query.of {
            _ if complete => query.complete(host),
            QuerySubject::Event(Ref::Command(c)) => self.status(state, cx, c),
            _ => *query.incomplete(host).start(),
        }
    }

    /// The status of a command that is not complete: 3 for `CL_QUEUED`, 2 for `CL_SUBMITTED`, 1 for
    /// `CL_RUNNING`. Commands start here as soon as they may. Until a thread of the command steps,
    /// an implementation may report any earlier state that no query has seen pass.
    fn status(&self, state: &mut MachineState<B>, cx: &mut Context<'_>, c: CommandId) -> i64 {
        let running = state.host.stage(c) >= CommandStage::Running;
        let mut threads = host(self.code).command(c).threads.iter();
        let steps = threads.any(|t| {
            let thread = &state.threads[usize::from(t.0)];
            thread.clock > 0 || thread.is_over()
        });
        let ended = state.host.stage(c) >= CommandStage::Ended;
        let lowest = if running { 1 } else { 2 };
        let highest = match state.host.reported.get(&c) {
            _ if ended || (running && steps) => 1,
            Some(&last) => last,
            None => 3,
        };
        let status = lowest + cx.chooser.choose((highest - lowest + 1) as usize) as i64;
        state.host.reported.insert(c, status);
        status
    }

    /// A thread triggers the dependents of its command, and publishes the knowledge that earlier
    /// fences cover.
    pub(crate) fn trigger(
        &self,
        state: &mut MachineState<B>,
        log: &mut dyn Log,
        at: At,
        woken: &mut Vec<usize>,
    ) {
        log.note(RunEvent::Fence(at.spot()));
        let Some(host) = self.code.program.host.as_deref() else {
            return;
        };
        let Some(id) = host.command_of(ThreadId(at.thread as u16)) else {
            return;
        };
        let command = host.command(id);
        let group = command
            .threads
            .iter()
            .position(|t| usize::from(t.0) == at.thread)
            .map(|i| command.groups[i]);
        if !state.host.triggered.insert((id, group.unwrap_or(0))) {
            return;
        }
        for scope in [Scope::Gpu, Scope::Sys] {
            let point = KnowledgePoint::Trigger(id, scope);
            let carried = self.memory.hand_released(&state.memory, at.thread, scope);
            B::join(state.host.known.entry(point).or_default(), &carried);
            log.note(RunEvent::HandReleased(at.spot(), point.number(), scope));
        }
        self.advance(state, log, woken);
    }

    /// A thread passes a `griddepcontrol.wait`.
    pub(crate) fn passes_grid(&self, state: &mut MachineState<B>, log: &mut dyn Log, at: At) {
        log.note(RunEvent::Fence(at.spot()));
        if let Some(before) = state.host.depends_on(self.code, at.thread) {
            self.tell(state, log, at, KnowledgePoint::Done(before));
        }
    }

    fn enqueue(&self, state: &mut MachineState<B>, id: CommandId) {
        let host = host(self.code);
        if let Some(before) = state.host.in_front(host, id) {
            state.host.depends.insert(id, before);
        }
        let waits = state.host.needs(host, id);
        let lane = host.command(id).lane;
        state.host.items.push(QueueEntry {
            lane,
            what: EntryContent::Command(id),
            waits,
            passed: false,
        });
        let queue = lane
            .is_some_and(|l| matches!(host.lane(l).kind, LaneKind::InOrder | LaneKind::OutOfOrder));
        let stage = if queue && self.lazy {
            CommandStage::Queued
        } else {
            CommandStage::Submitted
        };
        state.host.set_stage(id, stage);
    }

    /// Performs all transitions that need no step of a thread. Adds to `woken` the threads that may
    /// step now.
    pub(crate) fn advance(
        &self,
        state: &mut MachineState<B>,
        log: &mut dyn Log,
        woken: &mut Vec<usize>,
    ) -> bool {
        let Some(host) = self.code.program.host.as_deref() else {
            return false;
        };
        let mut any = false;
        loop {
            let mut changed = false;
            for id in host.command_ids() {
                changed |= self.further(state, log, woken, id);
            }
            for i in 0..state.host.items.len() {
                let item = &state.host.items[i];
                if item.what != EntryContent::Point || item.passed || !self.all(state, &item.waits)
                {
                    continue;
                }
                let waits = item.waits.clone();
                state.host.items[i].passed = true;
                self.gather(state, log, &waits, KnowledgePoint::Passed(i));
                changed = true;
            }
            let returned = state
                .host
                .calls
                .iter()
                .filter(|(_, call)| self.all(state, &call.waits));
            let returned: Vec<usize> = returned.map(|(t, _)| *t).collect();
            for t in returned {
                let InCall { issued, waits } =
                    state.host.calls.remove(&t).expect("it is in a call");
                changed = true;
                if !issued {
                    state.threads[t].status = ThreadStatus::Running;
                    continue;
                }
                let at = At {
                    thread: t,
                    instr: state.threads[t].pc,
                    clock: state.threads[t].clock,
                };
                self.learn(state, log, at, &waits);
                self.go(state, t, at.instr + 1, woken);
                woken.push(t);
            }
            any |= changed;
            if !changed {
                return any;
            }
        }
    }

    fn all(&self, state: &MachineState<B>, conds: &BTreeSet<HostCondition>) -> bool {
        conds
            .iter()
            .all(|&c| state.host.holds(self.code, &state.threads, c))
    }

    /// Moves a command to its next stage, if it can.
    fn further(
        &self,
        state: &mut MachineState<B>,
        log: &mut dyn Log,
        woken: &mut Vec<usize>,
        id: CommandId,
    ) -> bool {
        match state.host.stage(id) {
            CommandStage::Submitted => self.start_command(state, log, woken, id),
            CommandStage::Running => {
                let ended = self.end_groups(state, log, id);
                self.end_command(state, log, id) || ended
            }
            CommandStage::Ended => self.complete_command(state, log, id),
            CommandStage::Absent | CommandStage::Queued | CommandStage::Complete => false,
        }
    }

    /// Starts a submitted command, if its conditions hold; its threads learn the knowledge that
    /// comes with these and with its call.
    fn start_command(
        &self,
        state: &mut MachineState<B>,
        log: &mut dyn Log,
        woken: &mut Vec<usize>,
        id: CommandId,
    ) -> bool {
        let Some(waits) = state.host.item(id).map(|item| item.waits.clone()) else {
            return false;
        };
        if !self.all(state, &waits) {
            return false;
        }
        let start = KnowledgePoint::Start(id);
        self.gather(state, log, &waits, start);
        self.pour(state, log, KnowledgePoint::Issue(id), start);
        state.host.set_stage(id, CommandStage::Running);
        let command = host(self.code).command(id);
        for thread in command.threads.iter().map(|t| usize::from(t.0)) {
            state.threads[thread].status = match self.code.threads[thread].acts.is_empty() {
                true => ThreadStatus::Ended,
                false => ThreadStatus::Running,
            };
            let at = At {
                thread,
                instr: 0,
                clock: 0,
            };
            self.tell(state, log, at, start);
            if let Some(before) = state.host.depends.get(&id).copied() {
                self.starts_behind(state, log, before, thread);
            }
            woken.push(thread);
        }
        let MachineState { layer, threads, .. } = state;
        self.layer.started(layer, threads);
        true
    }

    /// Keeps the knowledge of the work-groups of a running command that have ended; returns whether
    /// there is a new one.
    fn end_groups(&self, state: &mut MachineState<B>, log: &mut dyn Log, id: CommandId) -> bool {
        let mut changed = false;
        for group in 0..host(self.code).command(id).group_count() {
            let point = KnowledgePoint::GroupEnd(id, group);
            let over = members(self.code, id, group).all(|t| state.threads[t].is_over());
            if !over || state.host.known.contains_key(&point) {
                continue;
            }
            state.host.known.insert(point, B::Carried::default());
            for t in members(self.code, id, group) {
                let at = At {
                    thread: t,
                    instr: self.code.threads[t].acts.len().saturating_sub(1),
                    clock: state.threads[t].clock,
                };
                let carried = self.memory.hand(self.code, &mut state.memory, at);
                B::join(state.host.known.entry(point).or_default(), &carried);
                log.note(RunEvent::Hand(at.spot(), point.number()));
            }
            changed = true;
        }
        changed
    }

    /// Ends a running command, if all its work-groups have ended.
    fn end_command(&self, state: &mut MachineState<B>, log: &mut dyn Log, id: CommandId) -> bool {
        let groups = 0..host(self.code).command(id).group_count();
        for group in groups.clone() {
            if !members(self.code, id, group).all(|t| state.threads[t].is_over()) {
                return false;
            }
        }
        let end = KnowledgePoint::End(id);
        self.pour(state, log, KnowledgePoint::Start(id), end);
        for group in groups {
            self.pour(state, log, KnowledgePoint::GroupEnd(id, group), end);
        }
        state.host.set_stage(id, CommandStage::Ended);
        true
    }

    /// Completes a command that has ended, if all its children are complete.
    fn complete_command(
        &self,
        state: &mut MachineState<B>,
        log: &mut dyn Log,
        id: CommandId,
    ) -> bool {
        let children = &self.code.commands[usize::from(id.0)].children;
        let children: Vec<(CommandId, CommandStage)> = children
            .iter()
            .map(|c| (*c, state.host.stage(*c)))
            .filter(|c| c.1 != CommandStage::Absent)
            .collect();
        if children.iter().any(|c| c.1 != CommandStage::Complete) {
            return false;
        }
        let done = KnowledgePoint::Done(id);
        self.pour(state, log, KnowledgePoint::End(id), done);
        for (child, _) in children {
            self.pour(state, log, KnowledgePoint::Done(child), done);
        }
        state.host.set_stage(id, CommandStage::Complete);
        true
    }

    /// Adds the knowledge of a thread to a point.
    fn hand(
        &self,
        state: &mut MachineState<B>,
        cx: &mut Context<'_>,
        at: At,
        point: KnowledgePoint,
    ) -> Result {
        self.memory.shut(cx, &mut state.memory, at.thread)?;
        let carried = self.memory.hand(self.code, &mut state.memory, at);
        B::join(state.host.known.entry(point).or_default(), &carried);
        cx.log.note(RunEvent::Hand(at.spot(), point.number()));
        Ok(())
    }

    /// A dependent thread starts: it learns the knowledge published for it.
    fn starts_behind(
        &self,
        state: &mut MachineState<B>,
        log: &mut dyn Log,
        before: CommandId,
        thread: usize,
    ) {
        let near = host(self.code)
            .command(before)
            .threads
            .first()
            .is_some_and(|t| self.code.holds(usize::from(t.0), Scope::Gpu, thread));
        let point = KnowledgePoint::Trigger(before, if near { Scope::Gpu } else { Scope::Sys });
        let Some(carried) = state.host.known.get(&point) else {
            return;
        };
        self.memory.learn(&mut state.memory, thread, carried);
        log.note(RunEvent::Tell(Spot { thread, instr: 0 }, point.number()));
    }

    /// Adds the knowledge at one point to another.
    fn pour(
        &self,
        state: &mut MachineState<B>,
        log: &mut dyn Log,
        from: KnowledgePoint,
        into: KnowledgePoint,
    ) {
        let Some(carried) = state.host.known.get(&from).cloned() else {
            return;
        };
        B::join(state.host.known.entry(into).or_default(), &carried);
        log.note(RunEvent::Pour(from.number(), into.number()));
    }

    /// Adds to a point the knowledge that comes with conditions.
    fn gather(
        &self,
        state: &mut MachineState<B>,
        log: &mut dyn Log,
        conds: &BTreeSet<HostCondition>,
        into: KnowledgePoint,
    ) {
        for point in conds
            .iter()
            .filter_map(|&c| HostProgress::<B::Carried>::point(c))
        {
            self.pour(state, log, point, into);
        }
    }

    /// A thread learns the knowledge at a point.
    fn tell(&self, state: &mut MachineState<B>, log: &mut dyn Log, at: At, point: KnowledgePoint) {
        let Some(carried) = state.host.known.get(&point) else {
            return;
        };
        self.memory.tell(self.code, &mut state.memory, at, carried);
        log.note(RunEvent::Tell(at.spot(), point.number()));
    }

    /// A thread learns the knowledge that comes with conditions.
    fn learn(
        &self,
        state: &mut MachineState<B>,
        log: &mut dyn Log,
        at: At,
        conds: &BTreeSet<HostCondition>,
    ) {
        for point in conds
            .iter()
            .filter_map(|&c| HostProgress::<B::Carried>::point(c))
        {
            self.tell(state, log, at, point);
        }
    }
}
