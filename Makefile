# Every step of CI is a target here; the steps themselves are in .ci/run.
.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build run demo
build: ## build dist/parley
	@.ci/run build
run: ## the main job: the six patterns of the demo, from source
	go run ./cmd/parley demo
demo: ## the same from a freshly built dist/parley
	@.ci/run demo

.PHONY: test race race-all fmt vet lint vuln mod
test: ## every test
	go test ./...
race: ## the tests under the race detector, without those that start processes, and long ones in their short form
	@.ci/run race
race-all: ## every test under the race detector
	CGO_ENABLED=1 go test -race -timeout 30m ./...
fmt: ## fail if a file is not gofmt-ed
	@.ci/run fmt
vet: ## go vet
	@.ci/run vet
lint: ## golangci-lint, built from the version in tools/go.mod
	@.ci/run lint
vuln: ## govulncheck; VULNDB=<url> names another database
	@.ci/run vuln
mod: ## go.mod and go.sum: verified and tidy
	@.ci/run mod

.PHONY: browser
browser: ## the inbox's pages in a real Chromium, installed where it is missing
	@.ci/browser

.PHONY: gateways
gateways: ## the gateways by other people's clients, servers and suites
	@.ci/gateways

.PHONY: languages
languages: ## the agents of examples/agents in Python and Node, asyncapi.yaml by its tool, HTTP by schemathesis and a generated client
	@.ci/languages

.PHONY: sdk-python sdk-temporal sdk-typescript sdk-docs sdk-packages
sdk-python: ## the Python SDK: lint, types, its wheel in an empty environment, and its tests
	@.ci/sdk-python
sdk-temporal: ## its bridge to Temporal, with a server that is built once
	@.ci/temporal
sdk-typescript: ## the TypeScript SDK: types, its tests on two versions of Node, and its package in an empty folder
	@.ci/sdk-typescript
sdk-docs: ## the reference of both SDKs, to dist/sdk-python/reference and dist/sdk-typescript/reference
	@.ci/sdk-python --docs
	@.ci/sdk-typescript --docs
sdk-packages: sdk-typescript ## both SDKs as they are published, with the program in them, in empty folders
	@.ci/sdk-packages

.PHONY: release image reproduce chart
release: ## programs for five platforms, archives, SBOMs and SHA256SUMS, to dist/release
	@.ci/release all
image: ## an OCI image for linux/amd64 and linux/arm64, as a tar, to dist/parley-image.tar
	@.ci/release image
reproduce: ## build this machine's program once more, elsewhere: the same bytes?
	@.ci/release reproduce
chart: ## lint the Helm chart and render it to deploy/rendered; the first time it builds Helm for ten minutes
	@.ci/chart

.PHONY: interop
interop: ## programs of others, in Go, Rust and Python, read what parley makes
	@.ci/interop

.PHONY: fault fault-long long upgrade
fault: ## kills, pauses, clocks, lost servers: the short form, which `make test` has too
	go test -count=1 -v ./test/fault
long: ## each fault of fault-long once, and kills with a store of three shards
	@.ci/run long
upgrade: ## brokers of earlier releases beside this one
	@.ci/run upgrade
fault-long: ## for FOR (30m), then a full disk and partitions; the last two need user and network namespaces
	go test -count=1 -tags long -timeout 3h -v -run 'Long|FullDisk|Partitioned|LinkCut|Reconnects' ./test/fault -args -for $(or $(FOR),30m)
	go test -count=1 -tags long -timeout 1h -v -run Long ./test/cluster
	go test -count=1 -tags long -timeout 30m -v -run TenThousand ./cmd/parley

.PHONY: generate drift
generate: ## write the generated files again
	go generate ./...
drift: ## fail if a generated file is not what its generator writes
	@.ci/run drift

.PHONY: bench bench-peers micro fuzz
bench: ## what an act costs next to the store alone; BENCH="--sync 1m --sessions 128" says what
	@.ci/run build
	dist/parley bench $(BENCH)
bench-peers: ## parley, PostgreSQL behind an HTTP API, and NATS, in turns; BENCH="--rounds 8 --sessions 128" says how
	@.ci/run build
	go -C scripts/peers build -o ../../dist/peers .
	dist/peers $(BENCH)
micro: ## every Go benchmark; BENCH=<regexp> picks some
	go test -run '^$$' -bench '$(or $(BENCH),.)' -benchmem ./...
fuzz: ## each fuzz target for FUZZTIME (2s)
	@.ci/run fuzz

.PHONY: ci
ci: ## all that a change has to pass
	@.ci/run
