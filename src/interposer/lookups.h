// dlsym and dlvsym as this library exports them: who gets our function, and who gets libc's answer.
//
// A name of the tables is answered with our function when libc, asked with the caller's handle,
// answers with a real driver's function, or with ours while the real driver has the name too.
// Everything else (other names, other libraries, questions of the driver itself, and our own) goes
// to libc untouched, from the caller's own return address (entry_stubs.S).
//
// Any thread, before main, inside a constructor. Loads the real driver only for its own names.
#pragma once

namespace aliquot::interposer {

using Dlsym = void* (*)(void* handle, const char* name);
// libc's own, found by reading its tables; never null (answers null where there is no libc).
Dlsym libc_dlsym();

}  // namespace aliquot::interposer
