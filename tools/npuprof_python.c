/* npuprof_python: the spans of npuprof.scope() and its siblings, as a module in C for Python. `make tools`
   builds it where the header of Python is. tools/npuprof/recording/span.py is the same in Python, for others.
   SPDX-License-Identifier: MIT

   It is not linked with libnpuprof: bind() gets the addresses of its functions. What is rare is done in
   Python, by the functions that setup() gets.
   Data: globals, read and written while Python's lock is held; `top` is each thread's own. */
#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include "../npuprof.h"

#include <stddef.h>
#include <string.h>

enum { ARGUMENTS = 64, CODES = 256 };

/* A span. below: the span that was the innermost of its thread before; a strong reference, as `top` is.
   state: of a span that may be suspended, what enter() gave for it. is_asked: another span names this one as
   its parent, so it says its number. */
typedef struct Span {
    PyObject_HEAD
    PyObject *category, *name, *values, *late, *state, *others;
    struct Span *below;
    uint64_t number;
    uint32_t kind, token, open;        /* open: how often it is entered now */
    int level;
    bool is_asked;
} Span;

static struct {
    uint32_t (*begin)(int, uint32_t, const char *, const char *, const npuprof_arg *, size_t);
    void (*end)(uint32_t);
    void (*result)(const npuprof_arg *, size_t);
    int (*level)(void);
} library;
/* Functions of Python: wake() loads the library if the environment asks for it; name_thread(); plain(value)
   is a bool, int, float or str; encoded(text); enter(span, frame) gives the state of a span that may be
   suspended, or None; leave(span); parent(span); decorate(function, again); two coroutines;
   keep_other(others, span, frame), and take_other(others, frame) gives it, or None. */
static PyObject *wake, *name_thread, *plain, *encoded, *enter, *leave, *parent, *decorate, *enter_async,
    *exit_async, *keep_other, *take_other;
static PyObject *span_type;
static bool is_asleep;                 /* wake() found nothing to do */
static Py_ssize_t suspendable;         /* spans that may be suspended and are open, in all threads */
static uint64_t numbers;
static struct { PyObject *code; bool is_plain; } codes[CODES];
static _Thread_local Span *top;
static _Thread_local bool is_thread_named;

/* Why not CallOneArg: the part of Python that stays the same from version to version lacks it. */
static PyObject *call(PyObject *function, PyObject *value)
{
    return PyObject_CallFunctionObjArgs(function, value, NULL);
}

/* ---- Values for C */

/* Keeps an object as long as the list, which it makes, and gives up this reference. False: an exception. */
static bool is_kept(PyObject *object, PyObject **keep)
{
    if (object && !*keep) *keep = PyList_New(0);
    const bool is_done = object && *keep && PyList_Append(*keep, object) == 0;
    Py_XDECREF(object);
    return is_done;
}

/* A text in UTF-8; NULL: an exception. keep: a list that gets what must live as long. */
static const char *text_of(PyObject *text, PyObject **keep)
{
    Py_ssize_t size = 0;
    const char *utf8 = PyUnicode_Check(text) ? PyUnicode_AsUTF8AndSize(text, &size) : NULL;
    if (utf8 && strlen(utf8) == (size_t)size) return utf8;
    PyErr_Clear();
    PyObject *const bytes = call(encoded, text);
    return is_kept(bytes, keep) ? PyBytes_AsString(bytes) : NULL;
}

/* The value, if it is a bool, a float, a text or an integer of 64 bits. */
static bool is_value(PyObject *value, npuprof_arg *a, PyObject **keep)
{
    int overflow = 0;
    if (PyBool_Check(value)) {
        a->type = NPUPROF_ARG_BOOL;
        a->value.u = value == Py_True;
    } else if (PyFloat_CheckExact(value)) {
        a->type = NPUPROF_ARG_REAL;
        a->value.d = PyFloat_AsDouble(value);
    } else if (PyUnicode_CheckExact(value)) {
        a->type = NPUPROF_ARG_STR;
        a->value.s = text_of(value, keep);
        return a->value.s != NULL;
    } else if (PyLong_CheckExact(value)) {
        a->type = NPUPROF_ARG_INT;
        a->value.i = PyLong_AsLongLongAndOverflow(value, &overflow);
        if (overflow <= 0) return !overflow;
        a->type = NPUPROF_ARG_UINT;
        a->value.u = PyLong_AsUnsignedLongLong(value);
        return !PyErr_Occurred();
    } else {
        return false;
    }
    return true;
}

