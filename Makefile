# `make help` lists what can be done here. On Debian and Ubuntu, what is missing is installed first; on macOS nothing is.
#
# A comment that begins with ## is the sentence of the target after it. Targets that begin with "part-" are parts of other targets
# and need a build.

.DEFAULT_GOAL := run
.PHONY: help run build test test-homes check check-first release bench test-durability test-soak test-simulation test-moves setup \
	setup-tests setup-bench format lint thread-sanitizer thread-sanitizer-build thread-sanitizer-core docs clean part-parallel \
	part-interop part-alone part-apns part-homes part-docs part-packages part-release

BUILD := .build/debug
# The package manager passes the enabled traits to the compiler in the order of a set. Without this variable the order is another one
# in each run, and each run compiles all modules of the package again.
SWIFT_BUILD := SWIFT_DETERMINISTIC_HASHING=1 swift build
# All builds for debugging have the same options, since others would compile everything again; so have all for release.
DEBUG := $(SWIFT_BUILD) --explicit-target-dependency-import-check error
RELEASE_BUILD := $(SWIFT_BUILD) -c release --static-swift-stdlib
RELEASE := .build/release/carillon
PYTHON := .venv/bin/python
# As many tests at a time as let each have its share of two cores: more of them run out of time beside the others.
export SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH = 8
# Suites that measure time, or that keep both cores busy.
ALONE := PushKillTests|StoreKillTests|SlowReaderTests|DeadlineTests|AbandonedPushTests|MovingShardsTests
# Two parts at a time, each with its output in one piece. All of them run, also if one fails.
BESIDE = $(MAKE) --keep-going --jobs=2 $(if $(filter output-sync,$(.FEATURES)),--output-sync=target)
# What compiles beside tests leaves the cores to them.
BEHIND := nice -n 10

## List the targets.
help:
	@Scripts/targets

## Show one push on its way, and keep the server running to try it by hand.
run: setup
	$(DEBUG) --product carillon
	@# Ctrl-C is how it ends.
	$(BUILD)/carillon demo || [ $$? = 130 ]

## Build everything for debugging, with all tests and the benchmarks.
build: setup
	$(DEBUG) --build-tests

## Run all tests, with the real executable and programs from PyPI.
test: setup-tests build
	$(MAKE) part-parallel
	+$(BESIDE) part-interop part-apns
	$(MAKE) part-alone

## Run the tests that depend on the number of homes, with two homes in each server.
test-homes: setup-tests build part-homes

## Run what CI runs: `check-first`, the tests with two homes, the release executable in a bare root, and the thread sanitizer.
check: check-first
	@# Tests with the sanitizer run one by one, and leave a core to the others.
	+$(BESIDE) thread-sanitizer-core part-homes part-release
	@echo "$$(date +%T) All checks pass."

## Check the format, and build, test and document everything: the first part of `check`.
check-first: setup-tests lint build
	$(MAKE) part-parallel
	@# Interop tests and those of the APNs client wait most of their time.
	+$(BESIDE) part-interop part-apns part-docs part-packages
	$(MAKE) part-alone
	@echo "$$(date +%T) Format, build, tests and documentation pass."

part-parallel:
	Scripts/tests --skip InteropTests --skip CarillonAPNsTests --skip "$(ALONE)"

part-interop:
	CARILLON_INTEROP=$(CURDIR)/$(PYTHON) Scripts/tests --filter InteropTests

part-apns:
	Scripts/tests --no-parallel --filter CarillonAPNsTests --skip "$(ALONE)"

part-alone:
	Scripts/tests --no-parallel --filter "$(ALONE)"

part-homes:
	suites=$$(Scripts/home-tests) && CARILLON_TEST_HOMES=2 Scripts/tests --filter "$$suites" --skip InteropTests \
		--skip PushKillTests --skip SlowReaderTests --skip MovingShardsTests

part-docs:
	Scripts/docs

