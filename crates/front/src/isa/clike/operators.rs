//! Lowers operators of structures: those that the code defines, those of OpenCL's vectors, and
//! those of CUDA's pairs of small numbers.
//!
//! # Sources
//! - ISO C++, over.oper, over.match.oper; OpenCL C, *Operators*, *Vector Components*; CUDA Math
//!   API, *Half2 Arithmetic Functions*.
//!
//! # Where we differ
//! - An operator on vectors acts on their components from the first to the last.

use std::ops::Range;

use super::ast::{Expr as Tree, ExprKind};
use super::lower::{Known, Lowering};
use super::place::{Place, shifted};
use super::types::{Qualified, Type, Value, components, folded};
use program::{BinOp, CmpOp, Expr, Ty};

/// The signs of operators.
fn sign(op: BinOp) -> Option<&'static str> {
    Some(match op {
        BinOp::Add => "+",
        BinOp::Sub => "-",
        BinOp::Mul => "*",
        BinOp::Div => "/",
        BinOp::Rem => "%",
        BinOp::And => "&",
        BinOp::Or => "|",
        BinOp::Xor => "^",
        BinOp::Shl => "<<",
        BinOp::Shr => ">>",
        _ => return None,
    })
}

fn comparison(op: CmpOp) -> &'static str {
    match op {
        CmpOp::Eq => "==",
        CmpOp::Ne => "!=",
        CmpOp::Lt => "<",
        CmpOp::Le => "<=",
        CmpOp::Gt => ">",
        CmpOp::Ge => ">=",
    }
}

/// The operator of an expression with its operands.
fn operator_in(tree: &Tree) -> Option<(String, Vec<&Tree>)> {
    let (sign, operands): (&str, Vec<&Tree>) = match &tree.kind {
        ExprKind::Bin(op, a, b) => (sign(*op)?, vec![a, b]),
        ExprKind::Cmp(op, a, b) => (comparison(*op), vec![a, b]),
        ExprKind::Neg(a) => ("-", vec![a]),
        ExprKind::Not(a) => ("!", vec![a]),
        ExprKind::Complement(a) => ("~", vec![a]),
        ExprKind::Deref(a) => ("*", vec![a]),
        ExprKind::Index(a, i) => ("[]", vec![a, i]),
        ExprKind::Assign(None, a, b) => ("=", vec![a, b]),
        ExprKind::Assign(Some(op), a, b) => {
            return Some((format!("operator{}=", sign(*op)?), vec![a, b]));
        }
        _ => return None,
    };
    Some((format!("operator{sign}"), operands))
}

impl Lowering<'_, '_> {
    pub(super) fn is_structure(&self, tree: &Tree) -> bool {
        self.type_of_place(tree)
            .is_some_and(|of| matches!(of.ty, Type::Struct(_)))
    }

