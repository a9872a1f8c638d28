// Binds what this library takes from libc to versions that glibc 2.17 has.
//
// glibc 2.34 moved libdl into libc and gave its functions a new version; the old ones are still
// there. A file that calls one of them includes this header, so that a library built on a new
// machine loads on an old one. A test reads the finished library's versions.
#pragma once

#if defined(__x86_64__) && defined(__GLIBC__)
asm(".symver dlopen, dlopen@GLIBC_2.2.5");
asm(".symver dlclose, dlclose@GLIBC_2.2.5");
asm(".symver dlerror, dlerror@GLIBC_2.2.5");
asm(".symver dladdr1, dladdr1@GLIBC_2.3.3");
#endif
