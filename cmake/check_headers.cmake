# Target check_headers: each header of src/ compiles alone, without the precompiled one.
#
# Real objects rather than -fsyntax-only, so that ninja and ccache remember what has not changed. The list is
# made when CMake runs; tools/check runs it first.
file(GLOB_RECURSE headers RELATIVE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/src/*.h)
set(sources)
foreach(header ${headers})
  set(source ${PROJECT_BINARY_DIR}/check_headers/${header}.cc)
  file(CONFIGURE OUTPUT ${source} CONTENT "#include \"${header}\"\n")
  list(APPEND sources ${source})
endforeach()
add_library(check_headers OBJECT EXCLUDE_FROM_ALL ${sources})
target_compile_options(check_headers PRIVATE -O0 -g0)
target_link_libraries(check_headers PRIVATE orrery_flags orrery_rocksdb orrery_libraft PkgConfig::BSON OpenSSL::SSL)
