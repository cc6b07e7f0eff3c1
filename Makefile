# What can be done here. On Debian and Ubuntu, what is missing is installed first; on macOS nothing is.

.PHONY: run test test-homes check check-release release bench test-durability test-soak test-simulation test-moves setup setup-tests \
	setup-bench format lint thread-sanitizer thread-sanitizer-build thread-sanitizer-core docs clean

BUILD := .build/debug
# All builds for debugging have the same options, since others would compile everything again.
DEBUG := swift build --explicit-target-dependency-import-check error
RELEASE := .build/release/carillon
PYTHON := .venv/bin/python
# As many tests at a time as let each have its share of two cores: more of them run out of time beside the others.
export SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH = 8

## Show one push on its way, and keep the server up to try by hand.
run: setup
	$(DEBUG) --product carillon
	@# Ctrl-C is how it ends.
	$(BUILD)/carillon demo || [ $$? = 130 ]

## All tests, with the real executable and programs from PyPI. What keeps both cores busy, or measures time, runs alone.
test: setup-tests
	$(DEBUG) --build-tests
	CARILLON_INTEROP=$(CURDIR)/$(PYTHON) Scripts/tests --filter InteropTests
	Scripts/tests --skip InteropTests --skip CarillonAPNsTests --skip PushKillTests --skip StoreKillTests \
		--skip SlowReaderTests --skip DeadlineTests --skip MovingShardsTests
	Scripts/tests --no-parallel --filter "PushKillTests|StoreKillTests|SlowReaderTests|DeadlineTests|MovingShardsTests"
	Scripts/tests --no-parallel --filter CarillonAPNsTests

## The tests of the server and of the executable, with servers that have two homes.
test-homes: setup-tests
	$(DEBUG) --build-tests
	CARILLON_TEST_HOMES=2 Scripts/tests --filter "CarillonServerTests|EndToEndTests" --skip InteropTests --skip PushKillTests \
		--skip StoreKillTests --skip SlowReaderTests --skip MovingShardsTests

## What CI runs before `test-homes`: format, a build without warnings and with explicit imports, the packages that are meant, docs, all tests, the
## release executable in a bare root, the benchmarks' build, and the sanitizer over the rooms without sockets.
check: lint setup-tests
	$(DEBUG) --build-tests
	Scripts/package-versions
	Scripts/consumers
	$(MAKE) docs
	$(MAKE) test
	$(MAKE) thread-sanitizer-build
	@# Tests with the sanitizer run one by one, and leave a core to the compiler.
	$(MAKE) --jobs=2 check-release thread-sanitizer-core

# The release executable in a bare root, and the benchmarks' build.
check-release: release
	Scripts/bare-root $(RELEASE)
	swift build --package-path Benchmarks
	Benchmarks/.build/debug/carillon-bench --help >/dev/null

## The executable to install, and its symbols beside it: it needs no toolchain where it runs.
release: setup
	swift build -c release --static-swift-stdlib --product carillon
	Scripts/separate-symbols $(RELEASE)
	@echo "$(RELEASE)"

## The tables of docs/benchmarks.md. Beside Nchan where nginx and its module are installed.
bench: setup-bench
	swift build -c release --product carillon
	swift build -c release --product ItemBench
	swift build -c release --package-path Benchmarks
	Benchmarks/.build/release/carillon-bench --executable .build/release/carillon $(BENCH)

## 150 SIGKILLs under load, with faults of the disk; CI does 10.
test-durability: setup-tests
	$(DEBUG) --product carillon
	CARILLON_EXECUTABLE=$(CURDIR)/$(BUILD)/carillon $(PYTHON) -B Tests/EndToEndTests/Interop/durability --kills 150

## A million pushes to a simulator that misbehaves at random, each accounted for; CI does twenty thousand.
test-soak: setup
	$(DEBUG) --build-tests
	CARILLON_APNS_SOAK=1000000 Scripts/tests --filter SimulatedSoakTests

## Updates for a thousand devices over a month, ten times, each with its own chance; CI does one of a hundred devices.
test-simulation: setup
	$(DEBUG) --build-tests
	CARILLON_UPDATE_SEEDS=10 Scripts/tests --filter UpdateModelTests

## Shards that move between two homes for a minute, while devices and senders use everything; CI does 20 seconds.
test-moves: setup
	$(DEBUG) --build-tests
	CARILLON_MOVING_SECONDS=60 Scripts/tests --no-parallel --filter MovingShardsTests

setup:
	@Scripts/setup

setup-tests:
	@Scripts/setup tests

setup-bench:
	@Scripts/setup bench

format:
	swift format --in-place --recursive --parallel Package.swift Sources Tests Examples Benchmarks/Package.swift Benchmarks/Sources

lint:
	swift format lint --strict --recursive --parallel Package.swift Sources Tests Examples

# All rooms and their tests but the executable, with locks that the sanitizer can see; it makes everything some ten times
# slower, so that tests run by turns, and those that count tens of thousands are left to `make test`. `make check` builds and
# runs the rooms without sockets; `make thread-sanitizer` the others after them.
SANITIZE := --sanitize=thread --scratch-path .build/thread-sanitizer
thread-sanitizer-build: setup
	CARILLON_SANITIZED=core swift build --build-tests $(SANITIZE)

thread-sanitizer-core: thread-sanitizer-build
	CARILLON_SANITIZED=core Scripts/tests $(SANITIZE) --no-parallel \
		--skip 'DeliveryModelTests|BackupTests|LeasedWorkTests'

thread-sanitizer: thread-sanitizer-core
	CARILLON_SANITIZED=all swift build --build-tests $(SANITIZE)
	CARILLON_SANITIZED=all Scripts/tests $(SANITIZE) --no-parallel \
		--skip 'CarillonWireTests|CarillonCoreTests|CarillonSQLiteTests|SimulatedSoakTests' \
		--skip 'leaves after every few pushes|two readers of one asynchronous batch|tens of thousands of cancelled'

docs: setup
	@# Without the tests it would compile everything with other options.
	$(DEBUG) --build-tests
	Scripts/docs

clean:
	rm -rf .build .venv Benchmarks/.build
