#!/usr/bin/env python3
"""usage: driver_abi_headers_check.py ABI_ANSWERS CXX CACHE_DIR -- our types against NVIDIA's headers.

Compiles, with NVIDIA's headers in one namespace and ours outside, an assertion per entry point
(same shape of every parameter), per versioned look-up (the symbol we answer has the signature of
that version) and per field that our code reads (same offset). The headers come from PyPI into
CACHE_DIR and are never kept in the repository. Exits 77, saying so, where pip does not answer."""
import pathlib, re, subprocess, sys, zipfile

answers, compiler, cache = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
root = pathlib.Path(__file__).resolve().parent.parent
STRUCTS = {"cuda": ("cuda_structs.h", "cuda_launch_structs.h", "cuda_graph_structs.h"),
           "nvml": ("nvml_structs.h", "nvml_instance_structs.h", "nvml_device_structs.h")}
# Not the same fields in every version: carved out of reserved bytes, nested, or a name that moved
# on to a longer struct (its size is then not compared either).
GROWN = {"CUmemPoolProps", "CUDA_MEMCPY3D_BATCH_OP", "CUDA_KERNEL_NODE_PARAMS",
         "nvmlGpuFabricInfoV_t"}
SYNONYMS = dict(pair.split(":") for pair in """src:from dst:to size:byte bytesize:byte ctx:context
  kern:kernel fn:function func:function dptr:address algo:algorithm lod:level ext:semaphore
  sems:semaphore param:operation num:count total:count str:text file:register v:height h:width
  speed:rpm return:result 1:first 2:second temperature:celsius pktfilter:packet mw:milliwatt
  proc:process processe:process dec:decoder enc:encoder jpg:jpeg mem:memory stamp:timestamp util:sample
  occurred:failed attr:attribute sem:semaphore
  """.split())
# Fields inside nested structs and unions, where the order of names does not tell: type, their
# field, our field.
NESTED = [
    ("CUdevResource", "sm", "sm"),
    ("CUmemAllocationProp", "win32HandleMetaData", "win32_handle_metadata"),
    ("CUmemAllocationProp", "allocFlags.usage", "flags.usage"),
    ("CUDA_ARRAY_SPARSE_PROPERTIES", "miptailSize", "miptail_bytes"),
    ("CUDA_ARRAY_SPARSE_PROPERTIES", "flags", "flags"),
    ("CUarrayMapInfo", "subresource.sparseLevel.extentDepth", "sparse_level.depth"),
    ("CUarrayMapInfo", "subresource.miptail.size", "miptail.bytes"),
    ("CUarrayMapInfo", "memOperationType", "operation"),
    ("CUarrayMapInfo", "memHandle", "handle"),
    ("CUarrayMapInfo", "deviceBitMask", "device_bit_mask"),
    ("CUDA_EXTERNAL_MEMORY_HANDLE_DESC", "handle.fd", "fd"),
    ("CUDA_EXTERNAL_MEMORY_HANDLE_DESC", "size", "bytes"),
    ("CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC", "flags", "flags"),
    ("CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS", "flags", "flags"),
    ("CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS", "params.keyedMutex.timeoutMs", "keyed_mutex.timeout_ms"),
    ("CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS", "flags", "flags"),
    ("CUDA_RESOURCE_DESC", "res.linear.sizeInBytes", "linear.bytes"),
    ("CUDA_RESOURCE_DESC", "res.pitch2D.pitchInBytes", "pitch.pitch_bytes"),
    ("CUDA_RESOURCE_DESC", "flags", "flags"),
    ("CUmemcpy3DOperand", "op.ptr.locHint", "pointer.hint"),
    ("CUmemcpy3DOperand", "op.array.offset", "array.x"),
    ("CUDA_MEMCPY3D_BATCH_OP", "extent", "width"),
    ("CUDA_MEMCPY3D_BATCH_OP", "flags", "flags"),
    ("CUlaunchAttributeValue", "clusterDim.z", "cluster.z"),
    ("CUlaunchAttributeValue", "programmaticEvent.flags", "event.flags"),
    ("CUlaunchAttributeValue", "deviceUpdatableKernelNode.devNode", "updatable.node"),
    ("CUstreamBatchMemOpParams", "writeValue.flags", "value.flags"),
    ("CUgraphNodeParams", "kernel.ctx", "kernel.context"),
    ("CUgraphNodeParams", "memcpy.copyParams", "memcpy.copy"),
    ("CUgraphNodeParams", "memset.ctx", "memset.context"),
    ("CUgraphNodeParams", "alloc.dptr", "alloc.address"),
    ("CUgraphNodeParams", "free.dptr", "free_address"),
    ("CUgraphNodeParams", "memOp.flags", "operations.flags"),
    ("CUgraphNodeParams", "conditional.phGraph_out", "conditional.graphs"),
    ("CUgraphNodeParams", "reserved2", "reserved2"),
    ("nvmlUUID_t", "value", "bytes"),
    ("nvmlGpuThermalSettings_t", "sensor[2].target", "sensors[2].target"),
    ("nvmlGpuDynamicPstatesInfo_t", "utilization[7].decThreshold", "utilization[7].decrease_threshold"),
    ("nvmlClkMonStatus_t", "clkMonList[1].clkDomainFaultMask", "faults[1].fault_mask"),
    ("nvmlBridgeChipHierarchy_t", "bridgeChipInfo[1].fwVersion", "chips[1].firmware"),
    ("nvmlGpmMetricsGet_t", "metrics[1].metricInfo", "metrics[1].short_name")]

