#!/usr/bin/env python3
"""The alerts of deploy/prometheus/rules.yaml by promtool: each fires, and does not one evaluation early;
a sound node raises none; each is explained in docs/alerts.md. And the queries that people copy.
usage: prometheus_rules_test.py SOURCE_DIRECTORY; exits 77 where promtool is not installed."""
import json, pathlib, re, shutil, subprocess, sys, tempfile

TICK = 15  # seconds between evaluations, and between samples
GPU = 'instance="n1",gpu="3",uuid="GPU-3"'
SHARE = f'{GPU},namespace="lab",pod="train",container="main"'
XID = f'{GPU},xid="79"'
gpu = {"instance": "n1", "gpu": "3", "uuid": "GPU-3"}
share = gpu | {"namespace": "lab", "pod": "train", "container": "main"}

# Alert; its series from the start; seconds until the condition first holds and until it fires; labels
# of the alert; summary. A series is (name and labels, values in promtool's notation).
STEADY = "x400"
CASES = [
    ("AliquotContainerUnderused", [(f"aliquot_container_gpu_utilization_ratio{{{SHARE}}}", f"0.14{STEADY}")],
     300, share, "info", "lab/train uses 14% of GPU 3"),
    ("AliquotContainerNearMemoryLimit",
     [(f"aliquot_container_gpu_memory_used_bytes{{{SHARE}}}", f"96{STEADY}"),
      (f"aliquot_container_gpu_memory_limit_bytes{{{SHARE}}}", f"100{STEADY}")],
     300, share, "warning", "lab/train has 96% of its GPU memory in use"),
    ("AliquotContainerRefusedMemory",
     [(f"aliquot_container_gpu_memory_refusals_total{{{SHARE}}}", "0x9 1x400")],
     10 * TICK, share, "warning", "lab/train was refused GPU memory at its limit"),
    ("AliquotContainerThrottled",
     [(f"aliquot_container_gpu_throttled_seconds_total{{{SHARE}}}", "0x20 9+9x400")],
     37 * TICK + 600, share, "info", "lab/train waits 60% of the time for its turn"),
    ("AliquotContainerBypass",
     [(f"aliquot_container_gpu_bypasses_total{{{SHARE}}}", "0x9 1x400")],
     10 * TICK, share, "critical", "lab/train did work past its share"),
    ("AliquotGpuLost", [(f'aliquot_gpu_health{{{GPU},state="lost"}}', f"1{STEADY}")],
     60, gpu | {"state": "lost"}, "critical", "GPU 3 of n1 has fallen off the bus"),
    ("AliquotGpuUnhealthy", [(f'aliquot_gpu_health{{{GPU},state="unhealthy"}}', f"1{STEADY}")],
     300, gpu | {"state": "unhealthy"}, "warning", "GPU 3 of n1 is unhealthy; no new work gets it"),
    ("AliquotXidHardware",
     [(f"aliquot_gpu_xid_last_timestamp_seconds{{{XID}}}", f"_x20 300{STEADY}"),
      (f'aliquot_gpu_xid_errors_total{{{XID},class="hardware"}}', f"_x20 1{STEADY}")],
     20 * TICK, gpu | {"xid": "79"}, "critical", "GPU 3 of n1: XID 79, a hardware fault"),
    ("AliquotXidDriver",
     [(f"aliquot_gpu_xid_last_timestamp_seconds{{{XID}}}", f"_x20 300{STEADY}"),
      (f'aliquot_gpu_xid_errors_total{{{XID},class="driver"}}', f"_x20 1{STEADY}")],
     20 * TICK, gpu | {"xid": "79"}, "warning", "GPU 3 of n1: XID 79, a fault of the driver"),
    ("AliquotGpuStale", [(f"aliquot_gpu_answer_age_seconds{{{GPU}}}", "0+15x400")],
     195 + 60, gpu, "warning", "GPU 3 of n1 has not answered for 4m 15s"),
    ("AliquotGpuOvercommitted", [(f"aliquot_gpu_cores_granted_ratio{{{GPU}}}", f"1.2{STEADY}")],
     300, gpu, "info", "More of GPU 3 of n1 is granted than it has"),
    ("AliquotMemoryFragmented", [('aliquot_node_memory_fragmentation_ratio{instance="n1"}', f"0.31{STEADY}")],
     300, {"instance": "n1"}, "info", "31% of the free GPU memory of n1 lies in small remainders"),
    ("AliquotNotRegistered", [('aliquot_node_registered{instance="n1"}', f"0{STEADY}")],
     120, {"instance": "n1"}, "critical",
     "kubelet of n1 does not hold the stream of aliquotd: no GPU is offered"),
    ("AliquotAllocatableUnlikeInventory",
     [('kube_node_status_allocatable{node="node-a",resource="aliquot_dev_gpu"}', f"0{STEADY}"),
      ('aliquot_node_info{instance="n1",node="node-a"}', f"1{STEADY}"),
      (f'aliquot_gpu_health{{{GPU},state="healthy"}}', f"1{STEADY}")],
     120, {"node": "node-a", "resource": "aliquot_dev_gpu"}, "critical", "node-a has healthy GPUs and offers none"),
    ("AliquotProcessWithoutLease", [('aliquot_node_unleased_processes{instance="n1"}', f"2{STEADY}")],
     60, {"instance": "n1"}, "warning", "2 processes use a GPU of n1 without a lease"),
    ("AliquotLeasesLeaked", [('aliquot_node_leaked_leases_total{instance="n1"}', "0x9 1x400")],
     10 * TICK, {"instance": "n1"}, "info", "aliquotd of n1 found and ended leases without a container"),
]

