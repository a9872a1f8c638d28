// Symbols of objects that are already loaded, found by reading their ELF hash tables.
//
// A library that exports dlsym and dlvsym cannot ask dlsym for the real ones: that is a recursion.
// Here the dynamic linker is asked only for its list of objects (dl_iterate_phdr, public since
// glibc 2.2.4); no private name of libc is needed. Only objects of the caller's link-map namespace
// are seen. Any thread; allocates nothing.
#pragma once

namespace aliquot::interposer {

// The address of `name` in a loaded object whose SONAME is `soname`; null if there is none. Of
// several versions the default one. Indirect functions are not resolved and count as absent.
void* find_loaded_symbol(const char* soname, const char* name);

// Whether the object that holds `address` has this SONAME; works across link-map namespaces.
bool lies_in_object(const void* address, const char* soname);

}  // namespace aliquot::interposer
