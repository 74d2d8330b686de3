# For find_package(npuprof): the target npuprof::npuprof, which is headers and threads.
# SPDX-License-Identifier: MIT
include(CMakeFindDependencyMacro)
find_dependency(Threads)

if(NOT TARGET npuprof::npuprof)
  # Why the real path: a folder on the way may be a link, and `..` then leads elsewhere.
  get_filename_component(_npuprof_here "${CMAKE_CURRENT_LIST_DIR}" REALPATH)
  foreach(_npuprof_up "../../.." "../..")   # lib/cmake/npuprof, share/npuprof
    if(EXISTS "${_npuprof_here}/${_npuprof_up}/include/npuprof.h")
      get_filename_component(_npuprof_include "${_npuprof_here}/${_npuprof_up}/include" ABSOLUTE)
    endif()
  endforeach()
  if(NOT _npuprof_include)
    set(npuprof_FOUND FALSE)
    set(npuprof_NOT_FOUND_MESSAGE "npuprof.h is not in the include folder beside ${_npuprof_here}: install npuprof again")
  else()
    add_library(npuprof::npuprof INTERFACE IMPORTED)
    set_target_properties(npuprof::npuprof PROPERTIES
      INTERFACE_INCLUDE_DIRECTORIES "${_npuprof_include}"
      INTERFACE_LINK_LIBRARIES Threads::Threads)
  endif()
  unset(_npuprof_here)
  unset(_npuprof_include)
endif()