/* The arguments of a dict, at most ARGUMENTS. -1: an exception. */
static Py_ssize_t arguments_of(PyObject *values, npuprof_arg *a, PyObject **keep)
{
    Py_ssize_t at = 0, count = 0;
    PyObject *key, *value;
    while (count < ARGUMENTS && PyDict_Next(values, &at, &key, &value)) {
        a[count].key = text_of(key, keep);
        if (!a[count].key) return -1;
        if (!is_value(value, &a[count], keep)) {
            PyErr_Clear();
            PyObject *const simple = call(plain, value);
            if (!is_kept(simple, keep) || !is_value(simple, &a[count], keep)) return -1;
        }
        count++;
    }
    return count;
}

/* ---- Beginning */

static Span *new_span(int level, uint32_t kind, PyObject *category, PyObject *name, PyObject *values)
{
    Span *const span = (Span *)PyType_GenericAlloc((PyTypeObject *)span_type, 0);
    if (!span) return NULL;
    span->level = level;
    span->kind = kind;
    span->category = Py_NewRef(category);
    span->name = Py_NewRef(name);
    if (values && PyDict_Check(values) && PyDict_Size(values)) span->values = Py_NewRef(values);
    return span;
}

/* Entered while it is open: by another thread or task, or deeper in its own. That is another span, which
   `others` keeps with who entered it. NULL: an exception. */
static Span *new_other(Span *span)
{
    Span *const other = new_span(span->level, span->kind, span->category, span->name, span->values);
    if (!span->others) span->others = PyDict_New();
    PyObject *const frame = (PyObject *)PyEval_GetFrame();
    PyObject *const done =
        other && span->others && frame
            ? PyObject_CallFunctionObjArgs(keep_other, span->others, (PyObject *)other, frame, NULL)
            : NULL;
    if (!done) Py_XDECREF((PyObject *)other);
    Py_XDECREF(done);
    return done ? other : NULL;
}

/* May what this frame has in its `with` be suspended? The answer is kept by the frame's code. */
static bool is_plain_code(PyFrameObject *frame)
{
    PyObject *const code = (PyObject *)PyFrame_GetCode(frame);
    const size_t place = ((uintptr_t)code >> 5) % CODES;
    if (codes[place].code == code) {
        Py_DECREF(code);
        return codes[place].is_plain;
    }
    PyObject *const flags = PyObject_GetAttrString(code, "co_flags");
    PyObject *const file = PyObject_GetAttrString(code, "co_filename");
    const long suspends = 0x20 | 0x80 | 0x100 | 0x200;      /* generators and coroutines: tasks.py */
    const char *const path = file ? PyUnicode_AsUTF8AndSize(file, NULL) : NULL;
    const bool is_plain = flags && path && !(PyLong_AsLong(flags) & suspends) && !strstr(path, "contextlib");
    Py_XDECREF(flags);
    Py_XDECREF(file);
    PyErr_Clear();
    Py_XDECREF(codes[place].code);
    codes[place].code = code;
    codes[place].is_plain = is_plain;
    return is_plain;
}

/* Makes the span one that may be suspended, if it may. -1: an exception. */
static int suspend_if(Span *span)
{
    PyFrameObject *const frame = PyEval_GetFrame();
    if (!frame || is_plain_code(frame)) return 0;
    PyObject *const state = PyObject_CallFunctionObjArgs(enter, (PyObject *)span, (PyObject *)frame, NULL);
    if (!state) return -1;
    if (state == Py_None) Py_DECREF(state);
    else {
        span->state = state;
        suspendable++;
    }
    return state != Py_None;
}