PACKAGES = [  # package, version, CUDA version
    ("nvidia-cuda-runtime", "13.5.37", 13050), ("nvidia-cuda-runtime", "13.0.96", 13000),
    ("nvidia-cuda-runtime-cu12", "12.9.79", 12090), ("nvidia-cuda-runtime-cu11", "11.8.89", 11080),
    ("nvidia-nvml-dev", "13.5.37", 13050), ("nvidia-nvml-dev", "13.0.87", 13000),
    ("nvidia-nvml-dev-cu12", "12.9.79", 12090), ("nvidia-nvml-dev-cu11", "11.8.86", 11080)]
# What the interop headers include and PyPI does not have: only these names matter.
STANDINS = {
    "GL/gl.h": "typedef unsigned int GLenum; typedef unsigned int GLuint; typedef int GLint;",
    "EGL/egl.h": "typedef void* EGLImageKHR; typedef void* EGLStreamKHR; typedef void* EGLSyncKHR;"
                 " typedef int EGLint;",
    "EGL/eglext.h": "", "vdpau/vdpau.h":
        "typedef unsigned VdpDevice, VdpVideoSurface, VdpOutputSurface;"
        " typedef void VdpGetProcAddress;"}
CUDA_HEADERS = ["GL/gl.h", "EGL/egl.h", "vdpau/vdpau.h", "cuda.h", "cudaGL.h", "cudaEGL.h",
                "cudaVDPAU.h", "cudaTypedefs.h", "cudaGLTypedefs.h", "cudaEGLTypedefs.h",
                "cudaVDPAUTypedefs.h"]
SHAPES = """
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <type_traits>
namespace nv { extern "C" {
%(headers)
} }
%(macros)
#include "driver_abi/cuda_functions.h"
#include "driver_abi/nvml_functions.h"
template <typename T> struct Complete { template <typename U> static char at(int, char (*)[sizeof(U)]);
  template <typename U> static long at(long, void*);
  static constexpr bool value = sizeof(at<T>(0, nullptr)) == 1; };
template <typename A, typename B> constexpr bool same() {
  if constexpr (std::is_pointer_v<A> && std::is_pointer_v<B>) {
    using X = std::remove_pointer_t<A>; using Y = std::remove_pointer_t<B>;
    if constexpr (std::is_function_v<X> || std::is_function_v<Y>)
      return std::is_function_v<X> == std::is_function_v<Y> || std::is_void_v<Y>;
    else return std::is_const_v<X> == std::is_const_v<Y> &&
                same<std::remove_const_t<X>, std::remove_const_t<Y>>();
  } else if constexpr (std::is_void_v<A> || std::is_void_v<B>) {
    return std::is_void_v<A> && std::is_void_v<B>;
  } else if constexpr ((std::is_class_v<A> || std::is_union_v<A>) &&
                       (std::is_class_v<B> || std::is_union_v<B>)) {
    if constexpr (Complete<A>::value && Complete<B>::value)
      return sizeof(A) == sizeof(B) || std::is_same_v<B, ::nvmlGpmMetricsGet_t> ||
             std::is_same_v<B, ::nvmlGpuFabricInfoV_t>;
    else return true;
  } else if constexpr (std::is_enum_v<A>) {
    return std::is_integral_v<B> && sizeof(A) == sizeof(B);
  } else {
    return std::is_same_v<A, B> || (std::is_integral_v<A> && std::is_integral_v<B> &&
           sizeof(A) == sizeof(B) && std::is_signed_v<A> == std::is_signed_v<B>);
  }
}
template <typename A, typename B> struct Same;
template <typename R, typename... A, typename S, typename... B>
struct Same<R (*)(A...), S (*)(B...)> {
  static constexpr bool value() {
    if constexpr (sizeof...(A) == sizeof...(B)) return same<R, S>() && (same<A, B>() && ...);
    else return false;
  }
};
namespace fn = aliquot::driver_abi::fn;
#define SYMBOL(name) static_assert(Same<decltype(&nv::name), fn::name>::value(), "signature " #name)
#define VERSION(type, name) static_assert(Same<nv::type, fn::name>::value(), #type " is not " #name)
#define FIELD(theirs, field, ours, own) static_assert(offsetof(nv::theirs, field) == \\
    offsetof(::ours, own), #ours "::" #own)
#define NUMBER(name) static_assert(static_cast<int>(nv::name) == ::name, "number " #name)
"""


