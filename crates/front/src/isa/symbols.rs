//! The symbol table of a test's memory, filled while its threads are read.
//!
//! # Invariants
//! - Every alias leads to an object in finitely many steps: the aliased name exists before the
//!   alias does.
//! - An object's type comes from its declaration, or from the first access that names a type.
//!   Otherwise it is [`Ty::WORD`].

use std::collections::{BTreeSet, HashMap, HashSet};

use super::clike::Record;
use diag::{Diagnostic, Sink, Span};
use program::host::LateUse;
use program::{
    Class, Format, GroupCopy, Init, Layout, LocId, Location, LocationKind, MemoryKind,
    OpenClMemory, Proxy, Space, Ty,
};

/// All names of memory in a test.
#[derive(Clone, Debug, Default)]
pub struct Symbols {
    index: HashMap<String, LocId>,
    list: Vec<MemorySymbol>,
    multimem: HashSet<LocId>,
    /// The places of declarations in code.
    places: HashMap<LocId, DeclarationPlace>,
    /// Whether code views dynamic shared memory as structures.
    views_structures: bool,
    /// What the reading of the code takes for granted, in words.
    assumed: BTreeSet<String>,
    /// The asynchronous copies of work-groups in the code that was read last, for every launch.
    pub(crate) group_copies: Vec<GroupCopy>,
    /// Ends of life, and uses behind them, in host code.
    pub(crate) lives: Lives,
}

/// The place of a declaration in code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclarationPlace {
    /// The code, by its address.
    pub unit: usize,
    /// The position in it.
    pub at: usize,
    /// The function with the arguments of its template; empty for the kernel.
    pub owner: String,
}

/// Ends of life in host code, and the uses behind them, by what ends: ``the stream `s` ``.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lives {
    pub(crate) ends: Vec<(String, Span)>,
    pub(crate) uses: Vec<(String, Span)>,
}

impl Lives {
    /// The uses with the places of the ends.
    pub(crate) fn late_uses(&self) -> Vec<LateUse> {
        let of = |(object, used): &(String, Span)| LateUse {
            used: *used,
            ended: self
                .ends
                .iter()
                .find(|end| end.0 == *object)
                .map(|end| end.1),
            object: object.clone(),
        };
        let mut all: Vec<LateUse> = self.uses.iter().map(of).collect();
        all.dedup();
        all
    }
}

/// One name of memory.
#[derive(Clone, Debug)]
pub struct MemorySymbol {
    /// The name as written.
    pub name: String,
    /// Further names for the same address.
    pub also: Vec<String>,
    /// The place of its declaration or first use.
    pub span: Span,
    /// The meaning of the name: an object or an alias.
    pub kind: SymbolKind,
}

/// The two meanings of a name.
#[derive(Clone, Debug)]
pub enum SymbolKind {
    /// An object with its own memory.
    Object(Object),
    /// Another name for memory that already has one.
    Alias {
        /// The aliased name.
        of: LocId,
        /// The proxy of accesses through the alias.
        proxy: Proxy,
    },
}

/// An object whose type may still be unknown.
#[derive(Clone, Debug)]
pub struct Object {
    /// The declared or inferred type, with the place that decided it.
    pub ty: Option<(Ty, Span)>,
    /// Whether the type was declared rather than inferred.
    pub declared: bool,
    /// Whether code names elements other than the first. Their offsets depend on the type.
    pub indexed: bool,
    /// The structure of an element that is more than an integer.
    pub record: Option<Record>,
    /// PTX: the fields that the declaration gives. Code then counts bytes, and `ty` is the type of
    /// one byte.
    pub fields: Option<Layout>,
    /// PTX: an array of bytes; accesses decide the types of its contents.
    pub cut: bool,
    /// PTX: the shape of the tensor, if it is a tensor map.
    pub tensor: Option<Box<TensorShape>>,
    /// C family: dynamic shared memory, which code may view as several types.
    pub dynamic: bool,
    /// Initial values, one per cell.
    pub init: Vec<Init>,
    /// The state space of the object.
    pub space: Space,
    /// Whether all declarations make it atomic; `None` if no declaration mentions it.
    pub atomic: Option<bool>,
    /// OpenCL's properties of the memory.
    pub opencl: OpenClMemory,
    /// How the memory was allocated.
    pub kind: MemoryKind,
    /// The class of the object, such as a barrier, if it has one.
    pub class: Option<Class>,
    /// Its elements are 0 or 1: written values are converted to a truth value.
    pub boolean: bool,
    /// The format of its elements, if they are numbers of floating point.
    pub floating: Option<Format>,
    /// The code itself declares the object, and only code names it.
    pub of_code: bool,
    /// Something other than code reads the object, such as a condition, as far as is known.
    pub watched: bool,
}

