// The exported functions: one per row of the entry-point tables, and dlsym and dlvsym.
//
// In assembly because nothing may stand between the caller and the driver:
//  * a kPass row is one indirect jump through the row's slot; every register and the stack stay as
//    the caller left them, so its signature does not matter;
//  * dlsym must *jump* to libc's dlsym, which finds RTLD_NEXT and the namespace by looking at its
//    return address; a call from here would answer for this library instead of for the caller.
// Slots start out pointing at a small resolver, which loads the real library and fills them all.
#if !defined(__x86_64__)
#error "entry_stubs.S: only x86-64 is written"
#endif

// A symbol under the name programs use, and its address in the list of hooks.
#define EXPORT(symbol) \
  .section .data.rel.ro.hooks, "aw", @progbits; .quad aliquot_hook_##symbol; \
  .text; .p2align 4; .globl symbol; .type symbol, @function; \
  symbol: aliquot_hook_##symbol: endbr64;

// The row's pointer to the real function, and what it holds until there is one.
#define SLOT(symbol) \
  .section .data.rel.slots, "aw", @progbits; \
  aliquot_slot_##symbol: .quad aliquot_first_##symbol; \
  .text; \
  aliquot_first_##symbol: leaq aliquot_slot_##symbol(%rip), %r11; jmp aliquot_first_call;

#define BODY_kPass(symbol, denied) jmp *aliquot_slot_##symbol(%rip);
#define BODY_kGuard(symbol, denied) jmp aliquot_guard_##symbol;
// Denied rows answer NOT_SUPPORTED (CUDA) and NO_PERMISSION (NVML).
#define BODY_kDeny(symbol, denied) movl $denied, %eax; ret;

#define LABEL(section_name, label) \
  .section section_name, "aw", @progbits; .p2align 3; .globl label; .hidden label; label:

LABEL(.data.rel.slots, aliquot_cuda_slots)
LABEL(.data.rel.ro.hooks, aliquot_cuda_hooks)
#define ALIQUOT_ENTRY(symbol, base, since, until, kind, params, args) \
  EXPORT(symbol) BODY_##kind(symbol, 801) .size symbol, . - symbol; SLOT(symbol)
#include "driver_abi/cuda_entry_points.def"

LABEL(.data.rel.slots, aliquot_nvml_slots)
LABEL(.data.rel.ro.hooks, aliquot_nvml_hooks)
#define ALIQUOT_ENTRY(symbol, base, since, until, kind, params, args) \
  EXPORT(symbol) BODY_##kind(symbol, 4) .size symbol, . - symbol; SLOT(symbol)
#include "driver_abi/nvml_entry_points.def"

  .text
// %r11: the slot. Keeps everything a call can carry, asks aliquot_resolve, goes on there.
aliquot_first_call:
  endbr64
  pushq %rdi
  pushq %rsi
  pushq %rdx
  pushq %rcx
  pushq %r8
  pushq %r9
  pushq %rax
  subq $128, %rsp
  movups %xmm0, (%rsp)
  movups %xmm1, 16(%rsp)
  movups %xmm2, 32(%rsp)
  movups %xmm3, 48(%rsp)
  movups %xmm4, 64(%rsp)
  movups %xmm5, 80(%rsp)
  movups %xmm6, 96(%rsp)
  movups %xmm7, 112(%rsp)
  movq %r11, %rdi
  call aliquot_resolve
  movq %rax, %r11
  movups (%rsp), %xmm0
  movups 16(%rsp), %xmm1
  movups 32(%rsp), %xmm2
  movups 48(%rsp), %xmm3
  movups 64(%rsp), %xmm4
  movups 80(%rsp), %xmm5
  movups 96(%rsp), %xmm6
  movups 112(%rsp), %xmm7
  addq $128, %rsp
  popq %rax
  popq %r9
  popq %r8
  popq %rcx
  popq %rdx
  popq %rsi
  popq %rdi
  jmp *%r11

// Where a slot leads when there is no such function, or no driver for this program.
#define ANSWER(name, number) \
  .globl name; .hidden name; .type name, @function; name: endbr64; movl $number, %eax; ret; \
  .size name, . - name;
ANSWER(aliquot_cuda_absent, 500)   // CUDA_ERROR_NOT_FOUND
ANSWER(aliquot_cuda_refused, 100)  // CUDA_ERROR_NO_DEVICE
ANSWER(aliquot_nvml_absent, 13)    // NVML_ERROR_FUNCTION_NOT_FOUND
ANSWER(aliquot_nvml_refused, 9)    // NVML_ERROR_DRIVER_NOT_LOADED

#ifndef ALIQUOT_WITHOUT_LOOKUPS
// aliquot_decide_lookup(handle, name, version, caller) -> {%rax: the answer, or 0 and
// %rdx: the handle to ask libc with}. libc sees the caller's own return address.
#define LOOKUP(symbol) \
  .globl symbol; .type symbol, @function; \
  symbol: endbr64; \
  pushq %rdi; pushq %rsi; pushq %rdx; \
  movq 24(%rsp), %rcx; \
  PREPARE_##symbol \
  call aliquot_decide_lookup; \
  movq %rdx, %r11; \
  popq %rdx; popq %rsi; popq %rdi; \
  testq %rax, %rax; jne 1f; \
  movq %r11, %rdi; \
  jmp *aliquot_real_##symbol(%rip); \
  1: ret; \
  .size symbol, . - symbol;
#define PREPARE_dlsym xorl %edx, %edx;
#define PREPARE_dlvsym
LOOKUP(dlsym)
LOOKUP(dlvsym)
#endif

  .section .note.GNU-stack, "", @progbits
