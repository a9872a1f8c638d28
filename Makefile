# The commands people use. Everything is built under build/.
.PHONY: demo test test-long test-bare test-clients e2e e2e-long fuzz bench gpu build clean help

help:            ## this list
	@sed -n 's/^\([a-z-]*\): *.*## */  make \1\t/p' $(MAKEFILE_LIST)

build: setup-demo ## the release build alone
	@scripts/build.sh release

demo: setup-demo ## two programs share one simulated GPU
	@scripts/build.sh release programs
	@scripts/demo.sh build/release

test:            ## what CI runs first, at most 25 minutes on two cores
	@scripts/test.sh short

test-long:       ## all of it in full
	@scripts/test.sh long

test-clients: build-clients ## programs that nobody here wrote, with every driver version
	@scripts/test_clients.sh build/release

test-bare:       ## `make demo` and `make test` in a fresh Debian 12
	@scripts/test_bare.sh

e2e: setup-e2e   ## pods on a real kubelet beside a simulated machine; as root
	@scripts/build.sh release e2e_programs
	@scripts/e2e.sh short

e2e-long: setup-e2e ## the same, with ten times as many kills
	@scripts/build.sh release e2e_programs
	@scripts/e2e.sh long

fuzz: build-fuzz ## every fuzzer for a minute
	@scripts/fuzz.sh 60

bench: build     ## figures as JSON; CHECK=1 holds them to bench/thresholds.json
	@scripts/bench.py build/release $(if $(CHECK),--check)

gpu:             ## the checks that need a real GPU; builds nothing, says so where there is none
	@scripts/gpu.sh build/release

clean:           ## remove build/
	rm -rf build

.PHONY: setup-demo setup-e2e build-fuzz
setup-demo:
	@scripts/setup.sh demo
setup-e2e:
	@scripts/setup.sh e2e
build-clients:
	@scripts/setup.sh test
	@scripts/build.sh release programs with_machine
build-fuzz:
	@scripts/setup.sh test
	@scripts/build.sh fuzz fuzzers
