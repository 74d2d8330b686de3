#pragma once   /* SPDX-License-Identifier: MIT */
#include "api.h"

/* Arguments: how a span or an instant gets keys with values.

   PROF_ARGS(PROF_ARG("bytes", n), PROF_ARG("op", name)) makes a list (npuprof_args). The list is valid until
   the end of the statement.
   PROF_ARG takes the type from the value: in C with _Generic, in C++ with overloads. PROF_INT, PROF_UINT,
   PROF_REAL, PROF_BOOL and PROF_STR name the type and convert the value to it. PROF_NO_ARGS is the empty
   list. If something else than a list is given, the compiler's message says so in words.
   With NPUPROF_OFF the same code is compiled inside a sizeof, so its types are checked, too. */

NPUPROF_BEGIN_C_

NPUPROF_INLINE_ uint64_t npuprof_int_bits_(int64_t v) { return NPUPROF_STATIC_CAST_(uint64_t, v); }

NPUPROF_INLINE_ uint64_t npuprof_real_bits_(double v)
{
    union { double d; uint64_t u; } bits;
    bits.d = v;
    return bits.u;
}

NPUPROF_INLINE_ npuprof_arg npuprof_arg_(const char *key, uint32_t type)
{
    npuprof_arg a;
    a.key = key;
    a.type = type;
    a.value.u = 0;
    return a;
}

NPUPROF_INLINE_ npuprof_arg npuprof_int_(const char *key, int64_t v)
{
    npuprof_arg a = npuprof_arg_(key, NPUPROF_ARG_INT);
    a.value.i = v;
    return a;
}

NPUPROF_INLINE_ npuprof_arg npuprof_uint_(const char *key, uint64_t v)
{
    npuprof_arg a = npuprof_arg_(key, NPUPROF_ARG_UINT);
    a.value.u = v;
    return a;
}

NPUPROF_INLINE_ npuprof_arg npuprof_real_(const char *key, double v)
{
    npuprof_arg a = npuprof_arg_(key, NPUPROF_ARG_REAL);
    a.value.d = v;
    return a;
}

NPUPROF_INLINE_ npuprof_arg npuprof_bool_(const char *key, bool v)
{
    npuprof_arg a = npuprof_arg_(key, NPUPROF_ARG_BOOL);
    a.value.u = v ? 1 : 0;
    return a;
}

NPUPROF_INLINE_ npuprof_arg npuprof_str_(const char *key, const char *v)
{
    npuprof_arg a = npuprof_arg_(key, NPUPROF_ARG_STR);
    a.value.s = v;
    return a;
}

NPUPROF_INLINE_ npuprof_args npuprof_args_(const npuprof_arg *items, size_t count)
{
    npuprof_args list;
    list.items = items;
    list.count = count;
    return list;
}

NPUPROF_INLINE_ npuprof_arg npuprof_float_(const char *key, float v)
{
    return npuprof_real_(key, NPUPROF_STATIC_CAST_(double, v));
}

NPUPROF_END_C_

/* One argument each. key: a string literal. PROF_STR copies its string and cuts it at 1,024 bytes; NULL is
   shown as null. Without floating point, PROF_REAL does not compile (AArch64 with -mgeneral-regs-only) or
   takes only constants (x86-64 with -mno-sse). */
#define PROF_INT(key, v) npuprof_int_("" key "", NPUPROF_CAST_(int64_t, v))
#define PROF_UINT(key, v) npuprof_uint_("" key "", NPUPROF_CAST_(uint64_t, v))
#define PROF_REAL(key, v) NPUPROF_REAL_("" key "", v)
#define PROF_BOOL(key, v) npuprof_bool_("" key "", (v) ? true : false)
#define PROF_STR(key, v) npuprof_str_("" key "", (v))
#define PROF_NO_ARGS npuprof_args_(NPUPROF_NULL_, 0)

/* Why not a function: without floating point, no code with a variable of type double compiles. */
#ifdef NPUPROF_NO_REAL_
extern npuprof_arg npuprof_no_real_(const char *key)
    NPUPROF_NO_REAL_("npuprof.h: PROF_REAL needs floating point, which this target does not have; use "
                     "PROF_INT in a finer unit");
#define NPUPROF_REAL_(key, v) \
    __builtin_choose_expr(NPUPROF_MAY_BE_REAL_(v), ((npuprof_arg){ (key), NPUPROF_ARG_REAL, { .d = (v) } }), \
                          npuprof_no_real_(key))
#else
#define NPUPROF_REAL_(key, v) npuprof_real_((key), NPUPROF_CAST_(double, v))
#endif