/* Begins a span of the thread. False: an exception. */
static bool begin_here(Span *span, PyObject *values)
{
    npuprof_arg items[ARGUMENTS];
    PyObject *keep = NULL;
    const char *const category = text_of(span->category, &keep);
    const char *const name = category ? text_of(span->name, &keep) : NULL;
    const Py_ssize_t count = name && values ? arguments_of(values, items, &keep) : name ? 0 : -1;
    if (count >= 0) {
        span->token =
            library.begin(span->level, span->kind, category, name, count ? items : NULL, (size_t)count);
        if (span->token) {
            Py_INCREF((PyObject *)span);
            span->below = top;
            top = span;
        }
    }
    Py_XDECREF(keep);
    return count >= 0;
}

/* The arguments of a span in a task that states its parent, which is a span that may be suspended. */
static PyObject *values_in_task(Span *span)
{
    PyObject *const number = call(parent, (PyObject *)span);
    if (!number || number == Py_None) return number;
    PyObject *values = span->values ? PyDict_Copy(span->values) : PyDict_New();
    if (values && PyDict_SetItemString(values, "scope.parent", number)) Py_CLEAR(values);
    Py_DECREF(number);
    return values;
}

static bool enter_span(Span *span)
{
    const bool is_boundary = span->kind == NPUPROF_KIND_RECORD || span->kind == NPUPROF_KIND_INFERENCE;
    if (library.level() < span->level && !is_boundary) return true;
    span->number = ++numbers;
    span->is_asked = false;
    if (!is_thread_named) {
        PyObject *const done = PyObject_CallNoArgs(name_thread);
        if (!done) return false;
        Py_DECREF(done);
        is_thread_named = true;
    }
    const int suspends = suspend_if(span);
    if (suspends) return suspends > 0;
    if (!suspendable) return begin_here(span, span->values);
    PyObject *const values = values_in_task(span);
    if (!values) return false;
    const bool is_done = begin_here(span, values == Py_None ? span->values : values);
    Py_DECREF(values);
    return is_done;
}

/* Why no exception: a program that is recorded does what it does. */
static PyObject *span_enter(PyObject *self, PyObject *nothing)
{
    (void)nothing;
    if (!library.begin && !is_asleep) {
        PyObject *const done = PyObject_CallNoArgs(wake);
        if (!done) PyErr_WriteUnraisable(self);
        Py_XDECREF(done);
        is_asleep = !library.begin;
    }
    Span *span = (Span *)self;
    if (span->open++ && library.begin) span = new_other(span);
    else Py_INCREF(self);
    if (!span || (library.begin && !enter_span(span))) PyErr_WriteUnraisable(self);
    return span ? (PyObject *)span : Py_NewRef(self);
}

/* ---- Ending */

/* Takes the span off the stack of this thread, with what lies above it. */
static void take_off(Span *span)
{
    Span *at = top;
    while (at && at != span) at = at->below;
    while (at && top) {
        Span *const last = top;
        const bool is_it = last == span;
        top = last->below;
        last->below = NULL;
        Py_DECREF((PyObject *)last);
        if (is_it) return;
    }
}

static bool end_here(Span *span)
{
    npuprof_arg items[ARGUMENTS + 1];
    Py_ssize_t count = 0;
    PyObject *keep = NULL;
    if (span->late) {
        count = arguments_of(span->late, items, &keep);
        Py_CLEAR(span->late);
    }
    if (count >= 0 && span->is_asked) {
        items[count].key = "scope.id";
        items[count].type = NPUPROF_ARG_UINT;
        items[count++].value.u = span->number;
    }
    if (count > 0) library.result(items, (size_t)count);
    library.end(span->token);
    span->token = 0;
    Py_XDECREF(keep);
    take_off(span);
    return count >= 0;
}