/// The shape of a tensor, and of its tiles. Dimensions begin with the one of adjacent elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorShape {
    /// The size in bytes of an element.
    pub element: u32,
    /// The number of elements in each dimension.
    pub sizes: Vec<i64>,
    /// The distance in bytes between neighbours, in each dimension but the first.
    pub strides: Vec<i64>,
    /// The number of elements of a tile in each dimension.
    pub boxes: Vec<i64>,
    /// The bytes that a swizzle permutes in shared memory, or 0.
    pub swizzle: i64,
}

impl TensorShape {
    /// The number of bytes from the first element to the last one.
    pub fn extent(&self) -> i64 {
        let steps = self.strides.iter().zip(&self.sizes[1..]);
        let last: i64 = steps.map(|(stride, size)| stride * (size - 1)).sum();
        last + self.sizes[0] * i64::from(self.element)
    }

    /// The number of bytes of a tile.
    pub fn bytes(&self) -> i64 {
        self.boxes.iter().product::<i64>() * i64::from(self.element)
    }
}

impl Object {
    /// A global scalar of unknown type that starts at `value`.
    pub fn scalar(value: i64) -> Object {
        Object {
            ty: None,
            declared: false,
            indexed: false,
            record: None,
            fields: None,
            cut: false,
            tensor: None,
            dynamic: false,
            init: vec![Init::Int(value)],
            space: Space::Global,
            atomic: None,
            opencl: OpenClMemory::default(),
            kind: MemoryKind::default(),
            class: None,
            boolean: false,
            floating: None,
            of_code: false,
            watched: false,
        }
    }
}

impl Object {
    /// The layout of an element.
    pub fn layout(&self) -> Layout {
        match (&self.record, &self.fields) {
            (Some(record), _) => record.layout(),
            (_, Some(fields)) => fields.clone(),
            (None, None) => Layout::of(self.ty.map_or(Ty::WORD, |(ty, _)| ty), self.boolean),
        }
    }
}

/// Objects whose declarations leave something open.
#[derive(Clone, Debug, Default)]
pub struct OpenObjects {
    /// Objects without a type.
    pub untyped: Vec<LocId>,
    /// Arrays of bytes; accesses decide the types of their contents.
    pub bytes: Vec<LocId>,
    /// Objects that something other than code reads, such as a condition.
    pub watched: Vec<LocId>,
}

impl Symbols {
    /// Notes what the reading of the code takes for granted, in words.
    pub fn assume(&mut self, what: String) {
        self.assumed.insert(what);
    }

    /// What the reading of the code took for granted.
    pub fn assumed(&self) -> Vec<String> {
        self.assumed.iter().cloned().collect()
    }

    /// The index of a name.
    pub fn find(&self, name: &str) -> Option<LocId> {
        self.index.get(name).copied()
    }