    /// The operator of the code that an expression means, its operands, and whether it is a member
    /// function of the first.
    pub(super) fn operator_of<'t>(&self, tree: &'t Tree) -> Option<(&Known, Vec<&'t Tree>, bool)> {
        if !self.has_operators {
            return None;
        }
        let (name, operands) = operator_in(tree)?;
        if let Some(of) = self.type_of_place(operands[0])
            && let Some(known) = self.method_of_type(&of.ty, &name)
        {
            return Some((known, operands, true));
        }
        let known = self.functions.get(&name)?;
        let any = operands.iter().any(|operand| self.is_structure(operand));
        any.then_some((known, operands, false))
    }

    /// Calls the operator of the code that an expression means; `None`: it means none.
    pub(super) fn operator_of_code(&mut self, tree: &Tree) -> Option<Value> {
        let (known, operands, member) = self.operator_of(tree)?;
        let known = known.clone();
        let range = &tree.range;
        if !member {
            return self.call_function(range, range, &known, None, &operands);
        }
        let Some((at, of)) = self.structure_at(operands[0]) else {
            return Some(self.nothing());
        };
        let at = self.stable(at);
        self.call_function(range, range, &known, Some((at, of)), &operands[1..])
    }

    /// The value of an expression; of an object of the code, the number or the pointer that it is
    /// converted to (ISO C++, class.conv.fct).
    pub(super) fn converted_object(&mut self, tree: &Tree) -> Value {
        let named = self.type_of_place(tree);
        let named = named.filter(|of| self.conversion_of(&of.ty).is_some());
        let (at, of) = match named {
            Some(_) => match self.structure_at(tree) {
                Some(object) => object,
                None => return self.nothing(),
            },
            None => {
                let value = self.eval(tree);
                match self.conversion_of(&value.ty) {
                    Some(_) => (value.expr, Qualified::from(value.ty)),
                    None => return value,
                }
            }
        };
        let Some(known) = self.conversion_of(&of.ty).cloned() else {
            return self.nothing();
        };
        let at = self.stable(at);
        let range = &tree.range;
        let converted = self.call_function(range, range, &known, Some((at, of)), &[]);
        converted.unwrap_or_else(|| self.nothing())
    }

    /// The conversion function of a class, if it converts to one type; the one that is not to a
    /// constant, if there are two.
    fn conversion_of(&self, of: &Type) -> Option<&Known> {
        let Type::Struct(structure) = of else {
            return None;
        };
        if !self.has_operators {
            return None;
        }
        let start = format!("{}::operator", structure.name);
        let all = self.functions.iter().filter(|(name, _)| {
            let target = name.strip_prefix(&start);
            target.is_some_and(|to| to.starts_with(|c: char| c.is_alphabetic() || c == '_'))
        });
        fn target(name: &str) -> String {
            name.replace("operatorconst", "operator")
        }
        let mut all: Vec<(&String, &Known)> = all.collect();
        all.sort_by_key(|(name, _)| (name.len(), *name));
        let (first, known) = *all.first()?;
        let same = all.iter().all(|(name, _)| target(name) == target(first));
        same.then_some(known)
    }

    /// `f(x)` of an object with `operator()`.
    pub(super) fn call_of_object(
        &mut self,
        range: &Range<usize>,
        object: &Tree,
        args: &[&Tree],
    ) -> Option<Value> {
        let of = self.type_of_place(object)?;
        let known = self.method_of_type(&of.ty, "operator()")?.clone();
        let Some((at, of)) = self.structure_at(object) else {
            return Some(self.nothing());
        };
        let at = self.stable(at);
        self.call_function(range, range, &known, Some((at, of)), args)
    }

    /// The memory of a structure: a place, or a value without a name.
    pub(super) fn structure_at(&mut self, tree: &Tree) -> Option<(Expr, Qualified)> {
        match self.place(tree)? {
            Place::Memory(addr, of) => Some((addr, of)),
            Place::Register(_) => self.memory_place(tree),
        }
    }

    /// The type of a vector's component, and how many there are.
    pub(super) fn vector_type(&self, of: &Type) -> Option<(Type, usize)> {
        let Type::Struct(structure) = of else {
            return None;
        };
        self.env.language.vector(&structure.name)?;
        let members = structure.members();
        Some((members.first()?.of.ty.clone(), members.len()))
    }

    /// The vector type of an expression with the operators of vectors.
    pub(super) fn vector_of_tree(&self, tree: &Tree) -> Option<(Type, usize)> {
        // Most code has no such vectors, and its trees may be deep.
        if !self.env.language.row().regions && !self.has_pairs {
            return None;
        }
        self.computing_vector(&self.type_of_place(tree)?.ty)
    }

    /// The type and the number of a vector's components, if the language has operators for it: in
    /// CUDA C++, only for pairs of small numbers (CUDA Math API, *Half2 Arithmetic Functions*).
    fn computing_vector(&self, of: &Type) -> Option<(Type, usize)> {
        let found = self.vector_type(of)?;
        let is_pair = matches!(&found, (Type::Float(format), 2) if format.bits == 16);
        let computes = self.env.language.row().regions || is_pair;
        computes.then_some(found)
    }

    /// The vector of a type and a length.
    pub(super) fn vector_named(&self, of: &Type, n: usize) -> Option<Type> {
        let word = match of {
            Type::Float(format) => super::floats::name(*format).to_owned(),
            Type::Int(ty) => {
                let name = match ty.bits {
                    8 => "char",
                    16 => "short",
                    32 => "int",
                    _ => "long",
                };
                let unsigned = if ty.signed { "" } else { "u" };
                format!("{unsigned}{name}")
            }
            _ => return None,
        };
        self.vector(&format!("{word}{n}"))
    }

    /// The type of an operation on vectors, without evaluating it.
    pub(super) fn type_of_vectors(&self, tree: &Tree) -> Option<Type> {
        let (of, n) = match &tree.kind {
            ExprKind::Bin(_, a, b) => self.vector_of_tree(a).or_else(|| self.vector_of_tree(b))?,
            ExprKind::Cmp(_, a, b) => {
                let (of, n) = self.vector_of_tree(a).or_else(|| self.vector_of_tree(b))?;
                let bits = of.word()?.bits;
                (Type::Int(Ty { bits, signed: true }), n)
            }
            ExprKind::Neg(a) | ExprKind::Plus(a) | ExprKind::Complement(a) => {
                self.vector_of_tree(a)?
            }
            ExprKind::Call(name, args) if self.is_math_of_code(self.str(name)) => {
                let mut vectors = args.iter().map(|arg| self.vector_of_tree(arg));
                vectors.find(|of| matches!(of, Some((Type::Float(_), _))))??
            }
            ExprKind::Field(a, name) => {
                let (of, n) = self.vector_of_tree(a)?;
                let all = components(self.str(name), n)?;
                if all.len() < 2 {
                    return None;
                }
                (of, all.len())
            }
            _ => return None,
        };
        self.vector_named(&of, n)
    }

    /// The components of a value; a number stands for each.
    pub(super) fn components_of(&mut self, tree: &Tree, n: usize) -> Vec<Value> {
        if self.vector_of_tree(tree).is_some() {
            let Some((at, of)) = self.structure_at(tree) else {
                return vec![self.nothing(); n];
            };
            let at = self.stable(at);
            let parts = of.parts().into_iter();
            return parts
                .map(|(offset, part)| self.read(Place::Memory(shifted(&at, offset), part)))
                .collect();
        }
        let value = self.scalar(tree);
        let value = match value.expr {
            Expr::Const(_) | Expr::Reg(_) => value,
            _ => self.kept(value),
        };
        vec![value; n]
    }

    /// An operation on vectors; `None`: it is none.
    pub(super) fn vector_operation(&mut self, tree: &Tree) -> Option<Value> {
        let of = self.type_of_vectors(tree)?;
        let (element, n) = self.vector_type(&of)?;
        let range = &tree.range;
        let values: Vec<Value> = match &tree.kind {
            ExprKind::Bin(op, a, b) => {
                let (a, b) = (self.components_of(a, n), self.components_of(b, n));
                let both = a.into_iter().zip(b);
                both.map(|(a, b)| self.arithmetic(*op, a, b, range))
                    .collect()
            }
            ExprKind::Cmp(op, a, b) => {
                let (a, b) = (self.components_of(a, n), self.components_of(b, n));
                let both = a.into_iter().zip(b);
                // A component of the result is -1 or 0.
                both.map(|(a, b)| {
                    let truth = self.compare(*op, a, b, range);
                    self.arithmetic(BinOp::Sub, Value::int(0), truth, range)
                })
                .collect()
            }
            ExprKind::Neg(a) => {
                let all = self.components_of(a, n);
                all.into_iter().map(|a| self.negative(a, range)).collect()
            }
            ExprKind::Call(name, args) => {
                let args: Vec<Vec<Value>> =
                    args.iter().map(|arg| self.components_of(arg, n)).collect();
                let all: Vec<Vec<Value>> = (0..n)
                    .map(|i| args.iter().map(|arg| arg[i].clone()).collect())
                    .collect();
                let word = self.str(name);
                let all = all.into_iter();
                all.map(|values| self.math_of_component(tree, word, &element, values))
                    .collect()
            }
            ExprKind::Complement(a) => {
                let all = self.components_of(a, n).into_iter();
                all.map(|a| self.arithmetic(BinOp::Xor, a, Value::int(-1), range))
                    .collect()
            }
            ExprKind::Plus(a) => self.components_of(a, n),
            ExprKind::Field(a, name) => {
                let (_, whole) = self.vector_of_tree(a)?;
                let chosen = components(self.str(name), whole)?;
                let all = self.components_of(a, whole);
                chosen.into_iter().map(|n| all[n].clone()).collect()
            }
            _ => return None,
        };
        let at = self.unnamed(&format!("{}{{}}", of.name()), &of.clone().into(), range)?;
        let of = Qualified::from(of);
        for ((offset, part), value) in of.parts().into_iter().zip(values) {
            let value = value.converted(&element).expr;
            self.write(&Place::Memory(shifted(&at, offset), part), value);
        }
        Some(Value::new(at, of.ty))
    }

    /// Assigns to a vector, or to some of its components: `v = n`, `v += w`, `v.xy = w`. Returns
    /// false for any other target.
    pub(super) fn assign_vector(
        &mut self,
        tree: &Tree,
        target: &Tree,
        op: Option<BinOp>,
        value: &Tree,
    ) -> bool {
        let (whole, chosen) = match &target.kind {
            ExprKind::Field(object, name) if self.vector_of_tree(object).is_some() => {
                let n = self.vector_of_tree(object).map_or(0, |of| of.1);
                match components(self.str(name), n) {
                    Some(chosen) if chosen.len() > 1 => (&**object, Some(chosen)),
                    _ => return false,
                }
            }
            _ => (target, None),
        };
        let Some((_, n)) = self.vector_of_tree(whole) else {
            return false;
        };
        // Only OpenCL C makes a vector of a number.
        let copies = !self.env.language.row().regions || self.vector_of_tree(value).is_some();
        if op.is_none() && chosen.is_none() && copies {
            return false;
        }
        let count = chosen.as_ref().map_or(n, Vec::len);
        let given = self.components_of(value, count);
        let Some((at, of)) = self.memory_place(whole) else {
            return true;
        };
        let at = self.stable(at);
        let parts = of.parts();
        let chosen = chosen.unwrap_or_else(|| (0..n).collect());
        for (component, value) in chosen.into_iter().zip(given) {
            let (offset, part) = &parts[component];
            let place = Place::Memory(shifted(&at, *offset), part.clone());
            let value = match op {
                Some(op) => {
                    let old = self.read(place.clone());
                    self.arithmetic(op, old, value, &tree.range)
                }
                None => value,
            };
            if !self.writable(&place, &target.range) {
                return true;
            }
            self.write(&place, folded(value.converted(&part.ty).expr));
        }
        true
    }

    /// Writes a number to each component of a vector at an address; whether it is a vector.
    pub(super) fn splat(&mut self, at: &Expr, of: &Qualified, value: &Tree) -> bool {
        let vector = self.env.language.row().regions && self.vector_type(&of.ty).is_some();
        if !vector || self.vector_of_tree(value).is_some() {
            return false;
        }
        let value = self.scalar(value);
        let value = self.kept(value);
        for (offset, part) in of.parts() {
            let value = value.converted(&part.ty).expr;
            self.write(&Place::Memory(shifted(at, offset), part), value);
        }
        true
    }

    /// The values of a vector literal, component by component: `(int4)((int2)(0, 1), 2, 3)`.
    pub(super) fn flattened(&mut self, all: &[Tree]) -> Vec<(Value, Range<usize>)> {
        let mut values = Vec::new();
        for tree in all {
            let n = self.vector_of_tree(tree).map_or(1, |of| of.1);
            let components = self.components_of(tree, n);
            values.extend(
                components
                    .into_iter()
                    .map(|value| (value, tree.range.clone())),
            );
        }
        values
    }
}