#ifdef __cplusplus
extern "C++" {
NPUPROF_INLINE_ npuprof_args npuprof_args_(std::initializer_list<npuprof_arg> list)
{
    return npuprof_args_(list.begin(), list.size());
}

#define NPUPROF_ARG_OF_(type, make, as) \
    NPUPROF_INLINE_ npuprof_arg npuprof_arg_of_(const char *key, \
                                                type v) { return make(key, static_cast<as>(v)); }
NPUPROF_ARG_OF_(bool, npuprof_bool_, bool)
NPUPROF_ARG_OF_(char, npuprof_int_, int64_t)
NPUPROF_ARG_OF_(signed char, npuprof_int_, int64_t)
NPUPROF_ARG_OF_(short, npuprof_int_, int64_t)
NPUPROF_ARG_OF_(int, npuprof_int_, int64_t)
NPUPROF_ARG_OF_(long, npuprof_int_, int64_t)
NPUPROF_ARG_OF_(long long, npuprof_int_, int64_t)
NPUPROF_ARG_OF_(unsigned char, npuprof_uint_, uint64_t)
NPUPROF_ARG_OF_(unsigned short, npuprof_uint_, uint64_t)
NPUPROF_ARG_OF_(unsigned, npuprof_uint_, uint64_t)
NPUPROF_ARG_OF_(unsigned long, npuprof_uint_, uint64_t)
NPUPROF_ARG_OF_(unsigned long long, npuprof_uint_, uint64_t)
NPUPROF_ARG_OF_(float, npuprof_real_, double)
NPUPROF_ARG_OF_(double, npuprof_real_, double)
NPUPROF_ARG_OF_(const char *, npuprof_str_, const char *)
NPUPROF_ARG_OF_(char *, npuprof_str_, const char *)
#undef NPUPROF_ARG_OF_
/* Why deleted: other pointers would convert to bool. */
template <class T> npuprof_arg npuprof_arg_of_(const char *key, T *v) = delete;

/* npuprof_args for T = npuprof_args; for any other T an error in words. */
template <class T> struct npuprof_list_type_ {
    static_assert(sizeof(T) == 0, "npuprof.h: put the arguments into PROF_ARGS(...), or give PROF_NO_ARGS");
    typedef npuprof_args type;
};
template <> struct npuprof_list_type_<npuprof_args> { typedef npuprof_args type; };
template <class T> NPUPROF_ALWAYS_INLINE_ typename npuprof_list_type_<T>::type npuprof_checked_list_(T list)
{
    return list;
}

/* A category is a literal, or NULL for none. */
template <size_t N> constexpr const char *npuprof_category_of_(const char (&text)[N]) { return text; }
constexpr const char *npuprof_category_of_(decltype(nullptr)) { return nullptr; }
}
#define PROF_ARG(key, v) npuprof_arg_of_("" key "", (v))
#define PROF_ARGS(...) NPUPROF_ARGS_(npuprof_args_({ __VA_ARGS__ }))
#define NPUPROF_CHECKED_LIST_(args) npuprof_checked_list_(args)
#ifdef NPUPROF_NAMES_SECTION
#define NPUPROF_CATEGORY_(cat) \
    "" cat ""             /* Why NULL is refused: only arrays of characters fit into that section */
#else
#define NPUPROF_CATEGORY_(cat) npuprof_category_of_(cat)
#endif
#else /* !__cplusplus */

/* A value of a wrong type selects these functions, whose parameter it does not fit. Why the long names: the
   compiler's message shows them. */
struct npuprof_PROF_ARG_takes_integers_floating_point_bool_and_strings_ { uint32_t type; };
NPUPROF_INLINE_ npuprof_arg npuprof_PROF_ARG_takes_integers_floating_point_bool_and_strings_(
    const char *key, struct npuprof_PROF_ARG_takes_integers_floating_point_bool_and_strings_ v)
{
    return npuprof_arg_(key, v.type);
}

struct npuprof_put_the_arguments_into_PROF_ARGS_or_give_PROF_NO_ARGS_ { size_t count; };
NPUPROF_INLINE_ npuprof_args npuprof_put_the_arguments_into_PROF_ARGS_or_give_PROF_NO_ARGS_(
    struct npuprof_put_the_arguments_into_PROF_ARGS_or_give_PROF_NO_ARGS_ list)
{
    return npuprof_args_(NPUPROF_NULL_, list.count);
}

NPUPROF_ALWAYS_INLINE_ npuprof_args npuprof_checked_list_(npuprof_args list) { return list; }

#if defined(NPUPROF_NO_REAL_)
#define NPUPROF_REAL_TYPES_
#else
#define NPUPROF_REAL_TYPES_ float: npuprof_float_, double: npuprof_real_,
#endif
/* Why not for bit-fields: _Generic gives each a type of its own in gcc; PROF_INT and PROF_UINT take them. */
#define PROF_ARG(key, v) \
    NPUPROF_EXTENSION_ _Generic((v), _Bool: npuprof_bool_, char: npuprof_int_, \
                           signed char: npuprof_int_, \
        short: npuprof_int_, int: npuprof_int_, long: npuprof_int_, \
        long long: npuprof_int_, \
        unsigned char: npuprof_uint_, unsigned short: npuprof_uint_, \
        unsigned: npuprof_uint_, \
        unsigned long: npuprof_uint_, \
        unsigned long long: npuprof_uint_, \
        NPUPROF_REAL_TYPES_ char *: npuprof_str_, \
        const char *: npuprof_str_, \
        default: npuprof_PROF_ARG_takes_integers_floating_point_bool_and_strings_)("" key "", (v))