    /// All names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.list
            .iter()
            .flat_map(|s| s.also.iter().chain([&s.name]))
            .map(String::as_str)
    }

    /// The symbol with that index.
    pub fn get(&self, id: LocId) -> &MemorySymbol {
        &self.list[usize::from(id.0)]
    }

    /// Adds a name. Reports an error and returns `None` if it exists or there are too many names.
    pub fn declare(
        &mut self,
        name: &str,
        span: Span,
        kind: SymbolKind,
        sink: &mut Sink,
    ) -> Option<LocId> {
        if !self.is_new(name, span, sink) {
            return None;
        }
        let Ok(index) = u16::try_from(self.list.len()) else {
            sink.error(
                "too-many-locations",
                span,
                "a test has at most 65535 locations",
                |d| d,
            );
            return None;
        };
        self.index.insert(name.to_string(), LocId(index));
        self.list.push(MemorySymbol {
            name: name.to_string(),
            also: Vec::new(),
            span,
            kind,
        });
        Some(LocId(index))
    }

    /// Adds a further name for an address that already has one: arrays of dynamic shared memory all
    /// begin at one place. Reports an error if the name exists.
    pub fn declare_at(&mut self, name: &str, span: Span, of: LocId, sink: &mut Sink) {
        if self.is_new(name, span, sink) {
            self.index.insert(name.to_string(), of);
            self.list[usize::from(of.0)].also.push(name.to_string());
        }
    }

    fn is_new(&self, name: &str, span: Span, sink: &mut Sink) -> bool {
        let Some(old) = self.find(name) else {
            return true;
        };
        let first = self.get(old).span;
        sink.error(
            "duplicate-location",
            span,
            format!("location `{name}` is declared twice"),
            |d| d.label("declared again").also(first, "first declared here"),
        );
        false
    }

    /// The place in code that declares a name; `None`: the test itself declares it.
    pub fn place(&self, id: LocId) -> Option<&DeclarationPlace> {
        self.places.get(&id)
    }

    /// Remembers the place in code that declares a name.
    pub fn set_place(&mut self, id: LocId, place: Option<DeclarationPlace>) {
        self.places.extend(place.map(|place| (id, place)));
    }

    /// Whether an alias has a multimem address.
    pub fn is_multimem(&self, id: LocId) -> bool {
        self.multimem.contains(&id)
    }

    /// Gives an alias a multimem address.
    pub fn set_multimem(&mut self, id: LocId) {
        self.multimem.insert(id);
    }

    /// Sets the initial values of an object, one per element. Ignores aliases.
    pub fn set_init(&mut self, id: LocId, init: Vec<Init>) {
        if let SymbolKind::Object(object) = &mut self.list[usize::from(id.0)].kind
            && !init.is_empty()
        {
            object.init = init;
        }
    }

    /// The object with that index, for a reader that learns more about it; `None` for an alias.
    pub fn object_mut(&mut self, id: LocId) -> Option<&mut Object> {
        match &mut self.list[usize::from(id.0)].kind {
            SymbolKind::Object(object) => Some(object),
            SymbolKind::Alias { .. } => None,
        }
    }

    /// Marks all names that `text` contains as watched.
    pub fn watch(&mut self, text: &str) {
        for symbol in self.list.iter_mut().filter(|symbol| {
            symbol
                .also
                .iter()
                .chain([&symbol.name])
                .any(|name| text.contains(name))
        }) {
            if let SymbolKind::Object(object) = &mut symbol.kind {
                object.watched = true;
            }
        }
    }

    /// All objects.
    pub fn objects(&self) -> impl Iterator<Item = (LocId, &Object)> {
        (0..)
            .map(LocId)
            .zip(&self.list)
            .filter_map(|(id, symbol)| match &symbol.kind {
                SymbolKind::Object(object) => Some((id, object)),
                SymbolKind::Alias { .. } => None,
            })
    }

    /// The object that a name resolves to.
    pub fn object(&self, mut id: LocId) -> (LocId, &Object) {
        loop {
            match &self.get(id).kind {
                SymbolKind::Object(object) => return (id, object),
                SymbolKind::Alias { of, .. } => id = *of,
            }
        }
    }

    /// Another name for an object, if there is one.
    pub fn alias_of(&self, object: LocId) -> Option<LocId> {
        let mut all = (0..self.list.len() as u16).map(LocId);
        all.find(|&id| id != object && self.object(id).0 == object)
    }

    /// Whether the code of another thread declared the same object.
    pub fn is_like(&self, id: LocId, object: &Object) -> bool {
        let old = self.object(id).1;
        old.of_code
            && (element_ty(old), old.init.len(), old.space)
                == (element_ty(object), object.init.len(), object.space)
            && (old.boolean, old.floating) == (object.boolean, object.floating)
            && (old.atomic, &old.record) == (object.atomic, &object.record)
            && (old.class, &old.init) == (object.class, &object.init)
    }

    /// The element type of the object that a name resolves to.
    pub fn ty(&self, id: LocId) -> Ty {
        self.object(id).1.ty.map_or(Ty::WORD, |(ty, _)| ty)
    }

    /// The layout of an element of the object that a name resolves to.
    pub fn layout(&self, id: LocId) -> Layout {
        self.object(id).1.layout()
    }

    /// The number of values in the object that a name resolves to, in the units that PTX code
    /// counts: bytes if the object has fields, otherwise elements.
    pub fn count(&self, id: LocId) -> usize {
        let object = self.object(id).1;
        match &object.fields {
            Some(fields) => fields.bytes(object.init.len()) as usize,
            None => object.init.len(),
        }
    }

    /// The number of elements of the object that a name resolves to.
    pub fn elements(&self, id: LocId) -> usize {
        let object = self.object(id).1;
        object.init.len() / object.layout().cells()
    }

    /// Records an access of type `ty`: decides the type of an undeclared object, rejects another
    /// size. In PTX, an access may cover several elements of an object with a declared type.
    pub fn access_in_ptx(&mut self, id: LocId, ty: Ty, span: Span, sink: &mut Sink) {
        let object = self.object(id).1;
        let several =
            |(known, _): (Ty, Span)| ty.bits > known.bits && ty.bits.is_multiple_of(known.bits);
        if !(object.declared && object.record.is_none() && object.ty.is_some_and(several)) {
            let help = format!(
                "declare `{name}` with the smallest type that it is accessed with: `{name} = \
                 {{ init = [0, 0], type = \"u{}\" }}`",
                object.ty.map_or(ty, |(known, _)| known.min(ty)).bits,
                name = self.get(id).name,
            );
            self.settle(id, ty, span, sink, |d| d.help(help));
        }
    }

    /// Records an access of type `ty`: decides the type of an undeclared object, rejects another
    /// size.
    pub fn access(&mut self, id: LocId, ty: Ty, span: Span, sink: &mut Sink) {
        self.settle(id, ty, span, sink, |d| {
            d.note("accesses of different sizes to one location are not supported")
        });
    }

    fn settle(
        &mut self,
        id: LocId,
        ty: Ty,
        span: Span,
        sink: &mut Sink,
        advice: impl FnOnce(Diagnostic) -> Diagnostic,
    ) {
        let (object_id, object) = self.object(id);
        let name = &self.get(id).name;
        match object.ty {
            Some((known, at)) if known.bits != ty.bits => {
                let what = if object.declared {
                    "declared"
                } else {
                    "accessed"
                };
                let message = format!(
                    "a {}-bit access to `{name}`, which has {}-bit elements",
                    ty.bits, known.bits
                );
                sink.error("mixed-size", span, message, |d| {
                    advice(
                        d.label(format!("{} bits", ty.bits))
                            .also(at, format!("{what} with {} bits here", known.bits)),
                    )
                });
            }
            Some(_) => {}
            None => {
                if let SymbolKind::Object(object) = &mut self.list[usize::from(object_id.0)].kind {
                    object.ty = Some((ty, span));
                }
            }
        }
    }

    /// The objects whose declarations leave something open, which accesses through registers have
    /// to decide.
    pub fn open(&self) -> OpenObjects {
        let of = |is: fn(&Object) -> bool| {
            self.objects()
                .filter(|(_, o)| is(o))
                .map(|(id, _)| id)
                .collect()
        };
        OpenObjects {
            untyped: self.untyped(),
            bytes: of(|o| o.cut),
            watched: of(|o| o.watched),
        }
    }

    /// Arrays of dynamic shared memory in code of the C family.
    pub fn dynamic(&self) -> Vec<LocId> {
        let all = self.objects().filter(|(_, object)| object.dynamic);
        all.map(|(id, _)| id).collect()
    }

    /// Lets code view objects as several types.
    pub fn set_dynamic(&mut self, is_dynamic: impl Fn(&Object) -> bool) {
        for symbol in &mut self.list {
            if let SymbolKind::Object(object) = &mut symbol.kind {
                object.dynamic |= is_dynamic(object);
            }
        }
    }

    /// Notes that code views dynamic shared memory as structures.
    pub fn view_structures(&mut self) {
        self.views_structures = true;
    }

    /// Whether code views dynamic shared memory as structures.
    pub fn views_structures(&self) -> bool {
        self.views_structures
    }

    /// Objects whose type no declaration, no access and no named element decides.
    fn untyped(&self) -> Vec<LocId> {
        self.list
            .iter()
            .enumerate()
            .filter_map(|(i, s): (usize, &MemorySymbol)| match &s.kind {
                SymbolKind::Object(object) if object.ty.is_none() && !object.indexed => {
                    Some(LocId(i as u16))
                }
                _ => None,
            })
            .collect()
    }

    /// Converts the table into the locations of a program.
    pub fn into_locations(self) -> Vec<Location> {
        fn finish(symbol: MemorySymbol) -> Location {
            let kind = match symbol.kind {
                SymbolKind::Alias { of, proxy } => LocationKind::Alias { of, proxy },
                SymbolKind::Object(object) => {
                    let layout = object.layout();
                    let init = object
                        .init
                        .into_iter()
                        .enumerate()
                        .map(|(cell, init)| match (layout.field(cell as u32), init) {
                            (field, Init::Int(v)) if field.boolean => Init::Int(i64::from(v != 0)),
                            (field, Init::Int(v)) => Init::Int(field.ty.wrap(v)),
                            (_, address) => address,
                        })
                        .collect();
                    let atomic = object.atomic.unwrap_or(false);
                    let Object {
                        space,
                        opencl,
                        kind,
                        class,
                        ..
                    } = object;
                    LocationKind::Object {
                        layout,
                        init,
                        space,
                        atomic,
                        opencl,
                        kind,
                        class,
                    }
                }
            };
            Location {
                name: symbol.name,
                also: symbol.also,
                kind,
            }
        }
        self.list.into_iter().map(finish).collect()
    }
}

fn element_ty(o: &Object) -> Option<Ty> {
    o.ty.map(|ty| ty.0)
}
