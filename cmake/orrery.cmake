# How every library, test and program of the tree is built.
find_package(Threads REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(GTest REQUIRED)
find_package(PkgConfig REQUIRED)
find_library(ORRERY_JEMALLOC libjemalloc.so.2 jemalloc REQUIRED)
pkg_check_modules(BSON REQUIRED IMPORTED_TARGET libbson-1.0)
pkg_check_modules(LZ4 REQUIRED IMPORTED_TARGET liblz4)
pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd)
pkg_check_modules(SNAPPY REQUIRED IMPORTED_TARGET snappy)
pkg_check_modules(CRYPT REQUIRED IMPORTED_TARGET libcrypt)

file(RELATIVE_PATH up ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR})
set(CMAKE_CXX_COMPILER_LAUNCHER ${PROJECT_SOURCE_DIR}/tools/compile ${PROJECT_SOURCE_DIR} ${up})
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g1 -DNDEBUG")
set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g1")

add_library(orrery_flags INTERFACE)
target_compile_options(orrery_flags INTERFACE -Wall -Wextra -Werror -Werror=switch -Wno-unused-parameter
  -Wno-missing-field-initializers -fno-omit-frame-pointer -fstack-protector-strong -Xclang -fno-pch-timestamp)
target_compile_definitions(orrery_flags INTERFACE BOOST_ASIO_SEPARATE_COMPILATION BOOST_BEAST_SEPARATE_COMPILATION
  BOOST_ASIO_NO_DEPRECATED SPDLOG_COMPILED_LIB SPDLOG_FMT_EXTERNAL _GLIBCXX_ASSERTIONS)
target_include_directories(orrery_flags INTERFACE ${PROJECT_SOURCE_DIR}/src ${PROJECT_BINARY_DIR}/generated)
target_link_options(orrery_flags INTERFACE -fuse-ld=lld-19)
target_link_libraries(orrery_flags INTERFACE Threads::Threads)
if(CMAKE_SYSTEM_PROCESSOR STREQUAL x86_64)
  target_compile_options(orrery_flags INTERFACE -msse4.2 -mpclmul)
endif()
if(ORRERY_SANITIZE STREQUAL "address")
  # Not vptr: it wants the type information of libraries that were built without it.
  target_compile_options(orrery_flags INTERFACE -fsanitize=address,undefined -fno-sanitize=vptr -fno-sanitize-recover=all)
  target_link_options(orrery_flags INTERFACE -fsanitize=address,undefined)
elseif(ORRERY_SANITIZE STREQUAL "thread")
  target_compile_options(orrery_flags INTERFACE -fsanitize=thread)
  target_link_options(orrery_flags INTERFACE -fsanitize=thread)
endif()
if(ORRERY_FUZZ)
  target_compile_options(orrery_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# Asio, compiled once. The precompiled header names it, so every program links it.
add_library(orrery_asio STATIC ${PROJECT_SOURCE_DIR}/src/runtime/asio.cc)
target_link_libraries(orrery_asio PUBLIC orrery_flags)

add_library(orrery_rocksdb INTERFACE)
target_include_directories(orrery_rocksdb SYSTEM INTERFACE ${ORRERY_ROCKSDB}/include)
target_link_libraries(orrery_rocksdb INTERFACE ${ORRERY_ROCKSDB}/lib/librocksdb.a PkgConfig::LZ4 PkgConfig::ZSTD
  Threads::Threads dl)

# The consensus core. With its assertions where sanitizers are on, and in what calls orrery_check_libraft.
add_library(orrery_libraft INTERFACE)
target_include_directories(orrery_libraft SYSTEM INTERFACE ${ORRERY_LIBRAFT}/include)
if(ORRERY_SANITIZE)
  target_link_libraries(orrery_libraft INTERFACE ${ORRERY_LIBRAFT}/lib/libraft_checked.a)
else()
  target_link_libraries(orrery_libraft INTERFACE ${ORRERY_LIBRAFT}/lib/libraft.a)
endif()

# orrery_check_libraft(<executable>): it links the library with assertions. lld takes the first that has a symbol,
# and options stand before libraries.
function(orrery_check_libraft target)
  if(NOT ORRERY_SANITIZE)
    target_link_options(${target} PRIVATE ${ORRERY_LIBRAFT}/lib/libraft_checked.a)
  endif()
endfunction()

# orrery_library(<folder> SOURCES a.cc... DEPS base... [LINK libs...] [TESTS x_test.cc...])
#
# DEPS are the folders that this one may include (and what those point to); tools/check_layers compares
# them with the #include lines. The tests of a folder become one binary, <folder>_test.
function(orrery_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPS;LINK;TESTS" ${ARGN})
  string(REPLACE "/" "_" target ${name})
  add_library(orrery_${target} STATIC ${arg_SOURCES})
  target_link_libraries(orrery_${target} PUBLIC orrery_flags)
  foreach(dep ${arg_DEPS})
    string(REPLACE "/" "_" dep_target ${dep})
    target_link_libraries(orrery_${target} PUBLIC orrery_${dep_target})
  endforeach()
  target_link_libraries(orrery_${target} PUBLIC ${arg_LINK})
  if(NOT target STREQUAL base)
    target_precompile_headers(orrery_${target} REUSE_FROM orrery_base)
  endif()
  if(arg_TESTS)
    add_executable(${target}_test ${arg_TESTS})
    target_link_libraries(${target}_test PRIVATE orrery_${target} GTest::gtest_main)
    target_precompile_headers(${target}_test REUSE_FROM orrery_base)
    add_test(NAME ${target} COMMAND ${target}_test)
    set_property(GLOBAL APPEND PROPERTY orrery_tests ${target}_test)
  endif()
endfunction()