def fetch(package, version):
    target = cache / f"{package}-{version}"
    if not target.is_dir():
        wheels = cache / "wheels"
        done = subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps",
                               "--only-binary", ":all:", "-d", wheels, f"{package}=={version}"],
                              capture_output=True, text=True, timeout=120)
        if done.returncode != 0:
            print(f"skipped: pip does not give {package} {version}: {done.stderr.strip()[-200:]}")
            sys.exit(77)
        wheel = next(wheels.glob(f"{package.replace('-', '_')}-{version}-*.whl"))
        zipfile.ZipFile(wheel).extractall(target)
    return next(target.rglob("nvml.h" if "nvml" in package else "cuda.h")).parent


def rows(table):
    out = subprocess.run([answers, table], capture_output=True, text=True, check=True).stdout
    return [line.split("\t")[0] for line in out.splitlines()]


def code_of(path):
    text = path.read_text(errors="replace")
    return re.sub(r"/\*.*?\*/", "", re.sub(r"//.*", "", text), flags=re.S)


def versioned_lookups(include):
    """(typedef, symbol that our table answers) of every PFN_name_vVERSION[_ptsz|_ptds]."""
    found = set()
    for header in filter(lambda h: h.endswith("Typedefs.h"), CUDA_HEADERS):
        found |= set(re.findall(r"\bPFN_(cu(?!WGL)\w+?)_v(\d+)(_pt[sd][zs])?\)",
                                code_of(include / header)))
    found = sorted(found)
    text = "".join(f"{b} {v} {2 if pt else 0} 99999\n" for b, v, pt in found)
    out = subprocess.run([answers, "gpa"], input=text, capture_output=True, text=True, check=True)
    return [(f"PFN_{b}_v{v}{pt}", s) for (b, v, pt), s in zip(found, out.stdout.splitlines())]


def plain_structs(text):
    """name -> field names, of structs without anything nested; typedef names resolve to them."""
    found, alias = {}, {}
    for tag, body, name in re.findall(r"struct\s*(\w*)\s*\{([^{}]*)\}\s*(\w*)\s*;", text):
        fields = []
        for declaration in re.sub(r"\[[^\]]*\]|\*", " ", body).split(";"):
            parts = declaration.split(",")
            if declaration.strip() and "(" not in declaration:
                fields += [part.split()[-1] for part in parts]
        for key in filter(None, (tag, name)):
            found[key] = fields
    for target, name in re.findall(r"typedef\s+(?:struct\s+)?(\w+)\s+(\w+)\s*;", text):
        alias[name] = target
    for name in alias:
        end = name
        while end in alias and end not in found:
            end = alias[end]
        if end in found:
            found.setdefault(name, found[end])
    return found


def words(name):
    """The meaning of a field's name in comparable words: dstXInBytes and to_x_bytes share three."""
    parts = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)
    singular = [re.sub(r"(?<![su])s$", "", part.lower()) for part in parts]
    return {SYNONYMS.get(part, part) for part in singular}


def agree(theirs, ours):
    direction = {"from", "to"}
    a, b = words(theirs), words(ours)
    return bool(a & b) and a & direction == b & direction


