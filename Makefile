# SPDX-License-Identifier: Apache-2.0
#
# The pattern "work" matches all packages of all modules in go.work.

GO       ?= go
FUZZTIME ?= 10s
TIME     ?= 10m
SEED     ?= 1

.PHONY: help run test test-long soak simulate robustness check bench bench-http bench-redis bench-postgres bench-resp bench-envoy bench-replay bench-dashboards compare-exactness fuzz mutate release setup

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## serve a built-in example policy; needs only Go
	@echo "building mete; the first time, this takes half a minute"
	$(GO) run ./cmd/mete serve

test: setup ## run the tests that a change needs; thirteen minutes on two cores
	scripts/test

test-long: setup ## run all tests, checks and builds with fresh seeds; half an hour on two cores
	scripts/test long; status=$$?; scripts/check long && exit $$status

soak: setup ## run two servers under load and faults for TIME (10m)
	cd proof && METE_SOAK=$(TIME) $(GO) test -race -count=1 -timeout 0 -v -run '^TestSoak$$' ./soak

simulate: ## run nodes over a simulated network for TIME (10m), and count the runs
	cd proof && $(GO) test -count=1 -timeout 0 -v -run '^TestSimulation$$' ./simulation -simulation.time=$(TIME)

robustness: setup ## record histories of real stores under faults for TIME (1h), check them, and count them
	cd proof && $(GO) test -count=1 -timeout 0 -v -run '^(TestHistories|TestBound)$$' ./history -history.time=$(if $(filter file,$(origin TIME)),1h,$(TIME))

check: ## format, vet, staticcheck, tidy modules, house rules, prose, commits, another system
	scripts/check

bench: ## compare with other in-memory limiters
	cd bench && $(GO) run ./compare

bench-http: setup ## compare mete serve with net/http, ReverseProxy and nginx; nine minutes
	cd bench && $(GO) run ./http -rounds 5 -time 2s

bench-redis: setup ## compare with other limiters that use Redis; ten minutes
	cd bench && $(GO) run ./redis

bench-postgres: setup ## compare with other limiters that use PostgreSQL; ten minutes
	cd bench && $(GO) run ./postgres

bench-resp: setup ## compare mete over RESP with Redis; five minutes
	cd bench && $(GO) run ./resp

bench-envoy: setup ## compare the services for Envoy with envoyproxy/ratelimit; three minutes
	cd bench && $(GO) run ./envoy

bench-replay: ## compare the replay of an access log with GoAccess and plain scans
	cd bench && $(GO) run ./replay

bench-dashboards: ## measure the cost of 100 open dashboards; three minutes
	cd bench && $(GO) run ./dashboards

compare-exactness: setup ## compare how exactly 17 limiters keep their promises, with SEED (1); writes doc/comparison.md; five minutes
	cd bench/exactness && METE_COMPARE=$(SEED) $(GO) test . -count=1 -timeout 0 -parallel 3 -v -run '^TestComparison$$'

mutate: setup ## report random changes of the code that no test detects; half an hour; ARGS=-all for all
	$(GO) run ./tools/mutate $(ARGS)

fuzz: ## run every fuzz target for FUZZTIME (10s)
	scripts/fuzz $(FUZZTIME)

release: ## make a version from a clean tree: VERSION=v1.2.3
	scripts/release $(VERSION)

setup: ## install the programs that the tests need
	scripts/setup
