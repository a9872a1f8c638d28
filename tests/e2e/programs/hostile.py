"""What a tenant that means harm may try from inside its container, one deed by name: hostile.py DEED. Prints what
it could do; it shall be nothing."""
import ctypes, os, random, shutil, socket, sys, time

LEASE, LIBRARIES, BEHIND = "/run/aliquot/lease", "/run/aliquot/lib", "/run/aliquot/driver/behind/cuda"
# Every mount. The directories between them are the container's own; moving those it only hides them from itself.
OURS = [LEASE, LIBRARIES, BEHIND, "/etc/ld.so.preload", "/usr/lib/x86_64-linux-gnu/libcuda.so.1"]


def call(library, name, *arguments):
    result = getattr(library, name)(*arguments)
    if result != 0:
        raise SystemExit(f"{name}: {result}")


def take(library, size):
    device, context, pointer = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
    call(library, "cuInit", 0)
    call(library, "cuDeviceGet", ctypes.byref(device), 0)
    call(library, "cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    call(library, "cuCtxSetCurrent", context)
    call(library, "cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(size))


def scribble():
    """Random words all over the ledger, which it has mapped to be written."""
    take(ctypes.CDLL("libcuda.so.1"), 1 << 20)
    spans = []
    for line in open("/proc/self/maps"):
        words = line.split()
        if words[1].startswith("rw-s") and len(words) > 5 and "ledger" in words[5]:
            spans.append(tuple(int(word, 16) for word in words[0].split("-")))
    print("ledger:", len(spans), flush=True)
    for _ in range(200_000):
        begin, end = random.choice(spans)
        ctypes.c_uint64.from_address(begin + random.randrange((end - begin) // 8) * 8).value = random.getrandbits(64)
    os._exit(0)  # its own account is past telling


def unlink():
    """Removes, overwrites, replaces and moves what it was given; root in its container."""
    done = []
    for top in OURS:
        for path in [top] + [os.path.join(at, name) for at, _, names in os.walk(top) for name in names]:
            for deed in (lambda: os.unlink(path), lambda: open(path, "r+b"), lambda: os.rename(path, path + ".old"),
                         lambda: shutil.copy("/bin/true", path), lambda: os.chmod(path, 0o777)):
                try:
                    deed()
                    done.append(path)
                except OSError:
                    pass
        if ctypes.CDLL(None).umount2(top.encode(), 2) == 0:  # MNT_DETACH
            done.append("umount " + top)
    print("could change:", " ".join(done) or "nothing", flush=True)


def flood():
    """Connections to its own socket, as many as it can make, with junk or silent."""
    end, held, made = time.monotonic() + 4, [], 0
    while time.monotonic() < end:
        one = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        one.settimeout(0.05)
        try:
            one.connect(LEASE + "/socket")
            made += 1
            if made % 2:
                one.send(os.urandom(random.choice((1, 64, 4000))))
            held.append(one)
        except OSError:
            one.close()
        if len(held) > 800:
            held = []
    print("connections:", made, flush=True)


def bypass():
    """The driver behind ours, by a loader that knows no preload, for more than the share."""
    if os.environ.get("PAST") != "1":
        with open("/lib64/ld-linux-x86-64.so.2", "rb") as ours, open("/tmp/loader", "wb") as other:
            other.write(ours.read().replace(b"/etc/ld.so.preload", b"/etc/ld.so.nothing"))
        os.chmod("/tmp/loader", 0o755)
        os.execve("/tmp/loader", ["/tmp/loader", os.path.realpath("/usr/bin/python3"), *sys.argv], {**os.environ, "PAST": "1"})
    take(ctypes.CDLL(BEHIND), 10 << 30)
    print("has 10 GiB past its share", flush=True)
    time.sleep(600)


{"scribble": scribble, "unlink": unlink, "flood": flood, "bypass": bypass}[sys.argv[1]]()
