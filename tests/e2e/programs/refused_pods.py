"""Which pods kubelet refused, and whether it may have: refused_pods.py INTERVALS < PODS_AND_EVENTS_JSON

INTERVALS has lines BEGIN END in milliseconds of the epoch: pods may be refused in them alone. Prints a line for each
pod that ended other than well. Ends with 1 where one was refused at another time, or had started and failed.

When kubelet refused a pod stands in the event it writes then; where that got lost, status.startTime is when it first
saw the pod, which is the same moment unless a kubelet that was started anew admits the pod a second time. Both are cut
to whole seconds: the moment lies somewhere in the second that begins there, and it is that second which must meet an
interval. So a refusal is let pass that lies less than a second beside one, and none is blamed for the rounding.
"""
import datetime, json, sys


def ms(text):
    return int(datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1000)


def refused_at(pod, events):
    said = [event["lastTimestamp"] for event in events
            if event["involvedObject"].get("uid") == pod["metadata"]["uid"]
            and event["reason"] == pod["status"].get("reason") and event.get("lastTimestamp")]
    return ms(max(said)) if said else ms(pod["status"].get("startTime") or pod["metadata"]["creationTimestamp"])


def never_ran(pod):
    """A kubelet that was killed after a pod's sandbox finds it gone, or the start that it had asked for canceled, and
    makes no other for a pod that runs once. A start that failed by itself is one that failed."""
    def canceled(status):
        end = status.get("state", {}).get("terminated", {})
        return end.get("reason") == "StartError" and "context canceled" in end.get("message", "")
    return all(not status.get("containerID") or canceled(status)
               for status in pod["status"].get("containerStatuses", []))


def main():
    with open(sys.argv[1]) as file:
        intervals = [tuple(map(int, line.split())) for line in file]
    items = json.load(sys.stdin)["items"]
    events = [item for item in items if item["kind"] == "Event"]
    wrong = False
    for pod in (item for item in items if item["kind"] == "Pod" and item["status"].get("phase") == "Failed"):
        name, reason = pod["metadata"]["name"], pod["status"].get("reason")
        if not reason and not never_ran(pod):  # kubelet gives none where it was a container that failed
            wrong = True
            print(f"{name}: started, and failed")
            continue
        if not reason:
            made = ms(pod["metadata"]["creationTimestamp"])
            killed = any(made <= end and begin <= made + 10_000 for begin, end in intervals)
            wrong |= not killed
            print(f"{name}: never started, {'a kill' if killed else 'no kill'} came between its sandbox and its container")
            continue
        second = refused_at(pod, events)
        inside = any(begin < second + 1000 and second <= end for begin, end in intervals)
        wrong |= not inside
        nearest = min((max(begin - second - 999, second - end, 0) for begin, end in intervals), default=0)
        where = "between a kill and the registration after it" if inside else f"{nearest} ms beside every interval"
        message = " ".join(pod["status"].get("message", "").split())
        print(f"{name}: {reason}, {where}: {message}")
    return 1 if wrong else 0


sys.exit(main())