static PyObject *span_exit(PyObject *self, PyObject *const *raised, Py_ssize_t count)
{
    (void)raised;
    (void)count;
    Span *const span = (Span *)self;
    if (span->open) span->open--;
    PyObject *const frame =            /* Why not always: to make one takes as long as the rest */
        span->others && PyDict_Size(span->others) ? (PyObject *)PyEval_GetFrame() : NULL;
    PyObject *const other =
        frame ? PyObject_CallFunctionObjArgs(take_other, span->others, frame, NULL) : NULL;
    if (other && other != Py_None) {
        Py_XDECREF(span_exit(other, NULL, 0));
    } else if (span->state) {
        PyObject *const done = call(leave, self);
        if (!done) PyErr_WriteUnraisable(self);
        Py_XDECREF(done);
        Py_CLEAR(span->state);
        Py_CLEAR(span->late);
        suspendable--;
    } else if (span->token && !end_here(span)) {
        PyErr_WriteUnraisable(self);
    }
    if (PyErr_Occurred()) PyErr_WriteUnraisable(self);
    Py_XDECREF(other);
    Py_RETURN_NONE;
}

/* ---- The type and the module */

/* span(level, kind, category, name, values): a new span. */
static PyObject *make_span(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    (void)module;
    if (count != 5) return PyErr_Format(PyExc_TypeError, "span: five arguments");
    const long level = PyLong_AsLong(given[0]), kind = PyLong_AsLong(given[1]);
    if (PyErr_Occurred()) return NULL;
    return (PyObject *)new_span((int)level, (uint32_t)kind, given[2], given[3], given[4]);
}

/* Another one of the same kind. */
static PyObject *span_again(PyObject *self, PyObject *nothing)
{
    const Span *const span = (const Span *)self;
    (void)nothing;
    return (PyObject *)new_span(span->level, span->kind, span->category, span->name, span->values);
}

static void span_dealloc(PyObject *self)
{
    Span *const span = (Span *)self;
    if (span->state) suspendable--;
    Py_XDECREF(span->category);
    Py_XDECREF(span->name);
    Py_XDECREF(span->values);
    Py_XDECREF(span->late);
    Py_XDECREF(span->state);
    Py_XDECREF(span->others);
    Py_XDECREF((PyObject *)span->below);
    PyObject_Free(self);
    Py_DECREF(span_type);
}

/* set(key=value, ...): arguments that are known only now. */
static PyObject *span_set(PyObject *self, PyObject *nothing, PyObject *values)
{
    Span *const span = (Span *)self;
    if (PyTuple_Size(nothing)) return PyErr_Format(PyExc_TypeError, "set() takes arguments by name only");
    if (!values || (!span->token && !span->state)) Py_RETURN_NONE;
    if (!span->late) span->late = PyDict_New();
    if (!span->late || PyDict_Update(span->late, values)) return NULL;
    Py_RETURN_NONE;
}

/* As a decorator. */
static PyObject *span_call(PyObject *self, PyObject *given, PyObject *by_name)
{
    PyObject *function = NULL;
    if (by_name || !PyArg_ParseTuple(given, "O", &function))
        return PyErr_Format(PyExc_TypeError, "a span is called as a decorator: with one function");
    PyObject *const again = PyObject_GetAttrString(self, "_again");
    PyObject *const decorated = again ? PyObject_CallFunctionObjArgs(decorate, function, again, NULL) : NULL;
    Py_XDECREF(again);
    return decorated;
}

/* For `async with`: coroutines of Python, that enter and exit. */
static PyObject *span_aenter(PyObject *self, PyObject *nothing)
{
    (void)nothing;
    return call(enter_async, self);
}

static PyObject *span_aexit(PyObject *self, PyObject *raised)
{
    (void)raised;
    return call(exit_async, self);
}

static PyMethodDef span_methods[] = {
    { "_again", span_again, METH_NOARGS, NULL },
    { "__aenter__", span_aenter, METH_NOARGS, NULL },
    { "__aexit__", span_aexit, METH_VARARGS, NULL },
    { "__enter__", span_enter, METH_NOARGS, NULL },
    { "__exit__", (PyCFunction)(void (*)(void))span_exit, METH_FASTCALL, NULL },
    { "set", (PyCFunction)(void (*)(void))span_set, METH_VARARGS | METH_KEYWORDS,
      "set($self, /, **args)\n--\n\nArguments that become known while the span is open." },
    { NULL, NULL, 0, NULL } };
