// A plugin for qemu-aarch64 7.2 that counts what callgrind counts with --instr-atstart=no: the instructions of the only
// thread from CALLGRIND_START_INSTRUMENTATION to CALLGRIND_STOP_INSTRUMENTATION.
//
//   gcc -shared -fPIC -O2 tests/gate_counter.c -o gate_counter.so
//   qemu-aarch64 -plugin ./gate_counter.so PROGRAM      prints "Collected : N" on standard error
//
// Debian has no header of qemu's interface for plugins. The declarations that are needed follow, of its version 1.
#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct qemu_plugin_tb;    // a block: instructions that run one after another
struct qemu_plugin_insn;  // an instruction of a block
enum { QEMU_PLUGIN_CB_NO_REGS = 0, QEMU_PLUGIN_INLINE_ADD_U64 = 0 };
extern void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id, void (*translated)(uint64_t, struct qemu_plugin_tb*));
extern void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb* tb, int op, void* number, uint64_t operand);
extern void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn* insn, void (*executes)(unsigned, void*),
                                                   int flags, void* data);
extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb* tb);
extern struct qemu_plugin_insn* qemu_plugin_tb_get_insn(const struct qemu_plugin_tb* tb, size_t i);
extern const void* qemu_plugin_insn_data(const struct qemu_plugin_insn* insn);

__attribute__((visibility("default"))) int qemu_plugin_version = 1;

// Valgrind's requests end with orr x10, x10, x10. It does nothing, and compilers do not write it.
static const uint32_t kRequest = 0xaa0a014a;

static uint64_t begun;     // the instructions of all blocks that have begun
static uint64_t at_start;  // those up to the request that starts counting
static int counting;

// `left` is the number of instructions after the request in its block.
static void Requests(unsigned cpu, void* left) {
  (void)cpu;
  const uint64_t executed = begun - (uintptr_t)left;
  if (counting) fprintf(stderr, "Collected : %" PRIu64 "\n", executed - 1 - at_start);
  at_start = executed;
  counting = !counting;
}

static void Translated(uint64_t id, struct qemu_plugin_tb* tb) {
  (void)id;
  const size_t size = qemu_plugin_tb_n_insns(tb);
  qemu_plugin_register_vcpu_tb_exec_inline(tb, QEMU_PLUGIN_INLINE_ADD_U64, &begun, size);
  for (size_t i = 0; i < size; ++i) {
    struct qemu_plugin_insn* insn = qemu_plugin_tb_get_insn(tb, i);
    uint32_t code;
    memcpy(&code, qemu_plugin_insn_data(insn), sizeof(code));
    if (code == kRequest)
      qemu_plugin_register_vcpu_insn_exec_cb(insn, Requests, QEMU_PLUGIN_CB_NO_REGS, (void*)(uintptr_t)(size - 1 - i));
  }
}

__attribute__((visibility("default"))) int qemu_plugin_install(uint64_t id, const void* info, int argc, char** argv) {
  (void)info, (void)argc, (void)argv;
  qemu_plugin_register_vcpu_tb_trans_cb(id, Translated);
  return 0;
}