def field_pairs(library, theirs, known):
    """Each field of our structs with the one at its place in theirs, and the nested ones."""
    mine = {}
    for file in STRUCTS[library]:
        mine |= {n: f for n, f in plain_structs(code_of(root / "src/driver_abi" / file)).items()
                 if n.startswith(("CU", "nvml"))}
    there = plain_structs(theirs)
    pairs, odd = [], []
    for name, own in mine.items():
        fields = there.get(name)
        if fields and len(fields) == len(own):
            pairs += [(name, f, name, o) for f, o in zip(fields, own)]
            odd += [f"{name}: our {o} stands where they have {f}" for f, o in zip(fields, own)
                    if not agree(f, o)]
        elif fields and name not in GROWN:
            odd.append(f"{name}: we have {len(own)} fields, they have {len(fields)}")
    nested = [(t, f, t, o) for t, f, o in NESTED if t in known and t.startswith(
        "nvml" if library == "nvml" else "CU") and re.split(r"[.\[]", f)[0] in known]
    return pairs + nested, odd


def numbers(file):
    text = (root / "src/driver_abi" / file).read_text()
    return re.findall(r"^ALIQUOT_(?:RESULT|NUMBER)\((?:\w+, )?(\w+), -?\w+\)", text, re.M)


def check(package, version, cuda_version):
    include = fetch(package, version)
    nvml = "nvml" in package
    headers = ["nvml.h"] if nvml else [h for h in CUDA_HEADERS
                                       if h in STANDINS or (include / h).is_file()]
    theirs = "".join(code_of(include / h) for h in headers if h not in STANDINS)
    known = set(re.findall(r"\b\w+\b", theirs))
    head = "".join(f'#include "{h}"\n' for h in headers)
    text = [f"#define {'NVML_NO_UNVERSIONED_FUNC_DEFS' if nvml else '__CUDA_API_VERSION_INTERNAL'}\n"
            + SHAPES]
    names = [n for n in rows("nvml" if nvml else "cuda") if n in known]
    text += [f"SYMBOL({n});\n" for n in names]
    lookups = [] if nvml else versioned_lookups(include)
    missing = [f"{t}: no symbol for it" for t, s in lookups if not s.startswith("cu")]
    text += [f"VERSION({t}, {s});\n" for t, s in lookups if s.startswith("cu")]
    fields, odd = field_pairs("nvml" if nvml else "cuda", theirs, known)
    missing += odd
    text += [f"FIELD({', '.join(f)});\n" for f in fields]
    ours = [n for file in (("nvml_results.def", "nvml_numbers.def") if nvml else
                           ("cuda_results.def", "cuda_numbers.def"))
            for n in numbers(file) if n in known]
    macros = [n for n in ours if re.search(rf"#\s*define\s+{n}\b", theirs)]
    used = [n for n in ours if cuda_version == 13050 and n not in macros]
    text += [f"NUMBER({n});\n" for n in used]
    source = cache / f"check-{package}-{version}.cc"
    # A macro of theirs would replace our constant: its value is kept under another name.
    values = [n for n in macros if not re.search(rf"define\s+{n}\s+\(+\s*(CUstream|void)", theirs)]
    kept = "".join(f"constexpr long long macro_{n} = (long long)({n});\n" for n in values) + \
           "".join(f"#undef {n}\n" for n in macros)
    text += [f"static_assert(static_cast<int>(macro_{n}) == ::{n}, \"number {n}\");\n"
             for n in values if cuda_version == 13050]
    source.write_text("".join(text).replace("%(headers)", head).replace("%(macros)", kept))
    built = subprocess.run([compiler, "-std=c++20", "-fsyntax-only", "-w", f"-I{include}",
                            f"-I{cache / 'standins'}", f"-I{root / 'src'}", source],
                           capture_output=True, text=True)
    errors = re.findall(r"error: (.*)", built.stderr)
    print(f"{package} {version}: {len(names)} signatures, {len(lookups)} versions, "
          f"{len(fields)} fields, {len(used)} numbers; {len(errors) + len(missing)} differ")
    return [f"{package} {version}: {e}" for e in missing + errors]


for name, body in STANDINS.items():
    (cache / "standins" / name).parent.mkdir(parents=True, exist_ok=True)
    (cache / "standins" / name).write_text(body + "\n")
bad = [line for package in PACKAGES for line in check(*package)]
print("\n".join(bad))
sys.exit(bool(bad))