#if NPUPROF_HAS_GENERIC_
#define NPUPROF_CHECKED_LIST_(args) \
    NPUPROF_EXTENSION_ _Generic((args), \
        npuprof_args: npuprof_checked_list_, \
        default: npuprof_put_the_arguments_into_PROF_ARGS_or_give_PROF_NO_ARGS_)(args)
#else
#define NPUPROF_CHECKED_LIST_(args) (args)
#endif
#define PROF_ARGS(...) NPUPROF_ARGS_( \
    npuprof_args_((const npuprof_arg[NPUPROF_ARG_COUNT_(__VA_ARGS__)]){ __VA_ARGS__ }, \
                  sizeof((const npuprof_arg[NPUPROF_ARG_COUNT_(__VA_ARGS__)]){ __VA_ARGS__ }) \
                  / sizeof(NPUPROF_FIRST_ITEM_(__VA_ARGS__))))

/* Only the size of it is asked for. Why: the items "status", s fit the members of one argument, so the array
   takes them, and this function does not. An empty list has no first item. */
#define NPUPROF_FIRST_ITEM_(...) \
    NPUPROF_GLUE_(NPUPROF_FIRST_ITEM_, \
                  NPUPROF_PICK_2ND_(NPUPROF_EXPAND_(NPUPROF_EMPTY_ NPUPROF_NAME_(__VA_ARGS__) ()), \
                                    OF_, ~))(__VA_ARGS__)
#define NPUPROF_EMPTY_(...) ~, TYPE_
#define NPUPROF_FIRST_ITEM_TYPE_(...) npuprof_arg
#define NPUPROF_FIRST_ITEM_OF_(...) npuprof_each_argument_is_PROF_ARG_of_key_and_value_(__VA_ARGS__)
NPUPROF_INLINE_ npuprof_arg npuprof_each_argument_is_PROF_ARG_of_key_and_value_(npuprof_arg first, ...)
{
    return first;
}

/* A category is a literal, or NULL for none. The macro tells them apart by the first token: NULL is
   ((void *)0) and begins with a parenthesis, a literal does not. */
#define NPUPROF_CATEGORY_(cat) \
    NPUPROF_GLUE_(NPUPROF_CATEGORY_, NPUPROF_PICK_2ND_(NPUPROF_PARENTHESIS_ cat, TEXT_, ~))(cat)
#define NPUPROF_PARENTHESIS_(...) ~, NULL_
#define NPUPROF_CATEGORY_TEXT_(cat) "" cat ""
#ifdef NPUPROF_NAMES_SECTION
#define NPUPROF_CATEGORY_NULL_(cat) NPUPROF_NO_CATEGORY_
#else
#define NPUPROF_CATEGORY_NULL_(cat) (cat)            /* a literal in parentheses stays what it is */
#endif
#define NPUPROF_PICK_2ND_(...) NPUPROF_EXPAND_(NPUPROF_2ND_(__VA_ARGS__))
#define NPUPROF_2ND_(a, b, ...) b
#endif /* !__cplusplus */

/* The number of arguments. Empty means that the compiler counts the array. tcc cannot if the array begins
   with a call, so there the preprocessor counts, up to 16. */
#ifdef NPUPROF_CANNOT_COUNT_ITEMS_
#define NPUPROF_ARG_COUNT_(...) \
    NPUPROF_17TH_(__VA_ARGS__, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#else
#define NPUPROF_ARG_COUNT_(...)
#endif
#define NPUPROF_17TH_(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, seventeenth, ...) seventeenth

/* The parameters are `name` or `name, args`. NPUPROF_NAME_ gives the name, NPUPROF_LIST_ the list, or
   PROF_NO_ARGS if there is none. Why not `name, ...` as parameters: C99 does not allow "..." to be empty. */
#define NPUPROF_NAME_(...) NPUPROF_EXPAND_(NPUPROF_1ST_(__VA_ARGS__, ~))
#define NPUPROF_LIST_(...) \
    NPUPROF_EXPAND_(NPUPROF_GLUE_(NPUPROF_LIST_, \
                                  NPUPROF_EXPAND_(NPUPROF_17TH_(__VA_ARGS__, \
        MANY_, MANY_, MANY_, MANY_, MANY_, MANY_, MANY_, MANY_, MANY_, MANY_, MANY_, MANY_, MANY_, \
        MANY_, \
        ONE_, NONE_, ~)))(__VA_ARGS__))
#define NPUPROF_LIST_NONE_(name) PROF_NO_ARGS
#define NPUPROF_LIST_ONE_(name, args) NPUPROF_CHECKED_LIST_(args)
#define NPUPROF_LIST_MANY_(...) NPUPROF_CHECKED_LIST_(0)
#define NPUPROF_1ST_(a, ...) a
#define NPUPROF_EXPAND_(x) \
    x       /* Why: MSVC's traditional preprocessor passes __VA_ARGS__ on as one argument */
