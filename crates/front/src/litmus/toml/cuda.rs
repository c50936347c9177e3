//! Keys of tests in CUDA C++: kinds of memory, and attributes of the machine.
//!
//! # Sources
//! - libcu++, *Memory model*, Atomicity: its conditions depend on these kinds and attributes.

use ::toml::de::{DeTable, DeValue};

use super::template::TemplateChoice;
use super::{TestReader, integer};
use crate::document::{Value, entries, span_of};
use crate::isa::clike::{class_initial, class_named};
use crate::isa::{Object, Symbols};
use crate::litmus::keys;
use program::dialect::AllocationKinds;
use program::{
    ATTRIBUTES, Class, Dialect, Init, LocId, Machine, MemoryKind, SVM_ATOMICS, Space, Ty,
};

impl TestReader<'_, '_> {
    pub(super) fn cuda_memory(
        &mut self,
        table: &DeTable<'_>,
        object: &mut Object,
        choice: &TemplateChoice,
    ) {
        let kind = self.word(table, "kind", keys::KINDS, choice);
        let gpu = self.count(table, &["gpu"], choice);
        if let (Some(value), true) = (table.get("gpu"), kind != Some("device")) {
            self.sink.error(
                "conflicting-keys",
                span_of(value),
                "only memory of the kind `device` has a GPU",
                |d| d.label("expected `kind = \"device\"` with it"),
            );
        }
        if let (Some(value), true) = (table.get("kind"), table.contains_key("space")) {
            self.sink.error(
                "conflicting-keys",
                span_of(value),
                "`kind` and `space` both give the place of the memory",
                |d| d.label("expected one of them"),
            );
        }
        match kind {
            Some("shared") => object.space = Space::Shared,
            Some("local") => object.space = Space::Local,
            _ => {}
        }
        object.kind = match kind {
            _ if object.space != Space::Global => MemoryKind::Private,
            Some("device") => MemoryKind::Device(gpu.unwrap_or(0)),
            Some("mapped") => MemoryKind::Mapped,
            Some("system") => MemoryKind::System,
            Some("file") => MemoryKind::File,
            _ => MemoryKind::Managed,
        };
    }

    /// The library class that the type names; `Some(None)` if the name is malformed, which was
    /// reported.
    pub(super) fn class(
        &mut self,
        table: &DeTable<'_>,
        choice: &TemplateChoice,
    ) -> Option<Option<(Ty, Class)>> {
        let text = self.string(table, "type", choice)?;
        let name = text.as_str();
        if !name.contains("::") {
            return None;
        }
        let span = text.span(0..name.len());
        match class_named(name) {
            Some(Ok(class)) => Some(Some(class)),
            Some(Err(what)) => {
                self.sink.error(
                    "unknown-word",
                    span,
                    format!("`type` cannot be `{name}`"),
                    |d| d.label(what),
                );
                Some(None)
            }
            None => {
                self.sink.error(
                    "unknown-word",
                    span,
                    format!("`{name}` is not a supported class"),
                    |d| {
                        d.label(
                            "expected `cuda::atomic<int>`, `cuda::atomic_flag`, or a barrier, \
                             latch or semaphore",
                        )
                        .help(
                            "for example `cuda::atomic<int, cuda::thread_scope_device>`, \
                             `cuda::barrier<cuda::thread_scope_block>`, \
                             `cuda::latch<cuda::thread_scope_device>`, \
                             `cuda::counting_semaphore<cuda::thread_scope_device, 4>`",
                        )
                    },
                );
                Some(None)
            }
        }
    }

    /// The initial words of an object of a class, from the counts given to its constructor.
    pub(super) fn class_init(
        &mut self,
        symbols: &Symbols,
        id: LocId,
        init: Vec<Init>,
    ) -> Vec<Init> {
        let (object, span) = (symbols.object(id).1, symbols.get(id).span);
        if object.class.is_none() && object.fields.is_none() {
            return init;
        }
        let layout = object.layout();
        let class = |cell: usize| {
            object.class.or(layout
                .field(cell as u32)
                .mbarrier
                .then_some(Class::Mbarrier))
        };
        let word = |(cell, value): (usize, Init)| match (class(cell), value) {
            (None, value) => Ok(value),
            // These classes may start unknown: code can construct the object later.
            (Some(Class::Atomic(_) | Class::Flag), Init::Unknown) => Ok(Init::Unknown),
            (Some(class), Init::Unknown) => class_initial(class, 0).map(Init::Int),
            (Some(class), Init::Int(count)) => class_initial(class, count).map(Init::Int),
            (Some(Class::Atomic(_)), address) => Ok(address),
            _ => Err("expected a number".to_string()),
        };
        match init.into_iter().enumerate().map(word).collect() {
            Ok(words) => words,
            Err(what) => {
                self.sink.error(
                    "bad-value",
                    span,
                    "this object cannot be made with that count",
                    |d| d.label(what),
                );
                vec![Init::Int(0)]
            }
        }
    }

    pub(super) fn machine(&mut self, dialect: Dialect) -> Machine {
        let mut machine = Machine::full();
        let Some(value) = self.root.get("machine") else {
            return machine;
        };
        let Some(table) = value.get_ref().as_table() else {
            return machine;
        };
        let allocation = dialect.row().allocation;
        let has = |key: &str| match allocation {
            AllocationKinds::Cuda => key != SVM_ATOMICS,
            AllocationKinds::OpenCl => key == SVM_ATOMICS,
            AllocationKinds::Unsaid => false,
        };
        if allocation == AllocationKinds::Unsaid {
            let message = format!("tests of the dialect `{dialect}` have no `machine`");
            self.sink
                .error("conflicting-keys", span_of(value), message, |d| {
                    d.label("expected no such key")
                });
        } else if let Some((key, span, _)) = entries(table).into_iter().find(|(key, ..)| !has(key))
        {
            let message = format!("machines of the dialect `{dialect}` have no `{key}`");
            self.sink.error("conflicting-keys", span, message, |d| {
                d.label("expected no such key")
            });
        }
        let given = |name: &str| table.get(name).map(Value::get_ref);
        for attribute in ATTRIBUTES {
            if let Some(DeValue::Boolean(false)) = given(attribute) {
                machine.without(attribute);
            }
        }
        match given("p2pNativeAtomicSupported") {
            Some(DeValue::Boolean(false)) => machine.p2p = Some(Vec::new()),
            Some(DeValue::Array(pairs)) => {
                machine.p2p = Some(pairs.iter().filter_map(|p| self.pair(p)).collect())
            }
            _ => {}
        }
        machine
    }

    /// Whether the test says that the machine lacks an attribute.
    pub(super) fn lacks(&self, attribute: &str) -> bool {
        let machine = self
            .root
            .get("machine")
            .and_then(|v| v.get_ref().as_table());
        machine
            .and_then(|m| m.get(attribute))
            .and_then(|v| v.get_ref().as_bool())
            == Some(false)
    }

    /// Reads a pair of GPU numbers.
    fn pair(&mut self, value: &Value<'_>) -> Option<(u32, u32)> {
        let items = value.get_ref().as_array()?;
        let all: Option<Vec<u32>> = items
            .iter()
            .map(|v: &Value<'_>| integer(v.get_ref()).and_then(|n| u32::try_from(n).ok()))
            .collect();
        if let Some([a, b]) = all.as_deref() {
            return Some((*a, *b));
        }
        self.sink.error(
            "bad-value",
            span_of(value),
            "this is not a pair of GPUs",
            |d| d.label("expected two numbers, as in `[0, 1]`"),
        );
        None
    }
}
