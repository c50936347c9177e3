//! Lowers CUDA's queries, which are expressions: `while (cudaEventQuery(e) != cudaSuccess) { }`.
//! Lists the results and statuses that the code of both runtimes may name.
//!
//! # Sources
//! - CUDA runtime API, cudaEventQuery, cudaStreamQuery; *Data types used by CUDA Runtime*,
//!   cudaError.
//! - OpenCL API specification, clGetEventInfo: the values of a status.

use std::ops::Range;

use super::calls::{ROWS, is_value};
use crate::isa::clike::ast::{Arg, Expr as Tree, ExprKind, HostCall};
use crate::isa::clike::lower::Lowering;
use crate::isa::clike::types::Value;
use crate::isa::clike::words::{RESULTS, STATUSES};
use program::dialect::Runtime;
use program::{Expr, Ty};

impl Lowering<'_, '_> {
    /// The value of a query; `None`: the call is not a query.
    pub(in crate::isa::clike) fn answer(
        &mut self,
        tree: &Tree,
        name: &Range<usize>,
        args: &[Tree],
    ) -> Option<Value> {
        if !is_value(self.str(name)) {
            return None;
        }
        let args = args
            .iter()
            .map(|arg| match &arg.kind {
                ExprKind::Int(n, _) => Arg::Int(*n, arg.range.clone()),
                ExprKind::Name => Arg::Names(vec![arg.range.clone()]),
                ExprKind::AddressOf(_) => Arg::Address(arg.range.clone()),
                _ => Arg::List(Vec::new(), arg.range.clone()),
            })
            .collect();
        let call = HostCall {
            result: None,
            name: Some(name.clone()),
            args,
            launch: false,
        };
        let before = self.host.requests.len();
        self.host_call(&call, &tree.range);
        let status = self.host.requests.get(before).and_then(|r| r.status);
        let [success, not_ready] = RESULTS.map(|r| Box::new(Expr::Const(r.1)));
        Some(match status {
            Some(reg) => {
                let expr = Expr::Select(Box::new(Expr::Reg(reg)), not_ready, success);
                Value::of(expr, Ty::S32)
            }
            None => Value::int(0),
        })
    }

    /// The results and statuses that this code can name.
    pub(in crate::isa::clike) fn results(
        &self,
    ) -> impl Iterator<Item = (&'static str, i64)> + use<> {
        let results: &[(&str, i64)] = match self.runtime().filter(|_| self.env.host.is_some()) {
            Some(Runtime::Cuda) => &RESULTS,
            Some(Runtime::OpenCl) => &STATUSES,
            None => &[],
        };
        results.iter().copied()
    }

    /// The value of a result's name.
    pub(in crate::isa::clike) fn result(&self, name: &str) -> Option<i64> {
        self.results().find(|r| r.0 == name).map(|r| r.1)
    }

    /// The names of the queries, if the code may make them.
    pub(in crate::isa::clike) fn value_calls(&self) -> impl Iterator<Item = &'static str> + use<> {
        let host = self.env.host.as_ref().is_some_and(|names| !names.of_kernel);
        let here = self.runtime() == Some(Runtime::Cuda) && host;
        ROWS.iter()
            .map(|row| row.name)
            .filter(move |name| here && is_value(name))
    }
}