#define MEMBER(name, type, flags) { #name, type, offsetof(Span, name), flags, NULL }
static PyMemberDef span_members[] = {
    MEMBER(level, T_INT, READONLY), MEMBER(kind, T_UINT, READONLY), MEMBER(category, T_OBJECT, READONLY),
    MEMBER(name, T_OBJECT, READONLY), MEMBER(values, T_OBJECT, READONLY), MEMBER(late, T_OBJECT, READONLY),
    MEMBER(state, T_OBJECT, READONLY), MEMBER(number, T_ULONGLONG, READONLY), MEMBER(is_asked, T_BOOL, 0),
    { NULL, 0, 0, 0, NULL } };
static const char span_doc[] = "Scope()\n--\n\nA span: a context manager, and a decorator. scope() makes it.";
static PyType_Slot span_slots[] = { { Py_tp_call, (void *)(uintptr_t)span_call },
                                    { Py_tp_dealloc, (void *)(uintptr_t)span_dealloc },
                                    { Py_tp_methods, span_methods },
                                    { Py_tp_members, span_members },
                                    { Py_tp_doc, (void *)(uintptr_t)span_doc },
                                    { 0, NULL } };
static PyType_Spec span_spec = { "npuprof.Scope", sizeof(Span), 0,
                                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, span_slots };

/* setup(): the functions of Python, in the order of their declaration. */
static PyObject *setup(PyObject *module, PyObject *given)
{
    PyObject **const places[] = { &wake, &name_thread, &plain, &encoded, &enter, &leave, &parent, &decorate,
                                  &enter_async, &exit_async, &keep_other, &take_other };
    (void)module;
    for (size_t n = 0; n < sizeof places / sizeof *places; n++) {
        *places[n] = PyTuple_GetItem(given, (Py_ssize_t)n);
        if (!*places[n]) return NULL;
        Py_INCREF(*places[n]);
    }
    Py_RETURN_NONE;
}

/* bind(begin, end, result, level): the addresses of these functions of libnpuprof. */
static PyObject *bind(PyObject *module, PyObject *given)
{
    (void)module;
    void *address[4];
    for (Py_ssize_t n = 0; n < 4; n++) {
        PyObject *const number = PyTuple_GetItem(given, n);
        if (!number) return NULL;
        address[n] = PyLong_AsVoidPtr(number);
        if (!address[n]) return PyErr_Format(PyExc_ValueError, "bind: four addresses");
    }
    memcpy(&library.end, &address[1], sizeof address[1]);
    memcpy(&library.result, &address[2], sizeof address[2]);
    memcpy(&library.level, &address[3], sizeof address[3]);
    memcpy(&library.begin, &address[0], sizeof address[0]);
    Py_RETURN_NONE;
}

/* The innermost span that is open on this thread, or None. */
static PyObject *innermost(PyObject *module, PyObject *nothing)
{
    (void)module;
    (void)nothing;
    return Py_NewRef(top ? (PyObject *)top : Py_None);
}

static PyMethodDef functions[] = {
    { "span", (PyCFunction)(void (*)(void))make_span, METH_FASTCALL, NULL },
    { "setup", setup, METH_VARARGS, NULL },
    { "bind", bind, METH_VARARGS, NULL },
    { "innermost", innermost, METH_NOARGS, NULL },
    { NULL, NULL, 0, NULL } };
static struct PyModuleDef definition = { PyModuleDef_HEAD_INIT, "npuprof_python", NULL, -1, functions,
                                         NULL, NULL, NULL, NULL };

PyMODINIT_FUNC PyInit_npuprof_python(void)
{
    PyObject *const module = PyModule_Create(&definition);
    span_type = PyType_FromSpec(&span_spec);
    if (module && span_type && PyModule_AddObjectRef(module, "Scope", span_type) == 0) return module;
    Py_XDECREF(module);
    return NULL;
}