# What must raise nothing: a sound, well used node.
SOUND = [
    (f"aliquot_container_gpu_utilization_ratio{{{SHARE}}}", f"0.15{STEADY}"),
    (f"aliquot_container_gpu_memory_used_bytes{{{SHARE}}}", f"95{STEADY}"),
    (f"aliquot_container_gpu_memory_limit_bytes{{{SHARE}}}", f"100{STEADY}"),
    (f"aliquot_container_gpu_memory_refusals_total{{{SHARE}}}", f"7{STEADY}"),
    (f"aliquot_container_gpu_throttled_seconds_total{{{SHARE}}}", "0+7x400"),
    (f'aliquot_gpu_health{{{GPU},state="healthy"}}', f"1{STEADY}"),
    (f'aliquot_gpu_health{{{GPU},state="lost"}}', f"0{STEADY}"),
    (f"aliquot_gpu_answer_age_seconds{{{GPU}}}", f"60{STEADY}"),
    (f"aliquot_gpu_cores_granted_ratio{{{GPU}}}", f"1{STEADY}"),
    (f'aliquot_gpu_xid_errors_total{{{GPU},xid="31",class="application"}}', f"1{STEADY}"),
    (f'aliquot_gpu_xid_last_timestamp_seconds{{{GPU},xid="31"}}', f"0{STEADY}"),
    ('aliquot_node_memory_fragmentation_ratio{instance="n1"}', f"0.3{STEADY}"),
    ('aliquot_node_registered{instance="n1"}', f"1{STEADY}"),
    ('kube_node_status_allocatable{node="node-a",resource="aliquot_dev_gpu"}', f"70{STEADY}"),
    ('aliquot_node_info{instance="n1",node="node-a"}', f"1{STEADY}"),
    ('aliquot_node_unleased_processes{instance="n1"}', f"0{STEADY}"),
    ('aliquot_node_leaked_leases_total{instance="n1"}', f"3{STEADY}"),
]

# The queries that people copy, word for word (docs/metrics.md).
QUERIES = [
    ("sum(rate(container_gpu_utilization[1m])) by (pod)",
     [(f"container_gpu_utilization{{{SHARE}}}", "0+15x40"), (f'container_gpu_utilization{{{SHARE.replace("train", "idle")}}}', "5x40")],
     [('{pod="train"}', 1), ('{pod="idle"}', 0)]),
    ("sum(rate(aliquot_container_gpu_busy_seconds_total[1m])) by (pod)",
     [(f"aliquot_container_gpu_busy_seconds_total{{{SHARE}}}", "0+6x40")], [('{pod="train"}', 0.4)]),
    ("container_gpu_memory_usage / container_gpu_memory_limit",
     [(f"container_gpu_memory_usage{{{SHARE}}}", "3x40"), (f"container_gpu_memory_limit{{{SHARE}}}", "4x40")],
     [(f"{{{SHARE}}}", 0.75)]),
    ("100 * sum by (instance) (cnb_gpu_memory_used_bytes) / sum by (instance) (cnb_gpu_memory_total_bytes)",
     [('cnb_gpu_memory_used_bytes{instance="n1"}', "20x40"), ('cnb_gpu_memory_total_bytes{instance="n1"}', "80x40")],
     [('{instance="n1"}', 25)]),
]


def series(pairs):
    return [{"series": name, "values": values} for name, values in pairs]


def runbook(alert):
    return f"docs/alerts.md#{alert.lower()}"


def alert_test(alert, pairs, fires_at, labels, severity, summary):
    fired = {"exp_labels": labels | {"severity": severity},
             "exp_annotations": {"summary": summary, "runbook_url": runbook(alert)}}
    return {"interval": f"{TICK}s", "input_series": series(pairs), "alert_rule_test": [
        {"eval_time": f"{fires_at - TICK}s", "alertname": alert, "exp_alerts": []},
        {"eval_time": f"{fires_at}s", "alertname": alert, "exp_alerts": [fired]}]}


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    rules = root / "deploy/prometheus/rules.yaml"
    if not shutil.which("promtool"):
        print("skipped: promtool is not installed (Debian package prometheus)")
        sys.exit(77)
    alerts = re.findall(r"- alert: (\w+)", rules.read_text())
    if sorted(alerts) != sorted(case[0] for case in CASES):
        sys.exit(f"alerts without a test, or tests without an alert: {set(alerts) ^ {c[0] for c in CASES}}")
    explained = re.findall(r"^## (\w+)$", (root / "docs/alerts.md").read_text(), re.MULTILINE)
    if sorted(explained) != sorted(alerts):
        sys.exit(f"docs/alerts.md and the rules differ: {set(alerts) ^ set(explained)}")
    tests = [alert_test(*case) for case in CASES]
    tests.append({"interval": f"{TICK}s", "input_series": series(SOUND), "alert_rule_test": [
        {"eval_time": "25m", "alertname": alert, "exp_alerts": []} for alert in alerts]})
    tests += [{"interval": f"{TICK}s", "input_series": series(pairs), "promql_expr_test": [
        {"expr": query, "eval_time": "5m",
         "exp_samples": [{"labels": labels, "value": value} for labels, value in expected]}]}
        for query, pairs, expected in QUERIES]
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:  # JSON is YAML
        json.dump({"rule_files": [str(rules)], "evaluation_interval": f"{TICK}s", "tests": tests}, file)
        file.flush()
        for command in (["check", "rules", str(rules)], ["test", "rules", file.name]):
            ran = subprocess.run(["promtool", *command], capture_output=True, text=True)
            if ran.returncode != 0:
                sys.exit(ran.stdout + ran.stderr)


main()