# The packages that are meant, and benchmarks that start.
part-packages:
	Scripts/package-versions
	Scripts/consumers
	$(BUILD)/carillon-bench --help >/dev/null

part-release:
	$(BEHIND) $(MAKE) release
	Scripts/bare-root $(RELEASE)

## Build the executable to install, which needs no toolchain where it runs, and its symbols beside it.
release: setup
	$(RELEASE_BUILD) --product carillon
	Scripts/separate-symbols $(RELEASE)
	@echo "$(RELEASE)"

## Print the tables of docs/benchmarks.md; BENCH="--only ROW" measures one row.
bench: setup-bench
	for product in carillon ItemBench apns-load carillon-bench; do $(RELEASE_BUILD) --product $$product || exit 1; done
	.build/release/carillon-bench --executable $(RELEASE) $(BENCH)

## Kill the server 150 times under load, with faults of the disk; `make test` does it 10 times.
test-durability: setup-tests
	$(DEBUG) --product carillon
	CARILLON_EXECUTABLE=$(CURDIR)/$(BUILD)/carillon $(PYTHON) -B Tests/EndToEndTests/Interop/durability --kills 150

## Send a million pushes to an APNs simulator that misbehaves at random; `make test` sends twenty thousand.
test-soak: build
	CARILLON_APNS_SOAK=1000000 Scripts/tests --filter SimulatedSoakTests

## Publish updates for a thousand devices over a month, ten times; `make test` does it once, for a hundred devices.
test-simulation: build
	CARILLON_UPDATE_SEEDS=10 Scripts/tests --filter UpdateModelTests

## Move shards between two homes for a minute, while devices and senders use everything; `make test` does it for 20 seconds.
test-moves: build
	CARILLON_MOVING_SECONDS=60 Scripts/tests --no-parallel --filter MovingShardsTests

## Install what a build needs beyond the Swift toolchain.
setup:
	@Scripts/setup

## Install what the tests need, too.
setup-tests:
	@Scripts/setup tests

## Install what the benchmarks need, too.
setup-bench:
	@Scripts/setup bench

FORMATTED := Package.swift Sources Plugins Tests Examples Benchmarks

## Format all Swift files.
format:
	swift format --in-place --recursive --parallel $(FORMATTED)

## Check the format of Swift files, the sentences of targets, and words that the glossary excludes.
lint:
	swift format lint --strict --recursive --parallel $(FORMATTED)
	@Scripts/targets >/dev/null
	@Scripts/words

# The sanitizer makes everything some ten times slower, so that tests run one by one, and those that count tens of thousands are
# left to `make test`. `make check` builds and runs the modules without sockets; `make thread-sanitizer` the others after them.
SANITIZE := --sanitize=thread --scratch-path .build/thread-sanitizer

## Build the modules without sockets and their tests for the thread sanitizer.
thread-sanitizer-build: setup
	CARILLON_SANITIZED=core SWIFT_DETERMINISTIC_HASHING=1 $(BEHIND) swift build --build-tests $(SANITIZE)

## Run the tests of the modules without sockets with the thread sanitizer.
thread-sanitizer-core: thread-sanitizer-build
	CARILLON_SANITIZED=core Scripts/tests $(SANITIZE) --no-parallel \
		--skip 'DeliveryModelTests|BackupTests|LeasedWorkTests'

## Run the tests of all modules with the thread sanitizer.
thread-sanitizer: thread-sanitizer-core
	CARILLON_SANITIZED=all $(SWIFT_BUILD) --build-tests $(SANITIZE)
	CARILLON_SANITIZED=all Scripts/tests $(SANITIZE) --no-parallel \
		--skip 'CarillonWireTests|CarillonCoreTests|CarillonSQLiteTests|SimulatedSoakTests' \
		--skip 'leaves after every few pushes|each result of an asynchronous batch|tens of thousands of cancelled'

## Check the documentation of the products: every catalogue converts, and no link in it is broken.
docs: build part-docs

## Remove what was built and installed here.
clean:
	rm -rf .build .venv
