//! Interpreter functions that only carry a call from one frame to the next.
//!
//! Between a Python function and what it calls CPython runs up to six C functions that move arguments. They are of no interest to a
//! plugin's author and make every stack half again as deep, so they are left out unless the owner asks for them. The list is exact:
//! functions that do work of their own (`list_sort`, `dict_update`, `_PyEval_EvalFrameDefault` where it could not be replaced) stay.
//! Names are from CPython 3.11 to 3.15: Objects/call.c, methodobject.c, descrobject.c, classobject.c, funcobject.c, typeobject.c,
//! genobject.c, Python/ceval.c, Include/internal/pycore_call.h.

/// Sorted, for binary search.
const GLUE: &[&str] = &[
    "PyCFunction_Call",
    "PyEval_CallObjectWithKeywords",
    "PyEval_EvalCode",
    "PyGen_am_send",
    "PyIter_Next",
    "PyIter_NextItem",
    "PyIter_Send",
    "PyObject_Call",
    "PyObject_CallFunction",
    "PyObject_CallFunctionObjArgs",
    "PyObject_CallMethod",
    "PyObject_CallMethodObjArgs",
    "PyObject_CallNoArgs",
    "PyObject_CallObject",
    "PyObject_CallOneArg",
    "PyObject_Vectorcall",
    "PyObject_VectorcallDict",
    "PyObject_VectorcallMethod",
    "PyVectorcall_Call",
    "_PyEval_EvalFrame",
    "_PyEval_Vector",
    "_PyFunction_Vectorcall",
    "_PyObject_Call",
    "_PyObject_CallFunctionVa",
    "_PyObject_CallFunction_SizeT",
    "_PyObject_CallMethod",
    "_PyObject_CallMethodFormat",
    "_PyObject_CallMethodId",
    "_PyObject_CallMethodIdObjArgs",
    "_PyObject_CallMethodId_SizeT",
    "_PyObject_CallMethod_SizeT",
    "_PyObject_CallNoArgsTstate",
    "_PyObject_Call_Prepend",
    "_PyObject_FastCall",
    "_PyObject_FastCallDictTstate",
    "_PyObject_MakeTpCall",
    "_PyObject_VectorcallDictTstate",
    "_PyObject_VectorcallPrepend",
    "_PyObject_VectorcallTstate",
    "_PyVectorcall_Call",
    "_Py_VectorCallInstrumentation_StackRefSteal",
    "_Py_VectorCall_StackRefSteal",
    "_Py_slot_tp_getattr_hook",
    "_Py_slot_tp_getattro",
    "_gen_throw",
    "async_gen_anext",
    "async_gen_asend_iternext",
    "async_gen_asend_send",
    "async_gen_athrow_iternext",
    "async_gen_athrow_send",
    "call_attribute",
    "call_method",
    "call_unbound",
    "call_unbound_noarg",
    "callmethod",
    "cfunction_call",
    "cfunction_vectorcall_FASTCALL",
    "cfunction_vectorcall_FASTCALL_KEYWORDS",
    "cfunction_vectorcall_FASTCALL_KEYWORDS_METHOD",
    "cfunction_vectorcall_NOARGS",
    "cfunction_vectorcall_O",
    "classmethoddescr_call",
    "coro_await",
    "coro_wrapper_iternext",
    "coro_wrapper_send",
    "gen_iternext",
    "gen_send",
    "gen_send_ex",
    "gen_send_ex2",
    "gen_throw",
    "method_call",
    "method_vectorcall",
    "method_vectorcall_FASTCALL",
    "method_vectorcall_FASTCALL_KEYWORDS",
    "method_vectorcall_FASTCALL_KEYWORDS_METHOD",
    "method_vectorcall_NOARGS",
    "method_vectorcall_O",
    "method_vectorcall_VARARGS",
    "method_vectorcall_VARARGS_KEYWORDS",
    "object_vacall",
    "slot_am_aiter",
    "slot_am_anext",
    "slot_am_await",
    "slot_am_send",
    "slot_bf_getbuffer",
    "slot_bf_releasebuffer",
    "slot_mp_ass_subscript",
    "slot_mp_subscript",
    "slot_nb_absolute",
    "slot_nb_add",
    "slot_nb_and",
    "slot_nb_bool",
    "slot_nb_divmod",
    "slot_nb_float",
    "slot_nb_floor_divide",
    "slot_nb_index",
    "slot_nb_inplace_add",
    "slot_nb_inplace_and",
    "slot_nb_inplace_floor_divide",
    "slot_nb_inplace_lshift",
    "slot_nb_inplace_matrix_multiply",
    "slot_nb_inplace_multiply",
    "slot_nb_inplace_or",
    "slot_nb_inplace_power",
    "slot_nb_inplace_remainder",
    "slot_nb_inplace_rshift",
    "slot_nb_inplace_subtract",
    "slot_nb_inplace_true_divide",
    "slot_nb_inplace_xor",
    "slot_nb_int",
    "slot_nb_invert",
    "slot_nb_lshift",
    "slot_nb_matrix_multiply",
    "slot_nb_multiply",
    "slot_nb_negative",
    "slot_nb_or",
    "slot_nb_positive",
    "slot_nb_power",
    "slot_nb_remainder",
    "slot_nb_rshift",
    "slot_nb_subtract",
    "slot_nb_true_divide",
    "slot_nb_xor",
    "slot_sq_ass_item",
    "slot_sq_contains",
    "slot_sq_item",
    "slot_sq_length",
    "slot_tp_call",
    "slot_tp_descr_get",
    "slot_tp_descr_set",
    "slot_tp_finalize",
    "slot_tp_getattr_hook",
    "slot_tp_getattro",
    "slot_tp_hash",
    "slot_tp_init",
    "slot_tp_iter",
    "slot_tp_iternext",
    "slot_tp_new",
    "slot_tp_repr",
    "slot_tp_richcompare",
    "slot_tp_setattro",
    "slot_tp_str",
    "type_call",
    "vectorcall_maybe",
    "vectorcall_method",
    "vectorcall_unbound",
    "wrap_call",
    "wrapper_call",
    "wrapperdescr_call",
];

/// Whether a module of this short name is the interpreter: `libpython3.13`, or an executable like `python3.13` that has it built in.
pub fn is_interpreter(module_short_name: &str) -> bool {
    module_short_name.starts_with("libpython") || module_short_name.starts_with("python3")
}

/// Whether a function of the interpreter only passes a call on.
pub fn is_glue(function: &str) -> bool {
    GLUE.binary_search(&function).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_sorted_without_repeats() {
        assert!(GLUE.is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn carriers_are_glue_and_workers_are_not() {
        for carrier in [
            "_PyEval_Vector",
            "method_vectorcall_O",
            "slot_tp_richcompare",
            "gen_send_ex2",
        ] {
            assert!(is_glue(carrier), "{carrier}");
        }
        for worker in [
            "list_sort",
            "scanner_call",
            "_PyEval_EvalFrameDefault",
            "builtin_sorted",
            "pattern_subx",
            "context_run",
        ] {
            assert!(!is_glue(worker), "{worker}");
        }
    }

    #[test]
    fn the_interpreter_is_told_from_its_extensions() {
        assert!(is_interpreter("libpython3.13"));
        assert!(is_interpreter("python3.12"));
        assert!(!is_interpreter("_json.cpython-313-x86_64-linux-gnu"));
        assert!(!is_interpreter("bedrock_server"));
    }
}
