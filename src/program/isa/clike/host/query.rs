//! Queries of CUDA, which are expressions: `while (cudaEventQuery(e) != cudaSuccess) { }`.
//!
//! # Sources
//! - CUDA runtime API, cudaEventQuery, cudaStreamQuery; *Data types used by CUDA Runtime*, cudaError.

use std::ops::Range;

use super::calls::is_value;
use super::parse::{Arg, HostCall};
use crate::program::isa::clike::ast::{Expr as Tree, ExprKind};
use crate::program::isa::clike::eval::Value;
use crate::program::isa::clike::lower::Lowering;
use crate::program::isa::clike::words::RESULTS;
use crate::program::{Dialect, Expr, Ty};

impl Lowering<'_, '_> {
    /// The value of a call that is an expression: a query. `None`: it is none.
    pub(in crate::program::isa::clike) fn answer(
        &mut self,
        tree: &Tree,
        name: &Range<usize>,
        args: &[Tree],
    ) -> Option<Value> {
        if !is_value(self.str(name)) {
            return None;
        }
        let arg = |arg: &Tree| match &arg.kind {
            ExprKind::Int(n) => Arg::Int(*n, arg.range.clone()),
            ExprKind::Name => Arg::Names(vec![arg.range.clone()]),
            ExprKind::AddressOf(_) => Arg::Address(arg.range.clone()),
            _ => Arg::List(Vec::new(), arg.range.clone()),
        };
        let args = args.iter().map(arg).collect();
        let call = HostCall { result: None, name: Some(name.clone()), args, launch: false };
        let before = self.host.requests.len();
        self.host_call(&call, &tree.range);
        let status = self.host.requests.get(before).and_then(|r| r.status);
        let [success, not_ready] = RESULTS.map(|r| Box::new(Expr::Const(r.1)));
        Some(match status {
            Some(reg) => {
                let expr = Expr::Select(Box::new(Expr::Reg(reg)), not_ready, success);
                Value { expr, ty: Ty::S32, target: None }
            }
            None => Value::int(0),
        })
    }

    /// A result of calls by name.
    pub(in crate::program::isa::clike) fn result(&self, name: &str) -> Option<i64> {
        let known = RESULTS.iter().filter(|_| self.env.dialect == Dialect::Cuda);
        known.into_iter().find(|r| r.0 == name).map(|r| r.1)
    }
}
