#pragma once   /* SPDX-License-Identifier: MIT */
#include "compiler.h"

/* What macros need that expand in the user's file: names, literals, casts and the types of values, for C and
   C++, under one name each. May not know what the macros are for. */

#define NPUPROF_GLUE2_(a, b) a##b
#define NPUPROF_GLUE_(a, b) NPUPROF_GLUE2_(a, b)
#define NPUPROF_TEXT_OF2_(x) #x
#define NPUPROF_TEXT_OF_(x) NPUPROF_TEXT_OF2_(x)

/* Refuses a name that is no literal in words, where the compiler can. Its own words come, too. */
#if (defined(__GNUC__) || defined(__clang__)) && defined(__cplusplus)
#define NPUPROF_LITERAL_ONLY_(id, name) static_assert(__builtin_constant_p(name), NPUPROF_LITERAL_WORDS_);
#elif (defined(__GNUC__) || defined(__clang__)) && !defined(__TINYC__) && __STDC_VERSION__ >= 201112L
#define NPUPROF_LITERAL_ONLY_(id, name) _Static_assert(__builtin_constant_p(name), NPUPROF_LITERAL_WORDS_);
#elif defined(__GNUC__) && !defined(__TINYC__)
#define NPUPROF_LITERAL_ONLY_(id, name) \
    typedef char NPUPROF_GLUE_(npuprof_name_must_be_a_literal_else_use_WITH_BASE_PROFILER_or_PROF_BEGIN_, \
                               id)[__builtin_constant_p(name) ? 1 : -1] NPUPROF_ATTRIBUTE_((unused));
#else
#define NPUPROF_LITERAL_ONLY_(id, name)
#endif
#define NPUPROF_LITERAL_WORDS_ \
    "npuprof: the name must be a string literal; for another text use WITH_BASE_PROFILER or PROF_BEGIN"

/* Casts and null pointers for macros that expand in the user's file. Why C++ has its own forms: users compile
   with -Wold-style-cast and -Wzero-as-null-pointer-constant. */
#ifdef __cplusplus
#define NPUPROF_CAST_(type, v) (npuprof_cast_<type>(v))            /* of a number or a pointer */
#define NPUPROF_STATIC_CAST_(type, v) (static_cast<type>(v))
#define NPUPROF_ZERO_(type) type()
#define NPUPROF_NULL_ nullptr
extern "C++" {
template <class To, class From> NPUPROF_ALWAYS_INLINE_ To npuprof_cast_(From v) { return static_cast<To>(v); }

template <class To, class From> NPUPROF_ALWAYS_INLINE_ To npuprof_cast_(From *v)
{
    return static_cast<To>(reinterpret_cast<uintptr_t>(v));
}

template <class To> NPUPROF_ALWAYS_INLINE_ To npuprof_cast_(decltype(nullptr)) { return static_cast<To>(0); }
}
#else
#define NPUPROF_CAST_(type, v) ((type)(v))
#define NPUPROF_STATIC_CAST_(type, v) ((type)(v))
#define NPUPROF_ZERO_(type) ((type){0})
#define NPUPROF_NULL_ NULL
#endif

/* These look at the type of v and do not evaluate it. bool counts as int. */
#if defined(_MSC_VER) && defined(__cplusplus)
#define NPUPROF_TYPEOF_(v) decltype((v) + 0)
#else
#define NPUPROF_TYPEOF_(v) __typeof__((v) + 0)   /* MSVC's C has it from 19.39 on */
#endif
#ifdef __cplusplus
extern "C++" {
template <class Of> struct npuprof_number_ {
    enum { is_real = static_cast<Of>(0.5) > 0, is_unsigned = static_cast<Of>(-1) > static_cast<Of>(0) };
};
}
#define NPUPROF_IS_REAL_(v) (npuprof_number_<NPUPROF_TYPEOF_(v)>::is_real)
#define NPUPROF_IS_UNSIGNED_(v) (npuprof_number_<NPUPROF_TYPEOF_(v)>::is_unsigned)
#else
#define NPUPROF_IS_REAL_(v) (NPUPROF_STATIC_CAST_(NPUPROF_TYPEOF_(v), 0.5) > 0)   /* != : -Wfloat-equal */
#define NPUPROF_IS_UNSIGNED_(v) \
    (NPUPROF_STATIC_CAST_(NPUPROF_TYPEOF_(v), -1) > NPUPROF_STATIC_CAST_(NPUPROF_TYPEOF_(v), 0))
#endif
