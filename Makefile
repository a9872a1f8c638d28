# The commands people use. Everything is built under build/.
.PHONY: demo test test-long test-bare test-clients fuzz bench build clean help

help:            ## this list
	@sed -n 's/^\([a-z-]*\): *.*## */  make \1\t/p' $(MAKEFILE_LIST)

build: setup-demo ## the release build alone
	@scripts/build.sh release

demo: setup-demo ## two programs share one simulated GPU
	@scripts/build.sh release programs
	@scripts/demo.sh build/release

test:            ## what CI runs, at most 25 minutes on two cores
	@scripts/test.sh short

test-long:       ## all of it in full
	@scripts/test.sh long

test-bare:       ## `make demo` and `make test` in a fresh Debian 12
	@scripts/test_bare.sh

fuzz: build-fuzz ## every fuzzer for a minute
	@scripts/fuzz.sh 60

bench: build     ## figures as JSON; CHECK=1 holds them to bench/thresholds.json
	@scripts/bench.py build/release $(if $(CHECK),--check)

clean:           ## remove build/
	rm -rf build

.PHONY: setup-demo build-fuzz
setup-demo:
	@scripts/setup.sh demo
build-fuzz:
	@scripts/setup.sh test
	@scripts/build.sh fuzz fuzzers
