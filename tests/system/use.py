"""Who had GPU 0, by the device's own account: use.py SOCKET SECONDS; prints {pid: percent}. SOCKET is the
simulated machine's (docs/formats/simulated_telemetry.md): exact, where NVML's samples are whole
percents of whole periods."""
import json, socket, struct, sys, time

REQUEST, REPLY = struct.Struct("<III"), struct.Struct("<iIQ")
GPU, PROCESS = struct.Struct("<2q3Q4Q32Q14I"), struct.Struct("<iIQq")
PROCESS_COUNT = 9 + 32 + 10  # its place among the figures of a GPU
server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
server.connect(sys.argv[1])


def account():
    server.send(REQUEST.pack(0x0500, 4, 0))
    answer = server.recv(1 << 14)
    assert REPLY.unpack_from(answer)[0] == 0
    figures = GPU.unpack_from(answer, REPLY.size)
    at, had = REPLY.size + GPU.size, {}
    for _ in range(figures[PROCESS_COUNT]):
        pid, _, _, busy = PROCESS.unpack_from(answer, at)
        had[pid] = had.get(pid, 0) + busy
        at += PROCESS.size
    assert at == len(answer), "GpuTelemetry has another layout"
    return figures[0], had


began, before = account()
time.sleep(float(sys.argv[2]))
ended, after = account()
print(json.dumps({pid: 100 * (had - before.get(pid, 0)) / (ended - began) for pid, had in after.items()}))
